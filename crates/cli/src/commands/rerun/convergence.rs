//! Says after the work why a second `rerun` would not do nothing.
//!
//! In: the plan, the outcomes, and the store with the new runs. Out: sentences. A step that gave
//! other bytes from unchanged inputs is named with the cause, and so is a step that is stale again.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_contents::Contents;
use backstory_eventlog::event::Bytes;
use backstory_files::{Digest, regular};
use backstory_replay::rerun::divergence::{embedded_time, nondeterministic_inputs};
use backstory_replay::rerun::execution::StepOutcome;
use backstory_replay::rerun::work_list::{Standing, WorkList};
use backstory_replay::rerun::{self, Reason};

use super::plan_text::{file, words};
use super::{Plan, needed};
use crate::commands::contents::store_contents;
use crate::commands::near;
use crate::current_store::CurrentStore;
use crate::error::Failure;

/// The most bytes of an output that are searched for the time.
const SEARCHED: u64 = 1 << 20;

/// The sentences after the work.
#[derive(Debug, Default)]
pub struct Convergence {
    /// Sentences on steps that gave other bytes from the same inputs.
    pub notes: Vec<String>,
    /// Sentences on steps that are stale directly after the work.
    pub stale: Vec<String>,
}

/// The sentences after the work, each once.
///
/// # Errors
///
/// If the store fails.
pub fn after(
    plan: &Plan<'_>,
    done: &[StepOutcome],
    env: &[(Bytes, Bytes)],
    current: &CurrentStore,
) -> Result<Convergence, Failure> {
    let mut end = Convergence::default();
    let mut ran = false;
    for (at, done) in done.iter().enumerate() {
        match done {
            StepOutcome::Again(different) => {
                ran = true;
                let mut recorded = different.iter().filter(|path| is_recorded(plan, at, path));
                if let Some(path) = recorded.next().filter(|_| has_same_inputs(plan, at)) {
                    end.notes.push(diverging(plan, at, path, current)?);
                }
            }
            StepOutcome::Failed(_) | StepOutcome::NotMade(_) | StepOutcome::NotBegun => {
                return Ok(end);
            }
            StepOutcome::Current | StepOutcome::Outside => {}
        }
    }
    if ran {
        end.stale = stale_again(plan, env, current)?;
    }
    Ok(end)
}

/// True if the content is known that the recorded step gave the output. Another former content says
/// nothing about the step.
fn is_recorded(plan: &Plan<'_>, at: usize, path: &[u8]) -> bool {
    let mut outputs = plan.work.steps[at].outputs.iter();
    outputs.any(|(output, known)| **output == *path && known.is_some())
}

/// True if only an output, or the user, was the reason to run the step.
fn has_same_inputs(plan: &Plan<'_>, at: usize) -> bool {
    let step = &plan.work.steps[at];
    let about_output =
        |reason: &Reason| matches!(reason, Reason::OutputGone(_) | Reason::OutputChanged(_));
    let fed = step.fed_by.iter();
    step.reasons.iter().all(about_output)
        && plan.work.differing(at).is_none()
        && fed
            .clone()
            .all(|(_, path)| match (step.had.get(path), rerun::held(path)) {
                (Some(had), Some(now)) => *had == now,
                _ => false,
            })
}

/// The sentence on a step that made another content from the same inputs.
fn diverging(
    plan: &Plan<'_>,
    at: usize,
    path: &[u8],
    current: &CurrentStore,
) -> Result<String, Failure> {
    let step = &plan.work.steps[at];
    let mut outputs = step.outputs.iter();
    let recorded = outputs.find(|(output, _)| **output == *path);
    let before = recorded.and_then(|(_, digest)| stored(current, digest.as_ref()?));
    let after = beginning(regular::open(Path::new(OsStr::from_bytes(path))).ok());
    let time = before
        .zip(after)
        .and_then(|(before, after)| embedded_time(&before, &after));
    let cause = match time {
        Some(cause) => cause,
        None => {
            let inputs = nondeterministic_inputs(&current.store, &step.members)?;
            match inputs.is_empty() {
                true => "no recorded input explains it; the time of day is not recorded".to_owned(),
                false => {
                    let inputs: Vec<String> = inputs.into_iter().take(3).collect();
                    format!("it used {}", inputs.join(", "))
                }
            }
        }
    };
    Ok(format!(
        "{} is different each time, although its inputs are the same: {cause}",
        near(path)
    ))
}

fn stored(current: &CurrentStore, digest: &Digest) -> Option<Vec<u8>> {
    let contents = Contents::open(&current.home.contents_dir()).ok()?;
    beginning(contents.read(digest).ok())
}

fn beginning(content: Option<impl Read>) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    content?.take(SEARCHED).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The sentences on the steps that are stale directly after the work.
fn stale_again(
    plan: &Plan<'_>,
    env: &[(Bytes, Bytes)],
    current: &CurrentStore,
) -> Result<Vec<String>, Failure> {
    let mut now = CurrentStore::open(Some(current.home.dir()))?;
    store_contents(&mut now);
    let steps = needed(&now, plan.paths, env)?.steps;
    let is_inside = |path: &[u8]| plan.scope.contains(path);
    let work = WorkList::new(&steps, &is_inside, Default::default());
    let stale = work.with(&[Standing::Stale]).into_iter();
    let sentence = |at: usize| {
        let step = &steps[at];
        let why = step
            .reasons
            .first()
            .map(|reason| words(reason, step, usize::MAX));
        format!(
            "{} is stale again at once, and every rerun runs it: {}",
            file(step),
            why.unwrap_or_default()
        )
    };
    Ok(stale.map(sentence).collect())
}
