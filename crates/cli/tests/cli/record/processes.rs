//! Processes that outlive the command of `record`, and those in pid namespaces of their own.

use backstory_testkit::need;

use crate::{Answer, Place};

/// A process of the run does something that cannot be decoded after the command has ended.
#[test]
fn the_verdict_is_open_while_processes_are_recorded_unless_record_waits() {
    let place = Place::new();
    if !need::needs("a direct system call", &["perl"]) {
        return;
    }
    // `acct` without arguments: what it does cannot be decoded.
    let line = "(while [ ! -e go ]; do sleep 0.01; done; perl -e 'syscall(163, 0)') >&- 2>&- &";
    let summary = || -> serde_json::Value {
        let text = std::fs::read(place.work().join("s.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    let options = ["record", "--json-summary", "s.json"];
    let answer = place.run(&[&options[..], &["--", "sh", "-c", line]].concat());
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
    let open = summary();
    assert_eq!(open["complete"], serde_json::Value::Null, "{open}");
    assert_eq!(open["still_recording"], true, "{open}");
    place.write("go", "");
    place.finalized();
    assert_eq!(place.json(&["show", "--json"])["complete"], false);
    let line = format!("rm go; (sleep 0.1; echo >go) & {line}");
    let answer = place.run(&[&options[..], &["--wait", "--", "sh", "-c", &line]].concat());
    let sentence = "acct was used, which cannot be decoded";
    assert!(
        answer.status == 0 && answer.err.contains(sentence),
        "{answer:?}"
    );
    let waited = summary();
    let show = place.json(&["show", "--json"]);
    for field in ["run", "complete", "incomplete_because", "lost", "warnings"] {
        assert_eq!(waited[field], show[field], "{waited}");
    }
    assert_eq!(waited["incomplete_because"][0], sentence, "{waited}");
    assert_eq!(waited["still_recording"], false, "{waited}");
}

#[test]
fn a_question_waits_for_a_process_that_is_about_to_end() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.record("cp in out; sleep 0.15 >/dev/null 2>&1 &");
    let asked = place.run(&["of", "out", "--tree"]);
    assert!(
        asked.status == 0 && asked.out.contains("cp in out"),
        "{asked:?}"
    );
    assert_eq!(asked.err, "");
}

#[test]
fn a_run_with_a_living_daemon_is_reported_until_the_daemon_ends() {
    let place = Place::new();
    let first = place.record("true");
    let mut command = place.command(&[
        "record",
        "--name",
        "daemon",
        "--",
        "sh",
        "-c",
        "(read line < gate; echo late > out) > log 2>&1 &",
    ]);
    assert!(
        place
            .stage
            .command("mkfifo")
            .arg(place.path("gate"))
            .status()
            .unwrap()
            .success()
    );
    // The daemon waits at the gate: a prompt that waited for it would not return.
    assert_eq!(Answer::of(command.output().unwrap()).status, 0);
    place
        .run(&["show", "daemon"])
        .is_error(1, &["still being recorded"]);
    let latest = place.run(&["show", "--json"]);
    assert!(
        latest.out.contains(&first) && latest.err.contains("still being recorded"),
        "{latest:?}"
    );
    let of = place.run(&["of", "out", "--tree"]);
    assert!(
        of.status == 1 && of.err.contains("still being recorded"),
        "{of:?}"
    );
    std::fs::write(place.work().join("gate"), "go\n").unwrap();
    place.finalized();
    assert!(
        place.run(&["of", "out", "--tree"]).out.contains("sh -c"),
        "{:?}",
        place.run(&["of", "out", "--tree"])
    );
    assert_eq!(place.json(&["show", "--json"])["name"], "daemon");
}

#[test]
fn processes_of_other_pid_namespaces_are_known_by_the_numbers_that_we_know() {
    let place = Place::new();
    let Some(program) = place.fixture("pidns") else {
        return;
    };
    for how in ["clone3", "unshare", "setns"] {
        for guard in ["--guard=on", "--guard=off"] {
            let answer = place.run(&["record", guard, "--", &program, how]);
            if answer.status == 77 {
                backstory_testkit::need::skipped(
                    "pid namespaces",
                    "an ordinary user may make none here",
                );
                return;
            }
            assert_eq!(answer.status, 0, "{how} {guard}: {}", answer.err);
            let processes = place.json(&["processes", "--json"]);
            let list = processes.as_array().unwrap();
            let pids: std::collections::BTreeSet<_> =
                list.iter().map(|p| p["pid"].as_u64()).collect();
            assert_eq!(pids.len(), list.len(), "{how} {guard}: {processes}");
            let parentless = list.iter().filter(|p| p["parent"].is_null()).count();
            assert_eq!(parentless, 1, "{how} {guard}: {processes}");
            let files = place.json(&["files", "--json"]);
            for name in ["first", "child0", "child1", "child2"] {
                let path = place.path(name);
                let seen = |file: &serde_json::Value| {
                    file["path"] == path.as_str() && file["certainty"] == "seen"
                };
                assert!(
                    files.as_array().unwrap().iter().any(seen),
                    "{how} {guard} {name}: {files}"
                );
            }
        }
    }
}

#[test]
fn a_pid_namespace_that_a_static_program_made_is_noticed_before_a_recorder_is_in_it() {
    let place = Place::new();
    let Some(program) = place.fixture("static_pidns") else {
        return;
    };
    place.write("a", "text\n");
    let answer = place.run(&["record", "--", &program]);
    if answer.status == 77 {
        return backstory_testkit::need::skipped(
            "pid namespaces",
            "an ordinary user may make none here",
        );
    }
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let processes = place.json(&["processes", "--json"]);
    let list = processes.as_array().unwrap();
    let is_copy = |p: &&serde_json::Value| {
        p["exec_path"]
            .as_str()
            .is_some_and(|path| path.ends_with("/cp"))
    };
    let copy = list.iter().find(is_copy).unwrap();
    // In its own namespace it is the third.
    assert!(copy["pid"].as_u64() > Some(3), "{processes}");
    let parent = list.iter().find(|p| p["pid"] == copy["parent"]).unwrap();
    assert!(parent["argv"].to_string().contains("inner"), "{processes}");
    assert!(place.wrote("made"));
}
