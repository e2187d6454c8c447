//! Runs whose log was cut off, by a kill of the recording or a crash of the machine.
#![allow(clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::Reason;
use backstory_eventlog::run::RunEnd;
use backstory_graph::fold;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Certainty, Relation};

/// The uses of two files that a process opened, one to read and one to write. The log has no read,
/// no write and no close of them.
fn uses(end: &RunEnd) -> Vec<(String, Relation, Certainty)> {
    let mut scene = Scene::new(&["edit"]);
    scene.open(2, "a", RDONLY, 3);
    scene.open(2, "b", WRONLY, 4);
    let mut graph = MemorySink::default();
    fold(&scene.header, Some(end), scene.events, &(), &mut graph).unwrap();
    let uses = graph.edges.iter().map(|edge| {
        let name = entity(&graph, edge.entity);
        (name, edge.relation, edge.certainty)
    });
    let mut uses: Vec<_> = uses.filter(|of| of.1 != Relation::Execute).collect();
    uses.sort();
    uses
}

#[test]
fn a_file_that_is_open_when_the_log_is_cut_off_was_possibly_read_or_written() {
    for reason in [Reason::Killed {}, Reason::NoEnd {}] {
        let cut_off = RunEnd {
            incomplete_because: vec![reason.to_string()],
            ..RunEnd::default()
        };
        let found = uses(&cut_off);
        let certainties: Vec<_> = found.iter().map(|of| (of.1, of.2)).collect();
        let possible = Certainty::Possible;
        let expected = [(Relation::Read, possible), (Relation::Write, possible)];
        assert_eq!(certainties, expected, "{found:?}");
    }
}

#[test]
fn an_open_for_reading_alone_counts_as_a_read_in_a_run_that_was_seen_to_its_end() {
    let found = uses(&RunEnd::default());
    assert!(
        found.contains(&("a@0".to_owned(), Relation::Read, Certainty::Seen)),
        "{found:?}"
    );
}
