//! The same as root, whose commands may continue as other users.

use std::path::Path;

use backstory_testkit::need::skipped;

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

#[test]
fn of_and_show_name_the_devices_of_drivers_and_no_generic_ones() {
    let Some(place) = Place::of_root() else {
        return;
    };
    let device = Path::new("/dev/fuse");
    if std::fs::File::open(device).is_err() {
        return skipped("a device of a driver", "/dev/fuse cannot be opened");
    }
    place.write("a", "text");
    place.record("dd if=a of=b status=none 3</dev/fuse 4</dev/zero");
    for question in [["of", "b"], ["show", "--verbose"]] {
        let answer = place.run(&question).out;
        let mut lines = answer.lines();
        let line = lines.find(|line| line.starts_with("devices")).unwrap_or("");
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert_eq!(words, ["/dev/fuse"], "{answer}");
    }
    let show = place.json(&["show", "--json"]);
    assert_eq!(show["devices"], serde_json::json!(["/dev/fuse"]), "{show}");
}
