//! Inspectors that a user wrote as WebAssembly components, and named in `inspectors.toml`.
//!
//! Only the component of these tests writes the words that they expect. No built-in inspector knows
//! them, so a test fails if the component is not executed.

use std::fs;

use super::Place;
use super::inspect::{list_inspectors, stored_change_line};

/// An inspector whose facts are the first byte of a content. Its only change is that a content
/// became longer. It refuses a content that begins with `?`.
const FIRST_BYTE: &str = include_str!("../../../inspect/tests/inspectors/first_byte.wat");

/// A place whose user has that component for files `*.mesh`. The component is `mesh.wasm` in the
/// working directory. `None`, with a notice, if the worker that reads formats is not built.
fn place_with_component() -> Option<Place> {
    let place = Place::new();
    if !place.has_inspector() {
        return None;
    }
    let component = place.path("mesh.wasm");
    fs::write(&component, wat::parse_str(FIRST_BYTE).unwrap()).unwrap();
    place.stage.user().owns(component.as_ref()).unwrap();
    let text = format!(
        "[[inspector]]\nname = \"mesh\"\nversion = 4\nglobs = [\"*.mesh\"]\n\
         component = \"{component}\"\n"
    );
    list_inspectors(&place, &text);
    Some(place)
}

#[test]
fn inspect_prints_what_the_users_component_says_of_a_file() {
    let Some(place) = place_with_component() else {
        return;
    };
    for (name, content) in [
        ("short.mesh", "x"),
        ("long.mesh", "xyz"),
        ("wrong.mesh", "?"),
        ("short.txt", "x"),
    ] {
        place.write(name, content);
    }
    let facts = place.run(&["inspect", "short.mesh"]);
    assert_eq!(
        (facts.status, facts.out.as_str()),
        (0, "short.mesh  inspector mesh\n  first  x\n"),
        "{facts:?}"
    );
    let json = place.json(&["inspect", "--json", "short.mesh"]);
    assert_eq!(json["inspector"], "mesh", "{json}");
    assert_eq!(json["version"], 4, "{json}");
    assert_eq!(json["facts"], serde_json::json!({"first": "x"}));
    let changes = place.run(&["inspect", "short.mesh", "long.mesh"]);
    assert_eq!(
        (changes.status, changes.out.as_str()),
        (1, "it became longer\n"),
        "{changes:?}"
    );
    let wrong = place.run(&["inspect", "wrong.mesh"]);
    wrong.is_error(1, &["inspector mesh cannot read wrong.mesh: it is no mesh"]);
    // The component has one glob, and other files keep their inspectors.
    let text = place.run(&["inspect", "short.txt"]);
    assert!(text.out.contains("inspector text"), "{text:?}");
}

#[test]
fn diff_and_of_tell_what_the_users_component_says_of_two_versions() {
    let Some(place) = place_with_component() else {
        return;
    };
    for content in ["x", "xyz"] {
        place.write("in", content);
        place.keep("cat in > out.mesh", &["--contents=all"]);
    }
    let said = "it became longer";
    let diff = place.run(&["diff", "out.mesh"]);
    assert!(diff.out.contains(said), "{diff:?}");
    let line = stored_change_line(&place, "out.mesh");
    assert!(line.contains(said), "{line}");
    let json = place.json(&["of", "--json", "out.mesh"]);
    let inside = &json["inside"];
    assert_eq!(inside["inspector"], "mesh", "{inside}");
    assert_eq!(inside["version"], 4, "{inside}");
    assert_eq!(inside["changes"], serde_json::json!({"longer": true}));
}

#[test]
fn a_component_that_is_damaged_or_missing_is_an_error_that_names_its_inspector() {
    let Some(place) = place_with_component() else {
        return;
    };
    place.write("short.mesh", "x");
    let component = place.path("mesh.wasm");
    fs::write(&component, "no component").unwrap();
    let damaged = place.run(&["inspect", "short.mesh"]);
    damaged.is_error(1, &["inspector mesh", "it is not a WebAssembly component"]);
    fs::remove_file(&component).unwrap();
    let missing = place.run(&["inspect", "short.mesh"]);
    let said = format!("cannot read the component {component} of inspector mesh");
    missing.is_error(1, &[&said]);
}
