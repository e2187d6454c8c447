//! Logs of auditd (`documents/audit/make`) become runs with the same processes and files.

use super::Desk;
use super::documents::{behind, document, import, paths};
use super::round_trip::equal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(super) const LINE: &str = include_str!("documents/audit/line.sh");
pub(super) const WORDS: &str = "/tmp/words/";

/// Backstory's own record of the line of the logs.
fn own() -> Desk {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    own.backstory(&["record", "--wait", "--", "sh", "-c", LINE.trim()]);
    own
}

pub(super) fn used(desk: &Desk, access: &str, work: &str) -> BTreeSet<String> {
    let all = paths(desk, access).into_iter();
    let below = all.filter_map(|path| Some(path.strip_prefix(work)?.to_owned()));
    below.collect()
}

/// Programs with arguments and statuses. The logs begin before the line's shell.
pub(super) fn programs(desk: &Desk, with_status: bool) -> BTreeSet<String> {
    let all = desk.json(&["processes", "--json"]);
    let program = |one: &Value| match with_status {
        true => format!("{} {} {}", one["exec_path"], one["argv"], one["exit"]),
        false => format!("{} {}", one["exec_path"], one["argv"]),
    };
    let all: BTreeSet<String> = all.as_array().unwrap().iter().map(program).collect();
    all.into_iter()
        .filter(|text| !text.contains("loginuid"))
        .collect()
}

/// Recall and precision of a log that has the calls of `docs/howto/audit.rules`.
#[test]
fn a_log_of_auditd_agrees_with_the_record_of_the_same_line() {
    let own = own();
    let desk = Desk::new();
    import(&desk, "auditd", "audit/line.log", &[]);
    let work = format!("{}/", own.work().display());
    for access in ["read", "write", "delete", "rename"] {
        let (wanted, found) = (used(&own, access, &work), used(&desk, access, WORDS));
        assert!(!wanted.is_empty(), "{access}");
        equal(access, &wanted, &found);
    }
    equal("programs", &programs(&own, true), &programs(&desk, true));
    assert_eq!(desk.json(&["show", "--json"])["exit"], 3);
    let parts = [
        "\"cat\"", "\"head\"", "\"mv\"", "\"cp\"", "\"sort\"", "\"tr\"",
    ];
    behind(&desk, "/tmp/words/all", &parts);
    behind(&desk, "/tmp/words/all", &["/tmp/words/in"]);
    assert!(
        desk.reasons().contains("which calls the rules"),
        "{}",
        desk.reasons()
    );
}

/// Common rules select programs, and the files of a directory. auditd adds names to numbers.
#[test]
fn a_log_of_common_rules_has_the_programs_and_the_files_and_says_what_it_lacks() {
    let own = own();
    let desk = Desk::new();
    import(&desk, "auditd", "audit/enriched.log", &[]);
    // A shell that executes nothing has no record.
    equal("programs", &programs(&own, false), &programs(&desk, false));
    let work = format!("{}/", own.work().display());
    let (wanted, mut written) = (used(&own, "write", &work), used(&desk, "write", WORDS));
    // Without closes, the program that made the file may have written it after it was renamed.
    assert!(written.remove("d/a b"), "{written:?}");
    equal("write", &wanted, &written);
    assert!(
        desk.reasons().contains("no reads, no closes"),
        "{}",
        desk.reasons()
    );
    let processes = desk.json(&["processes", "--json"]);
    let all = processes.as_array().unwrap();
    let parents = all.iter().filter(|one| !one["parent_id"].is_null());
    assert_eq!(parents.count() + 1, all.len(), "{processes}");
}

fn lines(desk: &Desk) -> Vec<String> {
    let text = std::fs::read_to_string(document(desk, "audit/line.log")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn facts(desk: &Desk) -> (Value, BTreeSet<String>) {
    let files = desk.json(&["files", "--all", "--json"]);
    (files, programs(desk, true))
}

fn write(desk: &Desk, name: &str, lines: &[String]) -> PathBuf {
    desk.write(name, (lines.join("\n") + "\n").as_bytes())
}

#[track_caller]
fn imported(desk: &Desk, files: &[PathBuf]) {
    let mut args = vec!["import", "auditd"];
    args.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = desk.backstory(&args);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn rotated_files_are_read_in_the_order_of_their_times() {
    let desk = Desk::new();
    let lines = lines(&desk);
    imported(&desk, &[write(&desk, "whole", &lines)]);
    let wanted = facts(&desk);
    // An event is in two files.
    let (first, rest) = lines.split_at(401);
    let (second, third) = rest.split_at(400);
    let [a, b, c] = [("log.2", first), ("log.1", second), ("log", third)]
        .map(|(name, part)| write(&desk, name, part));
    imported(&desk, &[c, a, b]);
    assert!(facts(&desk) == wanted);
}

/// Two processors write their records between each other's.
#[test]
fn interleaved_records_of_several_events_give_the_same_run() {
    let desk = Desk::new();
    let lines = lines(&desk);
    imported(&desk, &[write(&desk, "whole", &lines)]);
    let wanted = facts(&desk);
    let serial = |line: &str| line.split([':', ')']).nth(1).unwrap_or_default().to_owned();
    let mut events: Vec<Vec<String>> = Vec::new();
    for line in lines {
        match events.last_mut() {
            Some(event) if serial(&event[0]) == serial(&line) => event.push(line),
            _ => events.push(vec![line]),
        }
    }
    // A later event is whole before an earlier one begins, and another begins in between.
    for at in (10..events.len() - 3).step_by(4) {
        events.swap(at, at + 1);
    }
    let mut lines = events.concat();
    let mut exchanged = 0;
    for at in 10..lines.len() - 1 {
        if at % 3 == 0 && serial(&lines[at]) != serial(&lines[at + 1]) {
            lines.swap(at, at + 1);
            exchanged += 1;
        }
    }
    assert!(exchanged > 50, "{exchanged}");
    imported(&desk, &[write(&desk, "interleaved", &lines)]);
    assert!(facts(&desk) == wanted);
}

#[test]
fn a_cut_log_of_auditd_is_used_up_to_the_cut_and_says_so() {
    let desk = Desk::new();
    let bytes = std::fs::read(document(&desk, "audit/line.log")).unwrap();
    let cut = desk.write("cut.log", &bytes[..bytes.len() * 3 / 4]);
    imported(&desk, &[cut]);
    behind(
        &desk,
        "/tmp/words/both",
        &["\"head\"", "\"sort\"", "/tmp/words/in"],
    );
    assert!(
        desk.reasons().contains("the log ends before"),
        "{}",
        desk.reasons()
    );
}

#[test]
fn a_log_of_several_machines_and_an_interpreted_log_are_refused() {
    let desk = Desk::new();
    let refused = |text: &[u8], wanted: &str| {
        desk.write("log", text);
        let output = desk.backstory(&["import", "auditd", "log"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && error.contains(wanted),
            "{error}"
        );
        assert_eq!(desk.runs(), Vec::<String>::new());
    };
    let of = |node: &str| {
        format!(
            "node={node} type=SYSCALL msg=audit(1700000000.001:7): arch=c000003e syscall=59 \
             success=yes exit=0 ppid=1 pid=2 comm=\"x\" exe=\"/bin/x\"\n"
        )
    };
    refused((of("a") + &of("b")).as_bytes(), "several machines");
    let interpreted = b"----\ntype=SYSCALL msg=audit(11/23/2026 08:40:37.854:28) : arch=x86_64\n";
    refused(interpreted, "line 2, column 1: this is no log of auditd");
    refused(
        b"type=LOGIN msg=audit(1700000000.001:7): pid=1\n",
        "type=SYSCALL",
    );
    refused(b"", "this is no log of auditd");
}

/// A process id is used again, a thread ends, and a signal ends a program.
#[test]
fn ends_and_numbers_that_are_used_again_are_told_apart() {
    let desk = Desk::new();
    let mut text = String::new();
    let mut serial = 0;
    let mut add = |pid: u32, ppid: u32, number: u32, exit: &str, args: &str, more: &str| {
        serial += 1;
        let head = format!("msg=audit(1700000000.001:{serial}):");
        text += &format!(
            "type=SYSCALL {head} arch=c000003e syscall={number} {exit} {args} items=0 \
             ppid={ppid} pid={pid} comm=\"x\" exe=\"/bin/x\"\n"
        );
        if !more.is_empty() {
            text += &format!(
                "type={} {head} {}\n",
                &more[..more.find(' ').unwrap()],
                more
            );
        }
        text += &format!("type=PROCTITLE {head} proctitle=\"x\"\n");
    };
    let done = "success=yes exit=0";
    add(10, 1, 59, done, "a0=1", "EXECVE argc=1 a0=\"x\"");
    // A thread, by clone3, and a child.
    add(10, 1, 435, "success=yes exit=11", "a0=1", "");
    add(10, 1, 56, "success=yes exit=12", "a0=11", "");
    add(10, 1, 60, "", "a0=0", "");
    add(12, 10, 59, done, "a0=1", "EXECVE argc=1 a0=\"first\"");
    add(12, 10, 231, "", "a0=7", "");
    add(10, 1, 56, "success=yes exit=12", "a0=11", "");
    add(12, 10, 59, done, "a0=1", "EXECVE argc=1 a0=\"second\"");
    add(10, 1, 231, "", "a0=0", "");
    serial += 1;
    text += &format!("type=ANOM_ABEND msg=audit(1700000000.001:{serial}): pid=12 sig=11 res=1\n");
    let log = desk.write("log", text.as_bytes());
    imported(&desk, &[log]);
    let processes = desk.json(&["processes", "--json"]);
    let all = processes.as_array().unwrap();
    let of = |word: &str| {
        let found = all.iter().find(|one| one["argv"][0] == word);
        found.unwrap_or_else(|| panic!("no {word} in {processes}"))
    };
    assert_eq!(of("x")["exit"], 0);
    assert_eq!(of("first")["exit"], 7);
    assert_eq!(of("second")["signal"], 11);
    // The thread is no process.
    assert!(!all.iter().any(|one| one["pid"] == 11), "{processes}");
}
