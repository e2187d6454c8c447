//! The description of the interface: every route keeps to it.

use serde_json::{Value, json};

use super::server::{ServedPlace, encoded};

#[test]
fn every_route_answers_as_the_description_says() {
    let place = ServedPlace::new();
    place.record_rank(1, "true");
    place.write("a", "one\n");
    place.record(&["sh", "-c", "sort a > b"]);
    place.write("a", "two\n");
    place.record(&["sh", "-c", "sort a > b"]);
    let server = place.serve(&[]);
    let document = server.get("/openapi.json");
    // Another test holds the copy in the source against the code of the server.
    let copy: Value =
        serde_json::from_str(include_str!("../../../serve/web/openapi.json")).unwrap();
    assert!(document == copy, "the server sends another description");
    let version = server.version(&place.path("b"));
    let path = encoded(place.path("b"));
    let runs = server.get("/runs");
    let [new, old] = [0, 1].map(|at| runs["runs"][at]["run"].as_str().unwrap().to_owned());
    let fold = format!("/lineage?path={path}");
    let graph = server.get(&fold);
    let nodes = graph["nodes"].as_array().unwrap().iter();
    let fold = nodes.clone().find(|node| node["type"] == "fold");
    let fold = fold.unwrap()["id"].as_str().unwrap();
    let asked: Vec<(&str, String)> = vec![
        ("/store", "/store".into()),
        ("/runs", "/runs".into()),
        ("/runs/activity", "/runs/activity".into()),
        ("/runs/{run}", format!("/runs/{new}")),
        ("/runs/{run}/processes", "/runs/latest/processes".into()),
        ("/runs/{run}/waits", "/runs/latest/waits".into()),
        ("/runs/{run}/marks", "/runs/latest/marks?own=false".into()),
        ("/runs/{run}/files", "/runs/latest/files".into()),
        ("/runs/{run}/peers", "/runs/latest/peers".into()),
        ("/job", "/job?launcher=Slurm&id=71.0".into()),
        ("/file", format!("/file?path={path}")),
        ("/scene", format!("/scene?path={path}")),
        ("/versions/{version}", format!("/versions/{version}")),
        (
            "/versions/{version}/users",
            format!("/versions/{version}/users"),
        ),
        (
            "/versions/{version}/inside",
            format!("/versions/{version}/inside"),
        ),
        (
            "/versions/{version}/preview",
            format!("/versions/{version}/preview"),
        ),
        (
            "/versions/{version}/bytes",
            format!("/versions/{version}/bytes?start=0&end=3"),
        ),
        ("/diff", format!("/diff?a={version}&b={version}")),
        ("/lineage", format!("/lineage?path={path}")),
        ("/lineage", format!("/lineage?path={path}&level=process")),
        (
            "/lineage/hop",
            format!("/lineage/hop?node={version}&level=process"),
        ),
        (
            "/lineage/fold",
            format!("/lineage/fold?path={path}&fold={fold}"),
        ),
        ("/compare", format!("/compare?a={old}&b={new}")),
        ("/status", "/status".into()),
        ("/search", "/search?text=b".into()),
        ("/live", "/live".into()),
    ];
    for (route, target) in &asked {
        let answer = server.get(target);
        let operation = &document["paths"][route]["get"];
        let pointer = "/responses/200/content/application~1json/schema";
        let schema = operation.pointer(pointer);
        let schema = schema.unwrap_or_else(|| panic!("{route} is not described"));
        check(&document, schema, &answer, target);
    }
    let refused = server.ask("GET", "/file?path=/no/such/file", &[]).json();
    check(
        &document,
        &json!({"$ref": "#/components/schemas/ProblemBody"}),
        &refused,
        "/file",
    );
    // Every described route was asked, but for streams, bytes and the one that changes something.
    let others = ["/live/events", "/rerun", "/versions/{version}/content"];
    for route in document["paths"].as_object().unwrap().keys() {
        let known = asked.iter().any(|(own, _)| own == route) || others.contains(&route.as_str());
        assert!(known, "{route} was not asked");
    }
}

/// Checks an answer against a schema, with a validator that shares no code with the server.
fn check(document: &Value, schema: &Value, answer: &Value, target: &str) {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::new(&whole).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(answer)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{target}: {errors:#?}");
}
