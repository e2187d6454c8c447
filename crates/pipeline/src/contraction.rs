//! Takes nodes out of a graph, and leaves the lineage between all other nodes as it was.
//!
//! In: a graph, and the nodes to take out. Out: the graph without them, and the new number of each
//! node that stays. A taken node has one of three fates:
//!
//! 1. No information flows through it to a node that stays: it is removed.
//! 2. Another path passes the same information at the same times: it is removed.
//! 3. Otherwise it becomes anonymous. It loses its names, arguments and environment, and keeps
//!    its edges with their times.
//!
//! Invariant: for every pair of nodes that stay, `ancestors` and `descendants` of the graph agree
//! before and after, at all bounds ([`backstory_graph::lineage`]).

use backstory_ordering::SmallCollect;
use std::collections::{BTreeMap, BTreeSet};

use backstory_graph::lineage::forgets;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{ActivityId, ByName, Entity, EntityId, EntityKind};

use crate::flows::{NeededNodes, is_known_elsewhere, needed};
use crate::parallel_flows::redundant;
use crate::renumbering::{Renumbering, related, renumber};
use crate::taken_nodes::TakenNodes;

/// The first words of the name of an anonymous node.
pub const ANONYMOUS: &str = "dropped:";

/// The result of a contraction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contraction {
    /// The new number of each entity that the graph still has, anonymous ones included.
    pub entities: BTreeMap<EntityId, EntityId>,
    /// The new number of each activity that the graph still has.
    pub activities: BTreeMap<ActivityId, ActivityId>,
    /// The former numbers of entities that became anonymous.
    pub anonymous_entities: BTreeSet<EntityId>,
    /// The former numbers of activities that became anonymous.
    pub anonymous_activities: BTreeSet<ActivityId>,
}

/// Takes nodes out of a graph. `made_before` says whether an earlier run made a file that this run
/// found: lineage goes on to that run.
pub fn contract(
    graph: &mut MemorySink,
    taken: &TakenNodes,
    made_before: &dyn Fn(&Entity) -> bool,
) -> Contraction {
    if taken.entities.is_empty() && taken.activities.is_empty() {
        return Contraction {
            entities: graph.entities.keys().map(|id| (*id, *id)).collect(),
            activities: graph.activities.keys().map(|id| (*id, *id)).collect(),
            ..Contraction::default()
        };
    }
    let before = related(graph);
    let mut removed = TakenNodes::default();
    loop {
        let nodes = needed(graph, taken, made_before);
        let gone = not_needed(graph, taken, &nodes);
        let kept = taken.entities.difference(&gone.entities).copied().collect();
        let spare = redundant(graph, &comparable(graph, &kept, made_before));
        detach(graph, &gone, &spare);
        removed.entities.extend(&gone.entities);
        removed.entities.extend(&spare);
        removed.activities.extend(gone.activities);
        // Without a redundant entity, a taken process beside it may have no flow any more.
        if spare.is_empty() {
            break;
        }
    }
    let Renumbering {
        entities,
        activities,
    } = renumber(graph, taken, &removed, &before);
    let has = |id: &&EntityId| entities.contains_key(id);
    let runs = |id: &&ActivityId| activities.contains_key(id);
    let anonymous = TakenNodes {
        entities: taken.entities.iter().filter(has).copied().collect(),
        activities: taken.activities.iter().filter(runs).copied().collect(),
    };
    hide(graph, &anonymous, &entities, &activities, made_before);
    Contraction {
        entities,
        activities,
        anonymous_entities: anonymous.entities,
        anonymous_activities: anonymous.activities,
    }
}

/// The taken nodes that nothing flows through. The first activity of a run stays, and so does an
/// activity that derived a version that stays.
fn not_needed(graph: &MemorySink, taken: &TakenNodes, nodes: &NeededNodes) -> TakenNodes {
    let entities: BTreeSet<EntityId> = taken
        .entities
        .iter()
        .filter(|id| !nodes.entities[id.0 as usize])
        .copied()
        .into_tree();
    let derived = graph.derived.iter();
    let mut pinned: BTreeSet<ActivityId> = derived
        .filter(|one| !entities.contains(&one.entity) && !entities.contains(&one.from))
        .map(|one| one.activity)
        .into_tree();
    pinned.insert(ActivityId(0));
    let activities = taken.activities.iter().copied();
    let gone = |id: &ActivityId| !nodes.activities[id.0 as usize] && !pinned.contains(id);
    TakenNodes {
        activities: activities.filter(gone).collect(),
        entities,
    }
}

/// The entities whose flow is in the edges between activities of this run alone.
fn comparable(
    graph: &MemorySink,
    kept: &BTreeSet<EntityId>,
    made_before: &dyn Fn(&Entity) -> bool,
) -> BTreeSet<EntityId> {
    let derived = graph.derived.iter();
    let derived: BTreeSet<EntityId> = derived.flat_map(|one| [one.entity, one.from]).into_tree();
    let alone = |id: &EntityId| {
        let entity = &graph.entities[id];
        !derived.contains(id)
            && !forgets(entity.kind, &entity.path)
            && !reaches_other_runs(entity, made_before)
    };
    kept.iter().copied().filter(alone).collect()
}

/// True if another run can have made the entity, or can use it.
fn reaches_other_runs(entity: &Entity, made_before: &dyn Fn(&Entity) -> bool) -> bool {
    is_known_elsewhere(entity) && (entity.version > 0 && entity.last || made_before(entity))
}

/// Removes all edges of nodes that leave the graph.
fn detach(graph: &mut MemorySink, gone: &TakenNodes, spare: &BTreeSet<EntityId>) {
    let stays = |id: EntityId| !gone.entities.contains(&id) && !spare.contains(&id);
    let works = |id: ActivityId| !gone.activities.contains(&id);
    graph
        .edges
        .retain(|edge| stays(edge.entity) && works(edge.activity));
    graph
        .informs
        .retain(|inform| works(inform.from) && works(inform.to));
    graph
        .derived
        .retain(|one| stays(one.entity) && stays(one.from) && works(one.activity));
}

/// Removes what tells an anonymous node from another one.
fn hide(
    graph: &mut MemorySink,
    anonymous: &TakenNodes,
    entities: &BTreeMap<EntityId, EntityId>,
    activities: &BTreeMap<ActivityId, ActivityId>,
    made_before: &dyn Fn(&Entity) -> bool,
) {
    let mut number = 0;
    let first = ActivityId(0);
    let directory = graph
        .activities
        .get(&first)
        .map(|activity| activity.cwd.clone());
    for id in anonymous.entities.iter().filter_map(|id| entities.get(id)) {
        let Some(entity) = graph.entities.get_mut(id) else {
            continue;
        };
        number += 1;
        // Other runs find a file by its identity. Memory has no identity.
        if !reaches_other_runs(entity, made_before) {
            entity.kind = EntityKind::Memory;
            entity.ident = None;
            entity.last = false;
        }
        entity.path = name(number);
        entity.aliases = Vec::new();
        entity.by_name = Vec::<ByName>::new();
    }
    for id in anonymous
        .activities
        .iter()
        .filter_map(|id| activities.get(id))
    {
        let Some(activity) = graph.activities.get_mut(id) else {
            continue;
        };
        number += 1;
        activity.exec_path = None;
        activity.argv = vec![name(number)];
        activity.env_set = Vec::new();
        activity.env_unset = Vec::new();
        if let Some(directory) = &directory {
            activity.cwd.clone_from(directory);
        }
    }
}

fn name(number: usize) -> backstory_eventlog::event::Bytes {
    format!("{ANONYMOUS}{number}").into_bytes().into()
}
