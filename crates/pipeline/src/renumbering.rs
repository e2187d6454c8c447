//! Gives the nodes that stay in a graph dense numbers again, and leads references past the others.
//!
//! In: a graph whose edges name only nodes that stay. Out: the same graph with new numbers.
//!
//! | reference | past a removed node |
//! | --- | --- |
//! | the parent of an activity | the nearest ancestor that stays |
//! | the environment of an activity | the changes of taken ancestors are added to its own |
//! | the version before an entity | the nearest earlier version that was not taken |
//! | a record about standard descriptors | a taken entity becomes unknown |

use backstory_ordering::SmallCollect;
use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Bytes;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Activity, ActivityId, Entity, EntityId};
use backstory_graph::{connection_traffic, standard};

use crate::taken_nodes::TakenNodes;

/// The new numbers of the nodes that stay.
#[derive(Debug, Default)]
pub(crate) struct Renumbering {
    pub entities: BTreeMap<EntityId, EntityId>,
    pub activities: BTreeMap<ActivityId, ActivityId>,
}

/// Removes nodes, and numbers the others. `taken` are the removed nodes and those that become
/// anonymous. `before` are the entities that had an edge before nodes were taken.
pub(crate) fn renumber(
    graph: &mut MemorySink,
    taken: &TakenNodes,
    removed: &TakenNodes,
    before: &BTreeSet<EntityId>,
) -> Renumbering {
    let named = related(graph);
    // Their processes are all removed. They are in no lineage.
    let alone: BTreeSet<EntityId> = before.difference(&named).copied().into_tree();
    let stays = |id: &&EntityId| !removed.entities.contains(id) && !alone.contains(id);
    let entities = graph.entities.keys().filter(stays);
    let works = |id: &&ActivityId| !removed.activities.contains(id);
    let activities = graph.activities.keys().filter(works);
    let numbers = Renumbering {
        entities: (0..)
            .zip(entities)
            .map(|(new, old)| (*old, EntityId(new)))
            .collect(),
        activities: (0..)
            .zip(activities)
            .map(|(new, old)| (*old, ActivityId(new)))
            .collect(),
    };
    records(graph, taken, &numbers);
    edges(graph, &numbers);
    let old = std::mem::take(&mut graph.activities);
    graph.activities = old
        .values()
        .filter_map(|activity| moved_activity(activity, &old, taken, &numbers))
        .map(|activity| (activity.id, activity))
        .collect();
    let old = std::mem::take(&mut graph.entities);
    graph.entities = old
        .values()
        .filter_map(|entity| moved_entity(entity, &old, taken, &numbers))
        .map(|entity| (entity.id, entity))
        .collect();
    numbers
}

/// The entities that edges name.
pub(crate) fn related(graph: &MemorySink) -> BTreeSet<EntityId> {
    let edges = graph.edges.iter().map(|edge| edge.entity);
    let derived = graph.derived.iter();
    let derived = derived.flat_map(|one| [one.entity, one.from]);
    edges.chain(derived).collect()
}

fn edges(graph: &mut MemorySink, numbers: &Renumbering) {
    for edge in &mut graph.edges {
        edge.entity = numbers.entities[&edge.entity];
        edge.activity = numbers.activities[&edge.activity];
    }
    for inform in &mut graph.informs {
        inform.from = numbers.activities[&inform.from];
        inform.to = numbers.activities[&inform.to];
    }
    for one in &mut graph.derived {
        one.entity = numbers.entities[&one.entity];
        one.from = numbers.entities[&one.from];
        one.activity = numbers.activities[&one.activity];
    }
}

fn moved_activity(
    activity: &Activity,
    all: &BTreeMap<ActivityId, Activity>,
    taken: &TakenNodes,
    numbers: &Renumbering,
) -> Option<Activity> {
    let mut moved = activity.clone();
    moved.id = *numbers.activities.get(&activity.id)?;
    let mut above = activity.parent;
    let mut is_direct = true;
    // Bounded by the number of activities, in case the parents form a ring.
    for _ in 0..all.len() {
        let Some(parent) = above.and_then(|id| all.get(&id)) else {
            break;
        };
        let is_taken = taken.activities.contains(&parent.id);
        if is_direct && is_taken {
            add_environment(&mut moved, parent);
        } else {
            is_direct = false;
        }
        if numbers.activities.contains_key(&parent.id) && !is_direct {
            break;
        }
        above = parent.parent;
    }
    moved.parent = nearest(activity.parent, all, numbers);
    Some(moved)
}

fn nearest(
    parent: Option<ActivityId>,
    all: &BTreeMap<ActivityId, Activity>,
    numbers: &Renumbering,
) -> Option<ActivityId> {
    let mut above = parent;
    for _ in 0..all.len() {
        let id = above?;
        if let Some(new) = numbers.activities.get(&id) {
            return Some(*new);
        }
        above = all.get(&id)?.parent;
    }
    None
}

/// Adds the changes that a parent made to its environment, unless the child made them undone.
fn add_environment(child: &mut Activity, parent: &Activity) {
    let name = |entry: &Bytes| -> Bytes {
        let end = entry.iter().position(|&byte| byte == b'=');
        entry[..end.unwrap_or(entry.len())].into()
    };
    let is_own = |wanted: &Bytes| {
        child.env_set.iter().any(|own| name(own) == *wanted) || child.env_unset.contains(wanted)
    };
    let set = parent.env_set.iter().filter(|entry| !is_own(&name(entry)));
    let unset = parent.env_unset.iter().filter(|entry| !is_own(entry));
    let (set, unset): (Vec<Bytes>, Vec<Bytes>) = (set.cloned().collect(), unset.cloned().collect());
    child.env_set.extend(set);
    child.env_unset.extend(unset);
}

fn moved_entity(
    entity: &Entity,
    all: &BTreeMap<EntityId, Entity>,
    taken: &TakenNodes,
    numbers: &Renumbering,
) -> Option<Entity> {
    let mut moved = entity.clone();
    moved.id = *numbers.entities.get(&entity.id)?;
    moved.previous = None;
    let mut before = entity
        .previous
        .filter(|_| !taken.entities.contains(&entity.id));
    for _ in 0..all.len() {
        let Some(id) = before else { break };
        if let Some(new) = numbers
            .entities
            .get(&id)
            .filter(|_| !taken.entities.contains(&id))
        {
            moved.previous = Some(*new);
            break;
        }
        before = all.get(&id).and_then(|entity| entity.previous);
    }
    Some(moved)
}

/// Renumbers the extended records, and removes those of taken nodes.
fn records(graph: &mut MemorySink, taken: &TakenNodes, numbers: &Renumbering) {
    let kept = |id: EntityId| {
        let new = numbers.entities.get(&id).copied();
        new.filter(|_| !taken.entities.contains(&id))
    };
    let names = |path: &[u8]| {
        let mut hidden = taken
            .entities
            .iter()
            .filter_map(|id| graph.entities.get(id));
        hidden.any(|entity| *entity.path == *path)
    };
    let records = std::mem::take(&mut graph.extended);
    graph.extended = records
        .into_iter()
        .filter_map(|(activity, time, kind, payload)| {
            let new = *numbers.activities.get(&activity)?;
            if taken.activities.contains(&activity) {
                return None;
            }
            let traffic = connection_traffic(&kind, &payload);
            if traffic.is_some_and(|traffic| names(traffic.address)) {
                return None;
            }
            let payload = match &kind[..] {
                standard::KIND => standard_ends(&payload, &kept).unwrap_or(payload),
                standard::GIVEN => {
                    let ids: Vec<EntityId> =
                        standard::decode_given(&payload).filter_map(kept).collect();
                    standard::encode_given(&ids)
                }
                _ => payload,
            };
            Some((new, time, kind, payload))
        })
        .collect();
}

fn standard_ends(payload: &[u8], kept: &dyn Fn(EntityId) -> Option<EntityId>) -> Option<Vec<u8>> {
    let ends = standard::decode(payload)?.all().map(|end| {
        let end = end?;
        Some(standard::StandardEnd {
            entity: kept(end.entity)?,
            ..end
        })
    });
    Some(standard::encode(&ends.into()))
}
