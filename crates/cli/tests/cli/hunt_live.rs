//! `record --watch` reports what `hunt` finds while the command still runs, and changes nothing
//! for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use backstory_testkit::need::needs;
use serde_json::Value;

use super::{Answer, Place};

/// A shell line that writes to a start-up file and then waits for `file`, for a bounded time.
fn waits_for(file: &str) -> String {
    format!(
        "sh -c 'echo x >> .bashrc'; i=0; until [ -s {file} ]; do i=$((i+1)); [ $i -lt 12000 ] || exit 9; \
         sleep 0.01; done; echo went on"
    )
}

/// The matches in a file of `--watch-to`.
fn matches(place: &Place, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(place.work().join(file)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Records a command that goes on once a match is in `m.jsonl`. The options say what is watched.
fn watched(place: &Place, options: &[&str]) -> Answer {
    let line = waits_for("m.jsonl");
    let to = ["--watch-to", "m.jsonl", "--", "sh", "-c", &line];
    let answer = place.run(&[&["record"], options, &to].concat());
    assert_eq!(
        (answer.status, answer.out.as_str()),
        (0, "went on\n"),
        "{answer:?}"
    );
    answer
}

#[test]
fn a_match_is_reported_while_the_command_runs_and_agrees_with_the_stored_run() {
    let place = Place::new();
    let answer = watched(&place, &["--watch", "all"]);
    // A message that reports are late can come before.
    let reported = "backstory: high: startup-file-written: write ";
    assert!(
        answer.err.lines().any(|line| line.starts_with(reported)),
        "{answer:?}"
    );
    let live = matches(&place, "m.jsonl");
    let run = place.runs()[0].clone();
    let stored = place.json(&["hunt", &run, "--json"]);
    let essence = |finding: &Value| {
        let steps = finding["steps"].as_array().unwrap().iter();
        let steps = steps.map(|step| (step["operation"].clone(), step["target"].clone()));
        (
            finding["rule"].clone(),
            steps.collect::<Vec<_>>(),
            finding["chain"].clone(),
        )
    };
    let stored: Vec<_> = stored.as_array().unwrap().iter().map(essence).collect();
    assert_eq!(live.iter().map(essence).collect::<Vec<_>>(), stored);
}

#[test]
fn a_match_with_more_operations_after_its_report_is_not_reported_again() {
    let place = Place::new();
    place.write(
        "rules.yml",
        "title: One\nid: one\ndetection: {a: {Operation: write, TargetFilename|endswith: /one}, condition: a}\n\
         ---\ntitle: Many\nid: many\ndetection: {a: {Operation: write, TargetFilename|contains: /many-}}\n\
         correlation: {type: event_count, rules: a, group-by: process, timespan: 1m, condition: {gte: 2}}\n",
    );
    // After the read, the next write makes another version.
    place.write(
        "inner.sh",
        "echo a >> one; cat one; echo > many-1; echo > many-2\n\
         i=0; until [ $(cat m.jsonl 2> /dev/null | wc -l) -ge 2 ]; do i=$((i+1)); [ $i -lt 12000 ] || exit 9; sleep 0.01; done\n\
         echo b >> one; echo > many-3\n",
    );
    let answer = place.run(&[
        "record",
        "--watch",
        "rules.yml",
        "--watch-to",
        "m.jsonl",
        "--",
        "sh",
        "inner.sh",
    ]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let live = matches(&place, "m.jsonl");
    let mut rules: Vec<&str> = live
        .iter()
        .map(|one| one["rule"].as_str().unwrap())
        .collect();
    rules.sort_unstable();
    assert_eq!(rules, ["many", "one"], "{live:?}");
    let run = place.runs()[0].clone();
    let stored = place.json(&["hunt", &run, "--rules", "rules.yml", "--json"]);
    let counts = stored.as_array().unwrap().iter();
    let mut counts: Vec<(&str, u64)> = counts
        .map(|one| {
            (
                one["rule"].as_str().unwrap(),
                one["count"].as_u64().unwrap(),
            )
        })
        .collect();
    counts.sort_unstable();
    // Both matches have got another operation since their reports.
    assert_eq!(counts, [("many", 3), ("one", 2)], "{stored}");
}

#[test]
fn a_match_starts_a_command_and_reaches_a_webhook() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://127.0.0.1:{}/hook",
        listener.local_addr().unwrap().port()
    );
    let hook = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut text = String::new();
        peer.read_to_string(&mut text).unwrap();
        text
    });
    let work = place.path("told");
    let line = waits_for("told");
    let answer = place.run(&[
        "record",
        "--watch",
        "startup-file-written",
        "--watch-post",
        &url,
        "--watch-run",
        &format!("cat > {work}"),
        "--",
        "sh",
        "-c",
        &line,
    ]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let posted = hook.join().unwrap();
    let body = posted.split("\r\n\r\n").nth(1).unwrap();
    assert!(posted.starts_with("POST /hook HTTP/1.1\r\n"), "{posted}");
    assert_eq!(
        serde_json::from_str::<Value>(body).unwrap()["rule"],
        "startup-file-written"
    );
    assert_eq!(std::fs::read_to_string(work).unwrap(), body);
}

#[test]
fn a_webhook_that_nobody_listens_to_is_named_and_the_command_goes_on() {
    let place = Place::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", closed.local_addr().unwrap());
    drop(closed);
    let watch = ["--watch", "startup-file-written", "--watch-post", &url];
    let answer = watched(&place, &watch);
    assert!(
        answer.err.contains("backstory: cannot post the match: "),
        "{answer:?}"
    );
    assert!(!matches(&place, "m.jsonl").is_empty(), "{answer:?}");
}

#[test]
fn matches_that_are_not_reported_are_mentioned_once() {
    let place = Place::new();
    place.write(
        "rule.yml",
        "title: A file\nid: file\ndetection:\n  made:\n    Operation: [write, make]\n    \
         TargetFilename|contains: /made-\n  condition: made\n",
    );
    let line = "i=0; while [ $i -lt 120 ]; do : > made-$i; i=$((i+1)); done";
    let answer = place.run(&["record", "--watch", "rule.yml", "--", "sh", "-c", line]);
    let reported = answer.err.matches(": file: ").count();
    let mentioned = answer.err.matches("rule file has more than 100 matches");
    assert_eq!((reported, mentioned.count()), (100, 1), "{answer:?}");
    let found = place.run(&["hunt", "--rules", "rule.yml", "--rule", "file"]);
    assert!(found.out.contains("119 more"), "{found:?}");
}

#[test]
fn a_process_that_matches_is_stopped_and_can_be_continued() {
    let place = Place::new();
    place.write(
        "inner.sh",
        "echo x >> .bashrc; i=0; until [ -e go ]; do i=$((i+1)); [ $i -lt 12000 ] || exit 9; sleep 0.01; done\n",
    );
    let mut child = place
        .command(&[
            "record",
            "--watch",
            "startup-file-written",
            "--stop-on",
            "startup-file-written",
            "--",
            "sh",
            "-c",
            "sh inner.sh; echo ended",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let stopped = lines.find(|line| line.as_ref().unwrap().contains(" is stopped: "));
    let stopped = stopped.unwrap().unwrap();
    let pid: i32 = stopped.split(' ').nth(2).unwrap().parse().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The signal is on its way when the message is written.
    while !state().contains(") T ") {
        std::thread::yield_now();
    }
    place.write("go", "");
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), out.as_str()),
        (Some(0), "ended\n")
    );
}

/// Records a script that matches, at a terminal (made by `script`), types `answer` at the
/// question, and returns what was shown.
fn asked(answer: &str) -> String {
    let place = Place::new();
    let rule = "startup-file-written";
    place.write(
        "inner.sh",
        "echo x >> .bashrc; i=0; until [ -e go ]; do i=$((i+1)); [ $i -lt 12000 ] || exit 9; sleep 0.01; done\n",
    );
    let line = format!(
        "{} record --watch {rule} --stop-on {rule} -- sh -c 'sh inner.sh; echo ended with $?'",
        place.path("../bin/backstory")
    );
    let mut script = (place.stage.command("script"))
        .args(["-qfec", &line, "/dev/null"])
        .current_dir(place.work())
        .env("BACKSTORY_STORE", place.stage.store())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = script.stdin.take().unwrap();
    let mut screen = script.stdout.take().unwrap();
    let (mut shown, mut bytes) = (String::new(), [0; 4096]);
    let mut is_answered = false;
    while let Ok(count @ 1..) = screen.read(&mut bytes) {
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        if !is_answered && shown.contains("c continues it, k ends it") {
            is_answered = true;
            place.write("go", "");
            keyboard.write_all(answer.as_bytes()).unwrap();
        }
    }
    script.wait().unwrap();
    shown
}

#[test]
fn an_answer_at_the_terminal_continues_or_ends_the_stopped_process() {
    if !needs("a terminal", &["script"]) {
        return;
    }
    let continued = asked("what?\nc\n");
    assert!(continued.contains("answer c or k"), "{continued}");
    assert!(continued.contains("ended with 0"), "{continued}");
    let ended = asked("k\n");
    assert!(ended.contains("ended with 137"), "{ended}");
}

#[test]
fn what_cannot_be_watched_is_refused_before_the_command_runs() {
    let place = Place::new();
    for (args, words) in [
        (&["--watch-to", "x"][..], &["add --watch all"][..]),
        (&["--watch", "nothing"], &["no rule is named nothing"]),
        (
            &["--watch", "output-changed-outside"],
            &[
                "output-changed-outside compares stored runs",
                "backstory hunt",
            ],
        ),
        (
            &["--watch", "all", "--stop-on", "nothing"],
            &["--stop-on nothing", "add --watch nothing", "--list"],
        ),
        (
            &["--watch", "absent.yml"],
            &["--watch absent.yml: there is no such file"],
        ),
        (
            &["--watch", "all", "--stop-on", "output-changed-outside"],
            &["--stop-on output-changed-outside", "compares stored runs"],
        ),
        (
            &["--watch", "all", "--watch-post", "http://192.0.2.7:1/"],
            &["expected http://HOST"],
        ),
    ] {
        let command = ["--", "sh", "-c", "echo ran"];
        let all = [&["record"], args, &command].concat();
        place.run(&all).is_error(125, words);
    }
    place.write(
        "wrong.yml",
        "title: t\nid: t\ndetection: {a: {TargetFilname: x}, condition: a}\n",
    );
    for (args, words) in [
        (
            &["record", "--watch", "wrong.yml", "--", "touch", "ran"][..],
            "no rule of wrong.yml",
        ),
        (
            &["hunt", "--rules", "wrong.yml", "--rule", "t"],
            "no rule is named t",
        ),
    ] {
        let answer = place.run(args);
        assert!(answer.status != 0 && answer.out.is_empty(), "{answer:?}");
        for words in ["wrong.yml:3:17: unknown field `TargetFilname`", words] {
            assert!(answer.err.contains(words), "{words}: {answer:?}");
        }
    }
    assert!(!place.work().join("ran").exists());
    place.write("empty.yml", "# nothing\n");
    place.keep("true", &[]);
    std::fs::write(place.path("latin.yml"), b"title: t\nid: \xe9\n").unwrap();
    for (file, words) in [
        ("empty.yml", "backstory: empty.yml: there is no rule in it"),
        (
            "latin.yml",
            "backstory: rule left out: latin.yml:2:5: the text is not UTF-8",
        ),
    ] {
        let answer = place.run(&["hunt", "--rules", file]);
        assert_eq!(answer.status, 2, "{answer:?}");
        assert!(answer.err.contains(words), "{answer:?}");
    }
    let own = place
        .stage
        .directory("home/.config/backstory/hunt")
        .unwrap();
    let file = own.join("mine.yml");
    std::fs::write(&file, "").unwrap();
    let answer = place.run(&["hunt"]);
    let words = format!("{}: there is no rule in it", file.display());
    assert_eq!(answer.status, 2, "{answer:?}");
    assert!(answer.err.contains(&words), "{answer:?}");
    std::fs::remove_file(&file).unwrap();
    let partial = place.run(&["hunt", "--most", "0"]);
    assert_eq!(partial.status, 2, "{partial:?}");
    assert!(partial.out.starts_with("not decided: "), "{partial:?}");
}
