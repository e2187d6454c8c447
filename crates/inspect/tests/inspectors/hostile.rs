//! Workers that crash, hang, talk too much or lie, and what the sandbox forbids.

use backstory_inspection::{Catalogue, InspectionWorker, Question, Trouble};

use super::worker;

/// The trouble with a worker that is this shell script.
fn trouble(script: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("backstory-inspect");
    let text = format!("#!/bin/sh\n{script}\n");
    backstory_testkit::program::write(&path, text.as_bytes()).unwrap();
    asked(&InspectionWorker::at(path)).unwrap_err().to_string()
}

fn asked(worker: &InspectionWorker) -> Result<backstory_inspection::Answer, Trouble> {
    let all = Catalogue::built_in();
    let question = Question {
        name: b"dir/a\x1b.csv",
        first: b"a,b\n1,2\n",
        second: None,
        key: &[],
    };
    worker.ask(
        all.choose(question.name, question.first).unwrap(),
        &question,
    )
}

#[test]
fn a_worker_that_crashes_hangs_or_lies_is_an_error_that_names_inspector_and_file() {
    for (script, why) in [
        (
            "kill -SEGV $$",
            "crashed on dir/a\u{fffd}.csv: it was ended by signal 11",
        ),
        (
            "echo 'it is \u{1b}bad' >&2; exit 3",
            "it exited with 3 (it is \u{fffd}bad)",
        ),
        ("kill -SYS $$", "it made a system call that it may not make"),
        ("kill -XCPU $$", "took more than 2 s"),
        ("exec yes", "it has more than 1024 KiB"),
        ("echo '{'", "it is malformed"),
        ("exit 0", "it is malformed"),
        ("echo '{\"inspector\":\"elf\",\"version\":1}'", "was asked"),
        (
            "echo '{\"inspector\":\"csv\",\"version\":3,\"facts\":{\"a\":\"\\u001b[2J\"}}'",
            "control characters",
        ),
    ] {
        let said = trouble(script);
        assert!(said.contains(why), "{script}: {said}");
        assert!(
            said.contains("inspector csv") && said.contains("dir/a"),
            "{said}"
        );
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
}

#[test]
fn a_worker_that_sleeps_is_ended() {
    let said = trouble("exec sleep 1000");
    assert!(said.contains("took more than 10 s on dir/a"), "{said}");
}

#[test]
fn a_missing_worker_is_an_error_that_says_where_it_belongs() {
    let absent = InspectionWorker::at("/nonexistent/backstory-inspect".into());
    let said = asked(&absent).unwrap_err().to_string();
    assert!(
        said.contains("/nonexistent/backstory-inspect cannot be started"),
        "{said}"
    );
    assert!(said.contains("the format of dir/a"), "{said}");
}

#[test]
fn the_real_worker_answers() {
    assert_eq!(asked(&worker()).unwrap().facts["rows"], 1);
}
