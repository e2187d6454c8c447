//! Verdicts on the results of replays.

use backstory_replay::plan::{Deviations, LoggedUses, plan};
use backstory_replay::root::results::ReplayedFile;
use backstory_replay::verdict::{OutputState, Verdict, judge};

use crate::sorted;

/// The verdict on a replay of `sort` that left these files.
fn verdict(left: &[(&str, &str)]) -> Verdict {
    let directory = tempfile::tempdir().unwrap();
    let contents = directory.path().join("contents");
    let store = sorted("run0000a", &[], "b\na\n", "a\nb\n").store(&contents);
    let plan = plan(
        &store,
        contents,
        "run0000a",
        &Deviations::default(),
        &LoggedUses::default(),
    )
    .unwrap();
    let left: Vec<ReplayedFile> = left
        .iter()
        .map(|(path, content)| {
            let (digest, size) = backstory_contents::digest_of(&mut content.as_bytes()).unwrap();
            ReplayedFile {
                path: path.as_bytes().to_vec(),
                digest: digest.0,
                size,
            }
        })
        .collect();
    judge(&store, &plan, &left, |_| true).unwrap()
}

#[test]
fn an_output_with_the_recorded_content_is_identical() {
    let verdict = verdict(&[("/w/out.txt", "a\nb\n")]);
    assert!(verdict.is_identical());
    assert_eq!(verdict.outputs[0].state, OutputState::Identical);
    assert_eq!(verdict.outputs[0].fed_by, [""; 0]);
    assert!(verdict.new.is_empty());
}

#[test]
fn a_different_output_names_the_randomness_that_its_command_read() {
    let verdict = verdict(&[("/w/out.txt", "b\na\n"), ("/w/further.txt", "")]);
    assert!(!verdict.is_identical());
    assert_eq!(verdict.outputs[0].state, OutputState::Different);
    assert_eq!(
        verdict.outputs[0].fed_by,
        ["randomness (/dev/urandom), by sort"]
    );
    assert_eq!(verdict.new, [b"/w/further.txt"[..].into()]);
}

#[test]
fn an_output_that_the_replay_did_not_leave_is_missing() {
    let verdict = verdict(&[]);
    assert!(!verdict.is_identical());
    assert_eq!(verdict.outputs[0].state, OutputState::Missing);
}
