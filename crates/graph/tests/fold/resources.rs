//! Activities that a source names by itself, and things with versions.
#![allow(dead_code, clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::event::{Op, Outcome, Pid, ResourceAccess, UNNUMBERED};
use backstory_graph::model::{Certainty, EntityKind, Relation};

const TABLE: &str = "postgres://localhost:5432/bank/public.accounts";

fn work(s: &mut Scene, activity: Pid, inside: Option<Pid>, text: &str) {
    let what = bytes("transaction");
    let text = bytes(text);
    s.kernel(activity, Outcome::Done(0), Op::Work { inside, what, text });
}

fn used(s: &mut Scene, activity: Pid, access: ResourceAccess, name: &str, outcome: Outcome) {
    let name = bytes(name);
    let number = 0;
    s.kernel(
        activity,
        outcome,
        Op::Resource {
            number,
            access,
            name,
        },
    );
}

#[test]
fn a_thing_has_a_version_for_each_activity_that_changed_it() {
    let (first, second) = (UNNUMBERED + 1, UNNUMBERED + 2);
    let mut s = Scene::new(&["watch"]);
    let done = Outcome::Done(0);
    work(&mut s, 7, None, "session");
    work(&mut s, first, Some(7), "INSERT");
    used(&mut s, first, ResourceAccess::Change, TABLE, done);
    work(&mut s, second, Some(7), "UPDATE");
    used(&mut s, second, ResourceAccess::Change, TABLE, done);
    used(&mut s, second, ResourceAccess::Change, TABLE, done);
    let graph = s.graph();
    let mut versions: Vec<u32> = graph
        .entities
        .values()
        .filter(|entity| entity.kind == EntityKind::Resource)
        .map(|entity| entity.version)
        .collect();
    versions.sort_unstable();
    assert_eq!(versions, [0, 1, 2]);
    assert_eq!(
        graph.derived.len(),
        2,
        "each version has content of the one before"
    );
    let activity = |pid: Pid| {
        graph
            .activities
            .values()
            .find(|one| one.pid == pid)
            .unwrap()
    };
    assert_eq!(activity(first).parent, Some(activity(7).id));
    assert_eq!(
        *activity(second).argv,
        [bytes("transaction"), bytes("UPDATE")]
    );
}

#[test]
fn a_new_content_derives_from_none_and_an_unsure_use_is_possible() {
    let one = UNNUMBERED + 1;
    let mut s = Scene::new(&["watch"]);
    work(&mut s, one, None, "");
    used(&mut s, one, ResourceAccess::Write, TABLE, Outcome::Done(0));
    used(
        &mut s,
        one,
        ResourceAccess::Read,
        "tcp:127.0.0.1:5432",
        Outcome::Unknown,
    );
    let graph = s.graph();
    assert!(graph.derived.is_empty());
    let unsure: Vec<Relation> = graph
        .edges
        .iter()
        .filter(|edge| edge.certainty == Certainty::Possible)
        .map(|edge| edge.relation)
        .collect();
    assert_eq!(unsure, [Relation::Read]);
    let kinds: Vec<EntityKind> = graph.entities.values().map(|entity| entity.kind).collect();
    assert!(kinds.contains(&EntityKind::Socket), "{kinds:?}");
}
