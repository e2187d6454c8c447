//! The extent of a match: the acts of a program and of those that it started. Files that other
//! programs built from their files belong to it, too.

use std::collections::BTreeSet;

use backstory_eventlog::event::{Bytes, Pid, Time};
use backstory_graph::model::{ActivityId, EntityId, EntityKind, Relation};

use crate::correlation::Group;
use crate::fact::{FactPlace, Operation};
use crate::flow::{FlowNode, FlowReached};
use crate::run_graph::RunGraph;

/// The acts of a process and of those that it started, and what came of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extent {
    /// The number of processes.
    pub processes: usize,
    /// Files that they wrote, made, or renamed to.
    pub changed: BTreeSet<Bytes>,
    /// Those of them that they made and removed again, and that are not there at the end.
    pub temporary: BTreeSet<Bytes>,
    /// Files that are older than the run and that they removed or renamed.
    pub removed: BTreeSet<Bytes>,
    /// Addresses that they sent to.
    pub sent_to: BTreeSet<Bytes>,
    /// Files that other processes of the run made, and into which content of `changed` can have
    /// come. They are there at the end.
    pub built: BTreeSet<Bytes>,
    /// The versions of `changed` and `built` that are there at the end.
    pub left: Vec<EntityId>,
    /// There are more acts than were looked at, so the sets may lack some.
    pub is_cut: bool,
}

impl Extent {
    /// The extent of a cause. It looks at `most` acts, and at as many steps from changed files.
    pub(crate) fn of(graph: &RunGraph, cause: ActivityId, most: usize) -> Extent {
        let mut reached = FlowReached::default();
        let begin = (Time::MIN, FlowNode::Activity(cause), 0);
        let begin = std::iter::once(begin);
        let found = reached.search(graph, Group::Descendants, begin, most);
        let inside = reached.activities();
        let pids = inside.iter().map(|id| graph.activity(*id).pid);
        let pids: BTreeSet<Pid> = pids.collect();
        let edges = inside.iter().flat_map(|id| graph.edges_of_activity(*id));
        let mut extent = Extent {
            processes: pids.len(),
            is_cut: found.len() == most || edges.clone().nth(most).is_some(),
            ..Extent::default()
        };
        // A file can be made again after its removal.
        let mut remaining: BTreeSet<&Bytes> = BTreeSet::new();
        let mut versions: Vec<(Time, EntityId)> = Vec::new();
        let facts = edges
            .take(most)
            .map(|edge| graph.fact_at(FactPlace::Use(*edge)));
        for fact in facts {
            let Some(entity) = fact.entity else {
                continue;
            };
            let known = graph.entity(entity);
            let is_file = known.kind == EntityKind::File;
            remaining.extend(known.last.then_some(&known.path));
            match fact.operation {
                Operation::Send => {
                    let address = graph.address(entity).map(Bytes::from);
                    extent.sent_to.extend(address);
                }
                Operation::On(Relation::Write | Relation::Make) if is_file => {
                    extent.changed.insert(known.path.clone());
                    versions.push((fact.start, entity));
                }
                Operation::On(Relation::Rename) if is_file => {
                    extent.changed.insert(known.path.clone());
                    versions.push((fact.start, entity));
                    let source = graph.source(entity).filter(|_| graph.existed(entity));
                    extent
                        .removed
                        .extend(source.map(|source| source.path.clone()));
                }
                Operation::On(Relation::Delete) if is_file => {
                    let gone = match graph.existed(entity) {
                        true => &mut extent.removed,
                        false => &mut extent.temporary,
                    };
                    gone.insert(known.path.clone());
                }
                _ => {}
            }
        }
        let (changed, removed) = (&extent.changed, &mut extent.temporary);
        removed.retain(|path| changed.contains(path) && !remaining.contains(path));
        extent.follow(graph, &versions, most);
        extent
    }

    /// Follows content from versions of changed files.
    fn follow(&mut self, graph: &RunGraph, versions: &[(Time, EntityId)], most: usize) {
        let mut reached = FlowReached::default();
        let begin = versions.iter();
        let begin = begin.map(|(time, version)| (*time, FlowNode::Entity(*version), 0));
        let found = reached.search(graph, Group::Flow, begin, most);
        self.is_cut |= found.len() == most;
        let is_left = |id: &EntityId| {
            let known = graph.entity(*id);
            known.kind == EntityKind::File && known.version > 0 && known.last
        };
        let left = reached.entities().map(|(id, _)| id).filter(is_left);
        self.left = left.collect();
        self.left.sort_unstable();
        let paths = self.left.iter().map(|id| &graph.entity(*id).path);
        let others = paths.filter(|path| !self.changed.contains(*path));
        self.built = others.cloned().collect();
    }
}
