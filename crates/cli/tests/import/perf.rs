//! Logs of `perf trace` (`documents/perf/make`) become runs.

use super::Desk;
use super::audit::{LINE, WORDS, used};
use super::documents::{behind, document, import, paths};
use super::round_trip::equal;
use serde_json::Value;
use std::collections::BTreeSet;

const AT_WORDS: [&str; 2] = ["--cwd", "/tmp/words"];

/// Programs with their statuses, without shells. perf does not print arguments.
fn programs(desk: &Desk) -> BTreeSet<String> {
    let all = desk.json(&["processes", "--json"]);
    let program = |one: &Value| format!("{} {}", one["exec_path"], one["exit"]);
    let all = all.as_array().unwrap().iter().map(program);
    all.filter(|text| !text.contains("/sh\"") && !text.starts_with("null"))
        .collect()
}

/// Imports changed bytes of a log, which must succeed.
#[track_caller]
fn imported(desk: &Desk, name: &str, bytes: &[u8], options: &[&str]) {
    desk.write(name, bytes);
    let output = desk.backstory(&[&["import", "perf", name], options].concat());
    assert!(output.status.success(), "{output:?}");
}

/// Recall and precision against backstory's record of the same line. Another process of the machine
/// is in the first log. perf 7.3 prints no names of errors, and no names of programs in events.
#[test]
fn a_log_of_perf_agrees_with_the_record_of_the_same_line() {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    own.write("words.sh", LINE.as_bytes());
    own.backstory(&["record", "--wait", "--", "sh", "words.sh"]);
    agrees(&own, "perf/line.log");
    agrees(&own, "perf/newer.log");
}

fn agrees(own: &Desk, log: &str) {
    let desk = Desk::new();
    import(&desk, "perf", log, &AT_WORDS);
    let work = format!("{}/", own.work().display());
    for access in ["read", "write", "delete", "rename"] {
        let (mut wanted, found) = (used(own, access, &work), used(&desk, access, WORDS));
        wanted.remove("words.sh");
        // perf takes the target of `symlinkat` for a descriptor: the link leads nowhere.
        match access {
            "read" => assert!(wanted.remove("d/a b")),
            "write" => assert!(wanted.remove("d/l")),
            _ => {}
        }
        assert!(!wanted.is_empty(), "{access}");
        equal(access, &wanted, &found);
    }
    equal("programs", &programs(own), &programs(&desk));
    let show = desk.json(&["show", "--json"]);
    assert_eq!(show["exit"], 3);
    assert_eq!(show["command"], serde_json::json!(["/bin/sh", "..."]));
    // A pipe leads from cat to head.
    let parts = ["/cat\"", "/head\"", "/cp\"", "/sort\"", "/tr\""];
    behind(&desk, "/tmp/words/all", &parts);
    behind(&desk, "/tmp/words/all", &["/tmp/words/in"]);
    assert!(!paths(&desk, "write").contains(&"/tmp/other".to_owned()));
    let reasons = desk.reasons();
    assert!(!reasons.contains("some system calls only"), "{reasons}");
    assert!(!reasons.contains("cannot be decoded"), "{reasons}");
    for gap in [
        "the arguments of programs",
        "the descriptors of 1 pipe",
        "did not print 1 path ",
    ] {
        assert!(reasons.contains(gap), "{reasons}");
    }
}

/// perf prints names without escapes, and cuts long lines.
#[test]
fn names_with_quotes_and_newlines_are_read_and_those_that_perf_garbles_are_counted() {
    let desk = Desk::new();
    import(&desk, "perf", "perf/odd.log", &["--cwd", "/tmp/odd"]);
    let files = desk.backstory(&["files", "--all", "--json"]).stdout;
    let files = String::from_utf8(files).unwrap();
    for name in [
        "of thread",
        "of child",
        r#"q\"uo,te) = 3 renamed"#,
        r"new\nline renamed",
        r"\udcff raw renamed",
    ] {
        let path = format!("\"/tmp/odd/{name}\"");
        assert!(files.contains(&path), "no {path} in {files}");
    }
    // The open of the other name could have two arguments.
    assert!(!files.contains("\"/tmp/odd/x\""), "{files}");
    // A thread's child has the thread's process as its parent.
    behind(
        &desk,
        "/tmp/odd/of child",
        &["/cp\"", "of thread", "/python3\""],
    );
    let show = desk.json(&["show", "--json"]);
    assert_eq!(show["signal"], 9);
    let reasons = desk.reasons();
    for gap in ["the addresses of IPv6", "perf did not print 3 paths"] {
        assert!(reasons.contains(gap), "{reasons}");
    }
    assert!(!reasons.contains("cannot be decoded"), "{reasons}");
}

/// Without `-a`, perf prints names of the command's first process only.
#[test]
fn a_log_without_the_names_of_children_says_how_many_names_are_missing() {
    let desk = Desk::new();
    import(&desk, "perf", "perf/children.log", &AT_WORDS);
    let written = used(&desk, "write", WORDS);
    // The first process opened it. Others opened the rest.
    assert_eq!(written, BTreeSet::from(["upper".to_owned()]));
    let reasons = desk.reasons();
    assert!(reasons.contains("paths to the end"), "{reasons}");
    assert!(reasons.contains("names (-a)"), "{reasons}");
    assert!(reasons.contains("some system calls only (-e)"), "{reasons}");
    let all = desk.json(&["processes", "--json"]);
    assert!(all.as_array().unwrap().len() >= 11, "{all}");
    assert_eq!(desk.json(&["show", "--json"])["exit"], 3);
}

#[test]
fn the_script_is_printed_and_a_log_of_pointers_is_refused_with_advice() {
    let desk = Desk::new();
    let script = desk.backstory(&["import", "perf", "--print-script"]);
    let text = String::from_utf8(script.stdout).unwrap();
    assert!(text.starts_with("#!/bin/sh\n"), "{text}");
    assert!(text.contains("exec perf trace -a -o"), "{text}");
    let pointers = b"     0.011 ( 0.004 ms): cat/77 openat(dfd: CWD, filename: 0x7f) = 3\n";
    desk.write("pointers", pointers);
    desk.write("other", b"0.1 openat(CWD, \"a\") = 3\n");
    for (name, advice) in [
        ("pointers", "or use strace or bpftrace"),
        ("other", "this is no log of perf trace"),
    ] {
        let refused = desk.backstory(&["import", "perf", name]);
        assert_eq!(refused.status.code(), Some(1));
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(error.contains(advice), "{error}");
    }
    assert_eq!(desk.runs(), Vec::<String>::new());
}

#[test]
fn a_log_of_perf_that_is_cut_interleaved_or_lost_events_says_so_and_keeps_the_rest() {
    let desk = Desk::new();
    let bytes = std::fs::read(document(&desk, "perf/line.log")).unwrap();
    imported(&desk, "cut", &bytes[..bytes.len() * 3 / 4], &AT_WORDS);
    let reasons = desk.reasons();
    assert!(reasons.contains("the log ends before"), "{reasons}");
    imported(&desk, "whole", &bytes, &AT_WORDS);
    let wanted = used(&desk, "write", WORDS);
    let mut damaged = Vec::new();
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        damaged.extend_from_slice(line);
        if at % 50 == 0 {
            damaged.extend(b"cc: hello = 3\nLOST 6 events!\n\n");
        }
    }
    imported(&desk, "damaged", &damaged, &AT_WORDS);
    equal("write", &wanted, &used(&desk, "write", WORDS));
    let reasons = desk.reasons();
    let (texts, lost) = ("of the log, the first being line", "perf lost 1");
    assert!(
        reasons.contains(texts) && reasons.contains(lost),
        "{reasons}"
    );
}

/// Each processor has a buffer of its own, which perf reads in turn.
#[test]
fn lines_of_perf_out_of_order_give_the_same_run() {
    let desk = Desk::new();
    let bytes = std::fs::read(document(&desk, "perf/line.log")).unwrap();
    let facts = |name: &str, bytes: &[u8]| {
        imported(&desk, name, bytes, &AT_WORDS);
        let all = ["read", "write", "delete", "rename", "exec"];
        (all.map(|access| paths(&desk, access)), programs(&desk))
    };
    let wanted = facts("whole", &bytes);
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    // Lines without a time have the time of the line before.
    let is_timed = |line: &[u8]| !line.trim_ascii_start().starts_with(b"?");
    let length = lines.len();
    for chunk in lines[..length - 1].chunks_mut(7) {
        if chunk.iter().all(|line| is_timed(line)) {
            chunk.reverse();
        }
    }
    assert!(facts("exchanged", &lines.concat()) == wanted);
}
