//! An exec epoch while it lives, and the edges that it has collected.
//!
//! Invariant: there is one edge for each entity and relation. A repeated use widens the interval of
//! its edge and strengthens its certainty.

use std::sync::Arc;

use backstory_eventlog::event::{Bytes, Pid, Time, Via};
use rustc_hash::FxHashMap;

use crate::lineage::uses;
use crate::model::{ActivityId, Certainty, Edge, EntityId, Informed, Interval, Relation};
use crate::object::ObjectId;
use crate::serial::Serial;

/// An edge between an epoch and an entity.
#[derive(Debug, Clone, Copy)]
pub struct EntityUse {
    pub entity: EntityId,
    pub relation: Relation,
    pub interval: Interval,
    pub certainty: Certainty,
    pub via: Via,
    /// The only sign of this write is an open that truncated or made the file.
    pub opened: bool,
}

impl EntityUse {
    /// The edge of an epoch with this node.
    pub fn edge(&self, activity: ActivityId) -> Edge {
        Edge {
            activity,
            entity: self.entity,
            relation: self.relation,
            interval: self.interval,
            certainty: self.certainty,
            via: self.via,
        }
    }
}

/// Edges, one per entity and relation, in the order of their first appearance.
#[derive(Debug, Clone, Default)]
pub struct EpochEdges {
    /// Edges whose entity has no lower id than any entity before. Bisection finds them, so they
    /// need no index.
    ascending: Vec<EntityUse>,
    /// The other edges, each with the number of ascending edges that came before it.
    others: Vec<(u32, EntityUse)>,
    index: FxHashMap<u64, u32>,
}

impl EpochEdges {
    /// Adds an edge, or joins it with the edge for the same entity and relation.
    pub fn add(&mut self, new: EntityUse) {
        if let Some(old) = self.find(new.entity, new.relation) {
            old.interval.start = old.interval.start.min(new.interval.start);
            old.interval.end = old.interval.end.max(new.interval.end);
            old.opened = match new.certainty {
                Certainty::Seen => {
                    new.opened && (old.opened || old.certainty == Certainty::Possible)
                }
                Certainty::Possible => old.opened,
            };
            if new.certainty > old.certainty {
                (old.certainty, old.via) = (new.certainty, new.via);
            }
        } else if self
            .ascending
            .last()
            .is_none_or(|last| last.entity <= new.entity)
        {
            self.ascending.push(new);
        } else {
            self.index
                .insert(key(new.entity, new.relation), self.others.len() as u32);
            self.others.push((self.ascending.len() as u32, new));
        }
    }

    /// Makes an edge `Seen`, if it exists.
    pub fn confirm(&mut self, entity: EntityId, relation: Relation) {
        if let Some(edge) = self.find(entity, relation) {
            edge.certainty = Certainty::Seen;
        }
    }

    /// All edges, in the order of their first appearance.
    pub fn iter(&self) -> impl Iterator<Item = &EntityUse> {
        let (mut at, mut others) = (0, self.others.iter().peekable());
        std::iter::from_fn(move || {
            if let Some((_, edge)) = others.next_if(|(before, _)| *before as usize <= at) {
                return Some(edge);
            }
            at += 1;
            self.ascending.get(at - 1)
        })
    }

    /// The edge for an entity and a relation.
    pub fn of(&mut self, entity: EntityId, relation: Relation) -> Option<EntityUse> {
        self.find(entity, relation).copied()
    }

    fn find(&mut self, entity: EntityId, relation: Relation) -> Option<&mut EntityUse> {
        // Most edges are with an entity that this epoch has not met before.
        let end = match self.ascending.last() {
            Some(last) if last.entity >= entity => {
                self.ascending.partition_point(|e| e.entity <= entity)
            }
            _ => return None,
        };
        let same = self.ascending[..end].iter().rev();
        let back = same
            .take_while(|e| e.entity == entity)
            .position(|e| e.relation == relation);
        if let Some(back) = back {
            return self.ascending.get_mut(end - 1 - back);
        }
        let at = *self.index.get(&key(entity, relation))?;
        self.others.get_mut(at as usize).map(|(_, edge)| edge)
    }
}

fn key(entity: EntityId, relation: Relation) -> u64 {
    u64::from(entity.0) << 8 | relation as u64
}

/// Why, and from which epoch, an epoch began.
#[derive(Debug, Clone, Copy)]
pub struct EpochOrigin {
    /// The epoch it came from.
    pub from: Serial,
    /// Fork or exec.
    pub why: Informed,
    /// When.
    pub time: Time,
}

/// The version that a standard descriptor led to.
#[derive(Debug, Clone, Copy, Eq)]
pub struct Outlet {
    pub object: ObjectId,
    pub number: u32,
    /// The open kept the content that the file had.
    pub keeps: bool,
    /// The node of the version, if it had one by then.
    pub entity: Option<EntityId>,
}

impl PartialEq for Outlet {
    fn eq(&self, other: &Outlet) -> bool {
        (self.object, self.number) == (other.object, other.number)
    }
}

/// An exec epoch: everything that its activity will say when the epoch has ended.
#[derive(Debug, Clone)]
pub struct Epoch {
    /// Its node, once it has one.
    pub id: Option<ActivityId>,
    pub origin: Option<EpochOrigin>,
    pub parent: Option<ActivityId>,
    pub pid: Pid,
    pub number: u32,
    pub exec_path: Option<Bytes>,
    pub argv: Vec<Bytes>,
    pub env: Option<Arc<[Bytes]>>,
    pub parent_env: Option<Arc<[Bytes]>>,
    pub cwd: Bytes,
    pub start: Time,
    /// Time of the last event that belongs to it.
    pub last: Time,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub execed: bool,
    /// Processor time of the process when it exited, in ns.
    pub processor_time: Option<i64>,
    /// The program marked it: it is a part of the process's work.
    pub is_nested: bool,
    /// It is a call of a function.
    pub is_function: bool,
    /// The version of the process's memory that it began with, if it is inside of the process.
    pub memory: Option<EntityId>,
    /// The epoch is an activity of its own, whatever program its process runs next: it had
    /// children, or other activities refer to it.
    pub lasting: bool,
    /// A recorder runs in it.
    pub recorded: bool,
    pub via: Via,
    /// The standard descriptors when the epoch began.
    pub began_with: [Option<Outlet>; 3],
    /// The standard descriptors when the parent's epoch began.
    pub parent_began_with: [Option<Outlet>; 3],
    /// Entities that the epoch had open when its children began with them as a standard descriptor.
    pub given: Vec<EntityId>,
    pub edges: EpochEdges,
}

impl Epoch {
    /// True if something came into the process in this epoch that a search follows. Its memory
    /// was there before.
    pub fn brought_in(&self) -> bool {
        let mut edges = self.edges.iter();
        edges.any(|edge| uses(edge.relation, false) && Some(edge.entity) != self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(entity: u32, relation: Relation, at: Time) -> EntityUse {
        EntityUse {
            entity: EntityId(entity),
            relation,
            interval: Interval { start: at, end: at },
            certainty: Certainty::Possible,
            via: Via::Library,
            opened: false,
        }
    }

    #[test]
    fn there_is_one_edge_per_entity_and_relation_in_the_order_of_first_appearance() {
        use Relation::{List, Read, Stat};
        let mut edges = EpochEdges::default();
        let (mut expected, mut seen) = (Vec::new(), std::collections::HashSet::new());
        let entities = [3, 3, 5, 4, 4, 5, 9, 3, 0, 9, 7, 12, 4, 3];
        for (at, entity) in (0..).zip(entities) {
            for relation in [Stat, [Read, List][at % 2]] {
                edges.add(edge(entity, relation, at as Time));
                if seen.insert((entity, relation)) {
                    expected.push((entity, relation));
                }
            }
        }
        let found: Vec<_> = edges.iter().map(|e| (e.entity.0, e.relation)).collect();
        assert_eq!(found, expected);
        let of = |edges: &EpochEdges, entity, relation| {
            let same = |e: &&EntityUse| e.entity == EntityId(entity) && e.relation == relation;
            edges
                .iter()
                .find(same)
                .copied()
                .map(|e| (e.interval, e.certainty))
        };
        let interval = Interval { start: 3, end: 12 };
        assert_eq!(
            of(&edges, 4, Stat),
            Some((interval, Certainty::Possible)),
            "repeats are joined"
        );
        edges.confirm(EntityId(0), Stat);
        edges.confirm(EntityId(5), Stat);
        for entity in [0, 5] {
            assert_eq!(of(&edges, entity, Stat).map(|e| e.1), Some(Certainty::Seen));
        }
    }
}
