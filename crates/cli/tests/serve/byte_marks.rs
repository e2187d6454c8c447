//! The graph of a file marks inputs that gave the file no byte.

use std::path::Path;

use backstory_testkit::byte_engine;
use backstory_testkit::need::skipped;
use serde_json::{Value, json};

use super::server::{ServedPlace, encoded};

#[test]
fn the_graph_of_a_refined_file_marks_an_input_that_gave_it_no_byte() {
    let place = ServedPlace::new();
    let engine = place.path("engine");
    if !byte_engine::copy(Path::new(env!("CARGO_TARGET_TMPDIR")), &engine, &[]) {
        return;
    }
    place.write("ia", "one\n");
    place.write("ib", "two\n");
    place.record(&["sh", "-c", "awk 'FNR == NR { next } { print }' ib ia > oa"]);
    let mut refine = place.backstory(&["refine", "oa"]);
    let refine = refine.env("BACKSTORY_BYTE_ENGINE", &engine);
    let done = refine.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if said.contains("namespace") {
        return skipped("refine", &said);
    }
    assert!(done.status.success(), "{said}");
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
    }
}
