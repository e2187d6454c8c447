//! Finds the steps behind a file and judges each.
//!
//! In: a store and a path. Out: [`PlannedStep`]s with the reasons why they are stale ([`plan`]).
//! The steps are those of [`backstory_workflow`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use backstory_eventlog::event::Bytes;
use backstory_query::Globs;
use backstory_store::Store;
use backstory_workflow::{Error as WorkflowError, Selection, Subject};

use crate::planned_step::PlannedStep;
use crate::staleness::{self, Reason};
use crate::{Result, whole_run};

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
            members: step
                .members
                .iter()
                .map(|&(run, at)| recordings[run].activity_key(at))
                .collect(),
            is_whole_run: false,
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
