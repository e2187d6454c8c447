//! Logs of PROBE, which `documents/probe/make` made.

use super::Desk;
use super::documents::{behind, import, paths};
use serde_json::Value;
use std::collections::BTreeSet;

/// The files of the user with this access.
fn used(desk: &Desk, access: &str, work: &str) -> BTreeSet<String> {
    let all = paths(desk, access).into_iter();
    let below = all.filter_map(|path| Some(path.strip_prefix(work)?.to_owned()));
    below.collect()
}

/// The programs that ran, without forked shells: file, arguments, status.
fn programs(desk: &Desk) -> BTreeSet<String> {
    let all = desk.json(&["processes", "--json"]);
    let all = all.as_array().unwrap().iter();
    let all = all.filter(|one| one["argv"][0] != "sh" && one["argv"][0] != Value::Null);
    all.map(|one| format!("{} {} {}", one["exec_path"], one["argv"], one["exit"]))
        .collect()
}

/// A desk on which backstory recorded a line.
fn recorded(line: &str) -> Desk {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    own.backstory(&["record", "--wait", "--", "sh", "-c", line.trim()]);
    own
}

/// Recall and precision of a log of PROBE against backstory's record of the same line.
#[test]
fn a_log_of_probe_agrees_with_the_record_of_the_same_line() {
    let own = recorded(include_str!("documents/line.sh"));
    let desk = Desk::new();
    import(&desk, "probe", "probe/line.log", &[]);
    let work = format!("{}/", own.work().display());
    for access in ["read", "write"] {
        let wanted = used(&own, access, &work);
        assert_eq!(wanted.len(), 4, "{wanted:?}");
        assert_eq!(used(&desk, access, "/tmp/words/"), wanted, "{access}");
    }
    let wanted = programs(&own);
    assert_eq!(wanted.len(), 4, "{wanted:?}");
    assert_eq!(programs(&desk), wanted);
    // The shell opened the files of redirections, and the programs have them as streams.
    let all = ["\"cat\"", "\"cp\"", "\"sort\"", "\"tr\"", "/tmp/words/in"];
    behind(&desk, "/tmp/words/both", &all);
    for reason in ["no reads, writes, pipes", "no times", "PWD"] {
        assert!(desk.reasons().contains(reason), "{}", desk.reasons());
    }
}

#[test]
fn names_that_change_lead_to_the_file_that_had_another_name() {
    let own = recorded(include_str!("documents/probe/names.sh"));
    let desk = Desk::new();
    import(&desk, "probe", "probe/names.log", &[]);
    let work = format!("{}/", own.work().display());
    let read = used(&desk, "read", "/tmp/words/");
    assert_eq!(read, used(&own, "read", &work));
    assert!(!read.contains("d/nothing"), "{read:?}");
    behind(
        &desk,
        "/tmp/words/out",
        &["\"tr\"", "\"ln\"", "\"mv\"", "/tmp/words/in"],
    );
    assert_eq!(programs(&desk), programs(&own));
    // The shell had another directory when it opened `../last`, and the log does not say which.
    let reasons = desk.reasons();
    let elsewhere = "1 operation with a name in a directory that";
    assert!(reasons.contains(elsewhere), "{reasons}");
    let written = used(&desk, "write", "/tmp/words/");
    let wanted: BTreeSet<String> = used(&own, "write", &work);
    assert!(written.is_subset(&wanted), "{written:?} {wanted:?}");
    assert!(!written.contains("last") && written.contains("out"));
}
