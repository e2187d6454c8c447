//! Logs of the script of bpftrace (`documents/bpftrace/make`) become runs.

use super::Desk;
use super::audit::{LINE, WORDS, programs, used};
use super::documents::{behind, document, import};
use super::round_trip::equal;

/// Recall and precision against backstory's record of the same line.
#[test]
fn a_log_of_bpftrace_agrees_with_the_record_of_the_same_line() {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    own.write("words.sh", LINE.as_bytes());
    own.backstory(&["record", "--wait", "--", "sh", "words.sh"]);
    let desk = Desk::new();
    import(
        &desk,
        "bpftrace",
        "bpftrace/line.log",
        &["--cwd", "/tmp/words"],
    );
    let work = format!("{}/", own.work().display());
    for access in ["read", "write", "delete", "rename"] {
        let (mut wanted, found) = (used(&own, access, &work), used(&desk, access, WORDS));
        wanted.remove("words.sh");
        assert!(!wanted.is_empty(), "{access}");
        equal(access, &wanted, &found);
    }
    let without_shell = |desk: &Desk| {
        let mut all = programs(desk, true);
        all.retain(|text| !text.contains("words.sh"));
        all
    };
    equal("programs", &without_shell(&own), &without_shell(&desk));
    assert!(without_shell(&desk).len() >= 9);
    let show = desk.json(&["show", "--json"]);
    assert_eq!(show["exit"], 3);
    assert_eq!(
        show["command"],
        serde_json::json!(["/bin/sh", "/tmp/words.sh"])
    );
    let parts = [
        "\"cat\"", "\"head\"", "\"mv\"", "\"cp\"", "\"sort\"", "\"tr\"",
    ];
    behind(&desk, "/tmp/words/all", &parts);
    behind(&desk, "/tmp/words/all", &["/tmp/words/in"]);
    assert!(
        !desk.reasons().contains("some system calls only"),
        "{}",
        desk.reasons()
    );
}

#[test]
fn the_script_is_printed_and_a_log_of_another_script_is_refused() {
    let desk = Desk::new();
    let script = desk.backstory(&["import", "bpftrace", "--print-script"]);
    let text = String::from_utf8(script.stdout).unwrap();
    assert!(text.starts_with("#!/usr/bin/env bpftrace\n"), "{text}");
    let none = desk.backstory(&["import", "strace", "--print-script"]);
    assert_eq!(none.status.code(), Some(2));
    desk.write("other", b"Attaching 1 probe...\n7 openat\n");
    let refused = desk.backstory(&["import", "bpftrace", "other"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("--print-script) was expected"), "{error}");
    assert_eq!(desk.runs(), Vec::<String>::new());
}

#[test]
fn a_log_of_bpftrace_that_is_cut_or_lost_events_says_so() {
    let desk = Desk::new();
    let bytes = std::fs::read(document(&desk, "bpftrace/line.log")).unwrap();
    desk.write("cut", &bytes[..bytes.len() * 3 / 4]);
    let imported = |name: &str| {
        let output = desk.backstory(&["import", "bpftrace", name]);
        assert!(output.status.success(), "{output:?}");
        desk.reasons()
    };
    let reasons = imported("cut");
    assert!(reasons.contains("the log ends before"), "{reasons}");
    let mut lost = bytes.clone();
    lost.extend(b"Lost 12 events\n");
    desk.write("lost", &lost);
    let reasons = imported("lost");
    assert!(reasons.contains("bpftrace lost 12 events"), "{reasons}");
}

/// The time of a record, as text.
fn time(record: &[u8]) -> Option<&[u8]> {
    record.split(|byte| *byte == b' ').nth(1)
}

/// Each processor writes its records by itself.
#[test]
fn records_of_bpftrace_out_of_order_give_the_same_run() {
    let desk = Desk::new();
    let bytes = std::fs::read(document(&desk, "bpftrace/line.log")).unwrap();
    let mut records: Vec<&[u8]> = bytes.split(|byte| *byte == 0x1e).collect();
    let facts = |name: &str, bytes: &[u8]| {
        desk.write(name, bytes);
        let output = desk.backstory(&["import", "bpftrace", name, "--cwd", "/tmp/words"]);
        assert!(output.status.success(), "{output:?}");
        (
            desk.json(&["files", "--all", "--json"]),
            programs(&desk, true),
        )
    };
    let wanted = facts("whole", &bytes);
    let length = records.len();
    // The last record has the end of the log. Records of one moment have no other order.
    let moments = records[2..length - 1].chunk_by(|one, next| time(one) == time(next));
    let mut moments: Vec<&[&[u8]]> = moments.collect();
    moments.chunks_mut(9).for_each(<[_]>::reverse);
    let moments = moments.concat();
    records[2..length - 1].copy_from_slice(&moments);
    assert!(facts("exchanged", &records.join(&0x1e)) == wanted);
}
