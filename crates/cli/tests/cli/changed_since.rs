//! `of` and `uses` first say whether the file still is what the run left, or used.

use std::fs;

use super::Place;

/// The first two lines of an answer.
fn head(place: &Place, args: &[&str]) -> [String; 2] {
    let answer = place.run(args);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{args:?}");
    let mut lines = answer.out.lines().map(str::to_owned);
    [(); 2].map(|()| lines.next().unwrap_or_default())
}

/// The state of the file in JSON, at the levels of steps and of processes.
fn states(place: &Place, path: &str) -> [serde_json::Value; 2] {
    let state = |args: &[&str]| place.json(args)["changed_since"]["state"].clone();
    [
        state(&["of", path, "--json"]),
        state(&["of", path, "--json", "--level", "step"]),
    ]
}

#[test]
fn a_result_that_was_changed_or_deleted_since_is_named_first() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    let run = place.keep("sort in > out", &[]);
    assert!(head(&place, &["of", "out"])[0].starts_with("out: made "));
    assert_eq!(
        states(&place, "out"),
        [(); 2].map(|()| serde_json::Value::Null)
    );

    place.write_aged("out", "by hand\n");
    let by_hand = format!(
        "out was changed since, outside of any recording; this is about what run {run} made"
    );
    let [first, second] = head(&place, &["of", "out"]);
    assert_eq!(first, by_hand);
    assert!(second.starts_with("out: made "), "{second}");
    assert_eq!(head(&place, &["of", "out", "--tree"])[0], by_hand);
    assert_eq!(
        states(&place, "out"),
        [serde_json::json!("changed"), serde_json::json!("changed")]
    );
    let named = format!("out@{run}");
    assert!(head(&place, &["of", &named])[0].starts_with(&format!("{}: made ", "out")));

    // Another file with the same content is what the run left.
    place.write_aged("out", "a\nb\n");
    assert!(head(&place, &["of", "out"])[0].starts_with("out: made "));

    fs::remove_file(place.work().join("out")).unwrap();
    let [first, _] = head(&place, &["of", "out"]);
    assert!(
        first.starts_with("out was deleted since, outside of any recording"),
        "{first}"
    );
    assert_eq!(
        states(&place, "out"),
        [serde_json::json!("deleted"), serde_json::json!("deleted")]
    );
}

#[test]
fn an_input_that_was_changed_since_is_named_first() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    let run = place.keep("sort in > out", &[]);
    assert_eq!(head(&place, &["uses", "in"])[0], "in: used in 1 run");
    place.write_aged("in", "c\n");
    let changed = format!(
        "in was changed since, outside of any recording; this is about what run {run} used"
    );
    for question in ["uses", "of"] {
        assert_eq!(head(&place, &[question, "in"])[0], changed);
    }
}

#[test]
fn a_recorded_change_since_is_that_of_its_run() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.keep("sort in > out", &[]);
    let run = place.keep("rm out", &[]);
    let [first, _] = head(&place, &["of", "out"]);
    let words = format!("out was deleted since, by run {run};");
    assert!(first.starts_with(&words), "{first}");
}

/// The answer is about the content that is there, not about the one that was taken back.
#[test]
fn a_file_that_undo_brought_back_has_the_history_of_its_content() {
    let place = Place::new();
    let mut runs = Vec::new();
    for word in ["one", "two"] {
        place.write_aged("in", word);
        runs.push(place.keep("sort in > out", &[]));
    }
    assert_eq!(place.run(&["undo", "out"]).status, 0);
    let [first, second] = head(&place, &["of", "out"]);
    let words = format!(
        "out was brought back by `undo` or `redo`; run {} made another content",
        runs[1]
    );
    assert_eq!(first, words);
    assert!(
        second.contains(&format!(" by run {} ", runs[0])),
        "{second}"
    );
}
