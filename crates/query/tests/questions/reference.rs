//! Lineage from a store is the lineage that `backstory_graph` defines, on random graphs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use backstory_graph::lineage::{self, Follow};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::*;
use backstory_query::answer::{Lineage, Node, Scope};
use backstory_query::{ancestry, influence};
use backstory_store::{ActivityKey, EntityKey, Home, MemoryStore, SqliteStore, Store};
use proptest::prelude::*;

use crate::graph::*;

const RELATIONS: [Relation; 11] = [
    Relation::Read,
    Relation::Write,
    Relation::Read,
    Relation::Write,
    Relation::Execute,
    Relation::Rename,
    Relation::Make,
    Relation::Stat,
    Relation::Missing,
    Relation::Delete,
    Relation::Meta,
];

fn graph() -> impl Strategy<Value = Graph> {
    let edge = (
        0u32..8,
        0u32..12,
        0usize..11,
        0i64..30,
        0i64..12,
        any::<bool>(),
    );
    let edges = prop::collection::vec(edge, 0..40);
    let informs = prop::collection::vec((0u32..8, 0u32..8, 0u8..4, 0i64..30), 0..8);
    let derived = prop::collection::vec((0u32..12, 0u32..12, 0u32..8, 0i64..30), 0..5);
    (edges, informs, derived).prop_map(|(edges, informs, derived)| {
        let mut graph = Graph::default();
        for pid in 0..8 {
            graph.activity(None, pid, "/p", 0);
        }
        for i in 0..12 {
            graph.file(&nowhere(&format!("e{i}")), 1, None);
        }
        let mut done = BTreeSet::new();
        for (activity, entity, relation, start, length, possible) in edges {
            if done.insert((activity, entity, RELATIONS[relation])) {
                graph.edge(
                    ActivityId(activity),
                    EntityId(entity),
                    RELATIONS[relation],
                    start,
                    start + length,
                );
                if possible {
                    graph.only_possible();
                }
            }
        }
        for (from, to, why, time) in informs {
            let why = [
                Informed::Fork,
                Informed::Exec,
                Informed::Wait,
                Informed::Signal,
            ][usize::from(why)];
            graph.informs.push(Inform {
                from: ActivityId(from),
                to: ActivityId(to),
                why,
                time,
            });
        }
        for (from, to, activity, time) in derived {
            graph.derived(ActivityId(activity), EntityId(from), EntityId(to), time);
        }
        graph
    })
}

fn as_reference(graph: &Graph) -> MemorySink {
    let mut sink = MemorySink::default();
    graph
        .activities
        .iter()
        .for_each(|a| sink.activity(a).unwrap());
    graph.entities.iter().for_each(|e| sink.entity(e).unwrap());
    sink.edges = graph.edges.clone();
    sink.informs = graph.informs.clone();
    sink.derived = graph.derived.clone();
    sink
}

fn reached(lineage: &Lineage) -> BTreeSet<lineage::GraphNode> {
    let node = |node: &Node| match node {
        Node::Entity { id, .. } => lineage::GraphNode::Entity(EntityKey(*id).local()),
        Node::Activity { id, .. } => lineage::GraphNode::Activity(ActivityKey(*id).local()),
    };
    lineage.nodes.iter().map(node).collect()
}

fn compare(graph: &Graph, store: &dyn Store, possible: bool, lookups: bool) {
    let sink = as_reference(graph);
    let reference = lineage::LineageSearch::new(&sink, Follow { possible, lookups });
    let scope = Scope {
        possible,
        lookups,
        ..Scope::default()
    };
    for entity in &graph.entities {
        let path = PathBuf::from(String::from_utf8(entity.path.to_vec()).unwrap());
        let root = lineage::GraphNode::Entity(entity.id);
        let wanted: BTreeSet<_> = reference.ancestors(root).nodes.into_keys().collect();
        assert_eq!(
            reached(&ancestry(store, &path, &scope).unwrap()),
            wanted,
            "ancestors of {path:?}"
        );
        let wanted: BTreeSet<_> = reference.descendants(root).nodes.into_keys().collect();
        assert_eq!(
            reached(&influence(store, &path, &scope).unwrap()),
            wanted,
            "descendants of {path:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_stores_lineage_is_the_defined_one(graph in graph(), possible: bool, lookups: bool) {
        let mut memory = MemoryStore::default();
        graph.append(&mut memory, "run00000", 0);
        compare(&graph, &memory, possible, lookups);
    }

    #[test]
    fn a_depth_only_leaves_out_and_a_great_one_nothing(graph in graph(), depth in 0usize..4) {
        let mut store = MemoryStore::default();
        graph.append(&mut store, "run00000", 0);
        for entity in &graph.entities {
            let path = PathBuf::from(String::from_utf8(entity.path.to_vec()).unwrap());
            let all = Scope { possible: true, ..Scope::default() };
            let whole = reached(&ancestry(&store, &path, &all).unwrap());
            let near = ancestry(&store, &path, &Scope { depth: Some(depth), ..all.clone() }).unwrap();
            prop_assert!(reached(&near).is_subset(&whole));
            prop_assert_eq!(near.cut, reached(&near) != whole || near.cut);
            let far = ancestry(&store, &path, &Scope { depth: Some(100), ..all }).unwrap();
            prop_assert_eq!(reached(&far), whole);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_answers_as_defined(graph in graph()) {
        let tmp = tempfile::tempdir().unwrap();
        let mut sqlite = SqliteStore::open(&Home::open(tmp.path()).unwrap()).unwrap();
        graph.append(&mut sqlite, "run00000", 0);
        compare(&graph, &sqlite, true, true);
        compare(&graph, &sqlite, false, false);
    }
}
