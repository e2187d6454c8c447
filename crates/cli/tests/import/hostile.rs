//! Documents that no tool writes: each is refused with its position, or imported without harm.

use super::Desk;
use super::documents::paths;

#[track_caller]
fn refused(desk: &Desk, format: &str, bytes: &[u8], words: &[&str]) {
    desk.write("document", bytes);
    let output = desk.backstory(&["import", format, "document"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in {error}");
    }
    assert_eq!(desk.runs(), Vec::<String>::new());
}

#[track_caller]
fn accepted(desk: &Desk, format: &str, text: &str, options: &[&str]) {
    desk.write("document", text.as_bytes());
    let mut args = vec!["import", format, "document"];
    args.extend(options);
    let output = desk.backstory(&args);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_text_that_is_no_prov_json_is_refused_with_its_position() {
    let desk = Desk::new();
    let refused = |bytes: &[u8], words: &[&str]| refused(&desk, "prov-json", bytes, words);
    refused(b"", &["line 1", "no PROV-JSON", "EOF"]);
    refused(
        b"execve(\"/bin/sh\")",
        &["line 1, column 1", "expected value"],
    );
    refused(b"{}", &["no \"entity\""]);
    refused(b"{\"a\": {\"b\": {}}}", &["no \"entity\""]);
    refused(b"[]", &["line 1", "an object with \"entity\""]);
    refused(
        b"{\"entity\":\n  {\"e\": 1}}",
        &["line 2", "statement \"e\"", "is no object"],
    );
    refused(b"{\"entity\": {\"\xff\": {}}}", &["line 1", "unicode"]);
    refused(b"{\"entity\": {}}{}", &["trailing"]);
    let deep = [&b"{\"entity\":{\"e\":"[..], &b"[".repeat(100_000)].concat();
    refused(&deep, &["recursion limit"]);
}

#[test]
fn no_path_of_a_document_leads_out_of_the_root() {
    let desk = Desk::new();
    let document = r#"{
        "entity": {
            "a": {"prov:location": "/../../etc/passwd"},
            "b": {"prov:location": "../../../up"},
            "c": {"prov:location": {"$": "file:///x%00y", "type": "xsd:anyURI"}},
            "d": {"prov:location": "file:///%c3%a4/%0A"}
        },
        "used": {
            "_:1": {"prov:activity": "x", "prov:entity": "a"},
            "_:2": {"prov:activity": "x", "prov:entity": "b"},
            "_:3": {"prov:activity": "x", "prov:entity": "c"},
            "_:4": {"prov:activity": "x", "prov:entity": "d"}
        }
    }"#;
    let root = desk.work();
    accepted(&desk, "prov-json", document, &["--root", ".", "--cwd", "/"]);
    let files = desk.backstory(&["files", "--all", "--json"]);
    let text = String::from_utf8(files.stdout).unwrap();
    let found = paths(&desk, "read");
    assert_eq!(found.len(), 3, "{text}");
    assert!(
        found
            .iter()
            .all(|path| path.starts_with(root.to_str().unwrap())),
        "{found:?}"
    );
    assert!(text.contains(r"ä/\n"), "{text}");
}

#[test]
fn cycles_and_enormous_numbers_of_a_document_end() {
    let desk = Desk::new();
    let document = r#"{
        "prefix": {"f": "file:///"},
        "entity": {
            "f:a": {"backstory:version": {"$": "99999999999999999999", "type": "xsd:long"}},
            "f:b": {"backstory:version": 18446744073709551615}
        },
        "activity": {
            "x": {"prov:startTime": "9999-12-31T23:59:59Z", "backstory:pid": -1, "backstory:exit": 1e300},
            "y": {"prov:startTime": "0001-01-01T00:00:00Z", "prov:endTime": "soon"}
        },
        "used": {"_:1": {"prov:activity": "x", "prov:entity": "f:a"}, "_:2": {"prov:activity": "y", "prov:entity": "f:b"}},
        "wasGeneratedBy": {"_:3": {"prov:activity": "x", "prov:entity": "f:b"}, "_:4": {"prov:activity": "y", "prov:entity": "f:a"}},
        "wasDerivedFrom": {"_:5": {"prov:generatedEntity": "f:a", "prov:usedEntity": "f:a"}},
        "wasStartedBy": {"_:6": {"prov:activity": "x", "prov:starter": "y"}, "_:7": {"prov:activity": "y", "prov:starter": "x"}},
        "wasInformedBy": {"_:8": {"prov:informed": "x", "prov:informant": "x"}},
        "hadMember": {"_:9": {"prov:collection": "f:a", "prov:entity": "f:b"}}
    }"#;
    accepted(&desk, "prov-json", document, &[]);
    for args in [
        &["of", "/a"][..],
        &["uses", "/a", "--tree"],
        &["processes"],
        &["show"],
        &["files"],
    ] {
        let output = desk.backstory(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
    let reasons = desk.reasons();
    for word in ["1 hadMember", "3 times of the document"] {
        assert!(reasons.contains(word), "no {word:?} in {reasons}");
    }
}

#[test]
fn a_text_that_is_no_openlineage_event_is_refused_with_its_position() {
    let desk = Desk::new();
    let refused = |bytes: &[u8], words: &[&str]| refused(&desk, "openlineage", bytes, words);
    refused(b"", &["line 1", "no event"]);
    refused(b"[]", &["no event"]);
    refused(b"{}", &["line 1", "a \"run\" and a \"job\""]);
    refused(
        b"\n{\"run\": {\"runId\": \"x\"}, \"job\": {}}\n3\n",
        &["an event is an object"],
    );
    refused(b"{\"run\"\n: oops}", &["line 2", "expected value"]);
    refused(b"[1]", &["an event is an object"]);
}

#[test]
fn a_text_that_is_no_crate_is_refused_with_its_position() {
    let desk = Desk::new();
    let refused = |bytes: &[u8], words: &[&str]| refused(&desk, "ro-crate", bytes, words);
    refused(b"{}", &["no \"@graph\""]);
    refused(b"{\"@graph\": [{\"@id\": \"./\"}]}", &["\"CreateAction\""]);
    refused(b"{\"@graph\":\n [1]}", &["line 2", "\"@id\""]);
    refused(b"{\"@graph\": {}}", &["an array"]);
}

#[test]
fn collections_in_a_ring_end_and_names_do_not_leave_the_crate() {
    let desk = Desk::new();
    let document = r##"{"@graph": [
        {"@id": "#a", "@type": "CreateAction", "object": {"@id": "#c"}, "result": [{"@id": "../../out"}, {"@id": "in/../x"}]},
        {"@id": "#c", "@type": "Collection", "hasPart": [{"@id": "#d"}, {"@id": "inside"}]},
        {"@id": "#d", "@type": "Collection", "hasPart": [{"@id": "#c"}, {"@id": "#v"}]},
        {"@id": "#v", "@type": "PropertyValue", "name": "threshold", "value": 0.5}
    ]}"##;
    accepted(&desk, "ro-crate", document, &[]);
    let inside = desk.work().join("inside");
    assert_eq!(paths(&desk, "read"), [inside.to_str().unwrap()]);
    assert_eq!(paths(&desk, "write"), Vec::<String>::new());
    let processes = desk.json(&["processes", "--json"]);
    assert_eq!(processes[0]["attributes"]["threshold"], "0.5");
}
