//! The facts of a recorded run that build systems and the comparison need.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{EntityKind, Relation};
use backstory_query::Globs;
use backstory_workflow::ownership::Ownership;
use backstory_workflow::paths::base_name;
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{Step, is_one, workflow};
use backstory_workflow::tools::knowledge;

/// A program that the run executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Its current directory.
    pub directory: Bytes,
    /// Its arguments, its name first.
    pub arguments: Vec<Bytes>,
    /// The files that its process read, without those that it started.
    pub read: BTreeSet<Bytes>,
}

impl ToolCall {
    /// True if the program was called by one of these names.
    pub fn is_of(&self, names: &[&str]) -> bool {
        let called = self.arguments.first().map(|word| base_name(word));
        called.is_some_and(|called| names.iter().any(|name| name.as_bytes() == called))
    }
}

/// A recorded run as the comparison sees it.
#[derive(Debug, Default)]
pub struct BuildRun {
    /// The directory in which the run began.
    pub directory: Bytes,
    /// The programs of build systems that no program of the same name started, in directories that
    /// still exist.
    pub calls: Vec<ToolCall>,
    /// The source tree of a package that the run built. `None` if it built no package.
    pub source_tree: Option<Bytes>,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Files that the run made and that exist at its end.
    pub made: BTreeSet<Bytes>,
    /// The user's own files that steps read.
    pub own: BTreeSet<Bytes>,
    /// All other files that the run read.
    pub provided: BTreeSet<Bytes>,
    /// The other names that the run used for files, such as names through symbolic links. The keys
    /// are the names in the steps.
    pub aliases: BTreeMap<Bytes, BTreeSet<Bytes>>,
}

impl BuildRun {
    /// All names that the run used for the file of a step.
    pub fn names<'r>(&'r self, path: &'r Bytes) -> impl Iterator<Item = &'r [u8]> {
        let others = self.aliases.get(path).into_iter().flatten();
        std::iter::once(path).chain(others).map(|name| &**name)
    }

    /// True for a file of the source package that the run built. The whole tree declares it, as the
    /// package is always built from all of it.
    pub fn is_of_package(&self, path: &[u8]) -> bool {
        let top = self.source_tree.as_deref();
        let rest = top.and_then(|top| path.strip_prefix(top));
        rest.is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// Collects the facts of a run. `programs`: names of build systems' programs.
    pub fn of(recording: &Recording, ownership: &mut Ownership, programs: &[&str]) -> BuildRun {
        let none = Globs::default();
        let steps = workflow(std::slice::from_ref(recording), None, &none).steps;
        let mut run = BuildRun {
            directory: recording.cwd().into(),
            calls: calls(recording, programs),
            source_tree: source_tree(recording),
            made: steps
                .iter()
                .flat_map(|step| step.outputs.iter().cloned())
                .collect(),
            ..BuildRun::default()
        };
        for path in steps
            .iter()
            .flat_map(|step| step.inputs.iter().chain(&step.tools))
        {
            let files = match ownership.is_own(path) {
                true => &mut run.own,
                false => &mut run.provided,
            };
            files.insert(path.clone());
        }
        run.steps = steps;
        for entity in recording.entities.iter().filter(|e| !e.aliases.is_empty()) {
            let others = run.aliases.entry(entity.path.clone()).or_default();
            others.extend(entity.aliases.iter().cloned());
        }
        run
    }
}

/// The directory in which the run built a package first.
fn source_tree(recording: &Recording) -> Option<Bytes> {
    let packagers = &knowledge().programs.packagers;
    let first = recording.activities.iter().find(|activity| {
        let called = activity.argv.first().map(|word| base_name(word));
        activity.epoch > 0 && called.is_some_and(|called| is_one(called, packagers))
    });
    first.map(|activity| activity.cwd.clone())
}

/// The calls of these programs. A `make` below another `make` is part of the outer call.
fn calls(recording: &Recording, programs: &[&str]) -> Vec<ToolCall> {
    let name = |at: usize| {
        let activity = &recording.activities[at];
        let path = activity.exec_path.as_ref().or(activity.argv.first());
        let name = path.map(|path| base_name(path)).unwrap_or_default();
        programs.iter().find(|program| program.as_bytes() == name)
    };
    let outermost = |at: &usize| {
        let called = name(*at);
        recording.activities[*at].epoch > 0
            && called.is_some()
            // CMake tries compilers in directories that it removes.
            && Path::new(OsStr::from_bytes(&recording.activities[*at].cwd)).is_dir()
            && !recording.ancestors(*at).any(|above| name(above) == called)
    };
    let all = (0..recording.activities.len()).filter(outermost);
    all.map(|at| ToolCall {
        directory: recording.activities[at].cwd.clone(),
        arguments: recording.activities[at].argv.clone(),
        read: read_by(recording, at),
    })
    .collect()
}

/// The files that one activity read.
fn read_by(recording: &Recording, at: usize) -> BTreeSet<Bytes> {
    let edges = recording.edges[at].iter();
    let reads = edges.filter(|edge| edge.relation == Relation::Read);
    let files = reads.map(|edge| &recording.entities[edge.entity.0 as usize]);
    files
        .filter(|entity| entity.kind == EntityKind::File)
        .map(|entity| entity.path.clone())
        .collect()
}
