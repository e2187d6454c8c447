//! The identity of a file in a later run, after its times, mode or name changed in between.

use super::Place;
use backstory_testkit::need::needs;

/// Changes the times of `f` by its path alone, without opening it.
const DATES: &str = "python3 -c 'import os; os.utime(\"f\", (1, 1))'";

/// The commands that `g` came from.
fn makers(place: &Place) -> Vec<String> {
    let json = place.json(&["of", "g", "--json"]);
    let nodes = json["nodes"].as_array().unwrap();
    nodes
        .iter()
        .filter_map(|node| node["argv"].as_array())
        .map(|argv| {
            argv.iter()
                .map(|word| word.as_str().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

#[track_caller]
fn leads_to(place: &Place, commands: &[&str]) {
    let makers = makers(place);
    for command in commands {
        assert!(
            makers.iter().any(|maker| maker.contains(command)),
            "no {command:?} in {makers:?}"
        );
    }
}

#[test]
fn runs_that_follow_each_other_at_once_are_joined() {
    let place = Place::new();
    for turn in 0..10 {
        let line = format!("$B record -- sh -c 'echo {turn} > f'; $B record -- sh -c 'cat f > g'");
        assert_eq!(place.shell(&line).status, 0);
        leads_to(&place, &[&format!("echo {turn} > f")]);
    }
}

/// The program opens the database to read and write, so its writes are possible.
#[test]
fn a_database_that_a_program_only_read_leads_to_the_run_that_filled_it() {
    if !needs("a database of SQLite", &["sqlite3"]) {
        return;
    }
    let place = Place::new();
    place.record("sqlite3 bank.db 'create table t(a); insert into t values (1)'");
    place.age("bank.db");
    place.record("sqlite3 bank.db 'select * from t' > g");
    leads_to(&place, &["insert into t"]);
    let used = place.run(&["uses", "bank.db"]).out;
    assert!(used.contains("> g"), "{used}");
    // The next run writes, and the file is its own.
    place.record("sqlite3 bank.db 'insert into t values (2)'");
    place.age("bank.db");
    place.record("sqlite3 bank.db 'select * from t' > g");
    leads_to(&place, &["values (1)", "values (2)"]);
}

#[test]
fn a_database_that_a_program_only_read_is_an_input_whose_change_makes_results_outdated() {
    if !needs("a database of SQLite", &["sqlite3"]) {
        return;
    }
    let place = Place::new();
    place.shell("sqlite3 bank.db 'create table t(a)'");
    place.age("bank.db");
    place.record("sqlite3 bank.db 'select * from t' > g");
    let shown = place.run(&["show"]).out;
    assert!(shown.contains("inputs       bank.db\n"), "{shown}");
    assert!(shown.contains("outputs      g\n"), "{shown}");
    place.shell("sqlite3 bank.db 'insert into t values (3)'");
    let status = place.run(&["status", "g"]).out;
    assert!(status.starts_with("outdated"), "{status}");
}

#[test]
fn a_file_with_changed_times_leads_to_its_writer() {
    if !needs("times set by path", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.record("echo x > f");
    place.record(DATES);
    place.age("f");
    place.record("cat f > g");
    leads_to(&place, &["echo x > f"]);
}

#[test]
fn a_file_that_its_run_wrote_and_dated_leads_to_that_run() {
    if !needs("times set by path", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.record(&format!("echo x > f; {DATES}"));
    place.age("f");
    place.record("cat f > g");
    leads_to(&place, &["echo x > f"]);
}

#[test]
fn a_file_dated_by_a_static_program_leads_to_its_writer() {
    if !needs("times set by a static program", &["busybox"]) {
        return;
    }
    let place = Place::new();
    place.record("echo x > f");
    place.record("busybox touch -d 2001-01-01 f");
    place.age("f");
    place.record("cat f > g");
    leads_to(&place, &["echo x > f"]);
}

#[test]
fn touch_opens_the_files_that_it_dates_and_is_part_of_the_path() {
    let place = Place::new();
    place.record("echo x > f");
    place.record("touch -d 2001-01-01 f");
    place.age("f");
    place.record("cat f > g");
    leads_to(&place, &["echo x > f", "touch -d"]);
}

#[test]
fn a_file_whose_mode_changed_outside_a_recording_leads_to_its_writer() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.record("echo x > f");
    std::fs::set_permissions(place.work().join("f"), PermissionsExt::from_mode(0o600)).unwrap();
    place.age("f");
    place.record("cat f > g");
    leads_to(&place, &["echo x > f"]);
}

#[test]
fn a_file_moved_outside_a_recording_leads_to_its_writer() {
    let place = Place::new();
    place.record("echo x > e");
    place.run(&["files"]);
    std::fs::rename(place.work().join("e"), place.work().join("f")).unwrap();
    place.age("f");
    place.record("cat f > g");
    leads_to(&place, &["echo x > e"]);
}

#[test]
fn a_file_moved_after_it_was_read_leads_to_its_writer() {
    for moves in [
        "mv f moved",
        "mkdir d; mv f d",
        "busybox mv f moved",
        "mv f aside; mv aside moved",
        "mkdir d; mv f d; mv d e; mv e moved",
        "echo y > other; mv f aside; mv aside other",
        "mv f aside; mv aside moved; rm moved",
        "busybox sh -c 'mv f aside; mv aside moved; rm moved'",
    ] {
        if moves.starts_with("busybox") && !needs("a static program that moves", &["busybox"]) {
            continue;
        }
        let place = Place::new();
        place.record("echo x > f");
        place.age("f");
        place.record(&format!("cat f > g; {moves}"));
        leads_to(&place, &["echo x > f"]);
    }
}
