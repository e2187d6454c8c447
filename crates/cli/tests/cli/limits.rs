//! Limits in `config.toml` bound a store, and break no lineage of a file that exists.

use std::fs;

use super::{Answer, Place};

/// Sets the limits of the user.
fn limit(place: &Place, text: &str) {
    let directory = place.path("config/backstory");
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        format!("{directory}/config.toml"),
        format!("[limits]\n{text}\n"),
    )
    .unwrap();
}

fn gc(place: &Place, args: &[&str]) -> Answer {
    let mut command = place.command(&[&["store", "gc"], args].concat());
    command.env("XDG_CONFIG_HOME", place.path("config"));
    Answer::of(command.output().unwrap())
}

/// Three runs that lead to `report`, and one whose file is removed again.
fn recorded() -> (Place, [String; 4]) {
    let place = Place::new();
    place.write_aged("data", "b\na\n");
    let lost = place.keep("seq 30000 > large; wc -l large > /dev/null; rm large", &[]);
    let first = place.keep("sort data > middle", &["--contents=all"]);
    let second = place.keep("uniq middle > report", &["--contents=all"]);
    let third = place.keep("cat report > copy; rm copy", &[]);
    (place, [lost, first, second, third])
}

#[test]
fn what_an_existing_file_came_from_stays() {
    let (place, [_, first, second, _]) = recorded();
    limit(&place, "store = \"1k\"");
    let before = place.run(&["of", "report"]).out;
    let would = gc(&place, &["--limits", "--dry-run"]);
    assert!(would.out.starts_with("would forget 2 runs"), "{would:?}");
    assert_eq!(place.runs().len(), 4);
    let answer = gc(&place, &["--limits"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.runs(), [second, first], "{answer:?}");
    assert_eq!(place.run(&["of", "report"]).out, before);
    assert_eq!(place.run(&["store", "verify"]).status, 0);
}

#[test]
fn a_run_with_a_name_or_a_note_stays() {
    let (place, [lost, .., third]) = recorded();
    assert_eq!(place.run(&["name", &lost, "kept"]).status, 0);
    assert_eq!(place.run(&["note", &third, "look here"]).status, 0);
    limit(&place, "day = \"1\"");
    gc(&place, &["--limits"]);
    assert_eq!(place.runs().len(), 4);
}

#[test]
fn a_store_within_its_limits_loses_nothing() {
    let (place, _) = recorded();
    limit(&place, "store = \"1G\"\nday = \"1G\"");
    gc(&place, &["--limits"]);
    assert_eq!(place.runs().len(), 4);
}

#[test]
fn without_limits_the_option_names_the_file() {
    let (place, _) = recorded();
    gc(&place, &["--limits"]).is_error(2, &["there are no limits", "config.toml"]);
}

#[test]
fn the_indexer_keeps_to_the_limits_and_spares_new_runs() {
    let (place, _) = recorded();
    limit(&place, "store = \"1k\"");
    let mut command = place.command(&["index", "--wait"]);
    command.env("XDG_CONFIG_HOME", place.path("config"));
    assert_eq!(Answer::of(command.output().unwrap()).status, 0);
    assert_eq!(place.runs().len(), 4);
    assert!(place.stage.store().join("limits.looked").exists());
}
