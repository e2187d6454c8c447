//! Workers that crash, hang, talk too much or lie, and the rights that the real worker has left.
//! The unit tests of `sandbox.rs` say which system calls it may make.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use backstory_inspection::{Catalogue, InspectionWorker, Question, Trouble};
use backstory_sys::process_tree::stat_fields;
use backstory_testkit::procs::eventually;

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
fn a_worker_that_closes_its_outputs_and_sleeps_is_ended() {
    let said = trouble("echo '{}'; exec sleep 1000 >&- 2>&-");
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

/// A field of `/proc/PID/status`.
fn status_of(pid: &str, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let found = status.lines().find_map(|line| line.strip_prefix(name));
    found.unwrap().trim().to_owned()
}

/// The hard limits of a process, by the names in `/proc/PID/limits`.
fn hard_limits(pid: &str, names: &[&str]) -> Vec<String> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let limit = |name: &&str| {
        let values = limits.lines().find_map(|line| line.strip_prefix(*name));
        let hard = values.unwrap().split_whitespace().nth(1);
        hard.unwrap().to_owned()
    };
    names.iter().map(limit).collect()
}

/// The worker waits for the rest of the content, which does not come.
#[test]
fn the_real_worker_has_given_up_its_rights_before_it_reads_the_whole_content() {
    const CONTENT: usize = 60_000;
    let filters = |pid: &str| status_of(pid, "Seccomp_filters:").parse::<u32>().unwrap();
    let before = filters("self");
    let mut command = Command::new(worker().program());
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut waiting = command.stderr(Stdio::null()).spawn().unwrap();
    let pid = waiting.id().to_string();
    let mut input = waiting.stdin.take().unwrap();
    let ask = r#"{"inspect": {"inspector": "text", "version": 1, "name": "/a.txt"}}"#;
    writeln!(input, "{{\"parts\": [{CONTENT}], \"ask\": {ask}}}").unwrap();
    // More than the worker reads at first, and less than a pipe holds.
    input.write_all(&vec![b'x'; CONTENT - 1]).unwrap();
    let is_closed = || filters(&pid) == before + 1;
    assert!(eventually(Duration::from_secs(120), is_closed));

    assert_eq!(status_of(&pid, "NoNewPrivs:"), "1");
    let limits = [
        "Max address space",
        "Max cpu time",
        "Max file size",
        "Max core file size",
        "Max open files",
    ];
    // A second more than the soft limit, at which the worker gets its signal.
    let expected = ["268435456", "3", "0", "0", "3"];
    assert_eq!(hard_limits(&pid, &limits), expected);
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap();
    // The first of these fields is number 3 in proc_pid_stat(5). Number 41 is the policy.
    let policy = stat_fields(&stat).unwrap().nth(41 - 3);
    assert_eq!(policy, Some("5"), "SCHED_IDLE");
    drop(input);
    assert!(!waiting.wait().unwrap().success(), "the question was cut");
}
