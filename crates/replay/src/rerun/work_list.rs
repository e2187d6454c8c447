//! Decides which planned steps may run.
//!
//! In: the planned steps, the paths of the user's project, and the steps that the user forces. Out:
//! the [`Standing`] of each step. Invariant: a step is fed by earlier steps only, and no step of
//! which every output is outside the project runs.

use std::collections::BTreeSet;

use backstory_currency::{PlannedStep, held};
use backstory_eventlog::event::Bytes;

/// The state of a planned step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does not run.
    Current,
    /// It runs.
    Stale,
    /// It runs if a stale step that feeds it makes another output.
    Waits,
    /// It is stale or waits, and does not run because it is outside the project.
    Outside,
}

/// The planned steps, and those of them that may run.
#[derive(Debug)]
pub struct WorkList<'s> {
    /// The steps.
    pub steps: &'s [PlannedStep],
    forced: BTreeSet<usize>,
    standings: Vec<Standing>,
    /// Of each step, an input that a step outside the project made and that is not the one that the
    /// step has read.
    differing: Vec<Option<Bytes>>,
}

impl<'s> WorkList<'s> {
    /// The list of these steps. `is_inside`: true for the paths of the project. `forced`: steps
    /// that run although they may be current.
    pub fn new(
        steps: &'s [PlannedStep],
        is_inside: &dyn Fn(&[u8]) -> bool,
        forced: BTreeSet<usize>,
    ) -> WorkList<'s> {
        let mut list = WorkList {
            steps,
            forced,
            standings: Vec::new(),
            differing: Vec::new(),
        };
        for (at, step) in steps.iter().enumerate() {
            let differing = list.differing_input(step);
            let stale =
                !step.reasons.is_empty() || list.forced.contains(&at) || differing.is_some();
            let feeding = |&(from, _): &(usize, Bytes)| {
                matches!(
                    list.standings.get(from),
                    Some(Standing::Stale | Standing::Waits)
                )
            };
            let waits = step.fed_by.iter().any(feeding);
            let outside = !step.outputs.iter().any(|(path, _)| is_inside(path));
            list.standings.push(match (stale, waits) {
                (false, false) => Standing::Current,
                _ if outside => Standing::Outside,
                (true, _) => Standing::Stale,
                (false, true) => Standing::Waits,
            });
            list.differing.push(differing);
        }
        list
    }

    fn differing_input(&self, step: &PlannedStep) -> Option<Bytes> {
        let differs = |&(from, path): &(usize, &Bytes)| {
            self.standings.get(from) == Some(&Standing::Outside)
                && step
                    .had
                    .get(path)
                    .is_some_and(|had| held(path) != Some(*had))
        };
        let mut fed = step.fed_by.iter().map(|(from, path)| (*from, path));
        fed.find(differs).map(|(_, path)| path.clone())
    }

    /// The state of a step.
    pub fn standing(&self, at: usize) -> Standing {
        self.standings[at]
    }

    /// True if the user forces the step.
    pub fn is_forced(&self, at: usize) -> bool {
        self.forced.contains(&at)
    }

    /// An input that a step outside the project made, and that has changed since the step read it.
    pub fn differing(&self, at: usize) -> Option<&Bytes> {
        self.differing[at].as_ref()
    }

    /// The steps with one of these states.
    pub fn with(&self, which: &[Standing]) -> Vec<usize> {
        let all = 0..self.steps.len();
        all.filter(|&at| which.contains(&self.standings[at]))
            .collect()
    }
}
