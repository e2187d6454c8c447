//! Runs whose own commands are done again, because what decided which steps they have has changed.
//!
//! Steps are what a script, a shell or `make` started. Where what those read has changed, doing the same steps again would do what was
//! written there before; so the run's command takes the place of all its steps. Invariant: a step is fed by earlier ones only.

use std::collections::{BTreeMap, HashMap};

use backstory_graph::model::EntityKind;
use backstory_workflow::recording::Recording;
use backstory_workflow::shell::{quote, quote_name};

use super::{PlannedStep, Reason};

/// The steps, those of each run in `guided` as one. `runs` says which run each is of.
pub fn joined(
    steps: Vec<PlannedStep>,
    runs: &[usize],
    recordings: &[Recording],
    guided: BTreeMap<usize, Vec<Reason>>,
) -> Vec<PlannedStep> {
    let mut all: Vec<PlannedStep> = Vec::new();
    let mut first: HashMap<usize, usize> = HashMap::new();
    // Where each is now.
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

/// The command of a run in the place of the first of its steps.
fn whole(step: PlannedStep, recording: &Recording, reasons: &[Reason]) -> PlannedStep {
    let mut whole = PlannedStep {
        script: command(recording),
        cwd: recording.details.summary.cwd.clone(),
        ..step
    };
    whole.reasons.extend_from_slice(reasons);
    whole
}

fn absorb(whole: &mut PlannedStep, step: PlannedStep) {
    // The last of them is what the others are for.
    whole.name = step.name;
    whole.directories.extend(step.directories);
    whole.outputs.extend(step.outputs);
    whole.fed_by.extend(step.fed_by);
    whole.had.extend(step.had);
    whole.reasons.extend(step.reasons);
}

/// A run's command as a shell reads it, with the file that it began with as standard input. What its caller gave it to print to is its
/// caller's, and left alone.
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
