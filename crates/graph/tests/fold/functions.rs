//! Calls of functions: which of them become activities, and what belongs to them.
#![allow(dead_code, clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::event::{FunctionStep, Op, Outcome, Pid};
use backstory_graph::lineage::{Follow, GraphNode, LineageSearch};
use backstory_graph::marks::ATTRIBUTE;
use backstory_graph::model::Entity;

const PLOT: Pid = 2;

/// A program with the functions `read_table`, `write_table` and `add`: 1, 2 and 3.
fn plot() -> Scene {
    let mut s = Scene::new(&["plot"]);
    for (number, name, location) in [
        (1, "read_table", "plot.c:10"),
        (2, "write_table", "plot.c:40"),
        (3, "add", ""),
    ] {
        let (name, location) = (bytes(name), bytes(location));
        let function = Op::Function {
            number,
            name,
            location,
            kind: bytes(""),
        };
        s.kernel(PLOT, Outcome::Done(0), function);
    }
    s
}

#[track_caller]
fn check(scene: &Scene, expected: &str) {
    let trimmed: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(told(&scene.graph()), trimmed.join("\n"));
}

/// A number is a call of that function, 0 a return.
fn calls(s: &mut Scene, pid: Pid, tid: Pid, steps: &[u32]) {
    let step = |&number: &u32| match number {
        0 => FunctionStep::Return { after: 1 },
        number => FunctionStep::Call { number, after: 1 },
    };
    let steps = Op::Calls(steps.iter().map(step).collect());
    s.push(pid, Outcome::Done(0), steps).tid = tid;
}

#[test]
fn a_function_has_its_own_reads_and_writes_and_passes_its_memory_on() {
    let mut s = plot();
    s.reads(PLOT, "setup");
    calls(&mut s, PLOT, PLOT, &[1]);
    s.reads(PLOT, "a.csv");
    calls(&mut s, PLOT, PLOT, &[0, 3, 0, 2]);
    s.writes(PLOT, "b.csv", OUT);
    calls(&mut s, PLOT, PLOT, &[0]);
    s.reads(PLOT, "later");
    check(
        &s,
        "plot#1 Read setup@0
         plot#1 Write memory:2@1
         plot#3 Read memory:2@2
         plot#3 Write memory:2@3
         plot#5 Read later@0
         plot#5 Read memory:2@3
         read_table() in plot.c:10#2 Read a.csv@0
         read_table() in plot.c:10#2 Read memory:2@1
         read_table() in plot.c:10#2 Write memory:2@2
         write_table() in plot.c:40#4 Read memory:2@3
         write_table() in plot.c:40#4 Write b.csv@1",
    );
    let graph = s.graph();
    let counts = graph.extended.iter().filter(|one| one.2 == ATTRIBUTE);
    let counts: Vec<String> = counts.map(|one| text(&one.3)).collect();
    assert_eq!(counts.len(), 3, "{counts:?}");
    assert!(
        counts.iter().any(|one| one == "calls of add()\u{0}1"),
        "{counts:?}"
    );
}

#[test]
fn calls_without_operations_make_no_activity() {
    let mut s = plot();
    s.reads(PLOT, "a");
    calls(&mut s, PLOT, PLOT, &[1, 2, 3, 0, 0, 0]);
    s.writes(PLOT, "b", OUT);
    check(
        &s,
        "plot#1 Read a@0
         plot#1 Write b@1",
    );
}

#[test]
fn an_operation_belongs_to_the_function_of_its_own_thread() {
    let mut s = plot();
    calls(&mut s, PLOT, PLOT, &[1]);
    calls(&mut s, PLOT, 7, &[2]);
    s.reads(PLOT, "a");
    let written = s.events.len();
    s.writes(PLOT, "b", OUT);
    for event in &mut s.events[written..] {
        event.tid = 7;
    }
    s.reads(PLOT, "c");
    let graph = s.graph();
    let edges = told(&graph);
    let edges: Vec<&str> = edges.lines().map(str::trim).collect();
    for (function, file) in [
        ("read_table() in plot.c:10", "Read a@0"),
        ("write_table() in plot.c:40", "Write b@1"),
        ("read_table() in plot.c:10", "Read c@0"),
    ] {
        let own = edges
            .iter()
            .any(|edge| edge.starts_with(function) && edge.ends_with(file));
        assert!(own, "{function} {file}: {edges:?}");
    }
}

#[test]
fn a_forked_child_returns_from_functions_of_its_parent() {
    let mut s = plot();
    calls(&mut s, PLOT, PLOT, &[1]);
    s.fork(PLOT, 3);
    s.start(3, PLOT, true);
    calls(&mut s, 3, 3, &[2]);
    s.writes(3, "b", OUT);
    calls(&mut s, 3, 3, &[0, 0, 0]);
    s.writes(3, "c", OUT);
    let graph = s.graph();
    let edges = told(&graph);
    let edges: Vec<&str> = edges.lines().map(str::trim).collect();
    let by = |file: &str| edges.iter().find(|edge| edge.ends_with(file)).unwrap();
    assert!(by("Write b@1").starts_with("write_table()"), "{edges:?}");
    assert!(!by("Write c@1").contains("_table()"), "{edges:?}");
}

/// The functions and programs from which content can have come into a file.
fn makers(scene: &Scene, path: &str) -> Vec<String> {
    let graph = scene.graph();
    let is_it = |one: &&Entity| one.path.ends_with(path.as_bytes()) && one.version > 0;
    let file = graph.entities.values().find(is_it).unwrap().id;
    let search = LineageSearch::new(&graph, Follow::default());
    let reached = search.ancestors(GraphNode::Entity(file));
    let names = reached.activities().map(|id| {
        let name = graph.activities[&id].argv.first().unwrap();
        text(name)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn an_earlier_function_that_read_nothing_made_nothing_of_a_later_file() {
    let mut s = plot();
    s.reads(PLOT, "setup");
    calls(&mut s, PLOT, PLOT, &[3]);
    s.writes(PLOT, "log", OUT);
    calls(&mut s, PLOT, PLOT, &[0, 2]);
    s.writes(PLOT, "b.csv", OUT);
    calls(&mut s, PLOT, PLOT, &[0]);
    s.writes(PLOT, "c.csv", OUT);
    assert_eq!(makers(&s, "log"), ["add()", "plot"]);
    assert_eq!(makers(&s, "b.csv"), ["plot", "write_table() in plot.c:40"]);
    assert_eq!(makers(&s, "c.csv"), ["plot"]);
}

#[test]
fn an_earlier_function_that_read_something_can_have_made_a_later_file() {
    let mut s = plot();
    calls(&mut s, PLOT, PLOT, &[2, 1]);
    s.reads(PLOT, "a.csv");
    calls(&mut s, PLOT, PLOT, &[0, 0, 3]);
    s.writes(PLOT, "b.csv", OUT);
    // The caller of the function that read is an ancestor, although it did nothing itself.
    let all = [
        "add()",
        "plot",
        "read_table() in plot.c:10",
        "write_table() in plot.c:40",
    ];
    assert_eq!(makers(&s, "b.csv"), all);
}

#[test]
fn functions_inside_each_other_are_all_ancestors_of_what_the_innermost_writes() {
    let mut s = plot();
    calls(&mut s, PLOT, PLOT, &[3, 1, 2]);
    s.writes(PLOT, "b.csv", OUT);
    calls(&mut s, PLOT, PLOT, &[0]);
    s.writes(PLOT, "c.csv", OUT);
    calls(&mut s, PLOT, PLOT, &[0, 0]);
    s.writes(PLOT, "d.csv", OUT);
    let (outer, inner) = ("add()", "write_table() in plot.c:40");
    let reads = "read_table() in plot.c:10";
    assert_eq!(makers(&s, "b.csv"), [outer, "plot", reads, inner]);
    assert_eq!(makers(&s, "c.csv"), [outer, "plot", reads]);
    assert_eq!(makers(&s, "d.csv"), ["plot"]);
}

/// Arguments or a result, each as `NAME=VALUE`.
fn values(s: &mut Scene, number: u32, returned: bool, values: &[&str]) {
    let op = Op::Values {
        number,
        returned,
        values: values.iter().map(|value| bytes(value)).collect(),
        pointers: Vec::new(),
    };
    s.push(PLOT, Outcome::Done(0), op);
}

#[test]
fn arguments_are_words_of_the_call_and_lead_to_their_files() {
    let mut s = plot();
    s.reads(PLOT, "a.csv");
    calls(&mut s, PLOT, PLOT, &[2]);
    let arguments = ["path=\"b.csv\"", "mode=\"w\"", "depth=1"];
    values(&mut s, 2, false, &arguments);
    s.writes(PLOT, "b.csv", OUT);
    // The values of another function than the active one are not this one's.
    values(&mut s, 1, true, &["return=5"]);
    values(&mut s, 2, true, &["return=7"]);
    calls(&mut s, PLOT, PLOT, &[0]);
    let graph = s.graph();
    let mut activities = graph.activities.values();
    let call = activities.find(|one| one.argv.len() == 4).unwrap();
    let words: Vec<String> = call.argv[1..].iter().map(|word| text(word)).collect();
    assert_eq!(words, arguments);
    let own = graph.extended.iter().filter(|one| one.0 == call.id);
    let attributes = own.filter(|one| one.2 == ATTRIBUTE);
    let attributes: Vec<String> = attributes.map(|one| text(&one.3)).collect();
    let [result, file] = &attributes[..] else {
        panic!("{attributes:?}");
    };
    assert_eq!(result, "return\u{0}7");
    assert!(file.starts_with("file of path\u{0}/"), "{file}");
    assert!(file.ends_with("/b.csv"), "{file}");
}
