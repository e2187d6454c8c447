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

/// Makes a trace of ReproZip with these rows.
fn trace(desk: &Desk, rows: &str) {
    let tables = "CREATE TABLE processes(id INTEGER PRIMARY KEY, run_id INTEGER, parent INTEGER, \
        timestamp INTEGER, is_thread BOOLEAN, exitcode INTEGER); \
        CREATE TABLE opened_files(id INTEGER PRIMARY KEY, run_id INTEGER, name TEXT, timestamp INTEGER, \
        mode INTEGER, is_directory BOOLEAN, process INTEGER); \
        CREATE TABLE executed_files(id INTEGER PRIMARY KEY, name TEXT, run_id INTEGER, timestamp INTEGER, \
        process INTEGER, argv TEXT, envp TEXT, workingdir TEXT);";
    let path = desk.work().join("document");
    let _ = std::fs::remove_file(&path);
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch(&format!("{tables}{rows}")).unwrap();
    drop(database);
    desk.stage.user().owns(&path).unwrap();
}

#[test]
fn a_file_that_is_no_trace_of_reprozip_is_refused() {
    let desk = Desk::new();
    let of_another = |bytes: &[u8], words: &[&str]| refused(&desk, "reprozip", bytes, words);
    of_another(b"version: 0.8\n", &["line 1", "not a database"]);
    of_another(b"", &["no such table: processes"]);
    trace(
        &desk,
        "INSERT INTO processes VALUES(1, 0, NULL, 'soon', 0, 0);",
    );
    let bytes = std::fs::read(desk.work().join("document")).unwrap();
    of_another(&bytes, &["Invalid column type"]);
    assert!(!desk.work().join("document-journal").exists());
}

#[test]
fn a_trace_of_reprozip_with_rings_and_strangers_is_imported() {
    let desk = Desk::new();
    trace(
        &desk,
        "INSERT INTO processes VALUES(1, 0, 2, 10, 1, 256), (2, 0, 1, 20, 1, 0), \
        (3, 0, 3, -9223372036854775808, 0, 9223372036854775807); \
        INSERT INTO executed_files VALUES(1, '/bin/x', 0, 9223372036854775807, 3, x'ff00', '', '../..'); \
        INSERT INTO opened_files VALUES(1, 0, '/../a', 30, 3, 0, 3), (2, 0, '/b', 40, 1, 0, 99), \
        (3, 0, x'2fff', 50, 2, 0, 3);",
    );
    let output = desk.backstory(&["import", "reprozip", "document"]);
    assert!(output.status.success(), "{output:?}");
    let show = desk.backstory(&["show", "--json"]);
    let show = String::from_utf8(show.stdout).unwrap();
    assert!(
        show.contains("1 row of opened_files name no process"),
        "{show}"
    );
    let files = desk.backstory(&["files", "--all", "--json"]);
    let text = String::from_utf8(files.stdout).unwrap();
    assert!(
        text.contains(r#""/\udcff""#) && text.contains("\"/a\""),
        "{text}"
    );
    for args in [&["of", "/a"][..], &["processes"], &["show"]] {
        let output = desk.backstory(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
}

#[test]
fn a_file_that_is_no_record_of_snakemake_is_refused() {
    let desk = Desk::new();
    let of_another = |words: &[&str], bytes: &[u8]| refused(&desk, "snakemake", bytes, words);
    // `document` is base 64, too.
    of_another(&["a record has a \"rule\""], b"{}");
    of_another(&["is not one object"], b"");
    of_another(&["line 1", "expected value"], b"rule");
    desk.write("trace.log", b"{}");
    let output = desk.backstory(&["import", "snakemake", "trace.log"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no output in base 64"), "{error}");
}
