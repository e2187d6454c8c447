//! `rerun`: what has changed is done again, and nothing else.

use std::fs;

use super::Place;

/// Three steps in one run: two that feed a third.
const LINES: &str =
    "sort -u left > left.sorted; sort -u right > right.sorted; cat left.sorted right.sorted > both";

fn made() -> Place {
    let place = Place::new();
    place.write_settled("left", "b\na\n");
    place.write_settled("right", "d\nc\n");
    place.keep(LINES, &["--contents=lazy"]);
    place
}

impl Place {
    /// The steps and what became of them.
    fn rerun(&self, path: &str, more: &[&str]) -> Vec<(String, String)> {
        let answer = self.run(&[&["rerun", "--json", path], more].concat());
        assert!(answer.err.is_empty(), "{answer:?}");
        let steps: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        steps
            .as_array()
            .unwrap()
            .iter()
            .map(|step| (text(&step["step"]), text(&step["state"])))
            .collect()
    }

    fn states(&self, path: &str, more: &[&str]) -> Vec<String> {
        let mut states: Vec<String> = self
            .rerun(path, more)
            .into_iter()
            .map(|(_, state)| state)
            .collect();
        states.sort();
        states
    }
}

#[test]
fn what_is_up_to_date_is_left_alone() {
    let place = made();
    assert_eq!(place.states("both", &[]), ["current", "current", "current"]);
    let text = place.run(&["rerun", "both"]);
    assert!(text.status == 0 && text.out.contains("up to date"), "{text:?}");
    assert_eq!(place.run(&["rerun", "--dry-run", "both"]).status, 0);
}

#[test]
fn a_changed_input_is_followed_to_the_result_and_no_further() {
    let place = made();
    place.write_settled("left", "z\na\n");
    assert_eq!(
        place.states("both", &["--dry-run"]),
        ["current", "stale", "waits"]
    );
    assert_eq!(place.states("both", &["-j", "2"]), ["again", "again", "current"]);
    assert_eq!(fs::read_to_string(place.path("both")).unwrap(), "a\nz\nc\nd\n");
    place.run(&["index", "--wait"]);
    assert_eq!(
        place.states("both", &[]),
        ["current", "current", "current"],
        "what was done is in the store"
    );
}

#[test]
fn what_comes_out_the_same_goes_no_further() {
    let place = made();
    place.write_settled("left", "a\nb\nb\n");
    assert_eq!(place.states("both", &[]), ["current", "current", "same"]);
}

#[test]
fn a_touched_input_with_the_same_content_is_no_change() {
    let place = made();
    place.write_settled("left", "b\na\n");
    assert_eq!(place.states("both", &[]), ["current", "current", "current"]);
}

#[test]
fn what_was_looked_for_and_is_there_now_counts() {
    let place = Place::new();
    place.write_settled("in", "text\n");
    place.keep("cat in more > out 2>/dev/null; true", &["--contents=lazy"]);
    place.write_settled("more", "and more\n");
    let text = place.run(&["rerun", "--dry-run", "out"]);
    assert!(
        text.status == 1 && text.out.contains("more") && text.out.contains("was not there"),
        "{text:?}"
    );
}

#[test]
fn a_removed_output_is_made_again_and_a_failing_step_is_named() {
    let place = made();
    fs::remove_file(place.path("both")).unwrap();
    assert_eq!(place.states("both", &[]), ["current", "current", "same"]);
    assert!(std::path::Path::new(&place.path("both")).exists());
    fs::remove_file(place.path("right")).unwrap();
    let answer = place.run(&["rerun", "both"]);
    assert!(
        answer.status == 1 && answer.err.contains("right.sorted") && answer.err.contains("failed"),
        "{answer:?}"
    );
    place.run(&["rerun", "nothing"]).is_error(1, &["nothing"]);
}
