//! The attempts to run one request again: each in a new root, with more of what it may need.

use std::path::Path;

use backstory_reconstruct::divergence::{Divergence, DivergenceKind};
use backstory_reconstruct::search::{Attempt, AttemptResult, Search};
use backstory_reconstruct::verdict::{ExecutedCalls, Likeness, Reconstruction, RequestVerdict};
use backstory_replay::plan::Plan;

use super::deep::DeepRequest;
use super::{Played, directory};
use crate::args::replay::ReplayArgs;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::progress::Progress;
use crate::text::words::counted;

/// Runs the plan. For a chosen request, attempts follow until one is equal, or their bound is
/// reached. Returns the best one: the last equal one, else the one that came farthest.
pub fn play(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: Option<DeepRequest>,
    args: &ReplayArgs,
) -> Result<Played, Failure> {
    let has_tool = deep.as_ref().is_some_and(DeepRequest::has_tool);
    // Under a tool, the user looks at one execution.
    let most = match has_tool {
        true => 1,
        false => args.reconstruction.tries,
    };
    let search = match &deep {
        Some(deep) => deep.search(most)?,
        None => None,
    };
    match (deep, search) {
        (Some(deep), Some(search)) => searched(current, own, plan, &deep, search, args),
        (deep, _) => {
            let record = !args.no_record && deep.is_none();
            // A tool has the terminal for itself.
            let is_quiet = deep.is_some() && !has_tool;
            let once = |deep| {
                let progress = is_quiet.then(|| Progress::start("running the programs again"));
                let played = super::play(current, own, plan.clone(), deep, (record, args.json));
                drop(progress);
                played
            };
            let played = once(deep.clone())?;
            let found = played.reconstruction.as_ref();
            if has_tool || !found.is_some_and(Reconstruction::may_race) {
                return Ok(played);
            }
            directory::empty(own);
            Ok(once_more(played, once(deep)?))
        }
    }
}

/// Finds the earlier requests that a request needs, and the change of the clock, with the programs
/// as they were recorded. A tool or another program must not decide about that.
pub fn needed(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: &DeepRequest,
    args: &ReplayArgs,
) -> Result<RequestVerdict, Failure> {
    let found = play(current, own, plan, Some(deep.as_recorded()), args)?;
    directory::empty(own);
    let request = found.reconstruction.and_then(|found| found.request);
    Ok(request.unwrap_or_default())
}

/// Runs the plan with what the request needs.
pub fn with_needed(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: &DeepRequest,
    (needed, args): (RequestVerdict, &ReplayArgs),
) -> Result<Played, Failure> {
    let deep = deep.at(&Attempt {
        fed: needed.fed,
        shift: needed.shift,
    });
    let once = || {
        let again = Some(deep.clone());
        super::play(current, own, plan.clone(), again, (false, args.json))
    };
    let mut played = once()?;
    let mut all = needed.executed.and(executed(&played));
    let found = played.reconstruction.as_ref();
    if !deep.has_tool() && found.is_some_and(Reconstruction::may_race) {
        directory::empty(own);
        let again = once()?;
        all = all.and(executed(&again));
        played = once_more(played, again);
    }
    let found = played.reconstruction.as_mut();
    if let Some(request) = found.and_then(|found| found.request.as_mut()) {
        request.tries = needed.tries + 1;
        request.executed = all;
    }
    Ok(played)
}

fn searched(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: &DeepRequest,
    mut search: Search,
    args: &ReplayArgs,
) -> Result<Played, Failure> {
    let mut best: Option<(Rank, Played)> = None;
    let mut took = 0;
    let mut all = ExecutedCalls::default();
    // All attempts have the same start, so the first one looks for the obstacles to a copy.
    let mut obstacles = None;
    let is_client = deep.is_of_client()?;
    while let Some(attempt) = search.attempt() {
        if search.tries() > 1 {
            // The files of the attempt before are no part of this one.
            directory::empty(own);
        }
        let progress = Progress::start(&words(&search, &attempt, is_client));
        let mut again = deep.at(&attempt);
        again.lists_obstacles &= obstacles.is_none();
        let again = Some(again);
        let played = super::play(current, own, plan.clone(), again, (false, args.json));
        progress.end();
        let played = played?;
        took += played.took;
        all = all.and(executed(&played));
        let found = played.reconstruction.as_ref();
        if let Some(request) = found.and_then(|found| found.request.as_ref()) {
            obstacles.get_or_insert_with(|| request.start.obstacles.clone());
        }
        let result = played.reconstruction.as_ref().map(result_of);
        let result = result.unwrap_or(AttemptResult::Different);
        search.ended(result);
        let came = rank(&played, search.has_connection());
        if result == AttemptResult::Equal || best.as_ref().is_none_or(|(best, _)| came > *best) {
            best = Some((came, played));
        }
    }
    let mut best = best.map(|(_, played)| played).unwrap_or_default();
    if let Some(found) = best
        .reconstruction
        .as_ref()
        .filter(|found| found.may_race())
        && let Some(request) = &found.request
    {
        let again = Attempt {
            fed: request.fed.clone(),
            shift: request.shift,
        };
        directory::empty(own);
        let progress = Progress::start("running the threads once more");
        let mut again = deep.at(&again);
        again.lists_obstacles = false;
        let again = Some(again);
        let played = super::play(current, own, plan.clone(), again, (false, args.json));
        progress.end();
        let played = played?;
        took += played.took;
        all = all.and(executed(&played));
        best = once_more(best, played);
    }
    best.took = took;
    let request = best
        .reconstruction
        .as_mut()
        .and_then(|r| r.request.as_mut());
    if let Some(request) = request {
        request.tries = search.tries();
        request.executed = all;
        request.start.obstacles = obstacles.unwrap_or_default();
    }
    Ok(best)
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
    let clock = match attempt.shift / 1_000_000 {
        0 => String::new(),
        ms => format!(", with the clock shifted by {ms} ms"),
    };
    format!("attempt {number} of at most {most}: {fed}{clock}")
}

/// The executions that the result of an attempt stands for.
fn executed(played: &Played) -> ExecutedCalls {
    let found = played.reconstruction.as_ref();
    let request = found.and_then(|found| found.request.as_ref());
    request.map_or_else(ExecutedCalls::default, |request| request.executed)
}

/// The second of two executions of the same input, which may count as unsteady.
fn once_more(before: Played, mut played: Played) -> Played {
    if let (Some(then), Some(now)) = (&before.reconstruction, &mut played.reconstruction) {
        now.compare_again(then);
    }
    played
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

fn result_of(reconstruction: &Reconstruction) -> AttemptResult {
    let takes_time = reconstruction.request.as_ref().is_some_and(|r| r.took_time);
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
