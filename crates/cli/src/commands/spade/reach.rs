//! Lineage and paths in the graph of SPADE's query shell.
//!
//! SPADE follows all edges. Here a search follows an edge only if information can have flowed along
//! it by then, as `of` and `uses` do: it carries a time. With `env set time 0`, it follows all.
//!
//! A walk of at most N edges is found by N rounds. After each, every vertex has the best time with
//! which a walk of so many edges reaches it.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{BaseGraph, Ends, Part};

/// The direction of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Ancestors,
    Descendants,
}

/// A search in a part of the graph.
pub(super) struct Search<'a> {
    pub base: &'a BaseGraph,
    pub part: &'a Part,
    pub respects_time: bool,
}

/// The best times after a number of rounds.
type Times = BTreeMap<usize, i64>;

impl Search<'_> {
    /// The vertices and edges on walks of at most `depth` edges.
    pub(super) fn lineage(&self, from: &BTreeSet<usize>, depth: usize, way: Direction) -> Part {
        let rounds = self.rounds(from, depth, way);
        let mut found = Part {
            vertices: rounds
                .last()
                .into_iter()
                .flat_map(Times::keys)
                .copied()
                .collect(),
            edges: BTreeSet::new(),
        };
        // The last round reaches vertices, and no edge leads on from there.
        let inner = rounds.len().checked_sub(2).and_then(|at| rounds.get(at));
        for &edge in &self.part.edges {
            let step = self.step(edge, way);
            let time = inner.and_then(|times| times.get(&step.effect));
            if time.is_some_and(|&time| step.start <= time) {
                found.edges.insert(edge);
            }
        }
        found
    }

    /// The vertices and edges on walks of at most `depth` edges from effects to causes.
    pub(super) fn paths(
        &self,
        effects: &BTreeSet<usize>,
        causes: &BTreeSet<usize>,
        depth: usize,
    ) -> Part {
        let ahead = self.rounds(effects, depth, Direction::Ancestors);
        let back = self.rounds(causes, depth, Direction::Descendants);
        let mut found = Part::default();
        for &edge in &self.part.edges {
            let Ends {
                effect,
                cause,
                start,
                end,
            } = self.times(edge);
            let fits = ahead.iter().enumerate().any(|(steps, times)| {
                let (Some(&until), Some(rest)) = (times.get(&effect), depth.checked_sub(steps + 1))
                else {
                    return false;
                };
                // Times of the other direction are mirrored: it has the earliest moment.
                let since = back
                    .get(rest.min(back.len() - 1))
                    .and_then(|times| times.get(&cause));
                since.is_some_and(|&since| start <= until && !since <= until.min(end))
            });
            if fits {
                found.edges.insert(edge);
                found.vertices.extend([effect, cause]);
            }
        }
        found.vertices.extend(effects & causes);
        found
    }

    /// A shortest walk from effects to causes; empty if no walk leads there.
    pub(super) fn shortest(
        &self,
        effects: &BTreeSet<usize>,
        causes: &BTreeSet<usize>,
        depth: usize,
    ) -> Part {
        let mut found = Part::default();
        let Some(steps) = (0..=depth).find(|&steps| {
            found = self.paths(effects, causes, steps);
            !found.vertices.is_empty()
        }) else {
            return Part::default();
        };
        // Every walk that is left has this length. One edge of each step is enough.
        let mut walk = Part::default();
        let mut at: BTreeSet<usize> = effects & &found.vertices;
        at.retain(|&vertex| {
            let one = BTreeSet::from([vertex]);
            !self.paths(&one, causes, steps).vertices.is_empty()
        });
        let Some(mut here) = at.first().copied() else {
            return walk;
        };
        walk.vertices.insert(here);
        let within = Search {
            base: self.base,
            part: &found,
            respects_time: self.respects_time,
        };
        for left in (1..=steps).rev() {
            let next = found.edges.iter().copied().find(|&edge| {
                let ends = self.base.ends[edge];
                let one = BTreeSet::from([ends.cause]);
                ends.effect == here
                    && (causes.contains(&ends.cause) && left == 1
                        || !within.paths(&one, causes, left - 1).vertices.is_empty())
            });
            let Some(edge) = next else { break };
            here = self.base.ends[edge].cause;
            walk.edges.insert(edge);
            walk.vertices.insert(here);
        }
        walk
    }

    /// The best times after 0, 1, 2 … rounds. It ends when nothing changes.
    fn rounds(&self, from: &BTreeSet<usize>, depth: usize, way: Direction) -> Vec<Times> {
        let mut leading: BTreeMap<usize, Vec<Ends>> = BTreeMap::new();
        for &edge in &self.part.edges {
            let step = self.step(edge, way);
            leading.entry(step.effect).or_default().push(step);
        }
        let mut present: Times = from.iter().map(|&vertex| (vertex, i64::MAX)).collect();
        let mut fresh: Vec<usize> = from.iter().copied().collect();
        let mut rounds = vec![present.clone()];
        while rounds.len() <= depth && !fresh.is_empty() {
            let mut changed = BTreeSet::new();
            let before = present.clone();
            for vertex in fresh {
                let time = before[&vertex];
                let steps = leading.get(&vertex).into_iter().flatten();
                for step in steps.filter(|step| step.start <= time) {
                    let best = time.min(step.end);
                    let known = present.get(&step.cause);
                    if known.is_none_or(|&known| known < best) {
                        present.insert(step.cause, best);
                        changed.insert(step.cause);
                    }
                }
            }
            fresh = changed.into_iter().collect();
            rounds.push(present.clone());
        }
        rounds
    }

    fn times(&self, edge: usize) -> Ends {
        let ends = self.base.ends[edge];
        match self.respects_time {
            true => ends,
            false => Ends {
                start: i64::MIN,
                end: i64::MAX,
                ..ends
            },
        }
    }

    /// An edge in the direction of a search. Towards descendants, times are mirrored.
    fn step(&self, edge: usize, way: Direction) -> Ends {
        let ends = self.times(edge);
        match way {
            Direction::Ancestors => ends,
            Direction::Descendants => Ends {
                effect: ends.cause,
                cause: ends.effect,
                start: !ends.end,
                end: !ends.start,
            },
        }
    }
}
