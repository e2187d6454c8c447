//! Verdicts about programs that runs with `--guard=auto` keep for later ones: they are used, and
//! forged ones are found out.

#[path = "../../../plain/tests/verdict_file/mod.rs"]
mod verdict_file;

use super::Place;
use super::guard_auto::{AUTO, place, recorded};
use backstory_eventlog::frame::{self, FrameKind, LogPiece};
use backstory_eventlog::run::RunEnd;
use backstory_testkit::busybox::busybox;
use backstory_testkit::need;
use serde_json::Value;
use std::os::unix::fs::MetadataExt;

/// A place for tests of verdicts that are kept. `None`, with a line that says so, if later runs
/// believe none about the programs of this machine.
fn place_of_verdicts(test: &str) -> Option<Place> {
    let place = place(test)?;
    if !verdict_file::lasts("/usr/bin/env") {
        need::skipped(
            test,
            "the programs of this machine are not root's, or are on FUSE",
        );
        return None;
    }
    Some(place)
}

/// The file of verdicts in the store, and its inode: a run that has a new verdict makes another.
fn verdicts(place: &Place) -> (std::path::PathBuf, u64) {
    place.quiet();
    let path = place.stage.store().join("verdicts.index");
    let inode = std::fs::metadata(&path).unwrap().ino();
    (path, inode)
}

#[test]
fn a_second_run_classifies_no_program_and_a_damaged_file_of_verdicts_changes_nothing() {
    let Some(place) = place_of_verdicts("kept verdicts") else {
        return;
    };
    place.write("a", "1\n");
    let line = "cat a >b; sed -n 's/^Seccomp:.//p' /proc/self/status";
    let run = || assert_eq!(recorded(&place, &["sh", "-c", line]), "0\n");
    let (path, begun) = verdicts(&place);
    run();
    let (_, first) = verdicts(&place);
    assert_ne!(first, begun, "sh and cat are new");
    run();
    assert_eq!(verdicts(&place).1, first);
    if let Some(busybox) = busybox().and_then(std::path::Path::to_str) {
        let run = || recorded(&place, &[busybox, "cat", "a"]);
        run();
        let (_, with_static) = verdicts(&place);
        assert_ne!(with_static, first, "a command that is not plain");
        run();
        assert_eq!(verdicts(&place).1, with_static);
    }
    let whole = std::fs::read(&path).unwrap();
    let cut = &whole[..whole.len() - 1];
    std::fs::write(&path, cut).unwrap();
    run();
    verdicts(&place);
    let renewed = std::fs::read(&path).unwrap();
    assert!(renewed != cut && renewed.starts_with(b"bsplain"));
}

/// `record` with the guard `auto` and these options.
fn words<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let auto = AUTO;
    let (begins, record) = auto.split_last().unwrap();
    [record, options, &[*begins], command].concat()
}

/// Every question gets the answer that stays, however early it is.
#[test]
pub(super) fn a_run_that_believed_a_forged_verdict_is_not_complete() {
    // As a program, the loader is not plain.
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    const SUMMARY: &str = "s.json";
    let Some(place) = place_of_verdicts("a forged verdict") else {
        return;
    };
    let command = ["sh", "-c", &format!("{LOADER} /bin/true")];
    let options: [&[&str]; 4] = [
        &[],
        &["--wait"],
        &["--json-summary", SUMMARY],
        &["--wait", "--json-summary", SUMMARY],
    ];
    for options in options {
        recorded(&place, &command);
        let (path, _) = verdicts(&place);
        let kept = std::fs::read(&path).unwrap();
        std::fs::write(&path, verdict_file::forged(&kept, b"libc.so.6\0")).unwrap();
        let answer = place.run(&words(options, &command));
        assert_eq!(answer.status, 0, "{options:?}: {answer:?}");
        // At once: the run may still be unfinished.
        let shown = place.json(&["show", "--json"]);
        let because = shown["incomplete_because"].to_string();
        let says =
            because.contains("an earlier run's verdict about") && because.contains("ld-linux");
        assert!(says && shown["complete"] == false, "{options:?}: {shown}");
        if !options.is_empty() {
            let line = "is not complete: an earlier run's verdict about";
            assert!(answer.err.contains(line), "{options:?}: {answer:?}");
        }
        if options.contains(&SUMMARY) {
            let summary = std::fs::read(place.path(SUMMARY)).unwrap();
            let summary: Value = serde_json::from_slice(&summary).unwrap();
            for field in ["run", "complete", "incomplete_because"] {
                assert_eq!(summary[field], shown[field], "{options:?}: {summary}");
            }
        }
        place.quiet();
        assert!(!path.exists(), "{options:?}");
        let stays = place.json(&["show", "--json"]);
        assert_eq!(stays["incomplete_because"], shown["incomplete_because"]);
    }
    // The next run classifies anew.
    recorded(&place, &command);
}

/// The reasons of each end in the log of a run. Of several ends the last one counts.
fn ends(place: &Place, run: &str) -> Vec<Vec<String>> {
    let path = place.stage.store().join("runs").join(format!("{run}.log"));
    let log = std::fs::read(path).unwrap();
    let ends = frame::walk(&log).filter_map(|piece| match piece {
        LogPiece::Frame(frame) if frame.kind == Some(FrameKind::End) => Some(frame.payload),
        _ => None,
    });
    let reasons = ends.map(|payload| {
        let end: RunEnd = serde_json::from_slice(&log[payload]).unwrap();
        end.incomplete_because
    });
    reasons.collect()
}

/// So a process that is killed while it confirms them leaves the reason in the log.
#[test]
fn a_run_has_a_reason_until_the_verdicts_that_it_believed_are_confirmed() {
    let Some(place) = place_of_verdicts("verdicts to confirm") else {
        return;
    };
    let command = ["sed", "-n", "1p", "/proc/self/status"];
    place.quiet();
    recorded(&place, &command);
    place.quiet();
    let answer = place.run(&words(&["--wait"], &command));
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let runs = place.runs();
    let [waited, second, first] = &runs[..] else {
        panic!("{runs:?}");
    };
    let one_without_reasons = vec![Vec::<String>::new()];
    assert_eq!(ends(&place, first), one_without_reasons, "it believed none");
    let all = ends(&place, second);
    let [unconfirmed, confirmed] = &all[..] else {
        panic!("{all:?}");
    };
    let [reason] = &unconfirmed[..] else {
        panic!("{all:?}");
    };
    assert!(
        reason.starts_with("an earlier run's verdict about"),
        "{all:?}"
    );
    assert!(confirmed.is_empty(), "{all:?}");
    assert_eq!(ends(&place, waited), one_without_reasons, "one that waited");
}
