//! `of --cell` and `--member`: parts by the structure of a file's type.

use std::fs;
use std::process::Command;

use backstory_testkit::need::needs;
use serde_json::Value;

use super::bytes::engine;
use super::{Answer, Place};

/// A place in which the byte engine followed copies of these files. `None`: this machine has no
/// engine, or no inspector was built.
fn followed(files: &[(&str, &[u8])]) -> Option<(Place, String)> {
    let place = Place::new();
    let engine = engine(&place).filter(|_| place.has_inspector())?;
    let mut script = String::new();
    for (name, content) in files {
        fs::write(place.work().join(format!("in-{name}")), content).unwrap();
        script.push_str(&format!("cat in-{name} > {name}; "));
    }
    let recorded = place.shell(&format!(
        "env {engine} $B record --bytes -- sh -c '{script}'"
    ));
    assert_eq!(recorded.status, 0, "{recorded:?}");
    Some((place, engine))
}

fn asked(place: &Place, engine: &str, part: &str) -> Answer {
    place.shell(&format!("env {engine} $B of {part}"))
}

/// The text of the input's bytes that the part was copied from, for each range.
fn copied(place: &Place, engine: &str, part: &str) -> Vec<Vec<u8>> {
    let answer = asked(place, engine, &format!("{part} --json"));
    assert_eq!(answer.status, 0, "{answer:?}");
    let found: Value = serde_json::from_str(&answer.out).unwrap();
    let source = &found["sources"][0];
    let content = fs::read(source["path"].as_str().unwrap()).unwrap();
    let ranges: Vec<[usize; 2]> = serde_json::from_value(source["copied"].clone()).unwrap();
    assert_eq!(source["copied"], found["ranges"], "{found}");
    let texts = ranges
        .iter()
        .map(|&[start, end]| content[start..end].to_vec());
    texts.collect()
}

/// A program in Python that writes a workbook. The argument is how its members are compressed: 0 is
/// not at all, 8 is deflated.
const WORKBOOK: &str = r#"
import io, sys, zipfile
members = {
    "xl/workbook.xml": "<workbook xmlns:r='r'><sheets><sheet name='Data' r:id='a'/></sheets></workbook>",
    "xl/_rels/workbook.xml.rels": "<Relationships>"
    "<Relationship Id='a' Type='x/worksheet' Target='worksheets/one.xml'/>"
    "<Relationship Id='b' Type='x/sharedStrings' Target='strings.xml'/></Relationships>",
    "xl/worksheets/one.xml": "<worksheet><sheetData><row r='3'><c r='A3' t='s'><v>1</v></c>"
    "<c r='B3'><v>17.5</v></c></row></sheetData></worksheet>",
    "xl/strings.xml": "<sst><si><t>no</t></si><si><t>yes</t></si></sst>",
}
whole = io.BytesIO()
with zipfile.ZipFile(whole, "w", int(sys.argv[1])) as archive:
    for name, text in members.items():
        archive.writestr(name, text)
sys.stdout.buffer.write(whole.getvalue())
"#;

fn workbook(method: &str) -> Vec<u8> {
    let made = Command::new("python3")
        .args(["-c", WORKBOOK, method])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    made.stdout
}

#[test]
fn a_member_of_json_and_a_cell_of_a_notebook_are_followed_by_their_own_bytes() {
    let json = r#"{"rows": [{"price": 1}, {"price": 17.25, "name": "ash"}]}"#;
    let notebook = r#"{"cells": [{"source": "x"}, {"source": "y", "outputs": [{"text": "42"}]}]}"#;
    let files = [
        ("a.json", json.as_bytes()),
        ("a.jsonl", b"{\"a\": 1}\n{\"a\": \"two\"}\n"),
        ("a.toml", b"[solver]\ndt = 0.1\n"),
        ("a.ipynb", notebook.as_bytes()),
    ];
    let Some((place, engine)) = followed(&files) else {
        return;
    };
    for (part, text) in [
        ("a.json --member 'rows[1].price'", "17.25"),
        ("a.json --member '.rows[1].name'", "ash"),
        ("a.jsonl --member '[1].a'", "two"),
        ("a.toml --member solver.dt", "0.1"),
        ("a.ipynb --cell 1.source", "x"),
        ("a.ipynb --cell '2.outputs[0].text'", "42"),
    ] {
        assert_eq!(copied(&place, &engine, part), [text.as_bytes()], "{part}");
    }
    let shown = asked(&place, &engine, "a.json --member 'rows[1].price'");
    assert!(
        shown
            .out
            .starts_with("a.json, bytes 34-38 (line 1, columns 35-39): 17.25\n"),
        "{shown:?}"
    );
}

#[test]
fn a_cell_of_a_workbook_has_its_members_and_says_that_they_are_more_than_it() {
    if !needs("a workbook", &["python3"]) {
        return;
    }
    let (packed, stored) = (workbook("8"), workbook("0"));
    let files = [("packed.xlsx", &packed[..]), ("stored.xlsx", &stored)];
    let Some((place, engine)) = followed(&files) else {
        return;
    };
    assert_eq!(copied(&place, &engine, "stored.xlsx --cell B3"), [b"17.5"]);
    let text = copied(&place, &engine, "stored.xlsx --cell Data!A3");
    assert_eq!(text, [&b"1"[..], b"<t>yes</t>"]);
    let note = "coarser than Data!A3: these bytes are all of the compressed members \
                xl/worksheets/one.xml and xl/strings.xml";
    let found = asked(&place, &engine, "packed.xlsx --cell A3");
    assert!(found.out.contains(note), "{found:?}");
    let members = copied(&place, &engine, "packed.xlsx --cell A3");
    assert_eq!(members.len(), 2, "{members:?}");
    let found = asked(&place, &engine, "stored.xlsx --cell B3");
    assert!(!found.out.contains("coarser"), "{found:?}");
}

#[test]
fn a_part_that_cannot_be_found_is_refused_with_the_type_or_the_reason() {
    if !needs("a workbook", &["python3"]) {
        return;
    }
    let packed = workbook("8");
    let png = b"\x89PNG\r\n\x1a\n\0";
    let files = [
        ("a.xlsx", &packed[..]),
        ("cut.xlsx", &packed[..packed.len() / 2]),
        ("a.png", png),
        ("a.bin", b"\0\x01\n"),
        ("a.json", b"{\"a\": 1}"),
        ("cut.json", b"{\"a\": 1"),
        ("a.csv", b"a,b\n1,2\n"),
    ];
    let Some((place, engine)) = followed(&files) else {
        return;
    };
    for (part, status, why) in [
        (
            "a.xlsx --cell Nothing!A1",
            1,
            "no sheet `Nothing`, but `Data`",
        ),
        ("a.xlsx --cell C9", 1, "sheet `Data` has no value in C9"),
        ("a.xlsx --cell 3", 2, "as in B3 or Sheet2!B3"),
        ("a.xlsx --line 1", 2, "of the format xlsx"),
        ("cut.xlsx --cell A3", 1, "cannot read cut.xlsx"),
        (
            "a.png --cell A1",
            2,
            "of the format image: its cells are not found, so ask with --bytes",
        ),
        ("a.bin --member a", 2, "not text, and of no known format"),
        ("a.json --cell A1", 2, "of the format json"),
        ("a.json --member b", 1, "it has no member `b`"),
        ("a.json --member a.", 2, "give a path"),
        ("cut.json --member a", 1, "cannot read cut.json"),
        ("a.csv --cell C1", 1, "no such cell"),
        ("a.csv --cell x", 2, "as in B3"),
    ] {
        let refused = asked(&place, &engine, part);
        assert_eq!(
            (refused.status, &*refused.out),
            (status, ""),
            "{part}: {refused:?}"
        );
        assert!(refused.err.contains(why), "{part}: {refused:?}");
    }
}

#[test]
fn a_value_of_a_row_of_sqlite_is_followed_by_its_own_bytes() {
    let made = tempfile::NamedTempFile::new().unwrap();
    let database = rusqlite::Connection::open(made.path()).unwrap();
    database
        .execute_batch(
            "CREATE TABLE trees (id INTEGER PRIMARY KEY, name TEXT, height REAL);
             INSERT INTO trees VALUES (7, 'ash', 12.5), (42, 'birch', 9.5);",
        )
        .unwrap();
    drop(database);
    let content = fs::read(made.path()).unwrap();
    let Some((place, engine)) = followed(&[("a.db", &content)]) else {
        return;
    };
    let name = copied(&place, &engine, "a.db --member 'trees[42].name'");
    assert_eq!(name, [b"birch"]);
    let row = copied(&place, &engine, "a.db --member 'trees[42]'");
    assert!(row[0].ends_with(b"birch\x40\x23\0\0\0\0\0\0"), "{row:?}");
    let table = asked(&place, &engine, "a.db --member trees");
    assert!(table.out.contains("all pages of the table"), "{table:?}");
    let absent = asked(&place, &engine, "a.db --member 'trees[8].name'");
    assert!(absent.err.contains("no row 8"), "{absent:?}");
}
