//! Inputs that gave a result no byte are marked alike in `uses`, exports and `diff`. The views of
//! `tui` are in `tui.rs`.

use serde_json::Value;

use super::Place;
use super::bytes::{engine, refined};

/// One run: `mid` has bytes of `ia`, and `oa` those of `mid`. `ib` only decides.
const COMMANDS: &str = "sort ia > mid; awk 'FNR == NR { next } { print }' ib mid > oa";

pub(super) fn refined_place() -> Option<Place> {
    let place = Place::new();
    let engine = engine(&place)?;
    place.write_aged("ia", "two\none\n");
    place.write_aged("ib", "three\n");
    place.keep(COMMANDS, &[]);
    let done = refined(&place, &engine, "oa")?;
    assert_eq!(done.status, 0, "{done:?}");
    Some(place)
}

#[test]
fn a_file_between_an_input_and_a_result_has_bytes_in_the_result() {
    let Some(place) = refined_place() else {
        return;
    };
    for (input, line) in [
        ("ia", "bytes: into mid, oa\n"),
        ("mid", "bytes: into oa\n"),
        ("ib", "bytes: none into oa, apart from decisions\n"),
    ] {
        let uses = place.run(&["uses", input]).out;
        assert!(uses.contains(line), "{input}: {uses}");
    }
}

#[test]
fn exports_mark_an_input_without_a_byte_in_a_result_and_keep_its_edges() {
    let Some(place) = refined_place() else {
        return;
    };
    let export = |options: &[&str]| {
        let done = place.run(&[&["export"], options].concat());
        assert_eq!(done.status, 0, "{done:?}");
        done.out
    };
    for level in ["command", "process"] {
        let of = |format: &str| export(&[format, "oa", "--level", level]);
        let document: Value = serde_json::from_str(&of("prov-json")).unwrap();
        let name = |id: &Value| {
            let entity = &document["entity"][id.as_str().unwrap()];
            let label = entity["prov:label"].as_str().unwrap().to_owned();
            label.rsplit('/').next().unwrap().to_owned()
        };
        let used = document["used"].as_object().unwrap().values();
        let mut used: Vec<_> = used
            .map(|one| (name(&one["prov:entity"]), one["backstory:bytes"].as_str()))
            .filter(|(name, _)| ["ia", "ib", "mid"].contains(&name.as_str()))
            .collect();
        used.sort();
        let expected = [("ia", Some("some")), ("ib", Some("none")), ("mid", None)];
        let expected = expected.map(|(name, mark)| (name.to_owned(), mark));
        assert_eq!(used, expected, "{level}");
        let made = document["entity"].as_object().unwrap().values();
        let of_ib = made.filter(|one| {
            let none = one["backstory:noByteOf"]["$"].as_str();
            none.is_some_and(|none| none.ends_with("/ib"))
        });
        let labels: Vec<_> = of_ib
            .map(|one| one["prov:label"].as_str().unwrap())
            .collect();
        assert!(
            matches!(labels[..], [label] if label.ends_with("/oa")),
            "{level}: {labels:?}"
        );
        for (format, mark) in [
            ("dot", "[label=\"read, no byte\", style=dotted]"),
            ("mermaid", "-->|read, no byte|"),
            ("svg", "<title>no byte</title>"),
            ("graphml", "<data key=\"bytes\">none</data>"),
            ("opm", " bytes:none"),
            ("prov-n", "backstory:bytes=\"none\""),
            ("openlineage", "\"bytes\":\"none\""),
            ("cdm", "\"bytes\":\"none\""),
        ] {
            let text = of(format);
            assert!(text.contains(mark), "{level} {format}: {text}");
        }
    }
    // The same run without bytes has the same edges.
    let edges = |text: &str| text.matches(" -> ").count();
    let marked = edges(&export(&["dot", "oa"]));
    std::fs::remove_dir_all(place.stage.store().join("bytes")).unwrap();
    let plain = export(&["dot", "oa"]);
    assert_eq!(edges(&plain), marked);
    assert!(!plain.contains("no byte"), "{plain}");
}

#[test]
fn no_byte_is_stated_only_if_no_unrefined_run_lies_between() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("ia", "two\none\n");
    place.write_aged("ib", "three\n");
    place.keep("sort ia > mid", &[]);
    let run = place.keep("cat mid ib > oa", &[]);
    let Some(done) = refined(&place, &engine, &run) else {
        return;
    };
    assert_eq!(done.status, 0, "{done:?}");
    let uses = place.run(&["uses", "ia"]).out;
    assert!(uses.contains("bytes: possibly into oa\n"), "{uses}");
}

#[test]
fn an_export_passes_over_bytes_that_cannot_be_read_and_says_so() {
    let Some(place) = refined_place() else {
        return;
    };
    let bytes = place.stage.store().join("bytes");
    for run in std::fs::read_dir(bytes).unwrap() {
        for file in std::fs::read_dir(run.unwrap().path()).unwrap() {
            std::fs::write(file.unwrap().path(), "something else").unwrap();
        }
    }
    let done = place.run(&["export", "dot", "oa"]);
    assert_eq!(done.status, 0, "{done:?}");
    assert!(done.out.contains("label=\"read\""), "{done:?}");
    assert!(!done.out.contains("no byte"), "{done:?}");
    assert!(done.err.contains("have no marks of bytes"), "{done:?}");
}

#[test]
fn diff_says_that_no_byte_of_a_cause_came_into_a_result() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    let mut runs = Vec::new();
    for (ia, ib) in [("one\n", "three\n"), ("two\n", "four\n")] {
        place.write_aged("ia", ia);
        place.write_aged("ib", ib);
        runs.push(place.keep("awk 'FNR == NR { next } { print }' ib ia > oa", &[]));
        let Some(done) = refined(&place, &engine, runs.last().unwrap()) else {
            return;
        };
        assert_eq!(done.status, 0, "{done:?}");
    }
    let diff = place.run(&["diff", &runs[0], &runs[1]]).out;
    assert!(diff.contains("  ⇒ oa\n"), "{diff}");
    let unused = "(no byte in oa, apart from decisions)\n";
    assert!(diff.contains(unused), "{diff}");
    let causes = ["ia  ", "ib  "].map(|name| diff.find(name).unwrap());
    assert!(causes[0] < causes[1], "{diff}");
    let listed = place.run(&["diff", &runs[0], &runs[1], "--level", "process"]);
    assert!(listed.out.contains("ib (no byte, apart from decisions)"));
    assert_eq!(listed.out.matches("no byte").count(), 1, "{listed:?}");
    let json = place.run(&["diff", &runs[0], &runs[1], "--json"]).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let differences = json["differences"].as_array().unwrap();
    let at = |name: &str| {
        let is = |one: &Value| one["of"].as_str().unwrap().ends_with(name);
        differences.iter().position(is).unwrap()
    };
    let output = &differences[at("oa")];
    assert_eq!(output["no_byte_of"], serde_json::json!([at("ib")]));
}
