//! Runs are found among many: by time, end, command, file, name and machine.

mod files;
mod run_facts;

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
