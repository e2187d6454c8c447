//! Makes one process of a process and all that it started: a step.
//!
//! In: a graph, and the processes that begin a step. Out: the graph in which the first process of
//! each step did all that its processes did. The others are taken, and have no edges.
//!
//! A step passes each of its inputs to each of its outputs, as far as times allow. Some of these
//! paths did not exist before. So a step of several processes *can* have used its inputs: its uses
//! are only possible. Lineage of the other nodes is never lost, and never becomes more certain.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeMap, BTreeSet};

use backstory_graph::lineage::uses;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{ActivityId, Certainty, Edge, Relation};

use crate::taken_nodes::TakenNodes;

/// Merges the processes below each first one. Returns the number of merged processes.
pub(crate) fn merge_steps(
    graph: &mut MemorySink,
    firsts: &BTreeSet<ActivityId>,
    taken: &mut TakenNodes,
) -> usize {
    let steps = steps(graph, firsts);
    let of = |id: ActivityId| steps.get(&id).copied().unwrap_or(id);
    let merged: BTreeSet<ActivityId> = steps.values().copied().into_tree();
    let mixed = with_several_users(graph, &steps);
    let mut edges: BTreeMap<(ActivityId, u32, Relation), Edge> = BTreeMap::new();
    for edge in &graph.edges {
        let mut edge = *edge;
        edge.activity = of(edge.activity);
        if edge.relation.is_use() && mixed.contains(&edge.activity) {
            edge.certainty = Certainty::Possible;
        }
        let key = (edge.activity, edge.entity.0, edge.relation);
        edges
            .entry(key)
            .and_modify(|known| join(known, &edge))
            .or_insert(edge);
    }
    graph.edges = edges.into_values().collect();
    for inform in &mut graph.informs {
        (inform.from, inform.to) = (of(inform.from), of(inform.to));
    }
    graph
        .informs
        .retain(|inform| inform.from != inform.to || !merged.contains(&inform.from));
    graph
        .derived
        .iter_mut()
        .for_each(|one| one.activity = of(one.activity));
    graph
        .extended
        .iter_mut()
        .for_each(|record| record.0 = of(record.0));
    for (id, first) in steps.iter().filter(|(id, first)| id != first) {
        if let Some(last) = graph.activities.get(id).cloned()
            && let Some(step) = graph.activities.get_mut(first)
        {
            step.interval.end = step.interval.end.max(last.interval.end);
            // The process of the step may have executed other programs after the first.
            if last.pid == step.pid && !last.execed {
                (step.exit, step.signal, step.execed) = (last.exit, last.signal, false);
            }
        }
        taken.activities.insert(*id);
    }
    steps.iter().filter(|(id, first)| id != first).count()
}

/// The first process of the step of each process in a step.
fn steps(graph: &MemorySink, firsts: &BTreeSet<ActivityId>) -> BTreeMap<ActivityId, ActivityId> {
    let mut steps = BTreeMap::new();
    for id in graph.activities.keys() {
        let (mut above, mut top) = (Some(*id), None);
        // Bounded by the number of activities, in case the parents form a ring.
        for _ in 0..=graph.activities.len() {
            let Some(here) = above else { break };
            if firsts.contains(&here) {
                top = Some(here);
            }
            above = graph
                .activities
                .get(&here)
                .and_then(|activity| activity.parent);
        }
        if let Some(top) = top {
            steps.insert(*id, top);
        }
    }
    steps
}

/// The steps in which more than one process has edges that lineage follows.
fn with_several_users(
    graph: &MemorySink,
    steps: &BTreeMap<ActivityId, ActivityId>,
) -> BTreeSet<ActivityId> {
    let mut users: BTreeMap<ActivityId, BTreeSet<ActivityId>> = BTreeMap::new();
    let followed = |edge: &&Edge| {
        uses(edge.relation, true) || backstory_graph::lineage::generates(edge.relation)
    };
    let active = graph
        .edges
        .iter()
        .filter(followed)
        .map(|edge| edge.activity);
    let informing = graph
        .informs
        .iter()
        .flat_map(|inform| [inform.from, inform.to]);
    for activity in active.chain(informing) {
        if let Some(first) = steps.get(&activity) {
            users.entry(*first).or_default().insert(activity);
        }
    }
    let several = users.into_iter().filter(|(_, users)| users.len() > 1);
    several.map(|(first, _)| first).collect()
}

/// Joins two edges between the same nodes.
fn join(known: &mut Edge, other: &Edge) {
    known.interval.start = known.interval.start.min(other.interval.start);
    known.interval.end = known.interval.end.max(other.interval.end);
    known.certainty = known.certainty.max(other.certainty);
}
