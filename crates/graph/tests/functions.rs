//! Calls of functions: which of them become activities, and what belongs to them.
#![allow(dead_code, clippy::unwrap_used)]

mod common;

use backstory_eventlog::event::{FunctionStep, Op, Outcome, Pid};
use backstory_graph::marks::ATTRIBUTE;
use common::*;

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
         plot#5 Read memory:2@4
         read_table() in plot.c:10#2 Read a.csv@0
         read_table() in plot.c:10#2 Read memory:2@1
         read_table() in plot.c:10#2 Write memory:2@2
         write_table() in plot.c:40#4 Read memory:2@3
         write_table() in plot.c:40#4 Write b.csv@1
         write_table() in plot.c:40#4 Write memory:2@4",
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
