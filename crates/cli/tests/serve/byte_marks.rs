//! The page marks inputs that gave a file no byte: in the graph, and where two runs are compared.

use std::path::{Path, PathBuf};

use backstory_testkit::byte_engine;
use backstory_testkit::need::skipped;
use serde_json::{Value, json};

use super::server::{ServedPlace, encoded};

/// `oa` has bytes of `ia`. `ib` only decides.
const COMMAND: [&str; 3] = ["sh", "-c", "awk 'FNR == NR { next } { print }' ib ia > oa"];

fn engine(place: &ServedPlace) -> Option<PathBuf> {
    let engine = place.path("engine");
    let built = byte_engine::copy(Path::new(env!("CARGO_TARGET_TMPDIR")), &engine, &[]);
    built.then_some(engine)
}

/// Records the command with these inputs, and refines the run. False if this machine cannot.
fn refined(place: &ServedPlace, engine: &PathBuf, ia: &str, ib: &str) -> bool {
    place.write("ia", ia);
    place.write("ib", ib);
    place.record(&COMMAND);
    let mut refine = place.backstory(&["refine", "oa"]);
    let done = refine.env("BACKSTORY_BYTE_ENGINE", engine).output();
    let done = done.unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if said.contains("namespace") {
        skipped("refine", &said);
        return false;
    }
    assert!(done.status.success(), "{said}");
    true
}

#[test]
fn the_graph_of_a_refined_file_marks_an_input_that_gave_it_no_byte() {
    let place = ServedPlace::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    if !refined(&place, &engine, "one\n", "two\n") {
        return;
    }
    let server = place.serve(&[]);
    for level in ["command", "process"] {
        let path = encoded(place.path("oa"));
        let graph = server.get(&format!("/lineage?path={path}&level={level}"));
        let nodes = graph["nodes"].as_array().unwrap();
        let links = graph["links"].as_array().unwrap();
        let node = |name: &str| -> &Value {
            let path = place.path(name);
            let is = |node: &&Value| node["path"] == path.to_str().unwrap();
            nodes.iter().find(is).unwrap()
        };
        let bytes = |name: &str| {
            let id = &node(name)["id"];
            let link = links.iter().find(|link| link["from"] == *id).unwrap();
            link["bytes"].as_str()
        };
        assert_eq!(bytes("ia"), Some("some"), "{level}");
        assert_eq!(bytes("ib"), Some("none"), "{level}");
        let unused = json!([place.path("ib").to_str().unwrap()]);
        assert_eq!(node("oa")["no_byte_of"], unused, "{level}");
        assert_eq!(graph["warnings"], json!([]), "{level}");
    }
    for run in std::fs::read_dir(place.store().join("bytes")).unwrap() {
        for file in std::fs::read_dir(run.unwrap().path()).unwrap() {
            std::fs::write(file.unwrap().path(), "something else").unwrap();
        }
    }
    let path = encoded(place.path("oa"));
    let graph = server.get(&format!("/lineage?path={path}"));
    let links = graph["links"].as_array().unwrap();
    assert!(links.iter().all(|link| link["bytes"].is_null()), "{graph}");
    let said = graph["warnings"][0].as_str().unwrap();
    assert!(
        said.ends_with("its results have no marks of bytes"),
        "{said}"
    );
}

#[test]
fn a_comparison_of_refined_runs_names_the_causes_without_a_byte() {
    let place = ServedPlace::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    let mut versions = Vec::new();
    for (ia, ib) in [("one\n", "three\n"), ("two\n", "four\n")] {
        if !refined(&place, &engine, ia, ib) {
            return;
        }
        versions.push(place.serve(&[]).version(&place.path("oa")));
    }
    let server = place.serve(&[]);
    let (a, b) = (&versions[0], &versions[1]);
    let compared = server.get(&format!("/compare?a={a}&b={b}"));
    let all = compared["differences"].as_array().unwrap();
    let at = |name: &str| {
        let is = |one: &Value| one["of"].as_str().unwrap().ends_with(name);
        all.iter().position(is).unwrap()
    };
    let output = &all[at("oa")];
    for cause in ["ia", "ib"] {
        let fed_by = output["fed_by"].as_array().unwrap();
        assert!(fed_by.contains(&json!(at(cause))), "{compared}");
    }
    assert_eq!(output["no_byte_of"], json!([at("ib")]), "{compared}");
}
