//! The commands of a run that a file came from: the part of it that `refine PATH` replays.
//!
//! In: a run, and a file that it wrote. Out: a script of the steps behind the file, in an order in
//! which they run. A step is in the script if it makes the file, or a file that a later step of the
//! script reads. So each input of a step was there before the run, or another step makes it.

use std::collections::HashSet;

use backstory_eventlog::event::Bytes;
use backstory_query::Globs;
use backstory_store::Store;
use backstory_workflow::{Selection, Subject};

use crate::error::Failure;

/// Some of the steps of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct StepsBehind {
    /// Their commands, for a shell in the run's directory.
    pub script: String,
    /// The files that they make.
    pub outputs: HashSet<Bytes>,
    /// How many they are.
    pub count: usize,
    /// How many steps the run has.
    pub of: usize,
}

/// The steps behind a file. `None` if no step makes it, or all steps are behind it.
pub fn steps_behind(
    store: &dyn Store,
    run: &str,
    path: &[u8],
) -> Result<Option<StepsBehind>, Failure> {
    let fail = |error| Failure::not_found(crate::error::chain(&error));
    let subject = Subject::Run(run.to_owned());
    let selection = Selection::load(store, &subject, &[], false).map_err(fail)?;
    let base = selection.base();
    let steps = selection.workflow(&Globs::default()).steps;
    let mut needed: HashSet<&Bytes> = HashSet::new();
    let file = Bytes::from(path);
    needed.insert(&file);
    let mut behind = Vec::new();
    for step in steps.iter().rev() {
        let mut made = step.outputs.iter().chain(&step.own_directories);
        if made.any(|made| needed.contains(made)) {
            needed.extend(step.inputs.iter().chain(&step.directories));
            behind.push(step);
        }
    }
    behind.reverse();
    if behind.is_empty() || behind.len() == steps.len() {
        return Ok(None);
    }
    let lines = behind.iter().flat_map(|step| &step.lines);
    let lines: Vec<String> = lines
        .map(|line| format!("( {} )", line.shell(&base)))
        .collect();
    let outputs = behind.iter().flat_map(|step| step.outputs.iter().cloned());
    Ok(Some(StepsBehind {
        script: lines.join("\n"),
        outputs: outputs.collect(),
        count: behind.len(),
        of: steps.len(),
    }))
}
