//! Recording processes that are stopped by a signal.

use super::Place;
use backstory_testkit::need;

/// The supervisor waits for a hanging file system, so that not all of its threads can be stopped.
/// Its parent is not notified that the others were.
#[test]
fn a_supervisor_stopped_while_a_file_system_hangs_continues() {
    const WHAT: &str = "a stopped supervisor before a file system that hangs";
    let Some(place) = Place::with_file_servers() else {
        return;
    };
    let (Some(server), true) = (
        place.fixture("silent_server"),
        need::needs(WHAT, &["busybox", "/dev/fuse", "timeout"]),
    ) else {
        return;
    };
    place.write("a", "text\n");
    // The hanging program waits for the server itself. The guard resolves its path after that.
    let command =
        "busybox cat m/x & sleep 0.5; kill -STOP $PPID; busybox cat a; kill -KILL $!; exit 3";
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
