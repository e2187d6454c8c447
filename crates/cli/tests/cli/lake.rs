//! `store ship` and `query --lake` become the program `backstory-lake`.

use std::os::unix::fs::PermissionsExt;

use super::Place;

/// The words with which a command starts the program, and the program that it may ask.
fn words(place: &Place, command: &[&str]) -> Vec<String> {
    let directory = place.path("bin");
    std::fs::create_dir_all(&directory).unwrap();
    let program = format!("{directory}/backstory-lake");
    let text = "#!/bin/sh\nprintf '%s\\n' \"$BACKSTORY_PROGRAM\" \"$@\"\nexit 7\n";
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let output = place.command(command).env("PATH", directory).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn ship_and_query_give_the_lake_program_their_options() {
    let place = Place::new();
    let store = place.stage.store().to_str().unwrap().to_owned();
    let shipped = [
        "store", "ship", "--to", "x y", "--forget", "--json", "7hx2k9qa",
    ];
    let found = words(&place, &shipped);
    let own = place.stage.path().join("bin/backstory");
    assert_eq!(found[0], own.to_str().unwrap());
    let expected = [
        "ship", "--store", &store, "--to", "x y", "--forget", "--json", "--",
    ];
    assert_eq!(found[1..9], expected);
    assert_eq!(found[9..], ["7hx2k9qa"]);
    let found = words(&place, &["query", "--lake", "l", "--csv", "SELECT 1"]);
    let expected = ["query", "--lake", "l", "--csv"];
    assert_eq!(found[1..5], expected);
    let limits = ["--timeout", "60", "--memory", "512", "--", "SELECT 1"];
    assert_eq!(found[5..], limits);
}

#[test]
fn without_the_lake_program_the_message_says_what_to_install() {
    let place = Place::new();
    for command in [
        &["store", "ship", "--to", "l"][..],
        &["query", "--lake", "l", "SELECT 1"],
    ] {
        let output = place.command(command).env("PATH", "/nowhere").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("pip install backstory-lake"), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
}

#[test]
fn forget_says_how_shipped_runs_leave_a_lake() {
    let place = Place::new();
    place.record("echo secret > diary");
    place.record("echo secret > plans");
    let forget = |name: &str| {
        let answer = place.run(&["forget", &place.path(name), "--yes"]);
        assert_eq!(answer.status, 0, "{answer:?}");
        answer.err
    };
    assert!(!forget("diary").contains("lakes"));
    std::fs::create_dir(place.stage.store().join("lakes")).unwrap();
    assert!(forget("plans").contains("store ship --forget --to LAKE"));
}
