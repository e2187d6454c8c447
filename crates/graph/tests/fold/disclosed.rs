//! Statements of programs about their own work: their record, and its limits.
#![allow(dead_code, clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::event::Pid;
use backstory_graph::lineage::Follow;
use backstory_graph::marks::{ATTRIBUTE, DERIVATION};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::EntityKind;

const PYTHON: Pid = 2;

fn python() -> Scene {
    Scene::new(&["python"])
}

fn from(graph: &MemorySink, thing: &str) -> Vec<String> {
    came_from(graph, thing, Follow::default())
}

fn said(graph: &MemorySink, kind: &[u8]) -> Vec<(String, String)> {
    let about = graph
        .extended
        .iter()
        .filter(|(_, _, other, _)| **other == *kind);
    about
        .map(|(who, _, _, payload)| (activity(graph, *who), text(payload)))
        .collect()
}

#[test]
fn a_thing_that_a_program_names_comes_from_what_it_read() {
    let mut s = python();
    s.reads(PYTHON, "train.csv");
    s.mark(PYTHON, "write/model:3");
    s.mark(PYTHON, "read/model:3");
    s.reads(PYTHON, "later.csv");
    s.mark(PYTHON, "note/epochs/12");
    s.mark(PYTHON, "record/org.example.metric/%7b%22loss%22:0.1%7d");
    let graph = s.graph();
    assert_eq!(from(&graph, "model:3"), ["train.csv@0"]);
    let kinds: Vec<EntityKind> = graph
        .entities
        .values()
        .filter(|one| &*one.path == b"model:3")
        .map(|one| one.kind)
        .collect();
    assert_eq!(kinds, [EntityKind::Resource]);
    let of = |kind| said(&graph, kind).pop().unwrap().1;
    assert_eq!(of(ATTRIBUTE), "epochs\u{0}12");
    assert_eq!(of(b"org.example.metric"), "{\"loss\":0.1}");
}

#[test]
fn a_derived_thing_names_the_thing_that_it_was_made_from() {
    let mut s = python();
    s.mark(PYTHON, "write/table:raw");
    s.mark(PYTHON, "begin/clean");
    s.mark(PYTHON, "derive/table:clean/table:raw");
    let graph = s.graph();
    let of = from(&graph, "table:clean");
    assert!(of.contains(&"table:raw@1".to_owned()), "{of:?}");
    assert_eq!(
        said(&graph, DERIVATION),
        [("clean#2".to_owned(), "table:clean\u{0}table:raw".to_owned())]
    );
}

/// Of two processes, each with a file of its own.
fn two_writers(first: &str, second: &str, reader: &str) -> MemorySink {
    let mut s = python();
    for (pid, file, mark) in [(3, "a.csv", first), (4, "b.csv", second)] {
        s.runs(PYTHON, pid, &["load", file]);
        s.reads(pid, file);
        s.mark(pid, mark);
        s.exits(pid, PYTHON);
    }
    s.runs(PYTHON, 5, &["report"]);
    s.mark(5, reader);
    s.mark(5, "write/report:1");
    s.exits(5, PYTHON);
    s.graph()
}

#[test]
fn a_part_comes_from_what_wrote_it_and_the_thing_from_all_of_its_parts() {
    let graph = two_writers(
        "write/bank:accounts/row=1",
        "write/bank:accounts/row=2",
        "read/bank:accounts",
    );
    assert_eq!(from(&graph, "bank:accounts#row=1"), ["a.csv@0"]);
    assert_eq!(from(&graph, "bank:accounts#row=2"), ["b.csv@0"]);
    for thing in ["bank:accounts", "report:1"] {
        let of = from(&graph, thing);
        for file in ["a.csv@0", "b.csv@0"] {
            assert!(of.contains(&file.to_owned()), "{thing}: {of:?}");
        }
    }
}

/// Ranges overlap, and a thing may be written as a whole.
#[test]
fn what_came_into_a_thing_in_any_way_reaches_each_part_that_is_read() {
    for (first, second, reader) in [
        (
            "write/t:x/bytes=0-9",
            "write/t:x/bytes=5-14",
            "read/t:x/bytes=8-9",
        ),
        ("write/t:x/row=1", "change/t:x", "read/t:x/row=1"),
        (
            "write/t:x/row=1",
            "write/t:x/column=name",
            "read/t:x/cell=B7",
        ),
        ("change/t:x/key=a", "delete/t:x/key=a", "read/t:x/key=a"),
    ] {
        let of = from(&two_writers(first, second, reader), "report:1");
        for file in ["a.csv@0", "b.csv@0"] {
            assert!(of.contains(&file.to_owned()), "{first}: {of:?}");
        }
    }
}

#[test]
fn requests_that_overlap_share_only_what_came_before() {
    let mut s = python();
    s.mark(PYTHON, "in/1/begin/GET %2fa");
    s.mark(PYTHON, "in/2/begin/GET %2fb");
    s.mark(PYTHON, "in/2/write/reply:early");
    s.mark(PYTHON, "in/1/read/table:a");
    s.mark(PYTHON, "in/2/write/reply:late");
    s.mark(PYTHON, "in/1/end");
    s.mark(PYTHON, "in/2/end");
    s.mark(PYTHON, "in/2/write/reply:never");
    let graph = s.graph();
    let early = from(&graph, "reply:early");
    assert!(!early.contains(&"table:a@0".to_owned()), "{early:?}");
    let late = from(&graph, "reply:late");
    assert!(late.contains(&"table:a@0".to_owned()), "{late:?}");
    assert!(graph.newest(b"reply:never").is_none(), "its activity ended");
    let python = graph
        .activities
        .values()
        .find(|one| one.pid == PYTHON)
        .unwrap()
        .id;
    let requests: Vec<_> = graph
        .activities
        .values()
        .filter(|one| &*one.argv[0] != b"python")
        .map(|one| (text(&one.argv[0]), one.parent))
        .collect();
    assert_eq!(
        requests,
        [
            ("GET /a".to_owned(), Some(python)),
            ("GET /b".to_owned(), Some(python))
        ]
    );
}

#[test]
fn what_an_activity_read_from_a_file_can_reach_the_overlapping_ones() {
    let mut s = python();
    s.mark(PYTHON, "in/1/begin/one");
    s.reads(PYTHON, "a.csv");
    s.mark(PYTHON, "in/1/write/reply:1");
    let of = from(&s.graph(), "reply:1");
    assert!(of.contains(&"a.csv@0".to_owned()), "{of:?}");
}

#[test]
fn a_child_speaks_for_its_parent_and_for_no_other_process() {
    let (emit, stranger) = (3, 4);
    let mut s = Scene::new(&["sh"]);
    s.fork(PYTHON, emit);
    s.mark(emit, "for/2/begin/train");
    s.reads(PYTHON, "a.csv");
    s.fork(emit, stranger);
    s.mark(stranger, "for/2/end");
    s.reads(PYTHON, "b.csv");
    let told = told(&s.graph());
    for read in ["train#2 Read a.csv@0", "train#2 Read b.csv@0"] {
        assert!(told.contains(read), "{told}");
    }
}

#[test]
fn an_activity_with_a_handle_has_the_directory_of_its_process() {
    let mut s = python();
    s.mark(PYTHON, "in/17/begin/GET");
    s.mark(PYTHON, "in/17/write/reply:17");
    s.mark(PYTHON, "in/17/end");
    let graph = s.graph();
    let named =
        |one: &&backstory_graph::model::Activity| one.argv.iter().any(|word| **word == *b"GET");
    let get = graph.activities.values().find(named).unwrap();
    assert_eq!(text(&get.cwd), "/w");
}
