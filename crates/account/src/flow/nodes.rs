//! The nodes of a lineage by number, with what each link asks of them.
//!
//! In: a lineage, and the parts of its runs. Out: a [`NodeTable`].
//!
//! A lineage has several links for each node. A long history has hundreds of nodes for each path,
//! because each run that read a header has one. So each node is looked up in its run once, and the
//! text of each path is examined once.

use backstory_graph::model::{EntityId, EntityKind};
use backstory_query::answer::{Lineage, Node};
use backstory_store::{ActivityKey, EntityKey, RunKey};
use backstory_workflow::paths::{is_cache, is_record};
use rustc_hash::FxHashMap;

use super::RunPart;

/// The facts that the text of a path tells.
#[derive(Debug, Clone, Copy)]
struct PathFacts {
    is_record: bool,
    is_cache: bool,
}

/// A node.
enum NodeEntry {
    /// The number of its run's part and its index there. `None` if it is in no part.
    Activity(Option<(usize, usize)>),
    Entity {
        kind: EntityKind,
        /// The number of its run's part and its id there. `None` if it is in no part.
        place: Option<(usize, EntityId)>,
        /// The number of its path.
        path: usize,
    },
}

/// The nodes of a lineage by number, and each of their paths once.
pub(super) struct NodeTable<'l> {
    /// The number of each run's part.
    runs: FxHashMap<RunKey, usize>,
    nodes: Vec<NodeEntry>,
    /// Each path once.
    paths: Vec<&'l [u8]>,
    /// By the number of the path.
    facts: Vec<PathFacts>,
}

impl<'l> NodeTable<'l> {
    /// The table of the nodes of a lineage.
    pub(super) fn new(lineage: &'l Lineage, parts: &[RunPart]) -> NodeTable<'l> {
        let runs = parts.iter().enumerate();
        let mut table = NodeTable {
            runs: runs.map(|(at, part)| (part.recording.key, at)).collect(),
            nodes: Vec::with_capacity(lineage.nodes.len()),
            paths: Vec::new(),
            facts: Vec::new(),
        };
        let mut numbers: FxHashMap<&'l [u8], usize> = FxHashMap::default();
        for node in &lineage.nodes {
            let entry = match node {
                Node::Activity { id, .. } => {
                    let key = ActivityKey(*id);
                    let place = table.part(key.run()).and_then(|run| {
                        let at = parts[run].ids.activities.get(&key.local())?;
                        Some((run, *at))
                    });
                    NodeEntry::Activity(place)
                }
                Node::Entity { id, kind, path, .. } => {
                    let key = EntityKey(*id);
                    let place = table.part(key.run()).and_then(|run| {
                        let id = parts[run].ids.entities.get(&key.local())?;
                        Some((run, *id))
                    });
                    let path: &'l [u8] = path;
                    let number = numbers.entry(path).or_insert_with(|| table.add_path(path));
                    NodeEntry::Entity {
                        kind: *kind,
                        place,
                        path: *number,
                    }
                }
            };
            table.nodes.push(entry);
        }
        table
    }

    fn add_path(&mut self, path: &'l [u8]) -> usize {
        self.paths.push(path);
        self.facts.push(PathFacts {
            is_record: is_record(path),
            is_cache: is_cache(path),
        });
        self.paths.len() - 1
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The number of a run's part.
    pub(super) fn part(&self, run: RunKey) -> Option<usize> {
        self.runs.get(&run).copied()
    }

    /// The number of an activity's run, and its index in the part. `None` for an entity.
    pub(super) fn activity(&self, node: usize) -> Option<(usize, usize)> {
        match self.nodes[node] {
            NodeEntry::Activity(place) => place,
            NodeEntry::Entity { .. } => None,
        }
    }

    /// The number of an entity's run, and its id in the part. `None` for an activity.
    pub(super) fn entity(&self, node: usize) -> Option<(usize, EntityId)> {
        match self.nodes[node] {
            NodeEntry::Entity { place, .. } => place,
            NodeEntry::Activity(_) => None,
        }
    }

    /// True for an entity of this kind.
    pub(super) fn is(&self, node: usize, wanted: EntityKind) -> bool {
        matches!(self.nodes[node], NodeEntry::Entity { kind, .. } if kind == wanted)
    }

    /// The number of an entity's path. `None` for an activity.
    pub(super) fn path_number(&self, node: usize) -> Option<usize> {
        match self.nodes[node] {
            NodeEntry::Entity { path, .. } => Some(path),
            NodeEntry::Activity(_) => None,
        }
    }

    /// The path of an entity. `None` for an activity.
    pub(super) fn path(&self, node: usize) -> Option<&'l [u8]> {
        self.path_number(node).map(|path| self.paths[path])
    }

    /// True if the path is that of a builder's record of its own work.
    pub(super) fn is_record(&self, node: usize) -> bool {
        let path = self.path_number(node);
        path.is_some_and(|path| self.facts[path].is_record)
    }

    /// True if a program can make the file at the path again.
    pub(super) fn is_cache(&self, node: usize) -> bool {
        let path = self.path_number(node);
        path.is_some_and(|path| self.facts[path].is_cache)
    }
}
