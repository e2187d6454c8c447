//! Commands: which activities belong to which command that somebody wrote, and which commands are joined by pipes.
//!
//! A command is a tool and everything it started. Drivers (shells with scripts, `make`, `env`) are looked through. What a driver did by
//! itself (a shell's `echo`, a Python script's own file) cannot be written down as a command of its own: then the driver is the
//! command, and what it started belongs to it. The same happens to the nearest driver above a net of pipes that is not a plain
//! pipeline. So what is left can be written down, and means what was recorded.

use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_graph::model::{Certainty, Edge, EntityId, EntityKind, Relation};

use super::programs::{Role, builders, calls_builders, is_builder, is_unbuffered, launched, role};
use crate::recording::Recording;

/// A command: its activities, that of its program first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// All activities of it.
    pub members: Vec<usize>,
}

impl Unit {
    /// The activity of its program.
    pub fn root(&self) -> usize {
        self.members[0]
    }
}

/// Commands in the order in which their data flows through pipes; most have one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Its commands.
    pub stages: Vec<Unit>,
}

impl Pipeline {
    /// All activities.
    pub fn members(&self) -> impl Iterator<Item = usize> {
        self.stages
            .iter()
            .flat_map(|unit| unit.members.iter().copied())
    }
}

/// Who wrote to a pipe, and who read from it.
type Ends = (BTreeSet<usize>, BTreeSet<usize>);

/// What the run's command began with: its terminal, or wherever its output went. Nobody's input, nobody's output.
pub fn outside(recording: &Recording) -> HashSet<EntityId> {
    let ends = recording
        .roots()
        .flat_map(|root| recording.standard[root])
        .flatten();
    let ids: HashSet<EntityId> = ends.map(|end| end.entity).collect();
    let paths: HashSet<&[u8]> = ids.iter().map(|&id| &*recording.entity(id).path).collect();
    let same = |entity: &&backstory_graph::model::Entity| paths.contains(&*entity.path);
    recording
        .entities
        .iter()
        .filter(same)
        .map(|entity| entity.id)
        .chain(ids.iter().copied())
        .collect()
}

/// Finds a run's commands.
pub fn pipelines(recording: &Recording) -> Vec<Pipeline> {
    let mut finder = Finder {
        recording,
        outside: outside(recording),
        readers: readers(recording),
        whole: HashSet::new(),
    };
    // Each round makes at least one more driver a command of its own.
    loop {
        let units = finder.units();
        match finder.join(units) {
            Ok(pipelines) => return pipelines,
            Err(driver) => drop(finder.whole.insert(driver)),
        }
    }
}

/// Who read or executed each entity.
fn readers(recording: &Recording) -> HashMap<EntityId, Vec<usize>> {
    let mut readers: HashMap<EntityId, Vec<usize>> = HashMap::new();
    for (at, edges) in recording.edges.iter().enumerate() {
        for edge in edges {
            if matches!(edge.relation, Relation::Read | Relation::Execute) {
                readers.entry(edge.entity).or_default().push(at);
            }
        }
    }
    readers
}

struct Finder<'r> {
    recording: &'r Recording,
    outside: HashSet<EntityId>,
    readers: HashMap<EntityId, Vec<usize>>,
    /// Drivers that are commands because what they did cannot be told apart.
    whole: HashSet<usize>,
}

impl Finder<'_> {
    fn units(&self) -> Vec<Unit> {
        let mut units = Vec::new();
        let mut waiting: Vec<usize> = self.recording.roots().collect();
        while let Some(at) = waiting.pop() {
            if self.is_unit(at) {
                let members = self.recording.subtree(at);
                units.push(Unit { members });
            } else {
                waiting.extend(self.below(at));
            }
        }
        units.sort_by_key(|unit| {
            (
                self.recording.activities[unit.root()].interval.start,
                unit.root(),
            )
        });
        units
    }

    /// What a driver started that may be commands: not what a shell of `make`'s asks before it runs `make` elsewhere.
    fn below(&self, at: usize) -> Vec<usize> {
        if calls_builders(self.recording, at) {
            return builders(self.recording, at);
        }
        self.recording.children[at].clone()
    }

    fn is_unit(&self, at: usize) -> bool {
        if self.whole.contains(&at) {
            return true;
        }
        if self.recording.activities[at].epoch == 0 {
            return false;
        }
        if launched(self.recording, at).is_some_and(|next| self.is_unit(next)) {
            return true;
        }
        role(self.recording, at) == Role::Tool || self.works(at) || self.works_between(at)
    }

    /// True if the processes that it forked and that ran no program of their own did something.
    fn works_between(&self, at: usize) -> bool {
        let bare = |child: &&usize| self.recording.activities[**child].epoch == 0;
        self.recording.children[at]
            .iter()
            .filter(bare)
            .any(|&child| self.works(child) || self.works_between(child))
    }

    /// True if the activity by itself made something that lasts or that others used.
    fn works(&self, at: usize) -> bool {
        let passed = self.passed_on(at);
        let builds = is_builder(self.recording, at);
        let unbuffered = is_unbuffered(self.recording, at);
        let given = |edge: &Edge| {
            let opened = edge.relation == Relation::Write
                && self.recording.given.contains(&(at, edge.entity));
            unbuffered && (opened || edge.certainty == Certainty::Possible)
        };
        self.recording.edges[at].iter().any(|edge| {
            let entity = self.recording.entity(edge.entity);
            let makes = match edge.relation {
                Relation::Write => entity.kind == EntityKind::File,
                Relation::Rename => true,
                Relation::Make => entity.kind == EntityKind::Symlink,
                _ => false,
            };
            let used = || {
                let readers = self.readers.get(&edge.entity).into_iter().flatten();
                // What a builder asks its own helpers is none of its commands' affair.
                readers
                    .filter(|reader| **reader != at)
                    .any(|&reader| !builds || self.leaves(reader, at))
            };
            makes
                && !given(edge)
                && !self.outside.contains(&edge.entity)
                && !crate::paths::is_tool(&entity.path)
                && !passed.contains(&edge.entity)
                && (entity.last || used())
        })
    }

    /// True if `reader` and what it started made something that lasts, or that anybody but `asker` read.
    fn leaves(&self, reader: usize, asker: usize) -> bool {
        let edges = self.recording.subtree(reader).into_iter();
        let own: HashSet<usize> = self.recording.subtree(reader).into_iter().collect();
        edges.flat_map(|at| &self.recording.edges[at]).any(|edge| {
            let entity = self.recording.entity(edge.entity);
            let makes = matches!(
                edge.relation,
                Relation::Write | Relation::Rename | Relation::Make
            );
            let others = || {
                let mut readers = self.readers.get(&edge.entity).into_iter().flatten();
                readers.any(|other| *other != asker && !own.contains(other))
            };
            let device = entity.kind == EntityKind::Device || self.outside.contains(&edge.entity);
            makes && !device && !crate::paths::is_tool(&entity.path) && (entity.last || others())
        })
    }

    /// A shell that becomes its last command opens that one's output first: `sh -c 'a; b > out'`.
    fn passed_on(&self, at: usize) -> HashSet<EntityId> {
        let activity = &self.recording.activities[at];
        let next = self.recording.children[at].iter().find(|&&child| {
            activity.execed && self.recording.activities[child].pid == activity.pid
        });
        let ends = next
            .into_iter()
            .flat_map(|&next| self.recording.standard[next])
            .flatten();
        ends.filter(|end| !end.keeps)
            .map(|end| end.entity)
            .collect()
    }

    /// The nearest activity above all of `these` that can be a command.
    fn above(&self, these: &[usize]) -> Option<usize> {
        let line = |at| {
            std::iter::once(at)
                .chain(self.recording.ancestors(at))
                .collect::<Vec<_>>()
        };
        let first = line(*these.first()?);
        let rest: Vec<HashSet<usize>> = these[1..]
            .iter()
            .map(|&at| line(at).into_iter().collect())
            .collect();
        first.into_iter().find(|at| {
            let fits = self.recording.activities[*at].epoch > 0 && !self.whole.contains(at);
            fits && rest.iter().all(|line| line.contains(at))
        })
    }

    /// Joins commands by their pipes; or gives a driver that has to be a command, because it cannot be done.
    fn join(&self, units: Vec<Unit>) -> Result<Vec<Pipeline>, usize> {
        let mut of = HashMap::new();
        for (unit, members) in units.iter().enumerate() {
            of.extend(members.members.iter().map(|&member| (member, unit)));
        }
        let mut next: HashMap<usize, usize> = HashMap::new();
        let mut before: HashMap<usize, usize> = HashMap::new();
        for (pipe, (writers, readers)) in self.pipes() {
            for (reader, writer) in pairs(&of, &writers, &readers) {
                let (to, from) = (of.get(&reader).copied(), of.get(&writer).copied());
                let Some(to) = to.filter(|to| Some(*to) != from) else {
                    continue;
                };
                let ends = |unit: usize, fd: usize| {
                    self.recording.standard[units[unit].root()][fd]
                        .is_some_and(|end| end.entity == pipe)
                };
                let plain = from.is_some_and(|from| ends(from, 1) && ends(to, 0));
                let fits = |map: &HashMap<usize, usize>, at, other| {
                    map.get(&at).is_none_or(|known| *known == other)
                };
                match from.filter(|&from| plain && fits(&next, from, to) && fits(&before, to, from))
                {
                    Some(from) => {
                        next.insert(from, to);
                        before.insert(to, from);
                    }
                    None => {
                        if let Some(driver) = self.above(&[reader, writer]) {
                            return Err(driver);
                        }
                    }
                }
            }
        }
        self.chains(&units, &next, &before)
    }

    fn chains(
        &self,
        units: &[Unit],
        next: &HashMap<usize, usize>,
        before: &HashMap<usize, usize>,
    ) -> Result<Vec<Pipeline>, usize> {
        let mut pipelines = Vec::new();
        let mut seen = HashSet::new();
        for first in (0..units.len()).filter(|unit| !before.contains_key(unit)) {
            let chain = std::iter::successors(Some(first), |unit| next.get(unit).copied());
            let stages: Vec<Unit> = chain
                .filter(|unit| seen.insert(*unit))
                .map(|unit| units[unit].clone())
                .collect();
            pipelines.push(Pipeline { stages });
        }
        if seen.len() == units.len() {
            return Ok(pipelines);
        }
        // Pipes in a ring.
        let left: Vec<usize> = (0..units.len())
            .filter(|unit| !seen.contains(unit))
            .map(|unit| units[unit].root())
            .collect();
        match self.above(&left) {
            Some(driver) => Err(driver),
            None => Ok(pipelines),
        }
    }

    /// Who wrote to and who read from each pipe that has both.
    fn pipes(&self) -> Vec<(EntityId, Ends)> {
        let mut pipes: HashMap<EntityId, Ends> = HashMap::new();
        for (at, edges) in self.recording.edges.iter().enumerate() {
            for edge in edges {
                let entity = self.recording.entity(edge.entity);
                if entity.kind != EntityKind::Pipe || self.outside.contains(&edge.entity) {
                    continue;
                }
                let end = |fd: usize| {
                    self.recording.standard[at][fd].is_some_and(|end| end.entity == edge.entity)
                };
                // What could have happened counts where the pipe is what the program reads from or prints to.
                let sure = edge.certainty == Certainty::Seen;
                let (writers, readers) = pipes.entry(edge.entity).or_default();
                match edge.relation {
                    Relation::Write if sure || end(1) || end(2) => drop(writers.insert(at)),
                    Relation::Read if sure || end(0) => drop(readers.insert(at)),
                    _ => {}
                }
            }
        }
        let mut pipes: Vec<_> = pipes.into_iter().collect();
        pipes.retain(|(_, (writers, readers))| !writers.is_empty() && !readers.is_empty());
        pipes.sort_by_key(|(id, _)| *id);
        pipes
    }
}

/// Readers that belong to a command, each with every writer.
fn pairs<'p>(
    of: &'p HashMap<usize, usize>,
    writers: &'p BTreeSet<usize>,
    readers: &'p BTreeSet<usize>,
) -> impl Iterator<Item = (usize, usize)> + 'p {
    let readers = readers.iter().filter(|reader| of.contains_key(reader));
    readers.flat_map(|&reader| writers.iter().map(move |&writer| (reader, writer)))
}
