//! `log -- PATH` and `blame`: what happened to a file.

use std::fs;

use serde_json::Value;

use super::Place;

/// The changes of a path, newest first: the run, the changes, whether they are inferred.
fn changes(place: &Place, path: &str) -> Vec<(String, String, bool)> {
    let answer = place.json(&["log", "--json", "--", path]);
    let lines = answer.as_array().unwrap().iter();
    lines
        .map(|line| {
            let events = line["events"].as_array().unwrap().iter();
            let words: Vec<&str> = events
                .map(|event| event["change"].as_str().unwrap())
                .collect();
            let run = line["run"].as_str().unwrap_or_default().to_owned();
            (run, words.join(" "), line["inferred"].as_bool().unwrap())
        })
        .collect()
}

fn words(place: &Place, path: &str) -> Vec<String> {
    changes(place, path)
        .into_iter()
        .map(|(_, words, _)| words)
        .collect()
}

#[test]
fn the_log_of_a_path_has_every_run_that_changed_it() {
    let place = Place::new();
    let made = place.keep("echo one > notes", &[]);
    place.keep("cat notes > copy", &[]);
    let changed = place.keep("echo two >> notes", &[]);
    let deleted = place.keep("rm notes", &[]);
    let again = place.keep("echo three > notes", &[]);
    let expected = [
        (again.clone(), "made".to_owned(), false),
        (deleted, "deleted".to_owned(), false),
        (changed, "changed".to_owned(), false),
        (made, "made".to_owned(), false),
    ];
    assert_eq!(changes(&place, "notes"), expected);
    let text = place.run(&["log", "-n", "1", "--", "notes"]);
    assert!(text.out.starts_with(&again), "{text:?}");
    assert_eq!(text.out.lines().count(), 1, "{text:?}");
}

#[test]
fn a_rename_leads_to_the_history_under_the_former_name() {
    let place = Place::new();
    place.keep("echo one > draft", &[]);
    place.keep("mv draft final", &[]);
    assert_eq!(words(&place, "final"), ["renamed-from", "made"]);
    assert_eq!(words(&place, "draft"), ["renamed-to", "made"]);
    // An editor's way to change a file is a change.
    place.keep("sed -i s/one/two/ final", &[]);
    assert_eq!(words(&place, "final")[0], "changed");
    let text = place.run(&["log", "--", "final"]).out;
    assert!(
        text.contains("\nas draft\n") && text.contains("renamed from"),
        "{text}"
    );
}

#[test]
fn a_rename_of_the_directory_leads_to_the_history_under_the_former_name() {
    let place = Place::new();
    let made = place.keep("mkdir -p a/sub; printf 'one\\n' > a/sub/x", &[]);
    // This run does not use the file.
    place.keep("mv a b", &[]);
    assert_eq!(words(&place, "b/sub/x"), ["renamed-from", "made"]);
    assert_eq!(words(&place, "a/sub/x"), ["renamed-to", "made"]);
    place.keep("cat b/sub/x > /dev/null; mv b c", &[]);
    let found = changes(&place, "c/sub/x");
    let words: Vec<&str> = found.iter().map(|(_, words, _)| &**words).collect();
    assert_eq!(words, ["renamed-from", "renamed-from", "made"]);
    assert!(found.iter().all(|(_, _, inferred)| !inferred), "{found:?}");
    let blame = place.run(&["blame", "c/sub/x"]).out;
    assert!(blame.contains(&made), "{blame}");
    let who = place.run(&["who", "b/sub/x"]).out;
    assert!(who.contains("renamed to c/sub/x"), "{who}");
    // A file that was made there later was never below the former name.
    place.keep("echo new > c/sub/y", &[]);
    assert_eq!(self::words(&place, "c/sub/y"), ["made"]);
}

#[test]
fn what_no_run_recorded_is_inferred_and_marked() {
    let place = Place::new();
    place.keep("seq 1 100 > data", &[]);
    place.write_aged("data", "edited\n");
    place.keep("cat data > out", &[]);
    let found = changes(&place, "data");
    assert_eq!(found[0].1, "changed-unrecorded");
    assert!(found[0].2 && !found[1].2, "{found:?}");
    fs::remove_file(place.path("data")).unwrap();
    assert_eq!(words(&place, "data")[0], "gone-unrecorded");
    let text = place.run(&["log", "--", "data"]).out;
    assert!(
        text.contains("outside of recorded runs (inferred)"),
        "{text}"
    );
}

#[test]
fn a_file_that_was_moved_or_restored_unrecorded_keeps_its_history() {
    let place = Place::new();
    place.keep("seq 1 100 > old", &[]);
    fs::rename(place.path("old"), place.path("moved")).unwrap();
    assert_eq!(words(&place, "moved"), ["moved-unrecorded", "made"]);
    // A copy has another inode; its content shows where it is from.
    let text = fs::read_to_string(place.path("moved")).unwrap();
    fs::remove_file(place.path("moved")).unwrap();
    place.write_aged("copied", &text);
    place.keep("cat copied > out", &[]);
    let found = changes(&place, "copied");
    assert_eq!(found[0].1, "moved-unrecorded", "{found:?}");
    assert!(found[0].2 && found.last().unwrap().1 == "made", "{found:?}");
    let text = place.run(&["log", "--", "copied"]).out;
    assert!(text.contains("(inferred: same content)"), "{text}");
}

#[test]
fn blame_names_the_run_of_each_line() {
    let place = Place::new();
    let first = place.keep("printf 'a\\nb\\n' > notes", &[]);
    let second = place.keep("printf 'c\\n' >> notes", &[]);
    place.write_aged("notes", "a\nb\nby hand\nc\n");
    let rows = place.json(&["blame", "notes", "--json"]);
    let rows: Vec<(&str, &str)> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["text"].as_str().unwrap(),
                row["run"].as_str().unwrap_or("-"),
            )
        })
        .collect();
    let expected = [
        ("a", first.as_str()),
        ("b", &first),
        ("by hand", "-"),
        ("c", &second),
    ];
    assert_eq!(rows, expected);
    let earlier = place.run(&["blame", &format!("notes@{first}")]).out;
    assert_eq!(earlier.lines().count(), 2, "{earlier}");
    assert!(
        earlier.contains(&first) && !earlier.contains(&second),
        "{earlier}"
    );
}

#[test]
fn blame_says_who_deleted_a_file() {
    let place = Place::new();
    place.keep("echo text > notes", &[]);
    let deleted = place.keep("rm notes", &[]);
    let answer = place.run(&["blame", "notes"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(
        answer.err.contains(&deleted) && answer.err.contains("rm notes"),
        "{answer:?}"
    );
    assert!(answer.out.ends_with("1) text\n"), "{answer:?}");
}

#[test]
fn a_line_after_a_version_that_is_not_stored_is_marked() {
    let place = Place::new();
    place.keep("echo one > notes", &[]);
    place.keep("echo two >> notes", &["--contents=off"]);
    place.write("notes", "one\ntwo\nthree\n");
    let rows = place.json(&["blame", "notes", "--json"]);
    let certain = |row: &Value| row["certain"].as_bool().unwrap();
    let rows = rows.as_array().unwrap();
    assert!(
        certain(&rows[0]) && !certain(&rows[1]) && !certain(&rows[2]),
        "{rows:?}"
    );
}

#[test]
fn an_unknown_path_has_no_history() {
    let place = Place::new();
    place.record("true");
    place
        .run(&["log", "--", "nothing"])
        .is_error(1, &["nothing"]);
    place.run(&["blame", "nothing"]).is_error(1, &["nothing"]);
}

/// An open of a pipe waits for its other end.
#[test]
fn a_pipe_in_a_files_place_holds_no_answer_up() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.record("sort in -o out");
    fs::remove_file(place.work().join("out")).unwrap();
    mknodat(CWD, place.work().join("out"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    for question in ["diff", "blame"] {
        let mut command = place.stage.command("timeout");
        command.args(["60", &place.path("../bin/backstory"), question, "out"]);
        command
            .current_dir(place.work())
            .env("BACKSTORY_STORE", place.stage.store());
        let status = command.output().unwrap().status;
        assert_ne!(status.code(), Some(124), "{question} waits");
    }
}
