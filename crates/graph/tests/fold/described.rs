//! Imported descriptions: their statements are the graph, and hostile ones add nothing.
#![allow(dead_code, clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::event::{Described, Op, Outcome, WordRole};
use backstory_graph::model::{Certainty, EntityKind, Informed, Relation};

/// A run without processes.
fn scene() -> Scene {
    let mut scene = Scene::new(&["import"]);
    scene.events.clear();
    scene
}

fn say(s: &mut Scene, statement: Described) {
    s.kernel(9, Outcome::Done(0), Op::Described(statement));
}

fn activity(number: u32, parent: Option<u32>) -> Described {
    Described::Activity {
        number,
        parent,
        epoch: 1,
        start: 10,
        end: 20,
        status: Some(3 << 8),
        is_part: false,
        execed: false,
    }
}

fn word(activity: u32, text: &str, more: bool) -> Described {
    let (role, text) = (WordRole::Argument, bytes(text));
    Described::Word {
        activity,
        role,
        text,
        more,
    }
}

fn entity(number: u32, path: &str, previous: Option<u32>) -> Described {
    Described::Entity {
        number,
        kind: EntityKind::File.number(),
        version: number,
        previous,
        last: true,
        path: bytes(path),
    }
}

fn edge(activity: u32, entity: u32, relation: u8) -> Described {
    Described::Edge {
        activity,
        entity,
        relation,
        is_certain: false,
        start: 11,
        end: 12,
    }
}

#[test]
fn the_graph_is_what_the_statements_say() {
    let mut s = scene();
    say(&mut s, activity(0, None));
    for (text, more) in [("so", true), ("rt", false), ("in", false)] {
        say(&mut s, word(0, text, more));
    }
    say(&mut s, activity(1, Some(0)));
    say(&mut s, entity(0, "/in", None));
    say(&mut s, entity(1, "/in", Some(0)));
    say(&mut s, edge(0, 1, Relation::Read.number()));
    let (from, to, why, time) = (0, 1, Informed::Fork.number(), 11);
    say(
        &mut s,
        Described::Inform {
            from,
            to,
            why,
            time,
        },
    );
    let graph = s.graph();
    let first = graph.activities.values().next().unwrap();
    assert_eq!(*first.argv, [bytes("sort"), bytes("in")]);
    assert_eq!((first.exit, first.pid), (Some(3), 9));
    let second = graph.activities.values().nth(1).unwrap();
    assert_eq!(second.parent, Some(first.id));
    let last = graph.entities.values().nth(1).unwrap();
    assert_eq!((last.version, last.kind), (1, EntityKind::File));
    assert!(last.previous.is_some());
    let edge = graph.edges[0];
    assert_eq!(
        (edge.relation, edge.certainty),
        (Relation::Read, Certainty::Possible)
    );
    assert_eq!((edge.interval.start, edge.interval.end), (11, 12));
    assert_eq!(graph.informs.len(), 1);
    assert!(graph.unknown.is_empty(), "{:?}", graph.unknown);
}

#[test]
fn a_statement_about_a_node_that_was_not_stated_adds_nothing() {
    let hostile = [
        activity(2, None),
        entity(4_000_000_000, "/x", None),
        edge(0, 7, Relation::Read.number()),
        edge(7, 0, Relation::Read.number()),
        edge(0, 0, 200),
        word(3, "x", false),
        Described::Inform {
            from: 0,
            to: 9,
            why: 0,
            time: 0,
        },
        Described::Inform {
            from: 0,
            to: 0,
            why: 9,
            time: 0,
        },
        Described::Derived {
            entity: 0,
            from: 9,
            activity: 0,
            time: 0,
        },
    ];
    for statement in hostile {
        let mut s = scene();
        say(&mut s, activity(0, None));
        say(&mut s, entity(0, "/a", None));
        say(&mut s, statement.clone());
        let graph = s.graph();
        assert_eq!(
            graph.activities.len() + graph.entities.len(),
            2,
            "{statement:?}"
        );
        assert!(
            graph.edges.is_empty() && graph.informs.is_empty(),
            "{statement:?}"
        );
        assert_eq!(graph.unknown.len(), 1, "{statement:?}");
    }
}
