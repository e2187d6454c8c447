//! Extended records that are compared with the schemas of their types.

use super::*;

/// Registers a schema. False if the worker is not built.
fn registered(place: &Place, name: &str, schema: &str) -> bool {
    if !place.has_inspector() {
        return false;
    }
    place.write("schema.json", schema);
    let added = place.run(&["schema", "add", name, &place.path("schema.json")]);
    assert_eq!(added.status, 0, "{}", added.err);
    true
}

/// A schema that wants a number `loss`.
const LOSS: &str =
    r#"{"type": "object", "required": ["loss"], "properties": {"loss": {"type": "number"}}}"#;

/// The comparison with nested `a` takes exponential memory.
const DOUBLING: &str = r##"{"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}"##;

#[test]
fn a_record_that_violates_its_schema_is_kept_and_marked_with_its_program() {
    let place = Place::new();
    if !registered(&place, "org.example.loss", LOSS) {
        return;
    }
    let emit = format!("{} emit", place.program());
    place.keep(
        &format!(
            "{emit} begin train; {emit} record org.example.loss '{{\"loss\": 0.1}}'; \
             {emit} record org.example.loss@1 '{{\"loss\": \"high\"}}'; \
             {emit} record org.example.loss@2 '{{}}'; {emit} record org.example.other 7; \
             {emit} write model:3; {emit} end"
        ),
        &[],
    );
    let show = place.json(&["show", "--json"]);
    let records = show["records"].as_array().unwrap();
    let states: Vec<&str> = records
        .iter()
        .map(|one| one["schema"]["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["conforms", "violates", "unchecked"], "{show}");
    assert_eq!(records[1]["payload"], "{\"loss\": \"high\"}", "{show}");
    assert_eq!(records[1]["argv"][0], "train", "{show}");
    let why = records[1]["schema"]["why"].as_str().unwrap();
    assert!(why.contains("/loss") && why.contains("number"), "{why}");
    let text = place.run(&["show"]).out;
    assert!(
        text.contains("3 with a schema: 1 valid, 1 not valid, 1 not checked")
            && text.contains("org.example.loss@1"),
        "{text}"
    );
    let of = place.json(&["of", "model:3", "--level", "step", "--json"]);
    let mut steps = of["steps"].as_array().unwrap().iter();
    let train = steps.find(|step| step["part"] == true).unwrap();
    assert_eq!(train["records"].as_array().unwrap().len(), 4, "{train}");
    assert_eq!(
        train["records"][1]["schema"]["state"], "violates",
        "{train}"
    );
    assert!(train["records"][3]["schema"].is_null(), "{train}");
    let of = place.run(&["of", "model:3"]).out;
    assert!(
        of.contains("record violates org.example.loss@1: /loss: \"high\" is not of type"),
        "{of}"
    );
}

#[test]
fn a_registered_schema_is_listed_and_never_changed() {
    let place = Place::new();
    if !registered(&place, "org.example.loss", LOSS) {
        return;
    }
    place.write("other.json", "true");
    place.write("wrong.json", r#"{"type": "nonsense"}"#);
    let other = place.path("other.json");
    place
        .run(&["schema", "add", "org.example.loss@1", &other])
        .is_error(2, &["org.example.loss@1", "another schema"]);
    place
        .run(&[
            "schema",
            "add",
            "org.example.wrong",
            &place.path("wrong.json"),
        ])
        .is_error(2, &["wrong.json"]);
    place
        .run(&["schema", "add", "loss", &other])
        .is_error(2, &["loss", "dots"]);
    let same = place.path("schema.json");
    let again = place.run(&["schema", "add", "org.example.loss", &same]);
    assert_eq!(again.out, "org.example.loss@1 is registered already\n");
    let added = place.run(&["schema", "add", "org.example.loss", &other]);
    assert_eq!(added.out, "registered org.example.loss@2\n");
    let list = place.run(&["schema", "list"]).out;
    assert_eq!(list, "org.example.loss@1\norg.example.loss@2\n");
    assert_eq!(
        place.run(&["schema", "show", "org.example.loss"]).out,
        "true\n"
    );
    assert_eq!(
        place.run(&["schema", "remove", "org.example.loss"]).status,
        0
    );
    place
        .run(&["schema", "show", "org.example.loss"])
        .is_error(1, &["org.example.loss"]);
}

#[test]
fn what_cannot_be_a_schema_is_refused_with_its_file_and_the_reason() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    let huge = format!("{{\"description\": \"{}\"}}", "x".repeat(64 << 10));
    for (schema, why) in [
        ("{", "not JSON"),
        ("7", "no object"),
        (r#"{"type": "nonsense"}"#, "nonsense"),
        (r#"{"pattern": "(?=x)"}"#, "look-around"),
        (r#"{"$ref": "http://127.0.0.1:9/s"}"#, "its own parts only"),
        (r##"{"allOf": [{"$ref": "#"}]}"##, "stack overflow"),
        (&huge, "at most 64 KiB"),
    ] {
        place.write("wrong.json", schema);
        let wrong = place.path("wrong.json");
        let added = place.run(&["schema", "add", "org.example.wrong", &wrong]);
        added.is_error(2, &["wrong.json", why]);
    }
    let list = place.run(&["schema", "list"]).out;
    assert_eq!(list, "no schema is registered\n");
}

#[test]
fn a_record_that_cannot_be_compared_costs_no_other_its_verdict() {
    let place = Place::new();
    if !registered(&place, "org.example.loss", LOSS)
        || !registered(&place, "org.example.tree", DOUBLING)
    {
        return;
    }
    let record = format!("{} emit record", place.program());
    let hostile = format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60));
    place.keep(
        &format!(
            "{record} org.example.loss '{{}}'; {record} org.example.tree '{{}}'; \
             {record} org.example.tree '{hostile}'; {record} org.example.tree 1"
        ),
        &[],
    );
    let show = place.json(&["show", "--json"]);
    let records = show["records"].as_array().unwrap().iter();
    let states: Vec<&str> = records
        .map(|one| one["schema"]["state"].as_str().unwrap())
        .collect();
    let expected = ["violates", "conforms", "unchecked", "conforms"];
    assert_eq!(states, expected, "{show}");
    let why = show["records"][2]["schema"]["why"].as_str().unwrap();
    assert!(
        why.contains("gave no answer") && why.contains("memory"),
        "{why}"
    );
}

#[test]
fn a_rebuilt_store_has_the_verdicts_of_the_schemas_of_now_and_its_seals_hold() {
    let place = Place::new();
    let emit = format!("{} emit", place.program());
    place.keep(&format!("{emit} record org.example.loss 1"), &[]);
    let records = |place: &Place| place.json(&["show", "--json"])["records"].clone();
    assert_eq!(records(&place), serde_json::json!([]));
    if !registered(&place, "org.example.loss", LOSS) {
        return;
    }
    assert_eq!(place.run(&["store", "seal", "--all"]).status, 0);
    assert_eq!(place.run(&["store", "rebuild"]).status, 0);
    assert_eq!(records(&place)[0]["schema"]["state"], "violates");
    let verified = place.run(&["store", "verify", "--evidence"]);
    assert_eq!(verified.status, 0, "{verified:?}");
    assert_eq!(
        place.run(&["schema", "remove", "org.example.loss"]).status,
        0
    );
    assert_eq!(place.run(&["store", "rebuild"]).status, 0);
    assert_eq!(records(&place), serde_json::json!([]));
}

#[test]
fn of_names_a_violation_among_several_parts_of_one_kind() {
    let place = Place::new();
    if !registered(&place, "org.example.loss", LOSS) {
        return;
    }
    let emit = format!("{} emit", place.program());
    let epoch = |number: u32, loss: &str| {
        format!(
            "{emit} begin train 'epoch {number}'; {emit} record org.example.loss '{{\"loss\": {loss}}}'; \
             {emit} change model:3; {emit} end; "
        )
    };
    let script = [epoch(1, "0.3"), epoch(2, "null"), epoch(3, "0.1")].concat();
    place.keep(&script, &[]);
    let of = place.run(&["of", "model:3"]).out;
    assert!(
        of.contains("record violates org.example.loss@1: /loss: null"),
        "{of}"
    );
}
