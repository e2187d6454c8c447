//! An exec epoch while it lives, and the edges it has collected.
//!
//! Invariant: there is one edge per (entity, relation); repeats widen its interval and strengthen its certainty.

use std::sync::Arc;

use backstory_eventlog::event::{Bytes, Pid, Time, Via};
use rustc_hash::FxHashMap;

use crate::model::{ActivityId, Certainty, EntityId, Informed, Interval, Relation};

/// Names an epoch for the whole fold. Unlike an [`ActivityId`] it exists before the epoch is known to be worth a node.
pub type Serial = u32;

/// An edge of some epoch.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    pub entity: EntityId,
    pub relation: Relation,
    pub interval: Interval,
    pub certainty: Certainty,
    pub via: Via,
}

/// Edges, one per entity and relation, in the order of their first appearance.
#[derive(Debug, Default)]
pub struct Edges {
    list: Vec<Use>,
    index: FxHashMap<u64, u32>,
}

/// Up to this many edges a search through the list is cheaper than an index.
const SMALL: usize = 12;

impl Edges {
    /// Adds an edge or joins it with the one that is there.
    pub fn add(&mut self, new: Use) {
        match self.position(new.entity, new.relation) {
            Some(at) => {
                let old = &mut self.list[at];
                old.interval.start = old.interval.start.min(new.interval.start);
                old.interval.end = old.interval.end.max(new.interval.end);
                if new.certainty > old.certainty {
                    (old.certainty, old.via) = (new.certainty, new.via);
                }
            }
            None => {
                self.list.push(new);
                self.index_last();
            }
        }
    }

    /// Makes an edge `Seen`, if it is there.
    pub fn confirm(&mut self, entity: EntityId, relation: Relation) {
        if let Some(at) = self.position(entity, relation) {
            self.list[at].certainty = Certainty::Seen;
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Use> {
        self.list.iter()
    }

    fn position(&self, entity: EntityId, relation: Relation) -> Option<usize> {
        if self.list.len() <= SMALL {
            return self
                .list
                .iter()
                .position(|e| e.entity == entity && e.relation == relation);
        }
        self.index.get(&key(entity, relation)).map(|&at| at as usize)
    }

    fn index_last(&mut self) {
        let length = self.list.len();
        if length <= SMALL {
            return;
        }
        let from = if length == SMALL + 1 { 0 } else { length - 1 };
        for at in from..length {
            let edge = &self.list[at];
            self.index.insert(key(edge.entity, edge.relation), at as u32);
        }
    }
}

fn key(entity: EntityId, relation: Relation) -> u64 {
    u64::from(entity.0) << 8 | relation as u64
}

/// What made an epoch begin.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The epoch it came from.
    pub from: Serial,
    /// Fork or exec.
    pub why: Informed,
    /// When.
    pub time: Time,
}

/// An exec epoch: everything that will be said of it when it has ended.
#[derive(Debug)]
pub struct Epoch {
    /// Its node, once it has one.
    pub id: Option<ActivityId>,
    pub origin: Option<Origin>,
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
    /// It is an activity whatever follows: it had children, or others have to do with it.
    pub lasting: bool,
    /// A recorder is in it.
    pub recorded: bool,
    pub via: Via,
    pub edges: Edges,
}
