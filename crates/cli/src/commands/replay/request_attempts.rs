//! The attempts to run a request again. Each is fed more of what the request may need, or less of
//! what it does not need.
//!
//! In: a search. Out: the result of the best attempt, with its outputs in the directory of the
//! replay. An attempt begins in a copy of the started program, where that is possible. Invariant:
//! no copy decides that the bytes of a request differ.

use std::path::Path;

use backstory_reconstruct::search::{Attempt, AttemptResult, Search};
use backstory_reconstruct::verdict::Likeness;
use backstory_replay::plan::Plan;

use super::attempt_results::{
    Executions, after, may_race, result_of, shifted, shifts_of, threads_again,
};
use super::copies::Starts;
use super::deep::DeepRequest;
use super::{Played, directory};
use crate::args::replay::ReplayArgs;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::progress::{Progress, Unit};
use crate::text::words::counted;

/// Finds what a request needs. `place`: the store, the directory of the replay, and its plan.
pub fn searched(
    place: (&CurrentStore, &Path, &Plan),
    deep: &DeepRequest,
    mut search: Search,
    (args, starts): (&ReplayArgs, &mut Starts),
) -> Result<Played, Failure> {
    let mut of = RequestAttempts {
        place,
        deep,
        args,
        is_client: deep.is_of_client()?,
        sum: Executions::default(),
        obstacles: None,
    };
    let mut again = search.clone();
    let mut best = of.made(&mut search, starts)?;
    starts.release();
    // An attempt that is equal, but for volatile parts, proves itself. Others may differ because
    // their programs are copies.
    let (is_alike, ..) = best.came;
    if !is_alike && of.sum.calls.in_copies > 0 {
        best = of.made(&mut again, &mut Starts::without_copies())?;
        search = again;
    }
    let mut best = best.played;
    if may_race(deep, &best)
        && let Some(again) = again_as(deep, &best)
    {
        let (_, own, _) = of.place;
        let mut sum = std::mem::take(&mut of.sum);
        best = threads_again(own, best, &mut sum, || of.once(again))?;
        of.sum = sum;
    }
    let found = best.reconstruction.as_mut();
    if let Some(request) = found.and_then(|found| found.request.as_mut()) {
        request.executed = of.sum.calls;
        request.start.obstacles = of.obstacles.unwrap_or_default();
    }
    Ok(after(best, &search, &of.sum))
}

/// The attempts at one request.
struct RequestAttempts<'a> {
    place: (&'a CurrentStore, &'a Path, &'a Plan),
    deep: &'a DeepRequest,
    args: &'a ReplayArgs,
    is_client: bool,
    sum: Executions,
    /// All attempts have the same start, so the first one looks for the obstacles to a copy.
    obstacles: Option<Vec<String>>,
}

/// The attempt that came farthest so far.
#[derive(Default)]
struct BestAttempt {
    came: Rank,
    played: Played,
}

impl RequestAttempts<'_> {
    /// Makes the attempts of a search. The directory of the replay gets the files of the best one.
    fn made(&mut self, search: &mut Search, starts: &mut Starts) -> Result<BestAttempt, Failure> {
        let (current, own, plan) = self.place;
        let place = starts.place(own);
        let mut best: Option<BestAttempt> = None;
        while let Some(attempt) = search.attempt() {
            let mut again = self.deep.at(&attempt);
            again.lists_obstacles &= self.obstacles.is_none();
            // The log has a bar of its own while it is read.
            starts.feed(&place, &again)?;
            let (tries, most) = (u64::from(search.tries()), u64::from(search.most()));
            let words = words(search, &attempt, self.is_client);
            let progress = Progress::of(&words, most, Unit::Attempts);
            progress.done.set(tries.saturating_sub(1));
            let how = (!self.is_client && tries < most, self.args.json);
            let played = starts.play((current, &place, plan), again, how);
            progress.end();
            let attempt = self.judged(played?, search);
            let found = attempt.played.reconstruction.as_ref();
            let result = found.map_or(AttemptResult::Different, result_of);
            let (dated, shifts) = shifts_of(&attempt.played);
            search.ended(result, dated, shifts);
            let is_equal = result == AttemptResult::Equal;
            let is_better = |best: &BestAttempt| is_equal || attempt.came > best.came;
            if best.as_ref().is_none_or(is_better) {
                directory::set_aside(&place);
                best = Some(attempt);
            }
        }
        directory::bring_back(&place, own);
        Ok(best.unwrap_or_default())
    }

    /// The result of an attempt, which the sums get.
    fn judged(&mut self, played: Played, search: &Search) -> BestAttempt {
        self.sum.add(&played);
        let found = played.reconstruction.as_ref();
        if let Some(request) = found.and_then(|found| found.request.as_ref()) {
            let obstacles = || request.start.obstacles.clone();
            self.obstacles.get_or_insert_with(obstacles);
        }
        BestAttempt {
            came: rank(&played, search.has_connection()),
            played,
        }
    }

    /// Makes an attempt once more, in the directory of the replay.
    fn once(&self, again: DeepRequest) -> Result<Played, Failure> {
        let (current, own, plan) = self.place;
        directory::empty(own);
        super::play(
            current,
            own,
            plan.clone(),
            Some(again),
            (false, self.args.json),
        )
    }
}

/// The attempt that had this result, once more.
fn again_as(deep: &DeepRequest, played: &Played) -> Option<DeepRequest> {
    let found = played.reconstruction.as_ref()?;
    let mut again = deep.at(&Attempt {
        fed: found.request.as_ref()?.fed.clone(),
        shift: found.shift,
    });
    again.lists_obstacles = false;
    Some(again)
}

/// The attempt that is being made, for a user who waits. `is_client`: the request is one that the
/// program made itself.
fn words(search: &Search, attempt: &Attempt, is_client: bool) -> String {
    let (number, most) = (search.tries(), search.most());
    let fed = match attempt.fed.len() {
        0 if is_client => "the request and all before it".to_owned(),
        0 => "the request alone".to_owned(),
        fed => format!(
            "with {}",
            counted(fed, "earlier request", "earlier requests")
        ),
    };
    let clock = shifted(attempt.shift);
    format!("attempt {number} of at most {most}: {fed}{clock}")
}

/// How far an attempt came that is not equal. The parts: only volatile parts differ, it had the
/// earlier requests of the connection, the request was served, where the first difference is.
type Rank = (bool, bool, bool, u64);

fn rank(played: &Played, has_connection: bool) -> Rank {
    let Some(found) = &played.reconstruction else {
        return (false, false, false, 0);
    };
    let is_served = found.request.as_ref().is_some_and(|r| r.is_served);
    let first = found.first_difference();
    let is_alike = found.likeness() != Likeness::Different;
    let position = first.map_or(0, |first| first.position);
    (is_alike, has_connection, is_served, position)
}

#[cfg(test)]
mod tests {
    use backstory_reconstruct::search::{Candidates, Search};

    use super::words;

    #[test]
    fn an_attempt_tells_whether_its_request_is_alone() {
        let mut search = Search::new(&Candidates::default(), 9);
        let attempt = search.attempt().unwrap();
        let said = |is_client| words(&search, &attempt, is_client);
        assert_eq!(said(false), "attempt 1 of at most 9: the request alone");
        let all = "attempt 1 of at most 9: the request and all before it";
        assert_eq!(said(true), all);
    }
}
