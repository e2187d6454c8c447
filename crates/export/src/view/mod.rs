//! The part of the graph that is exported, as plain data: what every format reads.
//!
//! In: a store and a [`Request`]. Out: a [`View`] with the graph at the requested level of detail
//! and, at every level, the [`Workflow`] behind it. Indexes into `activities` and `entities` are
//! stable within one view. Ids are stable between exports of the same store.

mod byte_marks;
mod graph;
mod load;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use backstory_eventlog::event::Bytes;
use backstory_eventlog::job_rank::JobRank;
use backstory_files::Ident;
use backstory_graph::marks::Notes;
use backstory_graph::model::{Certainty, EntityKind, Interval};
use backstory_query::ByteUse;
use backstory_query::answer::{Flow, RunDetails};
use backstory_workflow::recording::split;
use backstory_workflow::selection::WholeCommand;
use backstory_workflow::shell;
use backstory_workflow::steps::{SharedEnvironment, Step, Workflow};

use crate::family::Family;
use crate::file_contents::FileContents;
use crate::{Error, Result};

pub use request::{Level, Request};

/// An activity of a view: a process, or a step at [`Level::Command`].
#[derive(Debug, Clone, PartialEq)]
pub struct ViewActivity {
    /// `RUN/NUMBER`, or `RUN/NAME` of a step.
    pub id: String,
    /// The number of its run in [`View::runs`].
    pub run: usize,
    /// The command as a line for a shell.
    pub label: String,
    /// Absolute path of the program; `None` for a step of several commands, and where the program
    /// is not known.
    pub program: Option<Bytes>,
    /// Arguments, the program's name first; empty for a step of several commands.
    pub argv: Vec<Bytes>,
    /// Current directory.
    pub cwd: Bytes,
    /// `NAME=value` of each variable that differs from the run's environment.
    pub env_set: Vec<Bytes>,
    /// From its begin to its end.
    pub interval: Interval,
    /// Exit status, if it is known.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Process id.
    pub pid: u32,
    /// The number of the program within its process; 0 between fork and exec.
    pub epoch: u32,
    /// The nearest activity of the view that started it.
    pub parent: Option<usize>,
    /// The step of the view's workflow that it is part of.
    pub step: Option<usize>,
    /// It is a part of a program's work that the program named.
    pub is_part: bool,
    /// Attributes and extended records that the program gave it.
    pub notes: Notes,
    /// Its place in a job of a launcher of parallel work. `None` also for an activity whose parent
    /// has the same place.
    pub job_rank: Option<JobRank>,
}

impl ViewActivity {
    /// True if it ended with another status than 0, or by a signal.
    pub fn failed(&self) -> bool {
        self.exit.is_some_and(|exit| exit != 0) || self.signal.is_some()
    }
}

/// A version of a file, pipe, directory or other thing.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewEntity {
    /// `RUN/fNUMBER`.
    pub id: String,
    /// The number of its run in [`View::runs`].
    pub run: usize,
    /// File, pipe, directory and so on.
    pub kind: EntityKind,
    /// Absolute path, or the name of a channel.
    pub path: Bytes,
    /// 0 for the state before the run.
    pub version: u32,
    /// The identity of the version, if it was taken for certain.
    pub ident: Option<Ident>,
    /// The file system held this version when the run ended.
    pub last: bool,
    /// It belongs to the system or to a tool.
    pub tool: bool,
    /// Inputs of its run of which it has no byte, as indexes into [`View::entities`]. Empty if the
    /// byte engine did not follow the run.
    pub no_byte_of: BTreeSet<usize>,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// An index into [`View::activities`].
    Activity(usize),
    /// An index into [`View::entities`].
    Entity(usize),
}

impl Endpoint {
    /// Its short name, unique in a view: `a3`, `e12`.
    pub fn name(self) -> String {
        match self {
            Endpoint::Activity(at) => format!("a{at}"),
            Endpoint::Entity(at) => format!("e{at}"),
        }
    }
}

/// An edge, in the direction in which information flowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ViewLink {
    /// The source of the information.
    pub from: Endpoint,
    /// Its destination.
    pub to: Endpoint,
    /// How it flowed.
    pub flow: Flow,
    /// Seen or possible.
    pub certainty: Certainty,
    /// The earliest and the latest moment of the flow.
    pub interval: Interval,
    /// Whether bytes of a file that is read came into the files of the view behind the link.
    /// `None`: that is not known.
    pub bytes: Option<ByteUse>,
}

/// One execution of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCall {
    /// Absolute path, if it is known.
    pub path: Option<Bytes>,
    /// Arguments, the program's name first.
    pub argv: Vec<Bytes>,
    /// Current directory.
    pub cwd: Bytes,
}

/// A view: the exported part of the graph, and the workflow behind it.
#[derive(Debug)]
pub struct View {
    /// The subject in words: `run ID`, or the path.
    pub subject: String,
    /// The requested file; `None` for a run.
    pub requested: Option<Bytes>,
    /// The contents of the runs' files.
    pub contents: FileContents,
    /// The level of detail.
    pub level: Level,
    /// The runs behind the subject, oldest first.
    pub runs: Vec<RunDetails>,
    /// Activities in the order in which they began.
    pub activities: Vec<ViewActivity>,
    /// The files and other things that the activities used and made.
    pub entities: Vec<ViewEntity>,
    /// The flow of information between them.
    pub links: Vec<ViewLink>,
    /// The steps behind the subject.
    pub workflow: Workflow,
    /// For each step of the workflow, its place in a job of a launcher of parallel work. A step of
    /// several ranks has the job alone.
    pub step_ranks: Vec<Option<JobRank>>,
    /// Every program that ran and belongs to the subject, at every level.
    pub programs: Vec<ProgramCall>,
    /// The directory that steps are written from: the newest run's current directory.
    pub base: Bytes,
    /// Steps that differ only in a name become one rule.
    pub generalise: bool,
    /// A bill of materials lists every file, not only packages and results. An attestation lists
    /// the files of packages.
    pub files: bool,
    /// Sentences that the reader of the export must know.
    pub warnings: Vec<String>,
    /// The seals of the runs, as `store verify --evidence` reads them. `None` without seals.
    pub evidence: Option<serde_json::Value>,
    /// The log whose calls of functions are written instead of the graph.
    pub calls: Option<PathBuf>,
    /// The facts of [`crate::hermeticity`]. `None` if the format does not need them.
    pub hermeticity: Option<serde_json::Value>,
    /// Sentences for the head of a file that is executed: what its steps depend on beside files.
    pub head: Vec<String>,
    /// The runs whose whole command is one step, by the number in [`View::runs`].
    pub whole: BTreeMap<usize, WholeCommand>,
}

impl View {
    /// The workflow.
    ///
    /// # Errors
    ///
    /// [`backstory_workflow::Error::NoSteps`] if no step left a file; [`Error::Lost`] if the steps
    /// cannot be right after a change.
    pub fn steps(&self) -> Result<&Workflow> {
        for (at, command) in &self.whole {
            if let (Some(because), Some(lost)) = (&command.because, command.lost) {
                return Err(Error::Lost {
                    run: self.runs[*at].summary.id.clone(),
                    because: because.clone(),
                    lost,
                });
            }
        }
        if self.workflow.steps.is_empty() {
            return Err(backstory_workflow::Error::NoSteps(self.subject.clone()).into());
        }
        Ok(&self.workflow)
    }

    /// The steps, with the variables that all of them share apart.
    ///
    /// # Errors
    ///
    /// As [`View::steps`].
    pub fn shared_environment(&self) -> Result<SharedEnvironment> {
        let variables = self.runs.iter().flat_map(|run| &run.environment);
        let names = variables
            .filter_map(|pair| split(pair))
            .map(|(name, _)| name.into());
        Ok(SharedEnvironment::of(
            &self.steps()?.steps,
            &names.collect(),
        ))
    }

    /// True if names in directories decided on a step: no input shows a change of them.
    pub fn looks(&self, step: &Step) -> bool {
        let mut runs = step.members.iter().map(|(run, _)| self.whole.get(run));
        runs.any(|whole| whole.is_some_and(|whole| whole.looks))
    }

    /// The path as the steps name it: relative to the base if it lies below.
    pub fn shown<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        backstory_workflow::paths::relative(path, &self.base)
    }

    /// Sentences that the reader of a format of this family must know.
    pub fn warnings_for(&self, family: Family) -> Vec<String> {
        // A container runs the command as it was recorded. A list of processes has all of them.
        // Both include the commands that the steps leave out.
        let listed = self.level != Level::Command && family != Family::Workflow;
        let whole = listed || family == Family::Container;
        let mut said: Vec<String> = self
            .warnings
            .iter()
            .filter(|warning| !whole || !self.workflow.notes.contains(warning))
            .cloned()
            .collect();
        if family == Family::Workflow {
            said.extend(self.in_place_warning());
        }
        said
    }

    /// Names the files that a repeated step would change a second time.
    fn in_place_warning(&self) -> Option<String> {
        let files = &self.workflow.in_place;
        let named: Vec<String> = files
            .iter()
            .take(3)
            .map(|path| shell::quote(self.shown(path)))
            .collect();
        let named = named.join(", ");
        let many = files.len();
        Some(match many {
            0 => return None,
            1 => format!(
                "{named} is changed in place: the step that does it starts from what is there, not from what was there before"
            ),
            _ => format!(
                "{many} files are changed in place ({named}{}): the steps that do it start from what is there, not from what was \
                 there before",
                if many > 3 { ", …" } else { "" }
            ),
        })
    }
}
