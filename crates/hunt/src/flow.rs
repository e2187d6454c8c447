//! Where information can have flowed in a run: a search forward in time.
//!
//! The edges that are followed are those of [`backstory_graph::lineage`]. Each node is reached
//! once, at its earliest moment, so a search ends after as many steps as the graph has edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use backstory_eventlog::event::Time;
use backstory_graph::lineage::{forgets, generates, informs, uses};
use backstory_graph::model::{ActivityId, EntityId};

use crate::correlation::Group;
use crate::fact::{Fact, Operation};
use crate::run_graph::RunGraph;

/// The number of a node: activities first, then entities.
type NodeNumber = u32;

/// The edges of a graph, forward.
pub(crate) struct FlowGraph<'g> {
    graph: &'g RunGraph,
    /// From, to, first and last moment; ordered by the first number.
    edges: Vec<(NodeNumber, NodeNumber, Time, Time)>,
}

/// The nodes that a search reached: when, and from which source.
pub(crate) struct FlowReached<'g> {
    graph: &'g RunGraph,
    group: Group,
    nodes: Vec<Option<(Time, usize)>>,
}

impl<'g> FlowGraph<'g> {
    /// The edges that searches of a group follow.
    pub fn new(graph: &'g RunGraph, group: Group) -> FlowGraph<'g> {
        let mut edges: Vec<_> = graph
            .informs
            .iter()
            .filter(|one| informs(one.why))
            .map(|one| (one.from.0, one.to.0, one.time, one.time))
            .collect();
        if group == Group::Flow {
            for edge in &graph.edges {
                let (activity, entity) = (edge.activity.0, of_entity(graph, edge.entity));
                let (start, end) = (edge.interval.start, edge.interval.end);
                let known = graph.entity(edge.entity);
                if forgets(known.kind, &known.path) {
                    continue;
                }
                if generates(edge.relation) {
                    edges.push((activity, entity, start, end));
                } else if uses(edge.relation, false) {
                    edges.push((entity, activity, start, end));
                }
            }
            edges.extend(graph.derived.iter().map(|one| {
                let (from, to) = (of_entity(graph, one.from), of_entity(graph, one.entity));
                (from, to, one.time, one.time)
            }));
        }
        edges.sort_unstable();
        FlowGraph { graph, edges }
    }

    /// Searches from the facts. A source's number is its place among them.
    pub fn from(&self, group: Group, sources: &[&Fact]) -> FlowReached<'g> {
        let graph = self.graph;
        let size = graph.activities.len() + graph.entities.len();
        let mut nodes: Vec<Option<(Time, usize)>> = vec![None; size];
        let begin = sources.iter().enumerate().map(|(number, fact)| {
            let node = match fact.entity {
                Some(entity) if group == Group::Flow && is_output(fact) => of_entity(graph, entity),
                _ => fact.activity.0,
            };
            Reverse((fact.start, node, number))
        });
        let mut pending: BinaryHeap<_> = begin.collect();
        while let Some(Reverse((time, node, source))) = pending.pop() {
            let reached = &mut nodes[node as usize];
            if reached.is_some() {
                continue;
            }
            *reached = Some((time, source));
            let first = self.edges.partition_point(|edge| edge.0 < node);
            let edges = self.edges[first..].iter().take_while(|edge| edge.0 == node);
            for (_, to, start, _) in edges.filter(|edge| edge.3 >= time) {
                pending.push(Reverse((time.max(*start), *to, source)));
            }
        }
        FlowReached {
            graph,
            group,
            nodes,
        }
    }
}

impl FlowReached<'_> {
    /// The source from which information can have reached the operation.
    pub fn source(&self, fact: &Fact) -> Option<usize> {
        let node = match fact.entity {
            Some(entity) if self.group == Group::Flow && !is_output(fact) => {
                of_entity(self.graph, entity)
            }
            _ => fact.activity.0,
        };
        let (time, source) = self.nodes[node as usize]?;
        (time <= fact.end).then_some(source)
    }

    /// The source from which information can have reached a version.
    pub fn source_of(&self, entity: EntityId) -> Option<usize> {
        let reached = self.nodes[of_entity(self.graph, entity) as usize];
        reached.map(|(_, source)| source)
    }

    /// True if the activity was reached.
    pub fn has(&self, activity: ActivityId) -> bool {
        self.nodes[activity.0 as usize].is_some()
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

fn of_entity(graph: &RunGraph, entity: EntityId) -> NodeNumber {
    graph.activities.len() as u32 + entity.0
}
