//! The time expansion: every node once for each moment, with edges that only lead on in time.
//!
//! A moment is a time at which an interval begins or ends. Between two moments the order of
//! operations is not known. If a node can reach another one there, it can reach it within the step.
//! So the expansion's edges go from each moment to the next. A cycle would show a fault of the
//! expansion, or an interval that ends before it begins.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use backstory_eventlog::event::Time;
use backstory_graph::lineage::{GraphNode, generates, informs, uses};
use backstory_graph::memory::MemorySink;

/// From, to, earliest, latest.
type Flow = (GraphNode, GraphNode, Time, Time);

fn flows(graph: &MemorySink) -> Vec<Flow> {
    let mut flows = Vec::new();
    for edge in &graph.edges {
        let (a, e) = (
            GraphNode::Activity(edge.activity),
            GraphNode::Entity(edge.entity),
        );
        if generates(edge.relation) {
            flows.push((a, e, edge.interval.start, edge.interval.end));
        } else if uses(edge.relation, false) {
            flows.push((e, a, edge.interval.start, edge.interval.end));
        }
    }
    for derived in &graph.derived {
        flows.push((
            GraphNode::Entity(derived.from),
            GraphNode::Entity(derived.entity),
            derived.time,
            derived.time,
        ));
    }
    for inform in graph.informs.iter().filter(|i| informs(i.why)) {
        flows.push((
            GraphNode::Activity(inform.from),
            GraphNode::Activity(inform.to),
            inform.time,
            inform.time,
        ));
    }
    flows
}

/// A node at a moment.
type Point = (usize, GraphNode);

pub struct Expansion {
    moments: usize,
    back: BTreeMap<Point, BTreeSet<Point>>,
}

impl Expansion {
    pub fn of(graph: &MemorySink) -> Expansion {
        let flows = flows(graph);
        assert!(
            flows.iter().all(|f| f.2 <= f.3),
            "an interval ends before it begins"
        );
        let times: BTreeSet<Time> = flows.iter().flat_map(|f| [f.2, f.3]).collect();
        let mut back: BTreeMap<Point, BTreeSet<Point>> = BTreeMap::new();
        for (at, time) in times.iter().enumerate() {
            // At a boundary, and in the open interval up to the next, the flows are the same or
            // fewer. So one step covers both.
            let active: Vec<&Flow> = flows
                .iter()
                .filter(|f| f.2 <= *time && *time <= f.3)
                .collect();
            for (from, to) in closure(&active) {
                back.entry((at + 1, to)).or_default().insert((at, from));
            }
        }
        let nodes: BTreeSet<GraphNode> = flows.iter().flat_map(|f| [f.0, f.1]).collect();
        for at in 0..times.len() {
            for &node in &nodes {
                back.entry((at + 1, node)).or_default().insert((at, node));
            }
        }
        Expansion {
            moments: times.len(),
            back,
        }
    }

    /// Removes points that no edge leads to, until no such point is left. True if that removes all.
    pub fn acyclic(&self) -> bool {
        let edges = self
            .back
            .iter()
            .flat_map(|(to, from)| from.iter().map(move |f| (*f, *to)));
        no_cycle(edges.collect())
    }

    pub fn ancestors(&self, node: GraphNode) -> BTreeSet<GraphNode> {
        let start = (self.moments, node);
        let mut seen = BTreeSet::from([start]);
        let mut pending = VecDeque::from([start]);
        while let Some(point) = pending.pop_front() {
            for &before in self.back.get(&point).into_iter().flatten() {
                if seen.insert(before) {
                    pending.push_back(before);
                }
            }
        }
        seen.into_iter().map(|(_, node)| node).collect()
    }
}

fn closure(flows: &[&Flow]) -> BTreeSet<(GraphNode, GraphNode)> {
    let mut next: BTreeMap<GraphNode, Vec<GraphNode>> = BTreeMap::new();
    flows
        .iter()
        .for_each(|f| next.entry(f.0).or_default().push(f.1));
    let mut pairs = BTreeSet::new();
    for &from in next.keys() {
        let mut pending = vec![from];
        while let Some(node) = pending.pop() {
            for &to in next.get(&node).into_iter().flatten() {
                if pairs.insert((from, to)) {
                    pending.push(to);
                }
            }
        }
    }
    pairs
}

fn no_cycle<T: Ord + Copy>(edges: Vec<(T, T)>) -> bool {
    let edges: BTreeSet<(T, T)> = edges.into_iter().collect();
    let mut waiting: BTreeMap<T, usize> = BTreeMap::new();
    let mut next: BTreeMap<T, Vec<T>> = BTreeMap::new();
    for &(from, to) in &edges {
        waiting.entry(from).or_default();
        *waiting.entry(to).or_default() += 1;
        next.entry(from).or_default().push(to);
    }
    let mut ready: Vec<T> = waiting
        .iter()
        .filter(|(_, n)| **n == 0)
        .map(|(t, _)| *t)
        .collect();
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        for to in next.get(&node).into_iter().flatten() {
            let left = waiting.get_mut(to).unwrap();
            *left -= 1;
            if *left == 0 {
                ready.push(*to);
            }
        }
    }
    done == waiting.len()
}

/// A piece of an epoch, up to the end of its n-th generation; or an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Entity(GraphNode),
    Part(GraphNode, usize),
}

/// Cuts every epoch at the end of each of its generations. True if no cycle remains.
pub fn cut_acyclic(graph: &MemorySink) -> bool {
    let flows = flows(graph);
    let mut cuts: BTreeMap<GraphNode, BTreeSet<Time>> = BTreeMap::new();
    for &(from, _, _, end) in flows
        .iter()
        .filter(|f| matches!(f.0, GraphNode::Activity(_)))
    {
        cuts.entry(from).or_default().insert(end);
    }
    let piece = |node: GraphNode, time: Time| match node {
        GraphNode::Entity(_) => Piece::Entity(node),
        GraphNode::Activity(_) => {
            let before = cuts
                .get(&node)
                .map_or(0, |c| c.iter().filter(|cut| **cut < time).count());
            Piece::Part(node, before)
        }
    };
    let mut edges: Vec<(Piece, Piece)> = Vec::new();
    for &(from, to, start, end) in &flows {
        edges.push((piece(from, end), piece(to, start)));
    }
    for (&node, cuts) in &cuts {
        edges.extend((0..cuts.len()).map(|n| (Piece::Part(node, n), Piece::Part(node, n + 1))));
    }
    edges.retain(|(a, b)| a != b);
    no_cycle(edges)
}
