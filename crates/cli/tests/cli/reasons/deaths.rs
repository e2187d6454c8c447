//! Deaths of recording processes, and processes that outlive the recording.

use std::process::{Child, Stdio};
use std::time::Duration;

use super::Place;
use backstory_testkit::procs::{alive, children, eventually, kill};

const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a command that waits for a file `go`. Returns the launcher, the keeper and the
/// supervisor.
fn waiting(place: &Place) -> (Child, u32, u32) {
    for old in ["started", "go"] {
        let _ = std::fs::remove_file(place.work().join(old));
    }
    let line = "echo >started; while [ ! -e go ]; do sleep 0.01; done; exit 5";
    let mut command = place.command(&["record", "--", "sh", "-c", line]);
    let launcher = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(eventually(PATIENCE, || place
        .work()
        .join("started")
        .exists()));
    let keeper = children(launcher.id())[0];
    let supervisor = children(keeper)[0];
    (launcher, keeper, supervisor)
}

/// Kills some of the processes beside a command, which must give the sentence. Without a death the
/// sentence must not appear.
fn is_reported_when_killed(who: impl Fn(u32, u32) -> Vec<u32>, sentence: &str) {
    let place = Place::new();
    let (mut launcher, keeper, supervisor) = waiting(&place);
    for pid in who(keeper, supervisor) {
        kill(pid).unwrap();
    }
    // On a busy machine the command would end before they do.
    assert!(eventually(PATIENCE, || !who(keeper, supervisor)
        .into_iter()
        .any(alive)));
    place.write("go", "");
    assert_eq!(launcher.wait().unwrap().code(), Some(5));
    place.finalized();
    place.is_reported(sentence);
    place.record("exit 0");
    place.is_complete_without_reasons();
}

#[test]
pub(super) fn a_dead_supervisor_is_reported() {
    is_reported_when_killed(
        |_, supervisor| vec![supervisor],
        "the supervisor died; from then on only calls that the recorder wraps were recorded",
    );
}

#[test]
pub(super) fn a_dead_keeper_is_reported() {
    is_reported_when_killed(|keeper, _| vec![keeper], "the keeper died");
}

#[test]
pub(super) fn the_death_of_both_is_reported() {
    is_reported_when_killed(
        |keeper, supervisor| vec![keeper, supervisor],
        "the supervisor and the keeper died",
    );
}

/// There never was a command: `record` reports that, and so does its log.
#[test]
pub(super) fn a_supervisor_that_dies_before_the_start_is_reported() {
    let place = Place::new();
    let Some(kernel) = place.fixture("kernel_without") else {
        return;
    };
    let answer = place.summarized(&format!("{kernel} start $B record -- touch ran"));
    assert!(
        !place.work().join("ran").exists() && answer.status != 0,
        "{answer:?}"
    );
    place.is_reported("the command's end was not observed");
    place.record("touch ran");
    place.is_complete_without_reasons();
}

#[test]
pub(super) fn daemons_that_outlive_the_recording_are_reported() {
    let place = Place::new();
    for (daemons, sentence) in [
        (1, "1 process was still running when recording stopped"),
        (2, "2 processes were still running when recording stopped"),
    ] {
        let line =
            format!("for i in $(seq {daemons}); do sleep 1000 >&- 2>&- & echo $! >>pids; done");
        let answer = place.run(&["record", "--detach-after", "0", "--", "sh", "-c", &line]);
        assert_eq!(answer.status, 0, "{answer:?}");
        place.finalized();
        place.shell("kill $(cat pids); rm pids");
        place.is_reported(sentence);
    }
    place.run(&["record", "--detach-after", "0", "--", "true"]);
    place.is_complete_without_reasons();
}
