//! Brings a file up to date: runs those recorded steps behind it again whose inputs or outputs have
//! changed.
//!
//! In: a store and a path. Out: [`PlannedStep`]s with the reasons why they are stale ([`plan`]),
//! and their execution ([`execution::bring_up_to_date`]) through the caller's runner. The steps are
//! those of [`backstory_workflow`].

pub mod execution;
mod staleness;
mod whole_run;

use backstory_vocabulary::ContentsMode;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_query::Globs;
use backstory_store::Store;
use backstory_workflow::{Error as WorkflowError, Selection, Subject};

use crate::Result;

pub use staleness::Reason;

/// A step with the state of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// A short name, after its first output.
    pub name: String,
    /// The commands, for a shell in the step's directory, one a line.
    pub script: String,
    /// Its directory.
    pub cwd: Bytes,
    /// Its environment.
    pub env: Vec<(Bytes, Bytes)>,
    /// The id of its run.
    pub run: String,
    /// Which contents the recorded run stored; `None` if that is not known.
    pub contents: Option<ContentsMode>,
    /// Directories that must exist for its outputs.
    pub directories: Vec<Bytes>,
    /// Its outputs, with their recorded contents as far as known.
    pub outputs: Vec<(Bytes, Option<Digest>)>,
    /// Its inputs that another step makes: the step, and the file.
    pub fed_by: Vec<(usize, Bytes)>,
    /// The recorded contents of these inputs, as far as known.
    pub had: HashMap<Bytes, Digest>,
    /// The reasons why it is stale. Without a reason it is current, unless a step that feeds it
    /// makes another content.
    pub reasons: Vec<Reason>,
}

/// The steps behind a path, with the reasons of the stale ones. `env`: changed variables.
///
/// # Errors
///
/// If no step made the path, or the store fails.
pub fn plan(store: &dyn Store, path: PathBuf, env: &[(Bytes, Bytes)]) -> Result<Vec<PlannedStep>> {
    let selection = Selection::load(store, &Subject::Path(path), &[], false)?;
    let workflow = selection.workflow(&Globs::new::<String>(&[])?);
    if workflow.steps.is_empty() {
        return Err(WorkflowError::NoSteps(selection.description).into());
    }
    let (base, recordings) = (selection.base(), &selection.recordings);
    let maker: HashMap<&Bytes, usize> = workflow
        .steps
        .iter()
        .enumerate()
        .flat_map(|(at, step)| step.outputs.iter().map(move |output| (output, at)))
        .collect();
    let made: HashSet<&Bytes> = maker.keys().copied().collect();
    let check = staleness::StalenessCheck::new(store, recordings, &made, env)?;
    let mut steps = Vec::new();
    // For each step, whether it runs again, or may.
    let mut moving: Vec<bool> = Vec::new();
    for (at, step) in workflow.steps.iter().enumerate() {
        let recording = &recordings[step.run];
        let script: Vec<String> = step
            .lines
            .iter()
            .map(|line| {
                let text = line.shell(&base);
                if step.lines.len() > 1 {
                    format!("( {text} )")
                } else {
                    text
                }
            })
            .collect();
        let read = step.inputs.iter().chain(&step.tools);
        let fed_by = read.filter_map(|input| {
            maker
                .get(input)
                .filter(|&&from| from != at)
                .map(|&from| (from, input.clone()))
        });
        let fed_by: Vec<(usize, Bytes)> = fed_by.collect();
        let had = check.had(step)?;
        let mut reasons = check.reasons(step)?;
        // An input that a stale step makes is compared after that step has run. An input that
        // differs although its step is current was changed by another program.
        let others = fed_by.iter().filter(|(from, path)| {
            moving.get(*from) == Some(&false) && had.get(path).is_some_and(|had| !had.same)
        });
        reasons.extend(others.map(|(_, path)| Reason::InputChanged(path.clone())));
        let waits = |(from, _): &(usize, Bytes)| moving.get(*from) != Some(&false);
        moving.push(!reasons.is_empty() || fed_by.iter().any(waits));
        steps.push(PlannedStep {
            name: step.name.clone(),
            script: script.join("\n"),
            cwd: base.clone(),
            env: staleness::environment(&recording.details.environment, env),
            run: recording.details.summary.id.clone(),
            contents: recording.details.modes.contents,
            directories: step.directories.clone(),
            outputs: check.outputs(step)?,
            fed_by,
            had: had
                .into_iter()
                .filter_map(|(path, had)| Some((path, had.digest?)))
                .collect(),
            reasons,
        });
    }
    let mut guided: BTreeMap<usize, Vec<Reason>> = BTreeMap::new();
    for (run, reason) in workflow
        .steps
        .iter()
        .map(|step| check.guides(step))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
    {
        guided.entry(run).or_default().push(reason);
    }
    let runs: Vec<usize> = workflow.steps.iter().map(|step| step.run).collect();
    Ok(whole_run::joined(steps, &runs, recordings, guided))
}
