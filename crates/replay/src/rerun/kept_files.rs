//! Takes files of a plan as they are: a person's work, and the results of edits.
//!
//! In: the steps of a plan, what each did to files, and the files that the user asked for. Out: the
//! steps that are still needed, and the files that they take as they are.
//!
//! - A file that is not as its maker left it is a person's: edited by hand, replaced, or brought
//!   back by `undo`. Where other steps read it, it is the new truth, and its maker does not run.
//! - An edit (see [`unit_files`](super::unit_files)) is repeated only if the user names the file.
//!
//! Invariant: a file that the user asked for is never kept.

use std::collections::HashSet;

use backstory_currency::{PlannedStep, Reason, held};
use backstory_eventlog::event::Bytes;
use std::path::Path;

use super::unit_files::{ChangedFile, FileOrigin, UnitFiles};

/// A file that is taken as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// Its path.
    pub path: Bytes,
    /// Why it is taken so.
    pub why: KeptBecause,
}

/// Why a file is taken as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptBecause {
    /// It was changed since this run.
    Changed(String),
    /// It is stale, and this command would edit it again.
    Edit(String),
}

/// The steps of a plan with what they did to files.
#[derive(Debug, Default)]
pub struct NeededSteps {
    /// The steps.
    pub steps: Vec<PlannedStep>,
    /// The recorded changes of files of each of them.
    pub units: Vec<UnitFiles>,
    /// The files that they take as they are.
    pub kept: Vec<KeptFile>,
}

impl NeededSteps {
    /// Finds the files to keep, and leaves out the steps that only make them. `wanted`: the files
    /// that the user asked for, by all their names. `store`: the store's directory.
    pub fn of(
        mut steps: Vec<PlannedStep>,
        units: Vec<UnitFiles>,
        wanted: &[Bytes],
        store: &Path,
    ) -> NeededSteps {
        let kept = kept(&steps, &units, wanted, store);
        if kept.is_empty() {
            return NeededSteps { steps, units, kept };
        }
        let paths: HashSet<Bytes> = kept.iter().map(|file| file.path.clone()).collect();
        for step in &mut steps {
            take_as_it_is(step, &paths);
        }
        let needed = needed(&steps, wanted);
        let places: Vec<Option<usize>> = needed
            .iter()
            .scan(0, |next, needed| {
                let place = needed.then_some(*next);
                *next += usize::from(*needed);
                Some(place)
            })
            .collect();
        let mut all = NeededSteps {
            kept,
            ..NeededSteps::default()
        };
        for ((mut step, unit), place) in steps.into_iter().zip(units).zip(&places) {
            if place.is_none() {
                continue;
            }
            let fed = step.fed_by.into_iter();
            step.fed_by = fed
                .filter_map(|(from, path)| Some((places[from]?, path)))
                .collect();
            all.steps.push(step);
            all.units.push(unit);
        }
        all
    }
}

fn kept(
    steps: &[PlannedStep],
    units: &[UnitFiles],
    wanted: &[Bytes],
    store: &Path,
) -> Vec<KeptFile> {
    let mut moving: Vec<bool> = Vec::new();
    for step in steps {
        let fed = step.fed_by.iter().any(|(from, _)| moving[*from]);
        moving.push(fed || !step.reasons.is_empty());
    }
    let mut kept: Vec<KeptFile> = Vec::new();
    for step in steps {
        for (from, path) in &step.fed_by {
            let known = kept.iter().any(|file| file.path == *path);
            if known || wanted.contains(path) || !moving[*from] {
                continue;
            }
            let file = units[*from].changed.iter().find(|file| file.path == *path);
            if let Some(why) = file.and_then(|file| why_kept(file, &steps[*from], store)) {
                let path = path.clone();
                kept.push(KeptFile { path, why });
            }
        }
    }
    kept
}

fn why_kept(file: &ChangedFile, maker: &PlannedStep, store: &Path) -> Option<KeptBecause> {
    if !file.exists() {
        return None;
    }
    if !file.is_as_left(store) {
        let run = file.last.as_ref().map(|last| last.run.clone());
        return Some(KeptBecause::Changed(run.unwrap_or_default()));
    }
    matches!(file.origin, FileOrigin::Edited(_)).then(|| KeptBecause::Edit(maker.headline.clone()))
}

/// Separates a step from the makers of kept files. It is stale if it read another content.
fn take_as_it_is(step: &mut PlannedStep, kept: &HashSet<Bytes>) {
    let is_about_kept =
        |reason: &Reason| matches!(reason, Reason::OutputChanged(path) if kept.contains(path));
    step.reasons.retain(|reason| !is_about_kept(reason));
    let (from_kept, fed) = std::mem::take(&mut step.fed_by)
        .into_iter()
        .partition(|(_, path)| kept.contains(path));
    step.fed_by = fed;
    let from_kept: Vec<(usize, Bytes)> = from_kept;
    for (_, path) in from_kept {
        let same = step
            .had
            .get(&path)
            .is_some_and(|had| held(&path) == Some(*had));
        let known = step.reasons.iter().any(|reason| *reason.subject() == path);
        if !same && !known {
            step.reasons.push(Reason::InputChanged(path));
        }
    }
}

/// True for the steps behind the wanted files. All of them, if a wanted file has another name.
fn needed(steps: &[PlannedStep], wanted: &[Bytes]) -> Vec<bool> {
    let makes = |step: &PlannedStep| step.outputs.iter().any(|(path, _)| wanted.contains(path));
    let mut waiting: Vec<usize> = (0..steps.len()).filter(|&at| makes(&steps[at])).collect();
    let mut needed = vec![waiting.is_empty(); steps.len()];
    while let Some(at) = waiting.pop() {
        if !std::mem::replace(&mut needed[at], true) {
            waiting.extend(steps[at].fed_by.iter().map(|(from, _)| *from));
        }
    }
    needed
}
