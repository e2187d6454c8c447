//! Replaces the steps of a run by the run's own command, if the files that decided on the steps
//! have changed.
//!
//! A script, a shell or `make` started the steps. Repeating the same steps after a change of its
//! files would repeat what the files said before. Invariant: a step is fed by earlier steps only.

use std::collections::{BTreeMap, HashMap};

use backstory_graph::model::EntityKind;
use backstory_workflow::recording::Recording;
use backstory_workflow::shell::{quote, quote_name};

use crate::planned_step::PlannedStep;
use crate::staleness::Reason;

/// The steps, with those of each run in `guided` joined into one. `runs`: the run of each step.
pub fn joined(
    steps: Vec<PlannedStep>,
    runs: &[usize],
    recordings: &[Recording],
    guided: BTreeMap<usize, Vec<Reason>>,
) -> Vec<PlannedStep> {
    let mut all: Vec<PlannedStep> = Vec::new();
    let mut first: HashMap<usize, usize> = HashMap::new();
    // The new index of each step.
    let mut places = Vec::new();
    for (step, &run) in steps.into_iter().zip(runs) {
        if let Some(&at) = first.get(&run) {
            places.push(at);
            absorb(&mut all[at], step);
            continue;
        }
        places.push(all.len());
        match guided.get(&run) {
            Some(reasons) => {
                first.insert(run, all.len());
                all.push(whole(step, &recordings[run], reasons));
            }
            None => all.push(step),
        }
    }
    for (at, step) in all.iter_mut().enumerate() {
        step.fed_by
            .iter_mut()
            .for_each(|(from, _)| *from = places[*from]);
        step.fed_by.retain(|(from, _)| *from < at);
        step.reasons.sort();
        step.reasons.dedup();
    }
    all
}

/// The run's command in place of the first of its steps.
fn whole(step: PlannedStep, recording: &Recording, reasons: &[Reason]) -> PlannedStep {
    let mut whole = PlannedStep {
        script: command(recording),
        cwd: recording.details.summary.cwd.clone(),
        members: (0..recording.activities.len())
            .map(|at| recording.activity_key(at))
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

/// The run's command for a shell, with its standard input if that was a file. Its output belongs to
/// the caller.
fn command(recording: &Recording) -> String {
    let words = recording.details.summary.command.iter().enumerate();
    let words = words.map(|(at, word)| {
        if at == 0 {
            quote_name(word)
        } else {
            quote(word)
        }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    let root = recording.roots().next();
    let input = root.and_then(|root| recording.standard[root].input);
    let entity = input.map(|end| recording.entity(end.entity));
    match entity.filter(|entity| entity.kind == EntityKind::File && entity.path.starts_with(b"/")) {
        Some(entity) => format!("{line} < {}", quote(&entity.path)),
        None => line,
    }
}
