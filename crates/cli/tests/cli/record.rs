//! `record` keeps out of the way: output, input, exit status. Its own failures are 125.

mod processes;
mod signals;

use std::io::Write;
use std::process::Stdio;

use super::{Answer, Place};
use backstory_testkit::need;

#[test]
fn the_exit_status_is_the_commands_own() {
    let place = Place::new();
    for (line, status) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        let answer = place.run(&["record", "--", "sh", "-c", line]);
        assert_eq!(
            (answer.status, answer.out.as_str(), answer.err.as_str()),
            (status, "", ""),
            "{line}"
        );
    }
}

#[test]
fn a_missing_command_exits_with_127_and_leaves_a_failed_run() {
    let place = Place::new();
    place
        .run(&["record", "--", "no-such-command"])
        .is_error(127, &["no-such-command"]);
    let runs = place.json(&["log", "--json"]);
    assert_eq!(
        (&runs[0]["exit"], &runs[0]["command"][0]),
        (&127.into(), &"no-such-command".into())
    );
}

#[test]
fn a_command_that_cannot_be_executed_is_126_and_a_failed_run() {
    let place = Place::new();
    place.write("data", "text");
    place
        .run(&["record", "--", "./data"])
        .is_error(126, &["./data"]);
    assert_eq!(place.json(&["show", "--json"])["exit"], 126);
}

#[test]
fn the_summary_and_show_agree_about_a_command_that_never_ran() {
    let place = Place::new();
    for command in ["no-such-command", "./data"] {
        place.write("data", "text");
        let summary = place.path("summary.json");
        place.run(&["record", "--json-summary", &summary, "--", command]);
        let summary: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
        let shown = place.json(&["show", "--json"]);
        for field in [
            "run",
            "exit",
            "signal",
            "complete",
            "lost",
            "incomplete_because",
        ] {
            assert_eq!(summary[field], shown[field], "{command}: {field}");
        }
        // The record is complete: it shows that no program ran.
        assert_eq!(summary["complete"], true);
    }
}

#[test]
fn misuse_is_125_and_runs_nothing() {
    let place = Place::new();
    let cases: [(&[&str], &str); 8] = [
        (&["record"], "CMD"),
        (&["record", "--"], "CMD"),
        (
            &["record", "--no-such-option", "--", "touch", "ran"],
            "--no-such-option",
        ),
        (&["record", "--guard=maybe", "--", "touch", "ran"], "maybe"),
        (&["record", "--contents=some", "--", "touch", "ran"], "some"),
        (
            &[
                "record",
                "--contents=off",
                "--self-contained",
                "--",
                "touch",
                "ran",
            ],
            "--self-contained",
        ),
        (
            &["record", "--name", "two words", "--", "touch", "ran"],
            "two words",
        ),
        (
            &[
                "record",
                "--json-summary",
                "no/such/dir/s.json",
                "--",
                "touch",
                "ran",
            ],
            "no/such/dir",
        ),
    ];
    for (args, word) in cases {
        place.run(args).is_error(125, &[word]);
    }
    assert!(!place.work().join("ran").exists());
    assert!(
        place
            .run(&["record", "--contents=off", "--", "true"])
            .status
            == 0
    );
}

#[test]
fn output_passes_through_untouched() {
    let place = Place::new();
    let answer = place.run(&[
        "record",
        "--",
        "sh",
        "-c",
        "printf 'out\\n'; printf 'err\\n' >&2",
    ]);
    assert_eq!(
        (answer.status, answer.out.as_str(), answer.err.as_str()),
        (0, "out\n", "err\n")
    );
}

#[test]
fn input_passes_through_and_ends() {
    let place = Place::new();
    let mut command = place.command(&["record", "--", "sort"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"b\na\n").unwrap();
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(
        (answer.status, answer.out.as_str(), answer.err.as_str()),
        (0, "a\nb\n", "")
    );
}

#[test]
fn the_summary_has_run_exit_complete_and_lost() {
    let place = Place::new();
    let answer = place.run(&[
        "record",
        "--name",
        "n1",
        "--json-summary",
        "s.json",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    assert_eq!(answer.status, 3);
    let text = std::fs::read_to_string(place.work().join("s.json")).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&read["exit"], &read["lost"], &read["name"]),
        (&3.into(), &0.into(), &"n1".into())
    );
    assert!(read["complete"].is_boolean());
    assert_eq!(read["run"], place.json(&["show", "n1", "--json"])["run"]);
}

#[test]
fn the_guard_can_be_off_or_strict() {
    let place = Place::new();
    place.write("a", "text");
    for guard in ["--guard=off", "--guard=on", "--guard=strict"] {
        let answer = place.run(&["record", guard, "--", "cp", "a", "b"]);
        assert_eq!(
            (answer.status, answer.out.as_str()),
            (0, ""),
            "{guard}: {answer:?}"
        );
        let files = place.json(&["files", "--json"]);
        let wrote = |file: &serde_json::Value| {
            file["path"] == place.path("b").as_str()
                && file["access"].as_array().unwrap().contains(&"write".into())
        };
        assert!(
            files.as_array().unwrap().iter().any(wrote),
            "{guard}: {files}"
        );
    }
}

#[test]
fn a_recording_inside_a_recording_works_and_reports_what_is_missing() {
    let place = Place::new();
    let inner = place.stage.path().join("bin/backstory");
    let answer = place.run(&[
        "record",
        "--name",
        "outer",
        "--",
        inner.to_str().unwrap(),
        "record",
        "--name",
        "inner",
        "--",
        "true",
    ]);
    assert_eq!(answer.status, 0, "{answer:?}");
    // The background work of the inner recording belongs to the outer one.
    place.finalized();
    assert_eq!(place.json(&["show", "inner", "--json"])["exit"], 0);
    assert_eq!(place.json(&["show", "outer", "--json"])["exit"], 0);
}

#[test]
fn secrets_in_the_environment_are_not_stored() {
    let place = Place::new();
    let mut command = place.command(&[
        "record",
        "--redact",
        "MY_*",
        "--",
        "sh",
        "-c",
        "env > env.txt",
    ]);
    command
        .env("API_TOKEN", "s3cr3t-one")
        .env("MY_THING", "s3cr3t-two")
        .env("HARMLESS", "plain-value");
    assert_eq!(Answer::of(command.output().unwrap()).status, 0);
    let env = std::fs::read_to_string(place.work().join("env.txt")).unwrap();
    assert!(
        env.contains("s3cr3t-one") && env.contains("s3cr3t-two"),
        "the command lost its environment: {env}"
    );
    let shown = place.run(&["show", "--json"]).out + &place.run(&["processes", "--json"]).out;
    assert!(shown.contains("plain-value"), "{shown}");
    assert!(!shown.contains("s3cr3t"), "{shown}");
    let grep = std::process::Command::new("grep")
        .arg("-rc")
        .arg("s3cr3t")
        .arg(place.stage.store())
        .output()
        .unwrap();
    let counts = String::from_utf8_lossy(&grep.stdout).into_owned();
    assert!(counts.lines().all(|line| line.ends_with(":0")), "{counts}");
}

#[test]
fn secrets_among_the_arguments_are_not_stored() {
    let place = Place::new();
    place.write("in", "text\n");
    let said = "'--password=s3cr3t-first' '--token' 's3cr3t-second' 'http://me:s3cr3t-third@host/' 'MY_DSN=s3cr3t-fourth' 'plain-argument'";
    // One seen by the recorder, one by the guard alone.
    let mut programs = vec!["/usr/bin/printf '%s '"];
    if backstory_testkit::need::needs("a program without the recorder", &["busybox"]) {
        programs.push(r#"busybox sh -c 'busybox printf "%s " "$@"' sh"#);
    }
    for program in programs {
        place.write("script", &format!("cat in >out; {program} {said}\n"));
        let answer = place.shell(
            "$B record --contents off --redact MY_DSN -- sh ./script --api-key=s3cr3t-fifth 'A_TOKEN=s3cr3t-sixth cp in out'; rm script",
        );
        assert_eq!(answer.status, 0, "{answer:?}");
        let wanted = [
            "s3cr3t-first",
            "s3cr3t-second",
            "s3cr3t-third",
            "s3cr3t-fourth",
            "plain-argument",
        ];
        assert!(
            wanted.iter().all(|word| answer.out.contains(word)),
            "{program}: {answer:?}"
        );
        let shown = place.run(&["show", "--json"]).out + &place.run(&["processes", "--json"]).out;
        assert!(
            shown.contains("plain-argument") && !shown.contains("s3cr3t"),
            "{program}: {shown}"
        );
        let found = place.shell("grep -rla s3cr3t \"$BACKSTORY_STORE\"; true");
        assert_eq!(found.out, "", "{program}");
    }
}

#[test]
fn a_call_by_number_is_recorded_once_in_every_guard_mode() {
    let place = Place::new();
    let Some(program) = place.fixture("by_number") else {
        return;
    };
    for guard in ["on", "off", "strict"] {
        let answer = place.shell(&format!(
            "rm -rf d back; mkdir d; $B record --guard={guard} -- {program}"
        ));
        assert_eq!(answer.out, "by number ok\n", "{answer:?}");
        let run = place.json(&["show", "--json"])["run"]
            .as_str()
            .unwrap()
            .to_owned();
        let log = place.run(&["log", "--raw", &run]).out;
        let told = |op: &str| {
            log.lines()
                .filter(|line| line.split_whitespace().nth(2) == Some(op))
                .count()
        };
        let counts = ["BIND", "CONNECT", "CHDIR", "NAMESPACE"].map(told);
        assert_eq!(counts, [1, 2, 3, 2], "guard {guard}: {log}");
        let files = place.json(&["files", "--json"]);
        for name in ["d/in-d", "back", "d/in-d-again"] {
            let path = place.path(name);
            let written = |file: &serde_json::Value| {
                file["path"] == path.as_str() && file["access"].to_string().contains("write")
            };
            assert!(
                files.as_array().unwrap().iter().any(written),
                "guard {guard}: {name}: {files}"
            );
        }
    }
}

#[test]
fn a_preload_variable_that_is_set_and_empty_is_found_so() {
    let place = Place::new();
    let line = "echo ${LD_PRELOAD-unset}; env | grep ^LD_PRELOAD; \
                env LD_PRELOAD= env | grep ^LD_PRELOAD; env -u LD_PRELOAD env | grep -c ^LD_PRELOAD; \
                LD_PRELOAD= sh -c 'echo ${LD_PRELOAD-unset}'; env -i LD_PRELOAD= $(command -v env)";
    for set in ["LD_PRELOAD= ", "env -u LD_PRELOAD "] {
        place.write("line", line);
        let native = place.shell(&format!("{set}sh ./line"));
        let recorded = place.shell(&format!("{set}$B record -- sh ./line"));
        assert_eq!(
            (recorded.out, recorded.err),
            (native.out.clone(), native.err.clone()),
            "{set}"
        );
        assert!(native.out.contains("LD_PRELOAD=\n"), "{native:?}");
    }
}

#[test]
fn record_does_not_open_the_database() {
    if !need::needs("the files that record opens", &["strace"]) {
        return;
    }
    let place = Place::new();
    assert_eq!(place.run(&["record", "--", "true"]).status, 0);
    place.finalized();
    place.quiet();
    let trace = place.path("trace");
    let mut strace = place.stage.command("strace");
    strace.args(["-o", &trace, "-e", "trace=file", &place.program()]);
    let answer = Answer::of(strace.args(["record", "--", "true"]).output().unwrap());
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains("runs/"), "the log is in the store: {trace}");
    assert!(!trace.contains("graph.db"), "{trace}");
}

#[test]
fn stats_are_one_line_of_what_the_command_used() {
    let place = Place::new();
    place.write_aged("in.txt", "a\n");
    let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; cat in.txt > out.txt";
    let answer = place.run(&[
        "record",
        "--stats",
        "--json-summary",
        "s",
        "--",
        "sh",
        "-c",
        spin,
    ]);
    assert_eq!((answer.status, answer.out.as_str()), (0, ""));
    let lines: Vec<&str> = answer.err.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for word in [
        " elapsed, ",
        " user, ",
        " system, ",
        " peak memory, ",
        " 2 processes, ",
        " written",
    ] {
        assert!(lines[0].contains(word), "{word} in {lines:?}");
    }
    let usage = &place.json(&["show", "--json"])["usage"];
    assert!(usage["user_seconds"].as_f64().unwrap() > 0.0, "{usage}");
    assert!(usage["peak_memory"].as_u64().unwrap() > 100_000, "{usage}");
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("s")).unwrap()).unwrap();
    assert_eq!(&summary["usage"], usage);
}

#[test]
fn the_mode_of_durability_is_in_the_record_and_needs_the_guard() {
    let place = Place::new();
    for mode in ["after", "ordered", "sync"] {
        let option = format!("--durability={mode}");
        let line = "echo x >out; sync out; mv out other";
        let answer = place.run(&["record", &option, "--", "sh", "-c", line]);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{mode}");
        let shown = place.json(&["show", "--json"]);
        assert_eq!(shown["modes"]["durability"], mode);
        assert_eq!(shown["complete"], true, "{shown}");
    }
    place
        .run(&["record", "--durability=sync", "--guard=off", "--", "true"])
        .is_error(125, &["--durability", "--guard=off"]);
}
