//! Results of attempts: what they say about the next attempt, and what all of them cost.

use std::path::Path;

use backstory_reconstruct::divergence::{Divergence, DivergenceKind};
use backstory_reconstruct::search::{AttemptResult, Search};
use backstory_reconstruct::shift::ClockShift;
use backstory_reconstruct::verdict::{ExecutedCalls, Likeness, Reconstruction};

use super::deep::DeepRequest;
use super::{Played, directory};
use crate::error::Failure;
use crate::text::progress::Progress;

/// The executions for a result so far.
#[derive(Debug, Default)]
pub struct Executions {
    /// How long they took, in ns.
    pub took: u64,
    pub calls: ExecutedCalls,
}

impl Executions {
    pub fn add(&mut self, played: &Played) {
        self.took += played.took;
        self.calls = self.calls.and(executed(played));
    }
}

/// True if another execution of the same input may have another result. Under a tool, the user
/// looks at one execution.
pub fn may_race(deep: &DeepRequest, played: &Played) -> bool {
    let found = played.reconstruction.as_ref();
    !deep.has_tool() && found.is_some_and(Reconstruction::may_race)
}

/// Executes the same input `once` more. The result is the second execution, which may count as
/// unsteady.
pub fn threads_again(
    own: &Path,
    before: Played,
    sum: &mut Executions,
    once: impl FnOnce() -> Result<Played, Failure>,
) -> Result<Played, Failure> {
    directory::empty(own);
    let progress = Progress::start("running the threads once more");
    let again = once();
    progress.end();
    let again = again?;
    sum.add(&again);
    Ok(compared_again(before, again))
}

/// The result of a search, after these executions.
pub fn after(mut played: Played, search: &Search, sum: &Executions) -> Played {
    played.took = sum.took;
    if let Some(found) = &mut played.reconstruction {
        found.tries = search.tries();
    }
    played
}

/// The changes of the clock that a date suggests, and those that the record allows. Programs that
/// hang would do so at any moment.
pub fn shifts_of(played: &Played) -> (&[ClockShift], &[ClockShift]) {
    let found = played.reconstruction.as_ref();
    let found = found.filter(|found| found.stopped.is_none());
    match found {
        Some(found) => (&found.dated, &found.shifts),
        None => (&[], &[]),
    }
}

/// The change of the clock, as the end of a line.
pub fn shifted(shift: ClockShift) -> String {
    match shift.ns {
        0 => String::new(),
        _ => format!(", with the clock shifted by {}", shift.words()),
    }
}

/// The executions that the result of an attempt stands for.
pub fn executed(played: &Played) -> ExecutedCalls {
    let found = played.reconstruction.as_ref();
    let request = found.and_then(|found| found.request.as_ref());
    request.map_or_else(ExecutedCalls::default, |request| request.executed)
}

/// The second of two executions of the same input, which may count as unsteady.
pub fn compared_again(before: Played, mut played: Played) -> Played {
    if let (Some(then), Some(now)) = (&before.reconstruction, &mut played.reconstruction) {
        now.compare_again(then);
    }
    played
}

/// The result of an attempt at a request.
pub fn result_of(reconstruction: &Reconstruction) -> AttemptResult {
    let takes_time = reconstruction.took_time;
    // A digest does not say whether the difference is in a date.
    let first = reconstruction.first_difference();
    let digest = |first: &Divergence| first.kind == DivergenceKind::OtherOutput && first.within > 1;
    let unclear = first.is_some_and(|first| first.volatile.is_some() || digest(first));
    match reconstruction.likeness() {
        Likeness::Equal => AttemptResult::Equal,
        Likeness::EqualWhereRecorded if first.is_none() => AttemptResult::Equal,
        _ if takes_time && unclear => AttemptResult::DifferentWithTime,
        _ => AttemptResult::Different,
    }
}
