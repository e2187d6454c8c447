//! Runs are found among many: by time, end, command, file, name and machine.

use std::process::Stdio;

use backstory_testkit::need;

use super::{Answer, Place};

/// The commands of the runs that `log` lists with these options, the newest first.
#[track_caller]
fn listed(place: &Place, options: &[&str]) -> Vec<String> {
    let runs = place.json(&[&["log", "--json"], options].concat());
    let last = |run: &serde_json::Value| {
        let words = run["command"].as_array().unwrap();
        words.last().unwrap().as_str().unwrap().to_owned()
    };
    runs.as_array().unwrap().iter().map(last).collect()
}

/// Runs a shell line at a terminal that `script` makes. Returns all that is shown.
pub(super) fn at_a_terminal(place: &Place, line: &str, variables: &[(&str, &str)]) -> String {
    let mut command = place.stage.command("script");
    let output = command
        .args(["-qfec", line, "/dev/null"])
        .current_dir(place.work())
        .env("BACKSTORY_STORE", place.stage.store())
        .env("TERM", "xterm")
        .env("PAGER", "cat")
        .env("B", place.path("../bin/backstory"))
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output();
    Answer::of(output.unwrap()).out
}

#[test]
fn log_lists_the_newest_runs_only() {
    let place = Place::new();
    for line in ["true 1", "true 2", "true 3"] {
        place.record(line);
    }
    assert_eq!(listed(&place, &["-n", "2"]), ["true 3", "true 2"]);
    assert_eq!(listed(&place, &["-n", "0"]), [""; 0]);
}

#[test]
fn log_lists_the_runs_of_a_time() {
    let place = Place::new();
    place.record("true");
    assert_eq!(listed(&place, &["--since", "1 hour ago"]), ["true"]);
    assert_eq!(listed(&place, &["--since", "2100-01-01"]), [""; 0]);
    assert_eq!(listed(&place, &["--until", "1 hour ago"]), [""; 0]);
    assert_eq!(listed(&place, &["--until", "2100-01-01"]), ["true"]);
    place
        .run(&["log", "--since", "gestern"])
        .is_error(2, &["gestern"]);
}

#[test]
fn log_lists_failed_runs() {
    let place = Place::new();
    place.record("true");
    for line in ["exit 3", "kill -9 $$"] {
        place.run(&["record", "--", "sh", "-c", line]);
    }
    assert_eq!(listed(&place, &["--failed"]), ["kill -9 $$", "exit 3"]);
}

#[test]
fn log_lists_the_runs_of_a_command() {
    let place = Place::new();
    place.write("a", "text");
    place.run(&["record", "--", "/bin/cp", "a", "b"]);
    place.run(&["record", "--", "cat", "b"]);
    place.record("true");
    assert_eq!(listed(&place, &["--command", "cp"]), ["b"]);
    assert_eq!(listed(&place, &["--command", "cat b"]), ["b"]);
    assert_eq!(listed(&place, &["--command", "s[h]"]), ["true"]);
    assert_eq!(listed(&place, &["--command", "c"]), [""; 0]);
    place.run(&["log", "--command", "[c"]).is_error(2, &["[c"]);
}

#[test]
fn log_lists_the_runs_that_read_or_changed_a_file() {
    let place = Place::new();
    place.write("a.csv", "text");
    std::fs::create_dir(place.work().join("sub")).unwrap();
    place.stage.user().owns(&place.work().join("sub")).unwrap();
    for line in [
        "cp a.csv b.txt",
        "cp b.txt sub/c.csv",
        "ls -l a.csv",
        "test -e no.csv",
    ] {
        let _ = place.run(&["record", "--", "sh", "-c", line]);
    }
    assert_eq!(
        listed(&place, &["--file", "*.csv"]),
        ["cp b.txt sub/c.csv", "cp a.csv b.txt"]
    );
    assert_eq!(listed(&place, &["--file", "./a.csv"]), ["cp a.csv b.txt"]);
    assert_eq!(listed(&place, &["--file", "sub/*"]), ["cp b.txt sub/c.csv"]);
    assert_eq!(
        listed(&place, &["--file", &place.path("b.txt"), "-n", "1"]),
        ["cp b.txt sub/c.csv"]
    );
    assert_eq!(listed(&place, &["--file", "no.csv"]), [""; 0]);
}

#[test]
fn log_lists_the_runs_with_a_name_or_of_a_machine() {
    let place = Place::new();
    place.run(&["record", "--name", "nightly-1", "--", "true", "one"]);
    place.run(&["record", "--", "true", "two"]);
    assert_eq!(listed(&place, &["--name", "nightly*"]), ["one"]);
    let host = place.json(&["show", "--json"])["machine"]["host"].clone();
    assert_eq!(listed(&place, &["--host", host.as_str().unwrap()]).len(), 2);
    assert_eq!(listed(&place, &["--host", "no-such-machine"]), [""; 0]);
}

#[test]
fn log_lists_the_runs_that_are_being_recorded() {
    let place = Place::new();
    place.record("true");
    let mut command = place.command(&["record", "--", "sh", "-c", "echo goes; read line"]);
    let mut run = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut goes = [0; 5];
    std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut goes).unwrap();
    let answer = place.run(&["log", "--running", "--json"]);
    let runs: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{answer:?}");
    assert_eq!(runs[0]["command"][2], "echo goes; read line");
    assert!(runs[0]["complete"].is_null() && runs[0]["running"] == true);
    let text = place.run(&["log", "--running"]).out;
    assert!(
        text.contains("running") && text.lines().count() == 1,
        "{text}"
    );
    drop(run.stdin.take());
    run.wait().unwrap();
    place.finalized();
    assert_eq!(place.run(&["log", "--running"]).out, "");
}

#[test]
fn a_run_takes_one_line_that_fits_the_terminal() {
    if !need::needs("a terminal", &["script", "stty"]) {
        return;
    }
    let place = Place::new();
    place.run(&["record", "--", "echo", &"long ".repeat(60)]);
    let shown = at_a_terminal(&place, "stty cols 70; NO_COLOR=1 $B --no-pager log", &[]);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 1, "{shown}");
    assert!(
        lines[0].chars().count() <= 70 && lines[0].ends_with('…'),
        "{shown}"
    );
    assert!(lines[0].contains(" s ago"), "{shown}");
    assert!(!place.run(&["log"]).out.contains('…'));
}

#[test]
fn long_answers_go_through_the_users_pager_at_a_terminal_only() {
    if !need::needs("a terminal", &["script", "sed"]) {
        return;
    }
    let place = Place::new();
    place.record("true");
    let shown = |line: &str, variables: &[(&str, &str)]| at_a_terminal(&place, line, variables);
    let own = ("BACKSTORY_PAGER", "sed s/^/own:/");
    let general = ("PAGER", "sed s/^/general:/");
    assert!(shown("$B log", &[own, general]).starts_with("own:"));
    for question in ["log", "files", "processes", "show"] {
        assert!(
            shown(&format!("$B {question}"), &[general]).starts_with("general:"),
            "{question}"
        );
    }
    assert!(!shown("$B log", &[("BACKSTORY_PAGER", ""), general]).contains("general:"));
    assert!(!shown("$B --no-pager log", &[own]).contains("own:"));
    assert!(!shown("$B log | cat", &[own]).contains("own:"));
}

#[test]
fn a_pager_that_ends_early_is_no_failure() {
    if !need::needs("a terminal", &["script", "true"]) {
        return;
    }
    let place = Place::new();
    place.record("true");
    let shown = at_a_terminal(&place, "$B log; echo st-$?", &[("PAGER", "true")]);
    assert_eq!(shown.trim(), "st-0");
}

/// The paths that `files` lists with these options.
#[track_caller]
fn files(place: &Place, options: &[&str]) -> Vec<String> {
    let files = place.json(&[&["files", "--json"], options].concat());
    let work = place.path("");
    let path = |file: &serde_json::Value| {
        let path = file["path"].as_str().unwrap();
        path.strip_prefix(&work).unwrap_or(path).to_owned()
    };
    files.as_array().unwrap().iter().map(path).collect()
}

#[test]
fn files_are_selected_by_what_was_done_to_them() {
    let place = Place::new();
    place.write("a", "text");
    place.write("gone", "text");
    place.record("cat a > b; rm gone; test -e missing || true");
    assert_eq!(files(&place, &["--read", "--under", "."]), ["a"]);
    assert_eq!(files(&place, &["--written", "--under", "."]), ["b"]);
    assert_eq!(files(&place, &["--deleted"]), ["gone"]);
    let looked = files(&place, &["--looked-up", "--under", "."]);
    assert!(
        looked.contains(&"missing".to_owned()) && !looked.contains(&"b".to_owned()),
        "{looked:?}"
    );
    assert_eq!(
        files(&place, &["--written", "--deleted", "--under", "."]),
        ["b", "gone"]
    );
}

#[test]
fn files_are_selected_by_program_and_directory() {
    let place = Place::new();
    for dir in ["src", "src2"] {
        std::fs::create_dir(place.work().join(dir)).unwrap();
        place.stage.user().owns(&place.work().join(dir)).unwrap();
        place.write(format!("{dir}/a"), "text");
    }
    place.record("cat src/a > b; cp src2/a c");
    assert_eq!(
        files(&place, &["--by", "cp", "--under", "."]),
        ["c", "src2/a"]
    );
    assert_eq!(files(&place, &["--under", "src"]), ["src/a"]);
    assert_eq!(files(&place, &["--by", "no-such", "--under", "."]), [""; 0]);
}

#[test]
fn own_files_are_neither_the_systems_nor_a_tools() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cat a > b; echo x > /dev/null");
    let own = files(&place, &["--own", "--read", "--written"]);
    assert_eq!(own, ["a", "b"]);
    let text = place.run(&["files", "--own", "--level", "process"]).out;
    assert!(
        text.contains("/a\n") && !text.contains("/dev/null"),
        "{text}"
    );
    assert!(text.contains("… and") && text.contains("--all"), "{text}");
    let all = place.run(&["files", "--all"]).out;
    assert!(
        all.contains("/dev/null") && all.lines().count() > 10,
        "{all}"
    );
}

#[test]
fn own_files_are_the_default_at_a_terminal() {
    if !need::needs("a terminal", &["script"]) {
        return;
    }
    let place = Place::new();
    place.write("a", "text");
    place.record("cat a > b; echo x > /dev/null");
    assert!(!at_a_terminal(&place, "$B files", &[]).contains("/dev/null"));
    assert!(at_a_terminal(&place, "$B files --all", &[]).contains("/dev/null"));
    assert!(place.run(&["files"]).out.contains("/dev/null"));
}

#[test]
fn files_are_sorted_by_size_or_by_time() {
    let place = Place::new();
    place.record("printf 1 > a; printf 333 > b; printf 22 > c");
    let written = |key| files(&place, &["--written", "--under", ".", "--sort", key]);
    assert_eq!(written("size"), ["b", "c", "a"]);
    assert_eq!(written("time"), ["c", "b", "a"]);
    assert_eq!(written("path"), ["a", "b", "c"]);
    assert!(
        place
            .run(&["files", "--sort", "size", "--under", "."])
            .out
            .contains("3 B")
    );
}

#[test]
fn processes_are_selected_by_their_files() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cat a > /dev/null; cp a b; true; /bin/true");
    let programs = |options: &[&str]| -> Vec<String> {
        let lines = place.json(&[&["processes", "--json"], options].concat());
        let name = |line: &serde_json::Value| line["argv"][0].as_str().unwrap().to_owned();
        lines.as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(programs(&["--written", "--under", "."]), ["cp"]);
    assert_eq!(programs(&["--read", "--under", "a"]), ["cat", "cp"]);
    assert_eq!(programs(&["--by", "c*"]), ["cat", "cp"]);
    let own = programs(&["--own"]);
    assert!(
        own.contains(&"sh".to_owned()) && !own.contains(&"/bin/true".to_owned()),
        "{own:?}"
    );
    let text = place.run(&["processes", "--own"]).out;
    assert!(text.contains("1 more process (--all"), "{text}");
    let sizes = place.run(&["processes", "--sort", "size"]).out;
    assert!(sizes.lines().next().unwrap().contains("cp a b"), "{sizes}");
}

#[test]
fn every_process_that_touched_a_file_is_listed_newest_first() {
    let place = Place::new();
    place.write_aged("a", "some text");
    place.record("cat a > copy; chmod 600 a");
    let second = place.record("ln a b; mv a c; rm b; ls -l c; touch c");
    let touches = |path: &str, options: &[&str]| -> Vec<(String, String)> {
        let found = place.json(&[&["who", path, "--json"], options].concat());
        let one = |touch: &serde_json::Value| {
            let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            (word(&touch["argv"][0]), word(&touch["run"]))
        };
        found.as_array().unwrap().iter().map(one).collect()
    };
    let programs: Vec<String> = touches("a", &[])
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(programs, ["mv", "ln", "chmod", "cat"]);
    assert_eq!(
        touches("a", &["-n", "1"]),
        [("mv".to_owned(), second.clone())]
    );
    assert_eq!(touches("b", &[])[0].0, "rm");
    let later = touches("c", &["--lookups"]);
    assert_eq!((later[0].0.as_str(), later[1].0.as_str()), ("touch", "ls"));
    let text = place.run(&["who", "a"]).out;
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].contains("renamed to c") && lines[0].contains(&second),
        "{text}"
    );
    assert!(
        lines[1].contains("linked to b") && lines[2].contains("mode"),
        "{text}"
    );
    place.run(&["who", "never"]).is_error(1, &["never"]);
}

#[test]
fn who_names_the_hard_link_that_a_process_made() {
    let place = Place::new();
    place.record("echo x >first; ln first second");
    for name in ["first", "second"] {
        let text = place.run(&["who", name]).out;
        let lines: Vec<&str> = text.lines().collect();
        let [link, write] = lines[..] else {
            panic!("{text}");
        };
        assert!(
            link.contains("linked to second") && !link.contains("wrote"),
            "{text}"
        );
        assert!(
            write.contains("wrote") && !write.contains("linked"),
            "{text}"
        );
    }
}

#[test]
fn an_address_that_answered_no_process_is_not_called_a_missing_file() {
    let place = Place::new();
    place.record("true");
    let refused = place.run(&["uses", "tcp:127.0.0.1:1"]);
    refused.is_error(1, &["exchanged data with tcp:127.0.0.1:1", "peers"]);
}

/// Temporary files of the compiler live within its command.
#[test]
fn files_at_the_level_of_steps_name_the_commands_that_made_and_used_them() {
    if !need::needs("a compiler", &["gcc"]) {
        return;
    }
    let place = Place::new();
    place.write("m.c", "int main(void) { return 0; }\n");
    place.record("gcc -c m.c -o m.o; gcc m.o -o m; rm m.o");
    let text = place.run(&["files", "--own", "--level", "step"]).out;
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(lines[0], ["made", "m", "gcc m.o -o m"], "{text}");
    assert_eq!(lines[1], ["used", "m.c", "gcc -c m.c -o m.o"], "{text}");
    assert_eq!(
        lines[2],
        [
            "made, used, removed",
            "m.o",
            "gcc -c m.c -o m.o",
            "(and 2 other commands)"
        ],
        "{text}"
    );
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[3].concat().contains("that lived within one step"),
        "{text}"
    );
    let json = place.json(&["files", "--level", "step", "--json", "--own", "--written"]);
    assert_eq!(json[0]["made_by"][0], "gcc m.o -o m", "{json}");
    assert_eq!(json[0]["remains"], true, "{json}");
}

#[test]
fn files_names_commands_unless_json_or_look_ups_are_wanted() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cp a b; chmod 600 a; mkdir d; echo x > /dev/null");
    let text = |options: &[&str]| place.run(&[&["files"], options].concat()).out;
    let default = text(&["--own"]);
    assert_eq!(default, text(&["--own", "--level", "step"]));
    let parts = |line: &str| -> Vec<String> {
        let parts = line.split("  ").map(|part| part.trim().to_owned());
        parts.filter(|part| !part.is_empty()).collect()
    };
    let lines: Vec<Vec<String>> = default.lines().map(parts).collect();
    assert_eq!(lines[0][..2], ["changed, used", "a"], "{default}");
    assert_eq!(lines[1], ["made", "b", "cp a b"], "{default}");
    assert_eq!(lines[2], ["made", "d", "mkdir d"], "{default}");
    assert!(text(&[]).contains("/dev/null"), "{}", text(&[]));
    let written = text(&["--own", "--written"]);
    assert!(written.contains("chmod 600 a"), "{written}");
    // A command looks nothing up, and the fields of JSON are an interface.
    let looks = text(&["--looked-up", "--under", "."]);
    assert_eq!(
        looks,
        text(&["--looked-up", "--under", ".", "--level", "process"])
    );
    assert!(looks.contains(&place.path("a")), "{looks}");
    let json = place.json(&["files", "--json", "--under", "a"]);
    assert!(json[0]["access"].is_array(), "{json}");
}

#[test]
fn who_prints_the_newest_and_counts_the_others() {
    let place = Place::new();
    place.write("a", "text");
    place.record("ls -l a > /dev/null; cat a > /dev/null; cat a > /dev/null; head a > b");
    let loops = "i=0; while [ $i -lt 120 ]; do i=$((i+1)); cat a > /dev/null; done";
    place.record(loops);
    let text = place.run(&["who", "a", "--level", "process"]).out;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 101, "{text}");
    assert!(lines[0].contains("cat a"), "{text}");
    // 20 of the second run, and the four of the first.
    assert!(
        lines[100].contains("24 other processes") && lines[100].contains("-n N"),
        "{text}"
    );
    let two = place.run(&["who", "a", "-n", "2"]).out;
    assert_eq!(two.lines().count(), 3, "{two}");
    let all = place.run(&["who", "a", "-n", "200"]).out;
    assert!(!all.contains("other process"), "{all}");
    assert!(
        all.contains("head a") && all.contains("1 process that only looked it up"),
        "{all}"
    );
    let json = place.json(&["who", "a", "--json"]);
    assert_eq!(json.as_array().unwrap().len(), 123);
    let newest = place.json(&["who", "a", "--json", "-n", "2"]);
    assert_eq!(
        newest.as_array().unwrap()[..],
        json.as_array().unwrap()[..2]
    );
}

/// A tool can run programs of others, as a package manager does.
#[test]
fn who_names_the_program_that_used_a_file_and_its_command() {
    if !need::needs("an interpreter", &["perl"]) {
        return;
    }
    let place = Place::new();
    place.write("key", "secret\n");
    std::fs::create_dir(place.path("node_modules")).unwrap();
    place.write("node_modules/install.pl", "system('cat', 'key');\n");
    place.write(
        "node_modules/both.pl",
        "open(F, '>>', 'key'); print F 'x'; close(F); system('cat', 'key');\n",
    );
    for (script, named) in [
        ("install", "cat key, in perl node_modules/install.pl"),
        ("both", "perl node_modules/both.pl, with cat key"),
    ] {
        place.record(&format!("perl node_modules/{script}.pl"));
        let touched = place.run(&["touched", "key", "-n", "1"]);
        assert!(touched.out.contains(named), "{touched:?}");
    }
}

/// The compiler, its passes and the assembler are one command.
#[test]
fn the_processes_of_one_command_are_one_line_of_who() {
    if !need::needs("a compiler", &["gcc"]) {
        return;
    }
    let place = Place::new();
    place.write("m.c", "int main(void) { return 0; }\n");
    place.record("gcc -c m.c -o m.o");
    place.record("gcc m.o -o m");
    let lines = |options: &[&str]| -> Vec<String> {
        let who = place.run(&[&["who", "m.o"], options].concat()).out;
        let listed = who.lines().filter(|line| !line.starts_with('…'));
        listed.map(str::to_owned).collect()
    };
    let steps = lines(&[]);
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(steps[0].contains("gcc m.o -o m"), "{steps:?}");
    assert!(
        steps[1].contains("wrote") && steps[1].contains("gcc -c m.c -o m.o"),
        "{steps:?}"
    );
    assert_eq!(lines(&["-n", "1"]), steps[..1]);
    let processes = lines(&["--level", "process"]);
    assert!(
        processes.iter().any(|line| line.contains("as ")) && processes[0].contains("ld "),
        "{processes:?}"
    );
}

#[test]
fn tags_find_a_run_until_they_are_removed() {
    let place = Place::new();
    place.run(&[
        "record",
        "--tag",
        "stage=tune",
        "--tag",
        "by=anna",
        "--",
        "true",
        "one",
    ]);
    place.run(&["record", "--", "true", "two"]);
    assert_eq!(listed(&place, &["--tag", "stage=tune"]), ["one"]);
    assert_eq!(
        listed(&place, &["--tag", "stage=t*", "--tag", "by"]),
        ["one"]
    );
    assert_eq!(listed(&place, &["--tag", "stage=final"]), [""; 0]);
    let two = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(place.run(&["tag", &two, "stage=final", "by=a=b"]).status, 0);
    assert_eq!(listed(&place, &["--tag", "stage"]), ["two", "one"]);
    assert_eq!(place.run(&["tag", &two]).out, "by=a=b\nstage=final\n");
    assert_eq!(place.json(&["show", "--json"])["tags"]["stage"], "final");
    assert!(place.run(&["log"]).out.contains("stage=tune"));
    assert_eq!(place.run(&["tag", &two, "stage="]).status, 0);
    assert_eq!(listed(&place, &["--tag", "stage"]), ["one"]);
    place
        .run(&["tag", &two, "no-value"])
        .is_error(2, &["no-value"]);
}

#[test]
fn tags_survive_a_lost_database_and_leave_with_their_run() {
    let place = Place::new();
    place.run(&["record", "--tag", "stage=tune", "--", "true"]);
    assert_eq!(listed(&place, &["--tag", "stage"]).len(), 1);
    place.quiet();
    for file in ["graph.db", "graph.db-wal", "graph.db-shm"] {
        let _ = std::fs::remove_file(place.stage.store().join(file));
    }
    assert_eq!(listed(&place, &["--tag", "stage"]).len(), 1);
    let run = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let export = place.path("x.backstory");
    assert_eq!(
        place.run(&["store", "export", &run, "-o", &export]).status,
        0
    );
    assert_eq!(place.run(&["rm", &run]).status, 0);
    assert_eq!(place.run(&["store", "import", &export]).status, 0);
    assert_eq!(listed(&place, &["--tag", "stage"]).len(), 1);
}

#[test]
fn parameters_are_those_before_the_command_and_metrics_those_after() {
    let place = Place::new();
    place.write("config.yaml", "model:\n  lr: 1e-3\ndb_password: hunter2\n");
    let line =
        "echo 'model: 1' > config.yaml; echo '{\"acc\": 0.75, \"loss\": {\"last\": 2}}' > m.json";
    let options = [
        "record",
        "--param-from",
        "config.yaml",
        "--metric-from",
        "m.json",
        "--",
    ];
    let answer = place.run(&[&options[..], &["sh", "-c", line]].concat());
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let show = place.json(&["show", "--json"]);
    assert_eq!(show["parameters"]["model.lr"].as_f64(), Some(0.001));
    assert_eq!(
        (&show["metrics"]["acc"], &show["metrics"]["loss.last"]),
        (&0.75.into(), &2.into())
    );
    let journal = std::fs::read_to_string(place.stage.store().join("annotations.log")).unwrap();
    assert!(journal.contains("db_password") && !journal.contains("hunter2"));
    place
        .run(&["record", "--param-from", "none.yaml", "--", "true"])
        .is_error(125, &["none.yaml"]);
    let lost = place.run(&[
        "record",
        "--metric-from",
        "none.json",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    lost.is_error(3, &["none.json"]);
}

#[test]
fn runs_are_compared_with_the_differing_rows_first() {
    let place = Place::new();
    for (lr, acc) in [("0.1", "0.5"), ("0.2", "0.7")] {
        place.write("p.json", &format!("{{\"lr\": {lr}, \"seed\": 7}}"));
        let line =
            format!("echo '{{\"acc\": {acc}}}' > m.json; echo same > out; echo {lr} > model");
        let options = [
            "record",
            "--param-from",
            "p.json",
            "--metric-from",
            "m.json",
            "--tag",
            "stage=tune",
        ];
        place.run(&[&options[..], &["--", "sh", "-c", &line]].concat());
        place.run(&["index", "--wait"]);
    }
    let table = place.json(&["compare", "--tag", "stage", "--json"]);
    let rows = table["rows"].as_array().unwrap();
    let named = |name: &str| rows.iter().position(|row| row["name"] == name).unwrap();
    assert_eq!(rows[0]["name"], "acc");
    assert_eq!(rows[0]["values"], serde_json::json!([0.7, 0.5]));
    assert_eq!(rows[1]["name"], "lr");
    assert!(rows[named("seed")]["differs"] == false && named("seed") > named("model"));
    assert!(rows[named("out")]["differs"] == false && rows[named("model")]["differs"] == true);
    let runs = ["0", "1"].map(|at| {
        table["runs"][at.parse::<usize>().unwrap()]
            .as_str()
            .unwrap()
    });
    let text = place.run(&["compare", runs[0], runs[1]]).out;
    assert!(text.contains("acc") && !text.contains("seed"), "{text}");
    assert!(place.run(&["compare", "--all"]).out.contains("seed"));
    let csv = place.run(&["compare", "--csv"]).out;
    assert!(
        csv.starts_with(&format!(
            "group,name,{},{}\nmetric,acc,0.7,0.5\n",
            runs[0], runs[1]
        )),
        "{csv}"
    );
    place
        .run(&["compare", "--tag", "none"])
        .is_error(1, &["no run"]);
}

#[test]
fn the_git_state_of_the_directories_used_is_a_fact_of_the_run() {
    if !need::needs("git", &["git"]) {
        return;
    }
    let place = Place::new();
    place.record("true outside");
    place.git(&["init", "-q", "-b", "main"]);
    place.write("a", "text");
    place.write("b", "text");
    place.git(&["add", "a", "b"]);
    place.git(&["commit", "-qm", "first"]);
    let first = place.git(&["rev-parse", "HEAD"]);
    place.write("a", "changed");
    place.record("cat a; echo new > b");
    place.run(&["index", "--wait"]);
    let state = place.json(&["show", "--json"])["git"].clone();
    assert_eq!(state.as_array().unwrap().len(), 1, "{state}");
    assert_eq!(
        (&state[0]["commit"], &state[0]["branch"]),
        (&first.as_str().into(), &"main".into())
    );
    assert_eq!(state[0]["changed"], serde_json::json!(["a"]));
    assert!(state[0]["dirty"] == true);
    let text = place.run(&["show"]).out;
    assert!(
        text.contains(&format!("main @ {}, changed: a", &first[..10])),
        "{text}"
    );
    place.git(&["commit", "-qam", "second"]);
    place.record("true second");
    place.run(&["index", "--wait"]);
    let second = place.json(&["show", "--json"])["git"].clone();
    assert!(second[0]["dirty"] == false, "{second}");
    assert_eq!(
        listed(&place, &["--commit", &first[..8]]),
        ["cat a; echo new > b"]
    );
    assert_eq!(listed(&place, &["--commit", "HEAD"]), ["true second"]);
    assert_eq!(
        listed(&place, &["--commit", "main~1"]),
        ["cat a; echo new > b"]
    );
    place
        .run(&["log", "--commit", "no-such"])
        .is_error(2, &["no-such"]);
}

#[test]
fn the_git_state_of_another_directorys_files_is_a_fact_of_the_run() {
    if !need::needs("git", &["git"]) {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.work().join("lib")).unwrap();
    place.stage.user().owns(&place.work().join("lib")).unwrap();
    place.write("lib/a", "text");
    for args in [
        &["init", "-q"][..],
        &["add", "a"],
        &["commit", "-qm", "first"],
    ] {
        let mut git = place.stage.command("git");
        git.current_dir(place.work().join("lib"));
        git.args(["-c", "user.name=n", "-c", "user.email=e"]);
        assert!(git.args(args).output().unwrap().status.success());
    }
    place.record("cat lib/a");
    place.run(&["index", "--wait"]);
    let state = place.json(&["show", "--json"])["git"].clone();
    assert_eq!(state[0]["root"], place.path("lib"), "{state}");
}

#[test]
fn a_result_that_the_next_run_overwrote_is_compared() {
    let place = Place::new();
    // The runs are indexed when the question is asked.
    let recorded: Vec<String> = ["one", "twoo", "four"]
        .iter()
        .map(|text| place.record(&format!("echo {text} > out; echo x > scratch; rm scratch")))
        .collect();
    let oldest_first: Vec<&str> = recorded.iter().map(String::as_str).collect();
    let table = place.json(&[&["compare", "--json"], &oldest_first[..]].concat());
    let rows = table["rows"].as_array().unwrap();
    let mut results = rows.iter().filter(|row| row["group"] == "result");
    let row = results.next().unwrap_or_else(|| panic!("{table}"));
    assert_eq!(
        (&row["name"], &row["differs"]),
        (&"out".into(), &true.into())
    );
    let values = row["values"].as_array().unwrap().iter();
    let values: Vec<&str> = values.map(|value| value.as_str().unwrap_or("-")).collect();
    // Either all contents were stored in time, or the row says which were not.
    let sized = ["4 bytes", "5 bytes", "5 bytes"];
    let is_sized = values
        .iter()
        .zip(sized)
        .all(|(value, size)| value.starts_with(size));
    let is_hash = |value: &&str| value.len() == 12 && value.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(is_sized || values.iter().all(is_hash), "{values:?}");
    assert!(results.next().is_none(), "{table}");
}
