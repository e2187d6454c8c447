//! Runs stale steps: makers before users, several at once, and no further than contents differ.

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use backstory_currency::{PlannedStep, held};
use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_redaction as redaction;

use super::output_states::OutputStates;
use super::set_aside::SetAside;
use super::work_list::{Standing, WorkList};

/// The reason why a step with a secret cannot run.
const NOT_IN_RECORD: &str = "an argument of it is a secret that is not in the record: run it yourself, under backstory record";

/// Runs a step.
pub trait StepRunner: Sync {
    /// Runs the step's script. The result is its exit status, or the reason why it could not start.
    /// `started` gets the id of the process that ends when the step has ended.
    fn run(&self, step: &PlannedStep, started: &dyn Fn(u32)) -> io::Result<i32>;

    /// The files that the step changes. They are put aside before.
    fn changes(&self, step: &PlannedStep) -> Vec<Bytes> {
        step.outputs.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Brings the files that the step changes to their state before the recorded step. An error
    /// says why the step cannot run.
    fn prepare(&self, _step: &PlannedStep) -> io::Result<()> {
        Ok(())
    }

    /// True if the step need not make this output, or looked at it and left it alone.
    fn may_leave(&self, _step: &PlannedStep, _output: &[u8]) -> bool {
        false
    }

    /// True if the bytes of a former output, of which this is a copy, are available elsewhere.
    fn is_stored(&self, _copy: &Path) -> bool {
        true
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It is current and did not run.
    Current,
    /// It ran, and these of its outputs changed.
    Again(Vec<Vec<u8>>),
    /// It ran and failed with this status, or could not start for this reason. Its outputs are
    /// those from before.
    Failed(Result<i32, String>),
    /// It ran without an error, and did not make these outputs. They are as before.
    NotMade(Vec<Vec<u8>>),
    /// It did not start, because another step failed.
    NotBegun,
    /// It is not current, and did not run because it is outside the project.
    Outside,
}

/// Receives events while steps run.
pub trait StepProgress {
    /// The step at this index starts.
    fn begins(&mut self, at: usize, step: &PlannedStep);
    /// The step at this index has its outcome. `took`: how long it ran.
    fn done(&mut self, at: usize, step: &PlannedStep, done: &StepOutcome, took: Duration);
}

/// How steps run.
#[derive(Debug, Clone, Copy)]
pub struct ExecutionOptions<'o> {
    /// At most this many run at once.
    pub jobs: usize,
    /// After a failure, go on with the steps that do not depend on the failed one.
    pub keep_going: bool,
    /// The directory for outputs that are put aside.
    pub aside: &'o Path,
    /// The directory for former files that `undo` can bring back.
    pub overwritten: &'o Path,
}

/// The end of a step, as the thread that ran it saw it.
struct StepEnd {
    at: usize,
    status: io::Result<i32>,
    /// Outputs that it did not make, although it ended without an error.
    missed: Vec<Vec<u8>>,
    /// The contents of the outputs before.
    before: Vec<Option<Digest>>,
    took: Duration,
}

/// Runs the stale steps. After a failure, running steps are awaited. The outputs of a failed step
/// are restored.
pub fn bring_up_to_date(
    work: &WorkList<'_>,
    options: ExecutionOptions<'_>,
    runner: &dyn StepRunner,
    progress: &mut dyn StepProgress,
) -> Vec<StepOutcome> {
    let steps = work.steps;
    let mut state: Vec<Option<StepOutcome>> = vec![None; steps.len()];
    let mut at_work: Vec<bool> = vec![false; steps.len()];
    let (tell, told) = mpsc::channel::<StepEnd>();
    std::thread::scope(|scope| {
        loop {
            let failed = state
                .iter()
                .any(|done| matches!(done, Some(StepOutcome::Failed(_) | StepOutcome::NotMade(_))));
            let stops = failed && !options.keep_going;
            while let Some(at) = next(steps, &state, &at_work).filter(|_| !stops) {
                let idle = match work.standing(at) {
                    Standing::Outside => Some(StepOutcome::Outside),
                    _ if is_stale(work, at, &state) => None,
                    _ => Some(StepOutcome::Current),
                };
                if let Some(done) = idle {
                    progress.done(at, &steps[at], &done, Duration::ZERO);
                    state[at] = Some(done);
                } else if at_work.iter().filter(|busy| **busy).count() < options.jobs.max(1) {
                    at_work[at] = true;
                    progress.begins(at, &steps[at]);
                    let (tell, step) = (tell.clone(), &steps[at]);
                    scope.spawn(move || {
                        // The receiver outlives all senders.
                        let _ = tell.send(run(at, step, options, runner));
                    });
                } else {
                    break;
                }
            }
            if !at_work.contains(&true) {
                break;
            }
            let Ok(end) = told.recv() else {
                break;
            };
            let (at, took) = (end.at, end.took);
            at_work[at] = false;
            let done = outcome(&steps[at], end);
            progress.done(at, &steps[at], &done, took);
            state[at] = Some(done);
        }
    });
    state
        .into_iter()
        .map(|done| done.unwrap_or(StepOutcome::NotBegun))
        .collect()
}

/// The next step that has not started and whose feeding steps are done.
fn next(steps: &[PlannedStep], state: &[Option<StepOutcome>], at_work: &[bool]) -> Option<usize> {
    let fed = |step: &PlannedStep| {
        let mut from = step.fed_by.iter();
        from.all(|(from, _)| {
            matches!(
                state[*from],
                Some(StepOutcome::Current | StepOutcome::Again(_) | StepOutcome::Outside)
            )
        })
    };
    (0..steps.len()).find(|&at| state[at].is_none() && !at_work[at] && fed(&steps[at]))
}

/// True if the step is stale, or has an input that another step made differently.
fn is_stale(work: &WorkList<'_>, at: usize, state: &[Option<StepOutcome>]) -> bool {
    let step = &work.steps[at];
    let fed = |(from, path): &(usize, Bytes)| match (&state[*from], step.had.get(path)) {
        (Some(StepOutcome::Again(_)), Some(had)) => held(path) != Some(*had),
        (Some(StepOutcome::Again(different)), None) => {
            different.iter().any(|other| **other == **path)
        }
        _ => false,
    };
    work.standing(at) == Standing::Stale || step.fed_by.iter().any(fed)
}

/// Puts the outputs of a step aside, runs it, and restores the outputs if it fails.
fn run(
    at: usize,
    step: &PlannedStep,
    options: ExecutionOptions<'_>,
    runner: &dyn StepRunner,
) -> StepEnd {
    let begun = Instant::now();
    let outputs = step.outputs.iter();
    let before = outputs
        .map(|(path, known)| known.or_else(|| held(path)))
        .collect();
    let done = match redaction::has_mark(step.script.as_bytes()) {
        true => Err(io::Error::other(NOT_IN_RECORD)),
        false => guarded(step, options, runner),
    };
    let (status, missed) = match done {
        Ok((status, missed)) => (Ok(status), missed),
        Err(error) => (Err(error), Vec::new()),
    };
    StepEnd {
        at,
        status,
        missed,
        before,
        took: begun.elapsed(),
    }
}

/// The status of a step, and the outputs that it did not make.
fn guarded(
    step: &PlannedStep,
    options: ExecutionOptions<'_>,
    runner: &dyn StepRunner,
) -> io::Result<(i32, Vec<Vec<u8>>)> {
    let changes = runner.changes(step);
    let paths = changes.iter().map(|path| &**path);
    let old = SetAside::take(options.aside, paths)
        .map_err(|error| io::Error::other(format!("its outputs cannot be put aside: {error}")))?;
    let mut states = None;
    let ready = runner.prepare(step);
    let status = ready.and_then(|()| {
        states = Some(OutputStates::of(step));
        runner.run(step, &|process| old.worked_on_by(process))
    });
    let kept = |error| io::Error::other(format!("and its old outputs cannot be put back: {error}"));
    if !matches!(status, Ok(0)) {
        old.restore().map_err(kept)?;
        return status.map(|status| (status, Vec::new()));
    }
    let mut missed = states.map_or_else(Vec::new, |states| states.untouched(step));
    missed.retain(|output| !runner.may_leave(step, output));
    if !missed.is_empty() {
        old.restore_only(&missed).map_err(kept)?;
    }
    old.archive(options.overwritten, &|copy| runner.is_stored(copy))
        .map_err(|error| io::Error::other(format!("its old outputs cannot be kept: {error}")))?;
    Ok((0, missed))
}

fn outcome(step: &PlannedStep, end: StepEnd) -> StepOutcome {
    match end.status {
        Err(error) => StepOutcome::Failed(Err(error.to_string())),
        Ok(0) if !end.missed.is_empty() => StepOutcome::NotMade(end.missed),
        Ok(0) => {
            let outputs = step.outputs.iter().zip(&end.before);
            let different =
                outputs.filter(|((path, _), before)| before.is_none() || held(path) != **before);
            StepOutcome::Again(different.map(|((path, _), _)| path.to_vec()).collect())
        }
        Ok(status) => StepOutcome::Failed(Ok(status)),
    }
}

#[cfg(test)]
mod tests;
