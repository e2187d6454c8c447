//! Commands: which activities belong to which command of the user, and which commands are joined by
//! pipes.
//!
//! In: a recording. Out: [`Pipeline`]s. A command is a tool and everything that the tool started. A
//! driver (a shell with a script, `make`, `env`) is no command, but its children are. There are two
//! exceptions, in which the driver and its children are one command:
//!
//! - The driver did work of its own: a shell's `echo`, the file that a Python script wrote.
//! - The driver is the nearest one above pipes that do not form a plain pipeline.
//!
//! Invariant: every command can be written as a line of shell that means what was recorded.

use backstory_ordering::SmallSort;
use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_graph::model::{Certainty, Edge, EntityId, EntityKind, Relation};
use backstory_graph::standard::StandardEnd;

use super::launchers::{WrapperKind, wrapper};
use super::programs::{is_builder, is_unbuffered};
use super::roles::{ProgramRole, builders, calls_builders, launched_at_last, role};
use crate::recording::Recording;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its activities, that of its program first.
    pub members: Vec<usize>,
}

impl Unit {
    /// The activity of its program.
    pub fn root(&self) -> usize {
        self.members[0]
    }
}

/// Commands in the order in which data flows through the pipes between them; most pipelines have
/// one stage.
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

/// The activities that wrote to a pipe, and those that read from it.
type PipeEnds = (BTreeSet<usize>, BTreeSet<usize>);

/// The files and terminals that the run's command had as standard input, output and errors. They
/// are neither input nor output of a step.
pub fn outside(recording: &Recording) -> HashSet<EntityId> {
    let ends = recording
        .roots()
        .flat_map(|root| recording.standard[root].all())
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
    let mut finder = CommandFinder {
        recording,
        outside: outside(recording),
        readers: readers(recording),
        whole: HashSet::new(),
    };
    // Each round makes one more driver a command, so the loop ends.
    loop {
        let units = finder.units();
        match finder.join(units) {
            Ok(pipelines) => return pipelines,
            Err(driver) => drop(finder.whole.insert(driver)),
        }
    }
}

/// The activities that read or executed each entity.
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

struct CommandFinder<'r> {
    recording: &'r Recording,
    outside: HashSet<EntityId>,
    readers: HashMap<EntityId, Vec<usize>>,
    /// Drivers that are commands because their pipes cannot be written as a pipeline.
    whole: HashSet<usize>,
}

impl CommandFinder<'_> {
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
        units.sort_small_by_key(|unit| {
            (
                self.recording.activities[unit.root()].interval.start,
                unit.root(),
            )
        });
        units
    }

    /// The children of a driver that may be commands. Of a rule's shell that runs `make` elsewhere
    /// these are only the builders.
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
        if launched_at_last(self.recording, at).is_some_and(|next| self.is_unit(next)) {
            return true;
        }
        role(self.recording, at) == ProgramRole::Tool || self.works(at) || self.works_between(at)
    }

    /// True if a process that it forked, and that executed no program, did work.
    fn works_between(&self, at: usize) -> bool {
        let bare = |child: &&usize| self.recording.activities[**child].epoch == 0;
        self.recording.children[at]
            .iter()
            .filter(bare)
            .any(|&child| self.works(child) || self.works_between(child))
    }

    /// True if the activity itself made a file that lasts or that another activity used.
    fn works(&self, at: usize) -> bool {
        let passed = self.passed_on(at);
        let builds = is_builder(self.recording, at);
        let unbuffered = is_unbuffered(self.recording, at);
        let wrapper = wrapper(self.recording, at);
        let [_, output, errors] = self.recording.standard[at].all();
        // The command that a launcher starts has the launcher's output, and alone prints to it.
        let for_command = |edge: &Edge| {
            let is = |end: Option<StandardEnd>| end.is_some_and(|end| end.entity == edge.entity);
            match wrapper {
                Some(WrapperKind::Launcher) => is(output) || is(errors) || self.is_lock(edge),
                Some(WrapperKind::Meter) => is(output) && !is(errors),
                _ => false,
            }
        };
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
                // A builder's file for its own helpers does not concern its commands.
                readers
                    .filter(|reader| **reader != at)
                    .any(|&reader| !builds || self.leaves(reader, at))
            };
            makes
                && !given(edge)
                && !for_command(edge)
                && !self.outside.contains(&edge.entity)
                && !crate::paths::is_tool(&entity.path)
                && !passed.contains(&edge.entity)
                && (entity.last || used())
        })
    }

    /// True if the file is empty: a launcher that made such a file needed it as a lock.
    fn is_lock(&self, edge: &Edge) -> bool {
        let ident = self.recording.entity(edge.entity).ident;
        ident.is_some_and(|ident| ident.size == 0)
    }

    /// True if `reader` or a program that it started made a file that lasts, or that an activity
    /// other than `asker` read.
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

    /// The output files that a shell opened for its last command before it became that command:
    /// `sh -c 'a; b > out'`.
    fn passed_on(&self, at: usize) -> HashSet<EntityId> {
        let activity = &self.recording.activities[at];
        let next = self.recording.children[at].iter().find(|&&child| {
            activity.execed
                && self.recording.activities[child].pid == activity.pid
                && !self.recording.marked.contains(child)
        });
        let ends = next
            .into_iter()
            .flat_map(|&next| self.recording.standard[next].all())
            .flatten();
        ends.filter(|end| !end.keeps)
            .map(|end| end.entity)
            .collect()
    }

    /// The nearest activity that can be a command and is above all of `these`, or one of them.
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

    /// Joins commands by their pipes. An error is a driver that must be a command, because its
    /// pipes form no plain pipeline.
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
                let standard = |unit: usize| self.recording.standard[units[unit].root()];
                let is_pipe = |end: Option<StandardEnd>| end.is_some_and(|end| end.entity == pipe);
                let plain = from.is_some_and(|from| {
                    is_pipe(standard(from).output) && is_pipe(standard(to).input)
                });
                let fits = |map: &HashMap<usize, usize>, at, other| {
                    map.get(&at).is_none_or(|one| *one == other)
                };
                match from.filter(|&from| plain && fits(&next, from, to) && fits(&before, to, from))
                {
                    Some(from) => {
                        next.insert(from, to);
                        before.insert(to, from);
                    }
                    None => {
                        let above = self.above(&[reader, writer]);
                        // A launcher's helpers find out how to start its command.
                        let helps = |driver: &usize| {
                            wrapper(self.recording, *driver) == Some(WrapperKind::Launcher)
                        };
                        if let Some(driver) = above.filter(|driver| !helps(driver)) {
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
        // Pipes form a cycle.
        let left: Vec<usize> = (0..units.len())
            .filter(|unit| !seen.contains(unit))
            .map(|unit| units[unit].root())
            .collect();
        match self.above(&left) {
            Some(driver) => Err(driver),
            None => Ok(pipelines),
        }
    }

    /// Each pipe that has both writers and readers.
    fn pipes(&self) -> Vec<(EntityId, PipeEnds)> {
        let mut pipes: HashMap<EntityId, PipeEnds> = HashMap::new();
        for (at, edges) in self.recording.edges.iter().enumerate() {
            for edge in edges {
                let entity = self.recording.entity(edge.entity);
                if entity.kind != EntityKind::Pipe || self.outside.contains(&edge.entity) {
                    continue;
                }
                let standard = self.recording.standard[at];
                let is_pipe =
                    |end: Option<StandardEnd>| end.is_some_and(|end| end.entity == edge.entity);
                let prints = || is_pipe(standard.output) || is_pipe(standard.error);
                // A possible read or write counts if the pipe is the program's standard input,
                // output or errors.
                let sure = edge.certainty == Certainty::Seen;
                let (writers, readers) = pipes.entry(edge.entity).or_default();
                match edge.relation {
                    Relation::Write if sure || prints() => drop(writers.insert(at)),
                    Relation::Read if sure || is_pipe(standard.input) => drop(readers.insert(at)),
                    _ => {}
                }
            }
        }
        let mut pipes: Vec<_> = pipes.into_iter().collect();
        pipes.retain(|(_, (writers, readers))| !writers.is_empty() && !readers.is_empty());
        pipes.sort_small_by_key(|(id, _)| *id);
        pipes
    }
}

/// All pairs of a reader that belongs to a command and a writer.
fn pairs<'p>(
    of: &'p HashMap<usize, usize>,
    writers: &'p BTreeSet<usize>,
    readers: &'p BTreeSet<usize>,
) -> impl Iterator<Item = (usize, usize)> + 'p {
    let readers = readers.iter().filter(|reader| of.contains_key(reader));
    readers.flat_map(|&reader| writers.iter().map(move |&writer| (reader, writer)))
}
