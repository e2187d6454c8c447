//! The same as root, whose commands may continue as other users.

use super::Place;

#[test]
fn root_records_and_queries_like_other_users() {
    let Some(place) = Place::of_root() else {
        return;
    };
    place.write("a", "text");
    let answer = place.run(&["record", "--", "cp", "a", "b"]);
    assert_eq!(
        (answer.status, answer.out.as_str(), answer.err.as_str()),
        (0, "", "")
    );
    assert!(place.run(&["of", "b"]).out.contains("cp a b"));
    assert_eq!(place.run(&["record", "--", "sh", "-c", "exit 7"]).status, 7);
}

#[test]
fn a_command_that_changes_its_user_prints_no_message_of_backstory() {
    let Some(place) = Place::of_root() else {
        return;
    };
    if !backstory_testkit::need::needs("another user", &["setpriv"]) {
        return;
    }
    let answer = place.run(&[
        "record",
        "--",
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "cat",
        "/etc/hostname",
    ]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
    let files = place.run(&["files", "--all"]).out;
    assert!(files.contains("/etc/hostname"), "{files}");
}
