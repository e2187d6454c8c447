//! Replaces the steps of a run by the run's own command, if the files that decided on the steps
//! have changed.
//!
//! A script, a shell or `make` started the steps. Repeating the same steps after a change of its
//! files would repeat what the files said before. Invariant: a step is fed by earlier steps only.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_workflow::steps::{Line, whole_line};

use crate::loaded_runs::LoadedRun;
use crate::planned_step::PlannedStep;
use crate::reason::Reason;

/// The steps, with those of each run in `guided` joined into one. `numbers`: the run of each step.
/// `printed`: the results that a run's command printed, with its number. They go to their files
/// again.
pub fn joined(
    steps: Vec<PlannedStep>,
    numbers: &[usize],
    runs: &[Rc<LoadedRun>],
    guided: &BTreeMap<usize, Vec<Reason>>,
    printed: &BTreeSet<(usize, Bytes)>,
) -> Vec<PlannedStep> {
    let mut all: Vec<PlannedStep> = Vec::new();
    let mut first: HashMap<usize, usize> = HashMap::new();
    // The new index of each step.
    let mut places = Vec::new();
    for (step, &run) in steps.into_iter().zip(numbers) {
        if let Some(&at) = first.get(&run) {
            places.push(at);
            absorb(&mut all[at], step);
            continue;
        }
        places.push(all.len());
        match guided.get(&run) {
            Some(reasons) => {
                first.insert(run, all.len());
                let line = command(&runs[run], |path| printed.contains(&(run, path.clone())));
                all.push(whole(step, &runs[run], &line, reasons));
            }
            None => all.push(step),
        }
    }
    for (at, step) in all.iter_mut().enumerate() {
        step.fed_by
            .iter_mut()
            .for_each(|(from, _)| *from = places[*from]);
        step.fed_by.retain(|(from, _)| *from != at);
        step.reasons.sort_small();
        step.reasons.dedup();
    }
    in_order(all)
}

/// The steps in an order in which they can run. A step that would wait for itself over others does
/// not wait.
fn in_order(steps: Vec<PlannedStep>) -> Vec<PlannedStep> {
    let mut places: Vec<Option<usize>> = vec![None; steps.len()];
    let mut order = Vec::new();
    while order.len() < steps.len() {
        let waits = |step: &PlannedStep| {
            let mut from = step.fed_by.iter();
            from.any(|(from, _)| places[*from].is_none())
        };
        let left = || (0..steps.len()).filter(|&at| places[at].is_none());
        let next = left().find(|&at| !waits(&steps[at])).or(left().next());
        let Some(next) = next else { break };
        places[next] = Some(order.len());
        order.push(next);
    }
    let mut waiting: Vec<Option<PlannedStep>> = steps.into_iter().map(Some).collect();
    let mut all: Vec<PlannedStep> = Vec::new();
    for (at, from) in order.into_iter().enumerate() {
        let Some(mut step) = waiting[from].take() else {
            continue;
        };
        step.fed_by = step
            .fed_by
            .into_iter()
            .filter_map(|(from, path)| Some((places[from]?, path)))
            .filter(|(from, _)| *from < at)
            .collect();
        all.push(step);
    }
    all
}

/// The run's command in place of the first of its steps.
fn whole(step: PlannedStep, run: &LoadedRun, line: &Line, reasons: &[Reason]) -> PlannedStep {
    let mut whole = PlannedStep {
        script: line.command(),
        headline: line.headline(),
        cwd: run.recording.details.summary.cwd.clone(),
        members: (0..run.recording.activities.len())
            .map(|at| run.recording.activity_key(at))
            .collect(),
        is_whole_run: true,
        ..step
    };
    whole.reasons.extend_from_slice(reasons);
    whole
}

fn absorb(whole: &mut PlannedStep, step: PlannedStep) {
    // The other steps serve the last one.
    whole.name = step.name;
    whole.directories.extend(step.directories);
    whole.outputs.extend(step.outputs);
    whole.fed_by.extend(step.fed_by);
    whole.had.extend(step.had);
    whole.reasons.extend(step.reasons);
}

/// The run's command. Its output belongs to the caller, unless it is a result.
fn command(run: &LoadedRun, prints: impl Fn(&Bytes) -> bool) -> Line {
    let mut printed = run.redirected.clone();
    printed.retain(|(_, path)| prints(path));
    whole_line(&run.recording, &printed)
}
