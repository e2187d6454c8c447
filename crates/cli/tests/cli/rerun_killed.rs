//! A process of a step is killed, and the step's shell ends with status 0 all the same. Its output
//! may be incomplete: it is put back, and the run does not count.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use backstory_testkit::procs::eventually;
use rustix::process::{Pid, Signal};

use super::{Answer, Place};

/// The shell makes `out` with the help of another program, which waits as long as `hold` exists.
const STEP: &str = "trap 'exit 0' TERM
{ cat in; if test -e hold; then sh -c 'echo $$ > at-work; exec sleep 600'; fi; } > out
exit 0
";

fn held() -> Place {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.write_aged("step.sh", STEP);
    place.keep("sh step.sh", &["--contents=lazy"]);
    place.write_aged("in", "two\n");
    place.write_aged("hold", "");
    place
}

/// A `rerun` whose step waits, and the id of the process that waits.
fn waiting(place: &Place) -> (Child, Pid) {
    let mut command = place.command(&["rerun", "--yes", "out"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut id = None;
    let begun = || {
        let text = fs::read_to_string(place.path("at-work")).unwrap_or_default();
        id = text.strip_suffix('\n').and_then(|id| id.parse().ok());
        // The shell wrote its number before it executed the program that waits.
        let name = id.map(|id: i32| fs::read_to_string(format!("/proc/{id}/comm")));
        name.is_some_and(|name| name.is_ok_and(|name| name == "sleep\n"))
    };
    assert!(eventually(Duration::from_secs(120), begun));
    (child, Pid::from_raw(id.unwrap()).unwrap())
}

/// The former output is there, and it is the result of the first run.
#[track_caller]
fn is_undone(place: &Place, first: &serde_json::Value) {
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "one\n");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    assert_eq!(place.file_state("out"), "outdated");
    let status = place.run(&["status", "--json", "out"]);
    let status: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(status[0]["run"], first["run"], "{status}");
    fs::remove_file(place.path("hold")).unwrap();
    assert_eq!(place.run(&["rerun", "--yes", "out"]).status, 0);
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "two\n");
    assert_eq!(place.file_state("out"), "current");
}

#[test]
fn a_step_of_which_a_process_is_killed_fails_although_its_shell_ends_well() {
    let place = held();
    let first = place.json(&["show", "--json"]);
    let (child, waits) = waiting(&place);
    rustix::process::kill_process(waits, Signal::KILL).unwrap();
    let answer = Answer::of(child.wait_with_output().unwrap());
    let why = "signal 9 from outside ended sleep";
    assert!(
        answer.status == 1 && answer.err.contains(why) && answer.err.contains("put back"),
        "{answer:?}"
    );
    is_undone(&place, &first);
}

#[test]
fn an_interrupted_step_that_ends_well_leaves_the_old_output() {
    let place = held();
    let first = place.json(&["show", "--json"]);
    let (mut child, _) = waiting(&place);
    rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    is_undone(&place, &first);
}

#[test]
fn a_step_that_ends_its_own_helper_succeeds() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.write_aged("step.sh", "cat in > out\n");
    place.keep("sh step.sh", &["--contents=lazy"]);
    place.write_aged("step.sh", "sleep 600 & kill $!; wait $!; cat in > out\n");
    place.write_aged("in", "two\n");
    let answer = place.run(&["rerun", "--yes", "out"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "two\n");
    assert_eq!(place.file_state("out"), "current");
}
