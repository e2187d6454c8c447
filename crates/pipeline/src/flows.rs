//! Which nodes pass information on to which others, without regard to time.
//!
//! In: a graph, and the nodes that filters took. Out: the taken nodes that information can flow
//! through, from a node that stays to another one that stays. No other taken node can be part of
//! the lineage of nodes that stay.
//!
//! A later run can read a file that this run left. An earlier run can have made a file that this
//! run read. So both ends of a run count as nodes that stay.

use backstory_graph::lineage::{forgets, generates, informs};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{ActivityId, Entity, EntityId, EntityKind};

use crate::taken_nodes::TakenNodes;

/// The taken nodes that the graph still needs.
#[derive(Debug, Default)]
pub(crate) struct NeededNodes {
    /// By the number of the entity.
    pub entities: Vec<bool>,
    /// By the number of the activity.
    pub activities: Vec<bool>,
}

/// True if another run can know the entity by its identity.
pub(crate) fn is_known_elsewhere(entity: &Entity) -> bool {
    use EntityKind::{Directory, File, Symlink};
    entity.ident.is_some() && matches!(entity.kind, File | Directory | Symlink)
}

/// Numbers for all nodes: entities first.
struct Numbers {
    entities: usize,
}

impl Numbers {
    fn entity(&self, id: EntityId) -> usize {
        id.0 as usize
    }

    fn activity(&self, id: ActivityId) -> usize {
        self.entities + id.0 as usize
    }
}

/// Finds the taken nodes on a path between two nodes that stay. `made_before` says whether an
/// earlier run made a file that this run found.
pub(crate) fn needed(
    graph: &MemorySink,
    taken: &TakenNodes,
    made_before: &dyn Fn(&Entity) -> bool,
) -> NeededNodes {
    let numbers = Numbers {
        entities: graph.entities.len(),
    };
    let all = numbers.entities + graph.activities.len();
    let (mut forth, mut back) = (vec![Vec::new(); all], vec![Vec::new(); all]);
    each_flow(graph, taken, &numbers, &mut |from, to| {
        forth[from].push(to);
        back[to].push(from);
    });
    let mut is_taken = vec![false; all];
    for id in &taken.entities {
        is_taken[numbers.entity(*id)] = true;
    }
    for id in &taken.activities {
        is_taken[numbers.activity(*id)] = true;
    }
    let stays = |node: &usize| !is_taken[*node];
    let (mut sources, mut sinks): (Vec<usize>, Vec<usize>) = (
        (0..all).filter(stays).collect(),
        (0..all).filter(stays).collect(),
    );
    for id in &taken.entities {
        let entity = &graph.entities[id];
        if !is_known_elsewhere(entity) {
            continue;
        }
        let came = entity.version == 0 && made_before(entity);
        if came {
            sources.push(numbers.entity(*id));
        }
        if entity.last && (entity.version > 0 || came) {
            sinks.push(numbers.entity(*id));
        }
    }
    let (after, before) = (reached(&forth, sources), reached(&back, sinks));
    let needed = |node: usize| is_taken[node] && after[node] && before[node];
    NeededNodes {
        entities: (0..numbers.entities).map(needed).collect(),
        activities: (numbers.entities..all).map(needed).collect(),
    }
}

/// Calls `flow` for each edge along which information flows, from its origin to its end. Look-ups
/// count. A device without a memory passes nothing on.
fn each_flow(
    graph: &MemorySink,
    taken: &TakenNodes,
    numbers: &Numbers,
    flow: &mut dyn FnMut(usize, usize),
) {
    let passes = |id: EntityId| {
        let entity = &graph.entities[&id];
        !taken.entities.contains(&id) || !forgets(entity.kind, &entity.path)
    };
    for edge in graph.edges.iter().filter(|edge| passes(edge.entity)) {
        let (entity, activity) = (numbers.entity(edge.entity), numbers.activity(edge.activity));
        if edge.relation.is_use() {
            flow(entity, activity);
        } else if generates(edge.relation) {
            flow(activity, entity);
        }
    }
    for derived in &graph.derived {
        if passes(derived.from) && passes(derived.entity) {
            flow(numbers.entity(derived.from), numbers.entity(derived.entity));
        }
    }
    for inform in graph.informs.iter().filter(|inform| informs(inform.why)) {
        flow(numbers.activity(inform.from), numbers.activity(inform.to));
    }
}

/// All nodes that can be reached from some, themselves included.
fn reached(next: &[Vec<usize>], from: Vec<usize>) -> Vec<bool> {
    let mut found = vec![false; next.len()];
    let mut pending = from;
    while let Some(node) = pending.pop() {
        if !std::mem::replace(&mut found[node], true) {
            pending.extend(next[node].iter().filter(|node| !found[**node]));
        }
    }
    found
}
