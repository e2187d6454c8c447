//! Steps: what a person would have written, found in what ran.
//!
//! In: a [`Recording`]. Out: [`Step`]s in an order in which they can be run. Invariant: the steps together, run in that order where
//! the inputs are, make every output again, because whatever cannot be told apart is one step.
//!
//! [`programs`] says which programs only start others, [`units`] which processes are one command, [`effects`] what a command took and
//! made, [`merge`] which commands cannot be separate steps, [`careful`] which commands
//! refuse to be done again, [`line`] how a command is written down ([`text`]: what a shell was given),
//! [`pattern`] which steps differ only in a name, [`shared`] which variables all of them have.

mod effects;
mod line;
mod merge;
mod pattern;
mod programs;
mod refusals;
mod shared_environment;
mod shell_text;
mod units;

use std::collections::{BTreeSet, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_query::Globs;

pub use line::{Line, Word};
pub use pattern::{Rule, STEM, filled, rules};
pub use programs::is_shell;
pub use shared_environment::SharedEnvironment;

use crate::recording::Recording;
use effects::Effects;

/// Something that is done to make files from files.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// A short name, unique among the steps: after its first output.
    pub name: String,
    /// What is to be run, one after the other.
    pub lines: Vec<Line>,
    /// Files that it reads and does not make; absolute, sorted.
    pub inputs: Vec<Bytes>,
    /// Files of tools and of the system that it reads.
    pub tools: Vec<Bytes>,
    /// Files that it makes and that are there after it; absolute, sorted.
    pub outputs: Vec<Bytes>,
    /// Directories that somebody else made for its outputs.
    pub directories: Vec<Bytes>,
    /// Directories that it makes itself.
    pub own_directories: Vec<Bytes>,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Which of the recordings it is from.
    pub run: usize,
    /// Its activities: the number of the recording, and the activity in it.
    pub members: Vec<(usize, usize)>,
}

impl Step {
    /// True if it has a program that refuses to read through symbolic links.
    pub fn refuses_links(&self) -> bool {
        self.lines.iter().any(refusals::refuses)
    }
}

/// All steps of several recordings, oldest first, and what was noticed on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workflow {
    /// In an order in which they can be run.
    pub steps: Vec<Step>,
    /// Sentences for people.
    pub notes: Vec<String>,
    /// Files that steps read and then change: done again, they start from what is there by then.
    pub in_place: Vec<Bytes>,
}

/// Finds the steps of recordings, which are given oldest first. `wanted`: only those which contain one of these activities (the number of
/// the recording, the activity).
/// Files that match `exclude` are nobody's inputs or outputs.
pub fn workflow(
    recordings: &[Recording],
    wanted: Option<&HashSet<(usize, usize)>>,
    exclude: &Globs,
) -> Workflow {
    let mut notes = BTreeSet::new();
    let mut parts = Vec::new();
    for (run, recording) in recordings.iter().enumerate() {
        let outside = units::outside(recording);
        let mut opened = HashSet::new();
        for pipeline in units::pipelines(recording) {
            let members: Vec<usize> = pipeline.members().collect();
            let effects = Effects::of(recording, &members, &outside, exclude);
            let lines = vec![line::write(
                recording,
                &pipeline,
                &outside,
                &mut opened,
                &mut notes,
            )];
            let start = recording.activities[pipeline.stages[0].root()]
                .interval
                .start;
            let end = members
                .iter()
                .map(|&at| recording.activities[at].interval.end)
                .max();
            parts.push(merge::Part {
                run,
                lines,
                effects,
                start,
                end: end.unwrap_or(start),
                members,
            });
        }
    }
    let wanted = |part: &merge::Part| {
        wanted.is_none_or(|wanted| {
            part.members
                .iter()
                .any(|&member| wanted.contains(&(part.run, member)))
        })
    };
    parts.retain(wanted);
    let mut in_place = BTreeSet::new();
    let steps = merge::steps(parts, &mut notes, &mut in_place);
    Workflow {
        steps,
        notes: notes.into_iter().collect(),
        in_place: in_place.into_iter().collect(),
    }
}
