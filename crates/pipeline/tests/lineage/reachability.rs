//! Filters that take nodes out of a graph leave the lineage of all other nodes as it was.
//!
//! In: random graphs, with intervals in any order and at all certainties, and random sets of nodes
//! to take out. The lineage of `backstory_graph` is the judge, before and after.

use std::collections::BTreeMap;

use backstory_eventlog::event::Time;
use backstory_graph::lineage::{Follow, GraphNode, LineageSearch};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{ActivityId, EntityId};
use backstory_pipeline::{Contraction, TakenNodes, contract};
use proptest::prelude::*;

use super::graphs::{self, RandomGraph};

const BOUNDS: [Follow; 4] = [
    Follow {
        possible: true,
        lookups: true,
    },
    Follow {
        possible: true,
        lookups: false,
    },
    Follow {
        possible: false,
        lookups: true,
    },
    Follow {
        possible: false,
        lookups: false,
    },
];

type Reach = BTreeMap<(GraphNode, GraphNode), Time>;

/// All pairs of nodes of which `new` gives the name after the contraction, with the best time.
fn reach(
    graph: &MemorySink,
    follow: Follow,
    forth: bool,
    new: &dyn Fn(GraphNode) -> Option<GraphNode>,
) -> Reach {
    let lineage = LineageSearch::new(graph, follow);
    let entities = graph.entities.keys().map(|id| GraphNode::Entity(*id));
    let activities = graph.activities.keys().map(|id| GraphNode::Activity(*id));
    let mut found = Reach::new();
    for node in entities.chain(activities) {
        let Some(from) = new(node) else { continue };
        let reached = match forth {
            true => lineage.descendants(node),
            false => lineage.ancestors(node),
        };
        for (other, time) in reached.nodes {
            if let Some(to) = new(other).filter(|_| other != node) {
                found.insert((from, to), time);
            }
        }
    }
    found
}

/// The new name of a node that was not taken.
fn name_after(done: &Contraction, taken: &TakenNodes, node: GraphNode) -> Option<GraphNode> {
    match node {
        GraphNode::Entity(id) if !taken.entities.contains(&id) => {
            Some(GraphNode::Entity(*done.entities.get(&id)?))
        }
        GraphNode::Activity(id) if !taken.activities.contains(&id) => {
            Some(GraphNode::Activity(*done.activities.get(&id)?))
        }
        _ => None,
    }
}

fn compared(random: &RandomGraph) -> Result<(), TestCaseError> {
    let before = random.graph();
    let mut after = random.graph();
    let taken = TakenNodes {
        entities: random.taken_entities().into_iter().map(EntityId).collect(),
        activities: random
            .taken_activities()
            .into_iter()
            .map(ActivityId)
            .collect(),
    };
    let done = contract(&mut after, &taken, &|entity| random.is_made_before(entity));
    for follow in BOUNDS {
        for forth in [false, true] {
            let old = reach(&before, follow, forth, &|node| {
                name_after(&done, &taken, node)
            });
            let hidden: Vec<GraphNode> = done
                .anonymous_entities
                .iter()
                .map(|id| GraphNode::Entity(done.entities[id]))
                .chain(
                    done.anonymous_activities
                        .iter()
                        .map(|id| GraphNode::Activity(done.activities[id])),
                )
                .collect();
            let new = reach(&after, follow, forth, &|node| {
                (!hidden.contains(&node)).then_some(node)
            });
            prop_assert_eq!(&old, &new, "{:?} forth {}: {:?}", follow, forth, done);
        }
    }
    // A node that stays and is not in the graph any more was in no lineage of another one.
    let lineage = LineageSearch::new(&before, BOUNDS[0]);
    for id in before
        .entities
        .keys()
        .filter(|id| !taken.entities.contains(id))
    {
        if !done.entities.contains_key(id) {
            let reached = lineage.descendants(GraphNode::Entity(*id));
            let staying = |node: &&GraphNode| name_after(&done, &taken, **node).is_some();
            prop_assert_eq!(reached.nodes.keys().filter(staying).count(), 0);
        }
    }
    sound(&after)?;
    Ok(())
}

/// Numbers are dense, and every reference names a node.
fn sound(graph: &MemorySink) -> Result<(), TestCaseError> {
    let (entities, activities) = (graph.entities.len() as u32, graph.activities.len() as u32);
    for (at, (id, entity)) in (0..).zip(&graph.entities) {
        prop_assert!(id.0 == at && entity.id == *id);
        prop_assert!(entity.previous.is_none_or(|previous| previous.0 < entities));
    }
    for (at, (id, activity)) in (0..).zip(&graph.activities) {
        prop_assert!(id.0 == at && activity.id == *id);
        prop_assert!(activity.parent.is_none_or(|parent| parent.0 < activities));
    }
    let edges = graph.edges.iter();
    prop_assert!(
        edges
            .clone()
            .all(|edge| edge.entity.0 < entities && edge.activity.0 < activities)
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn what_filters_take_leaves_the_lineage_of_all_other_nodes_as_it_was(random in graphs::any_graph()) {
        compared(&random)?;
    }

    #[test]
    fn a_file_between_two_runs_stays_known_to_both(random in graphs::any_graph()) {
        let mut after = random.graph();
        let taken = TakenNodes {
            entities: random.graph().entities.keys().copied().collect(),
            ..TakenNodes::default()
        };
        let done = contract(&mut after, &taken, &|entity| random.is_made_before(entity));
        for (id, entity) in &random.graph().entities {
            let left = entity.ident.is_some() && entity.last && entity.version > 0;
            let written = random.is_written(*id);
            if left && written {
                let new = &after.entities[&done.entities[id]];
                prop_assert_eq!(new.ident, entity.ident);
                prop_assert!(new.last && new.path.starts_with(b"dropped:"));
            }
        }
    }
}
