//! Where information can have flowed in a run: a search forward in time.
//!
//! The links that are followed are the edges of [`backstory_graph::lineage`]. A search costs as
//! much as the links of the nodes that it reaches.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use backstory_eventlog::event::Time;
use backstory_graph::lineage::{forgets, generates, informs, uses};
use backstory_graph::model::{ActivityId, Edge, EntityId};

use crate::correlation::Group;
use crate::fact::{Fact, Operation};
use crate::run_graph::RunGraph;

/// A node of a run's graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FlowNode {
    /// A program.
    Activity(ActivityId),
    /// A version of a file, or another thing.
    Entity(EntityId),
}

/// Information can flow along it, from its first to its last moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowLink {
    pub from: FlowNode,
    pub to: FlowNode,
    pub start: Time,
    pub end: Time,
}

impl FlowLink {
    /// Whether searches of a group follow it.
    pub fn is_of(&self, group: Group) -> bool {
        let is_activity = |node| matches!(node, FlowNode::Activity(_));
        group == Group::Flow || is_activity(self.from) && is_activity(self.to)
    }
}

/// The nodes that a search reached: when, and from which source. The number of a source is its
/// place among the sources. Of several sources that reach a node at one time, the first counts.
#[derive(Debug, Default)]
pub(crate) struct FlowReached(HashMap<FlowNode, (Time, usize)>);

impl FlowReached {
    /// Its searches do not go through this activity.
    pub fn without(activity: Option<ActivityId>) -> FlowReached {
        // A search does not go on from a node that was reached earlier.
        let known = activity.map(|id| (FlowNode::Activity(id), (Time::MIN, usize::MAX)));
        FlowReached(known.into_iter().collect())
    }

    /// Searches from the facts.
    pub fn from(graph: &RunGraph, group: Group, sources: &[&Fact]) -> FlowReached {
        let mut reached = FlowReached::default();
        let sources = sources.iter().enumerate();
        let begin = sources.map(|(number, fact)| (fact.start, source_node(group, fact), number));
        reached.search(graph, group, begin, usize::MAX);
        reached
    }

    /// Goes on from these nodes, each reached at a time from a source. Returns the nodes that are
    /// reached anew, or earlier than before. It ends after `most` of them.
    pub fn search(
        &mut self,
        graph: &RunGraph,
        group: Group,
        begin: impl Iterator<Item = (Time, FlowNode, usize)>,
        most: usize,
    ) -> Vec<FlowNode> {
        let begin = begin.map(|(time, node, source)| Reverse((time, source, node)));
        let mut pending: BinaryHeap<_> = begin.collect();
        let mut found = Vec::new();
        while let Some(Reverse((time, source, node))) = pending.pop() {
            if self.at(node).is_some_and(|known| known <= (time, source)) {
                continue;
            }
            if found.len() == most {
                break;
            }
            self.0.insert(node, (time, source));
            found.push(node);
            graph.links(group, node, |link| {
                if link.end >= time {
                    pending.push(Reverse((time.max(link.start), source, link.to)));
                }
            });
        }
        found
    }

    /// Goes on along a link that is new, or that begins earlier or ends later than before.
    pub fn follow(&mut self, graph: &RunGraph, group: Group, link: &FlowLink) -> Vec<FlowNode> {
        match self.at(link.from) {
            Some((time, source)) if link.end >= time => {
                let begin = (time.max(link.start), link.to, source);
                self.search(graph, group, std::iter::once(begin), usize::MAX)
            }
            _ => Vec::new(),
        }
    }

    /// When a node was reached, and from which source.
    pub fn at(&self, node: FlowNode) -> Option<(Time, usize)> {
        self.0.get(&node).copied()
    }

    /// The source from which information can have reached the operation.
    pub fn source(&self, group: Group, fact: &Fact) -> Option<usize> {
        let (time, source) = self.at(target_node(group, fact))?;
        (time <= fact.end).then_some(source)
    }

    /// The entities that were reached, each with its source, in no order.
    pub fn entities(&self) -> impl Iterator<Item = (EntityId, usize)> {
        self.0.iter().filter_map(|(node, (_, source))| match node {
            FlowNode::Entity(id) => Some((*id, *source)),
            FlowNode::Activity(_) => None,
        })
    }

    /// The activities that were reached, in order.
    pub fn activities(&self) -> Vec<ActivityId> {
        let activities = self.0.keys().filter_map(|node| match node {
            FlowNode::Activity(id) => Some(*id),
            FlowNode::Entity(_) => None,
        });
        let mut activities: Vec<ActivityId> = activities.collect();
        activities.sort_unstable();
        activities
    }
}

/// The node at which the information of an operation is afterwards.
pub(crate) fn source_node(group: Group, fact: &Fact) -> FlowNode {
    match fact.entity {
        Some(entity) if group == Group::Flow && is_output(fact) => FlowNode::Entity(entity),
        _ => FlowNode::Activity(fact.activity),
    }
}

/// The node that information must have reached before the operation.
pub(crate) fn target_node(group: Group, fact: &Fact) -> FlowNode {
    match fact.entity {
        Some(entity) if group == Group::Flow && !is_output(fact) => FlowNode::Entity(entity),
        _ => FlowNode::Activity(fact.activity),
    }
}

/// True if the operation moves something from the program to the thing.
fn is_output(fact: &Fact) -> bool {
    match fact.operation {
        Operation::Send => true,
        Operation::On(relation) => !relation.is_use(),
        _ => false,
    }
}

impl RunGraph {
    /// The link of an edge. `None` if no information flows along it.
    pub(crate) fn link(&self, edge: &Edge) -> Option<FlowLink> {
        let known = self.entity(edge.entity);
        let activity = FlowNode::Activity(edge.activity);
        let entity = FlowNode::Entity(edge.entity);
        let (from, to) = match edge.relation {
            _ if forgets(known.kind, &known.path) => return None,
            relation if generates(relation) => (activity, entity),
            relation if uses(relation, false) => (entity, activity),
            _ => return None,
        };
        Some(FlowLink {
            from,
            to,
            start: edge.interval.start,
            end: edge.interval.end,
        })
    }

    /// Calls `take` with each link from a node that searches of a group follow.
    fn links(&self, group: Group, node: FlowNode, mut take: impl FnMut(FlowLink)) {
        let at = |from, to, time| FlowLink {
            from,
            to,
            start: time,
            end: time,
        };
        match node {
            FlowNode::Activity(id) => {
                for one in self.informs_from(id).filter(|one| informs(one.why)) {
                    take(at(node, FlowNode::Activity(one.to), one.time));
                }
            }
            FlowNode::Entity(id) => {
                for one in self.derived_from(id) {
                    take(at(node, FlowNode::Entity(one.entity), one.time));
                }
            }
        }
        if group != Group::Flow {
            return;
        }
        let edges = match node {
            FlowNode::Activity(id) => self.edges_of_activity(id),
            FlowNode::Entity(id) => self.edges_of_entity(id),
        };
        let links = edges
            .iter()
            .filter_map(|edge| self.link(self.edge_at(*edge)));
        links.filter(|link| link.from == node).for_each(take);
    }
}
