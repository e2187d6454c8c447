//! Steps: the commands that a person would have written, found in the processes that ran.
//!
//! In: [`Recording`]s. Out: a [`Workflow`] of [`Step`]s in an order in which they can run.
//! Invariant: the steps make every output again if they run in that order where the inputs are.
//! Commands that cannot be separated are one step.
//!
//! | module | question that it answers |
//! | --- | --- |
//! | [`programs`], [`launchers`], [`roles`] | Which programs only start others? |
//! | [`shell_call`] | Did a shell get a text, a script or its standard input? |
//! | [`units`] | Which processes are one command, which commands one pipeline? |
//! | [`bookkeeping`] | Which files only say whether a command must run? |
//! | [`effects`] | Which files did a command read, make and remove? |
//! | [`compose`], [`line`] | How is a command written as a line? |
//! | [`headline`] | How is a line shown to a reader? |
//! | [`script`] | Which script does an interpreter run? |
//! | [`whole_run`] | How is a run's command one step with what it printed? |
//! | [`shell_text`] | Can the text of `sh -c` stand for itself? |
//! | [`merge`], [`grouping`] | Which commands must be one step? |
//! | [`omissions`] | Which commands are left out? |
//! | [`order`] | In which order do steps run, and how are they named? |
//! | [`refusals`] | Which commands refuse to run a second time? |
//! | [`rule`], [`stem`] | Which steps differ only in a name? |
//! | [`shared_environment`] | Which variables do all steps share? |

mod bookkeeping;
mod compose;
mod effects;
mod grouping;
mod headline;
mod launchers;
mod line;
mod merge;
mod omissions;
mod order;
mod part;
mod programs;
mod refusals;
mod roles;
mod rule;
mod script;
mod shared_environment;
mod shell_call;
mod shell_text;
mod stem;
mod units;
mod whole_run;

use std::collections::{BTreeSet, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_query::Globs;

pub use bookkeeping::{is_bookkeeping, is_plan, is_read_by_builder};
pub use compose::call;
pub use launchers::helps_launcher;
pub use line::{Line, Word};
pub use programs::{
    is_builder, is_interpreted, is_one, is_shell, is_unbuffered, names_shell, program,
};
pub use roles::{ProgramRole, launched, role};
pub use rule::{Rule, rules};
pub use script::script;
pub use shared_environment::SharedEnvironment;
pub use shell_call::ShellCall;
pub use stem::{STEM, filled};
pub use units::outside;
pub use whole_run::{outer_input, whole_line};

use crate::recording::Recording;
use effects::Effects;
use omissions::leave_out_repeated;

/// A part of a workflow that makes files from files.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// A short name, unique among the steps: after its first output.
    pub name: String,
    /// Its commands, in the order in which they run.
    pub lines: Vec<Line>,
    /// Files that it reads and does not make; absolute, sorted.
    pub inputs: Vec<Bytes>,
    /// Files of tools and of the system that it reads.
    pub tools: Vec<Bytes>,
    /// Files that it makes and that exist after it; absolute, sorted.
    pub outputs: Vec<Bytes>,
    /// Directories of its outputs that another step makes.
    pub directories: Vec<Bytes>,
    /// Directories that it makes itself.
    pub own_directories: Vec<Bytes>,
    /// The begin of its first command.
    pub start: Time,
    /// The end of its last command.
    pub end: Time,
    /// The number of its recording.
    pub run: usize,
    /// Its activities: the number of the recording, and the activity's index in it.
    pub members: Vec<(usize, usize)>,
}

impl Step {
    /// True if one of its programs refuses to read through symbolic links.
    pub fn refuses_links(&self) -> bool {
        self.lines.iter().any(refusals::refuses)
    }
}

/// The steps of several recordings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workflow {
    /// The steps, in an order in which they can run.
    pub steps: Vec<Step>,
    /// Sentences for people: what is left out or must be filled in.
    pub notes: Vec<String>,
    /// Files that a step reads and then changes. Run again, the step starts from the changed file.
    pub in_place: Vec<Bytes>,
}

/// The commands of one run, with their effects: the part of the work that depends on that run only.
#[derive(Debug, Clone, Default)]
pub struct RunCommands {
    /// The id of the run.
    run: String,
    /// The id of the run that it repeats.
    repeats: Option<String>,
    parts: Vec<part::Part>,
    notes: BTreeSet<String>,
}

impl RunCommands {
    /// True if two activities of the run belong to one command, or to one pipeline.
    pub fn are_joined(&self, one: usize, other: usize) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| part.members.contains(&one) && part.members.contains(&other))
    }

    /// Finds the commands. Files that match `exclude` are inputs and outputs of none.
    pub fn of(recording: &Recording, exclude: &Globs) -> RunCommands {
        let summary = &recording.details.summary;
        let mut commands = RunCommands {
            run: summary.id.clone(),
            repeats: summary.repeats.clone(),
            ..RunCommands::default()
        };
        let outside = units::outside(recording);
        let mut opened = HashSet::new();
        for pipeline in units::pipelines(recording) {
            let members: Vec<usize> = pipeline.members().collect();
            let effects = Effects::of(recording, &members, &outside, exclude);
            let lines = vec![compose::write(
                recording,
                &pipeline,
                &outside,
                &mut opened,
                &mut commands.notes,
            )];
            let start = recording.activities[pipeline.stages[0].root()]
                .interval
                .start;
            let end = members
                .iter()
                .map(|&at| recording.activities[at].interval.end)
                .max();
            commands.parts.push(part::Part {
                run: 0,
                lines,
                effects,
                start,
                end: end.unwrap_or(start),
                members,
            });
        }
        commands
    }
}

/// Finds the steps of recordings, which must be in order of time.
///
/// `wanted`: only steps with one of these activities (the number of the recording, the activity's
/// index); `None`: all steps. Files that match `exclude` are inputs and outputs of no step.
pub fn workflow(
    recordings: &[Recording],
    wanted: Option<&HashSet<(usize, usize)>>,
    exclude: &Globs,
) -> Workflow {
    let all: Vec<RunCommands> = recordings
        .iter()
        .map(|recording| RunCommands::of(recording, exclude))
        .collect();
    workflow_of(&all.iter().collect::<Vec<_>>(), wanted)
}

/// The same, of the commands of each run.
pub fn workflow_of(runs: &[&RunCommands], wanted: Option<&HashSet<(usize, usize)>>) -> Workflow {
    let mut notes = BTreeSet::new();
    let mut parts = Vec::new();
    for (run, commands) in runs.iter().enumerate() {
        let is_wanted = |part: &&part::Part| {
            wanted.is_none_or(|wanted| part.members.iter().any(|&at| wanted.contains(&(run, at))))
        };
        let here = commands.parts.iter().filter(is_wanted).cloned();
        parts.extend(here.map(|part| part::Part { run, ..part }));
        notes.extend(commands.notes.iter().cloned());
    }
    leave_out_repeated(&mut parts, runs);
    let mut in_place = BTreeSet::new();
    let steps = merge::steps(parts, &mut notes, &mut in_place);
    Workflow {
        steps,
        notes: notes.into_iter().collect(),
        in_place: in_place.into_iter().collect(),
    }
}
