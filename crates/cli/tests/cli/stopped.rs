//! Recorders that somebody stops.

use super::Place;
use backstory_testkit::need;

/// What a supervisor looks at hangs, so that not all of its threads can be stopped, and nobody is told that the others were.
#[test]
fn a_supervisor_that_is_stopped_while_a_file_system_hangs_goes_on() {
    const WHAT: &str = "a stopped supervisor before a file system that hangs";
    let Some(place) = Place::with_file_servers() else {
        return;
    };
    let (Some(server), true) = (
        place.fixture("silent_server"),
        need::needs(WHAT, &["/bin/busybox", "/dev/fuse", "timeout"]),
    ) else {
        return;
    };
    place.write("a", "text\n");
    // The program that hangs waits for the server itself; the guard's look at what it opens does so after that.
    let command = "/bin/busybox cat m/x & sleep 0.5; kill -STOP $PPID; /bin/busybox cat a; kill -KILL $!; exit 3";
    place.write("command", command);
    let line = format!("mkdir m; {server} m timeout -s KILL 60 $B record -- sh command 2>err");
    let Some(answer) = place.shell_in_namespaces(WHAT, &line) else {
        return;
    };
    if answer.err.contains("silent_server") {
        return need::skipped(WHAT, "it cannot be mounted here");
    }
    assert_eq!(
        (answer.status, answer.out.as_str()),
        (3, "text\n"),
        "{answer:?}"
    );
}
