//! `rerun` executes only what belongs to the file that it was asked for.

use std::fs;

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use backstory_testkit::need::needs;
use backstory_testkit::procs::eventually;
use rustix::process::{Pid, Signal};

use super::{Answer, Place};

impl Place {
    /// A directory of the stage's user below `work`.
    fn directory(&self, name: &str) {
        let path = self.work().join(name);
        fs::create_dir(&path).unwrap();
        self.stage.user().owns(&path).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

/// `a/mk.sh` made `a/cfg`. A file with the same content was made by hand in `b`.
#[test]
fn an_equal_content_in_another_directory_is_no_reason_to_execute() {
    let place = Place::new();
    place.directory("a");
    place.directory("b");
    place.write_aged("a/mk.sh", "seq 1 100 > cfg\n");
    place.keep("cd a; sh mk.sh", &["--contents=lazy"]);
    place.age("a/cfg");
    place.write("b/cfg", &place.text("a/cfg"));
    place.write_aged("b/in", "one\n");
    place.keep("cd b; cat cfg in > out", &["--contents=lazy"]);
    let of = place.json(&["of", "b/out", "--json"]);
    let links = of["links"].as_array().unwrap();
    let by_content = |link: &serde_json::Value| link["how"] == "content";
    assert!(links.iter().any(by_content), "`of` keeps the join: {of}");

    place.write_aged("a/mk.sh", "seq 1 200 > cfg\n");
    place.write_aged("b/in", "two\n");
    let before = place.text("a/cfg");
    let plan = place.run(&["rerun", "--dry-run", "b/out"]);
    assert!(
        plan.status == 1 && !plan.out.contains("mk.sh") && !plan.out.contains("/a/"),
        "{plan:?}"
    );
    let answer = place.run(&["rerun", "b/out"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.text("a/cfg"), before, "{answer:?}");
    assert_eq!(place.text("b/cfg"), before, "{answer:?}");
    assert!(place.text("b/out").ends_with("100\ntwo\n"), "{answer:?}");
}

/// `a/mid` comes from `a/in`, and `b/out` from it and `b/in`. Both inputs have changed.
fn two_directories() -> Place {
    let place = Place::new();
    for name in ["a", "b"] {
        place.directory(name);
        place.write_aged(&format!("{name}/in"), "one\n");
    }
    place.keep("cd a; sort in > mid", &["--contents=lazy"]);
    place.keep("cd b; cat ../a/mid in > out", &["--contents=lazy"]);
    place.write_aged("a/in", "two\n");
    place.write_aged("b/in", "two\n");
    place
}

fn within(place: &Place, directory: &str, args: &[&str]) -> Answer {
    let mut command = place.command(args);
    Answer::of(
        command
            .current_dir(place.work().join(directory))
            .output()
            .unwrap(),
    )
}

#[test]
fn a_step_outside_the_project_is_named_and_not_run() {
    let place = two_directories();
    let plan = within(&place, "b", &["rerun", "--dry-run", "out"]);
    assert!(
        plan.status == 1 && plan.out.contains("Not run") && plan.out.contains("/a/mid"),
        "{plan:?}"
    );
    let answer = within(&place, "b", &["rerun", "out"]);
    assert!(
        answer.status == 1 && answer.out.contains("1 stale outside the project"),
        "{answer:?}"
    );
    assert_eq!(
        (place.text("a/mid"), place.text("b/out")),
        ("one\n".into(), "one\ntwo\n".into())
    );

    let answer = within(&place, "b", &["rerun", "--outside", "out"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.text("b/out"), "two\ntwo\n");
}

#[test]
fn the_project_is_the_tree_of_the_root_option_or_of_the_nearest_git_directory() {
    let place = two_directories();
    let states = |args: &[&str]| -> Vec<String> {
        let answer = within(&place, "b", args);
        let steps: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        let state = |step: &serde_json::Value| step["state"].as_str().unwrap().to_owned();
        steps.as_array().unwrap().iter().map(state).collect()
    };
    let plan = ["rerun", "--dry-run", "--json", "out"];
    assert_eq!(states(&plan), ["outside", "stale"]);
    let root = [&plan[..], &["--root", ".."]].concat();
    assert_eq!(states(&root), ["stale", "stale"]);
    place.directory(".git");
    assert_eq!(states(&plan), ["stale", "stale"]);
}

/// Nothing is run without the user's consent, which a program cannot give.
#[track_caller]
pub(super) fn is_refused_without_yes(place: &Place, directory: &str, path: &str, what: &str) {
    let plan = within(place, directory, &["rerun", "--dry-run", path]);
    assert!(plan.status == 1 && plan.out.contains(what), "{plan:?}");
    let before = fs::read(place.work().join(directory).join(path)).unwrap();
    let refused = within(place, directory, &["rerun", path]);
    refused.is_error(2, &["nothing was run", what, "--yes"]);
    assert_eq!(
        fs::read(place.work().join(directory).join(path)).unwrap(),
        before
    );
    let done = within(place, directory, &["rerun", "--yes", path]);
    assert_eq!(done.status, 0, "{done:?}");
    assert_ne!(
        fs::read(place.work().join(directory).join(path)).unwrap(),
        before
    );
}

#[test]
fn a_step_that_writes_outside_the_project_needs_consent() {
    let place = Place::new();
    place.directory("b");
    place.write_aged("b/in", "one\n");
    place.keep("cd b; tee ../log < in > out", &["--contents=lazy"]);
    place.write_aged("b/in", "two\n");
    is_refused_without_yes(&place, "b", "out", "writes outside");
    assert_eq!(place.text("log"), "two\n");
}

/// A stale step that deletes the file `victim`.
fn deleting() -> Place {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.write_aged("victim", "precious\n");
    place.keep("sh -c 'rm victim; cat in > out'", &["--contents=lazy"]);
    place.write_aged("victim", "precious again\n");
    place.write_aged("in", "two\n");
    place
}

#[test]
fn a_step_that_deletes_a_file_needs_consent() {
    let place = deleting();
    is_refused_without_yes(&place, ".", "out", "deletes victim");
}

#[test]
fn a_step_that_uses_the_network_needs_consent() {
    if !needs("a connection", &["python3"]) {
        return;
    }
    let place = Place::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::Write;
        for connection in server.incoming() {
            let _ = connection.unwrap().write_all(b"answer");
        }
    });
    let fetch = format!(
        "import socket,sys; s=socket.create_connection((\"127.0.0.1\",{port})); open(\"out\",\"wb\").write(s.recv(99)+open(\"in\",\"rb\").read())"
    );
    place.write("fetch.py", &fetch);
    place.write_aged("in", "one\n");
    place.keep("python3 fetch.py", &["--contents=lazy"]);
    place.write_aged("in", "two\n");
    is_refused_without_yes(&place, ".", "out", "uses the network");
}

#[test]
fn on_a_terminal_the_plan_is_shown_and_only_yes_agrees() {
    if !needs("a question on a terminal", &["script"]) {
        return;
    }
    let place = deleting();
    let program = place.path("../bin/backstory");
    let answered = |answer: &str| {
        let mut command = place.stage.command("script");
        command
            .args(["-qfec", &format!("{program} rerun out"), "/dev/null"])
            .current_dir(place.work())
            .env("BACKSTORY_STORE", place.stage.store())
            .env("TERM", "dumb");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        use std::io::Write;
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(answer.as_bytes())
            .unwrap();
        Answer::of(child.wait_with_output().unwrap())
    };
    let declined = answered("\n");
    assert!(
        declined.out.contains("deletes victim") && declined.out.contains("nothing was run"),
        "{declined:?}"
    );
    assert_eq!(place.text("out"), "one\n");
    let agreed = answered("y\n");
    assert_eq!(place.text("out"), "two\n", "{agreed:?}");
}

#[test]
fn a_forced_step_runs_and_an_unknown_one_is_an_error() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.keep("cat in > out", &["--contents=lazy"]);
    let state = |answer: Answer| -> String {
        let steps: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        steps[0]["state"].as_str().unwrap().to_owned()
    };
    for wanted in ["out", "./out", &place.path("out")] {
        let answer = place.run(&["rerun", "--json", "--force", wanted, "out"]);
        assert_eq!(state(answer), "same", "{wanted}");
    }
    let plan = place.run(&["rerun", "--dry-run", "--force", "out", "out"]);
    assert!(plan.status == 1 && plan.out.contains("forced"), "{plan:?}");
    place
        .run(&["rerun", "--force", "nothing", "out"])
        .is_error(2, &["nothing", "--dry-run"]);
}

#[test]
fn with_keep_going_a_failure_stops_only_what_depends_on_it() {
    let place = Place::new();
    for name in ["one", "two"] {
        place.write_aged(name, "1\n");
    }
    place.keep(
        "grep . one > a; grep . two > b; cat a b > c",
        &["--contents=lazy"],
    );
    place.write_aged("one", "");
    place.write_aged("two", "2\n");
    let answer = place.run(&["rerun", "--keep-going", "c"]);
    assert_eq!(answer.status, 1, "{answer:?}");
    assert_eq!(
        (place.text("a"), place.text("b"), place.text("c")),
        ("1\n".into(), "2\n".into(), "1\n1\n".into())
    );
}

/// As `make --output-sync` does.
#[test]
fn the_output_of_parallel_steps_is_not_interleaved() {
    let place = Place::new();
    let step = |name: &str| {
        format!("sh -c 'cat in > {name}; for i in 1 2 3 4 5; do echo {name}; sleep 0.05; done'")
    };
    place.write_aged("in", "1\n");
    for name in ["a", "b"] {
        place.keep(&step(name), &["--contents=lazy"]);
    }
    place.keep("cat a b > c", &["--contents=lazy"]);
    place.write_aged("in", "2\n");
    let answer = place.run(&["rerun", "-j", "2", "c"]);
    let said: String = answer
        .out
        .lines()
        .filter(|line| ["a", "b"].contains(line))
        .collect();
    assert!(said == "aaaaabbbbb" || said == "bbbbbaaaaa", "{answer:?}");
}

#[test]
fn a_failed_step_leaves_the_old_output() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.keep("grep . in > out", &["--contents=lazy"]);
    place.write_aged("in", "");
    let answer = place.run(&["rerun", "out"]);
    assert!(
        answer.status == 1 && answer.err.contains("put back"),
        "{answer:?}"
    );
    assert_eq!(place.text("out"), "one\n");
    place.run(&["index", "--wait"]);
    let plan = place.run(&["rerun", "--dry-run", "out"]);
    assert!(
        plan.status == 1 && plan.out.contains("in has changed"),
        "{plan:?}"
    );
    place.write_aged("in", "two\n");
    assert_eq!(place.run(&["rerun", "out"]).status, 0);
    assert_eq!(place.text("out"), "two\n");
}

/// A step that writes its output and then waits as long as `hold` exists. The shell itself writes,
/// so that no part of the script is a step of its own.
fn holding() -> Place {
    let place = Place::new();
    place.write_aged("in", "one\n");
    let line = "read text < in; echo \"$text\" > out; test -e hold && { echo $$ > at-work; while test -e hold; do sleep 0.1; done; }; true";
    place.write_aged("step.sh", line);
    place.keep("sh step.sh", &["--contents=lazy"]);
    place.write_aged("in", "two\n");
    place.write_aged("hold", "");
    place
}

fn signalled(place: &Place, signal: Signal) {
    let mut child = place
        .command(&["rerun", "--yes", "out"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = || fs::read_to_string(place.path("at-work")).is_ok_and(|text| text.ends_with('\n'));
    assert!(eventually(Duration::from_secs(120), begun));
    assert_eq!(place.text("out"), "two\n");
    rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
}

#[test]
fn an_interrupted_step_leaves_the_old_output() {
    let place = holding();
    signalled(&place, Signal::TERM);
    assert_eq!(place.text("out"), "one\n");
    let left = fs::read_dir(place.stage.store().join("aside"))
        .unwrap()
        .flatten();
    assert_eq!(left.filter(|entry| entry.path().is_dir()).count(), 0);
}

#[test]
fn the_outputs_of_a_killed_rerun_are_restored_by_the_next() {
    let place = holding();
    signalled(&place, Signal::KILL);
    fs::remove_file(place.path("hold")).unwrap();
    let step = place.text("at-work");
    let gone = || !std::path::Path::new("/proc").join(step.trim()).exists();
    assert!(
        eventually(Duration::from_secs(120), gone),
        "the step ends with its rerun"
    );
    let answer = place.run(&["rerun", "in"]);
    assert!(
        answer.err.contains("put out back") || answer.err.contains("out back"),
        "{answer:?}"
    );
    assert_eq!(place.text("out"), "one\n");
}

#[test]
fn a_run_that_rerun_made_names_the_run_that_it_repeats() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    let first = place.keep("cat in > out", &["--contents=lazy", "--name", "nightly"]);
    for text in ["two\n", "three\n"] {
        let before = place.json(&["show", "--json"]);
        place.write_aged("in", text);
        assert_eq!(place.run(&["rerun", "out"]).status, 0);
        let shown = place.json(&["show", "--json"]);
        assert_eq!(shown["repeats"], before["run"], "{shown}");
        assert_eq!(shown["name"], "rerun-of-nightly");
    }
    let log = place.json(&["log", "--json"]);
    assert_eq!(log[1]["repeats"], first.as_str());
    assert!(log[2]["repeats"].is_null());
    assert!(
        place
            .run(&["show", "rerun-of-nightly"])
            .out
            .contains("repeats")
    );
    assert!(
        place
            .run(&["log"])
            .out
            .contains(&format!("repeats {first}"))
    );
}

#[test]
fn a_step_that_embeds_the_time_is_named_once_with_the_cause() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.keep(
        "sh -c '{ cat in; date +%s%N; } > out'",
        &["--contents=lazy"],
    );
    let answer = place.run(&["rerun", "--force", "out", "out"]);
    let notes: Vec<&str> = answer
        .out
        .lines()
        .filter(|line| line.starts_with("note: "))
        .collect();
    assert!(
        notes.len() == 1 && notes[0].contains("out") && notes[0].contains("embeds the time"),
        "{answer:?}"
    );
    place.run(&["index", "--wait"]);
    assert_eq!(place.run(&["rerun", "--dry-run", "out"]).status, 0);
}

/// A process outside of the recording changes an input all the time.
#[test]
fn a_step_that_is_stale_again_at_once_is_named_once_with_the_cause() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.write_aged("ticker", "0\n");
    place.keep("cat in ticker > out", &["--contents=lazy"]);
    let mut shell = place.stage.command("sh");
    shell
        .current_dir(place.work())
        .args(["-c", "while :; do date +%s%N > ticker; done"]);
    let mut ticks = shell.spawn().unwrap();
    let answer = place.run(&["rerun", "out"]);
    ticks.kill().unwrap();
    ticks.wait().unwrap();
    let mut notes = answer.out.lines();
    let expected = "note: out is stale again at once, and every rerun runs it: ticker has changed";
    let count = notes
        .clone()
        .filter(|line| line.starts_with("note: "))
        .count();
    assert!(
        notes.any(|line| line == expected) && count == 1,
        "{answer:?}"
    );
    let plan = place.run(&["rerun", "--dry-run", "out"]);
    assert!(
        plan.status == 1 && plan.out.contains("ticker has changed"),
        "{plan:?}"
    );
}

/// Compilers and builders do so. The first run's inputs are gone.
#[test]
fn a_command_that_looks_at_its_former_result_is_current_after_it_ran_again() {
    let place = Place::new();
    place.write("step.sh", "cat out > /dev/null 2>&1; cat in > out\n");
    place.write_aged("in", "one\n");
    place.keep("sh step.sh", &["--contents=lazy"]);
    place.write_aged("in", "two\n");
    assert_eq!(place.run(&["rerun", "--dry-run", "out"]).status, 1);
    place.keep("sh step.sh", &["--contents=lazy"]);
    let plan = place.run(&["rerun", "--dry-run", "out"]);
    assert_eq!(plan.status, 0, "{plan:?}");
    place.write_aged("in", "three\n");
    assert_eq!(place.run(&["rerun", "out"]).status, 0);
    let plan = place.run(&["rerun", "--dry-run", "out"]);
    assert_eq!(
        (plan.status, place.text("out").as_str()),
        (0, "three\n"),
        "{plan:?}"
    );
}

#[test]
fn an_archiver_does_not_add_to_the_archive_of_an_earlier_run() {
    if !needs("an archive", &["ar"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.keep("ar qc lib.a in", &["--contents=lazy"]);
    place.write_aged("in", "two\n");
    assert_eq!(place.run(&["rerun", "lib.a"]).status, 0);
    let listed = place
        .stage
        .command("ar")
        .arg("t")
        .arg(place.path("lib.a"))
        .output();
    assert_eq!(listed.unwrap().stdout, b"in\n");
    assert_eq!(place.run(&["rerun", "--dry-run", "lib.a"]).status, 0);
}
