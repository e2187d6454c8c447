//! The attempts to run a request or a whole run again, each in a new root.
//!
//! A request gets more of what it may need, from attempt to attempt. Both are tried at other
//! moments if the time may be the reason for a difference. Invariant: threads with another result
//! each time are not tried until they are equal by chance. A run with threads that is equal at
//! another moment is equal there twice.

use std::path::Path;

use backstory_reconstruct::divergence::{Divergence, DivergenceKind};
use backstory_reconstruct::search::{Attempt, AttemptResult, Candidates, Search};
use backstory_reconstruct::shift::ClockShift;
use backstory_reconstruct::verdict::{ExecutedCalls, Likeness, Reconstruction};
use backstory_replay::plan::Plan;
use backstory_replay::verdict;

use super::deep::DeepRequest;
use super::{Played, directory, record_ends};
use crate::args::replay::ReplayArgs;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::progress::{Progress, Unit};
use crate::text::words::counted;

/// Runs the plan. Fed from a deep log, at most so many attempts follow until one is equal. Returns
/// the best one: the last equal one, else of a request the one that came farthest.
pub fn play(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: Option<DeepRequest>,
    (most, args): (u32, &ReplayArgs),
) -> Result<Played, Failure> {
    let Some(deep) = deep else {
        let how = (!args.no_record, args.json);
        return super::play(current, own, plan.clone(), None, how);
    };
    // Under a tool, the user looks at one execution.
    let most = if deep.has_tool() { 1 } else { most };
    match deep.search(most)? {
        Some(search) => searched(current, own, plan, &deep, search, args),
        None => whole(current, own, plan, &deep, (most, args)),
    }
}

/// Runs all of a run again, or one of its programs. If no attempt is equal, the result is that at
/// the recorded time.
fn whole(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: &DeepRequest,
    (most, args): (u32, &ReplayArgs),
) -> Result<Played, Failure> {
    let mut search = Search::new(&Candidates::default(), most);
    let play = |attempt: &Attempt| {
        let again = Some(deep.at(attempt));
        super::play(current, own, plan.clone(), again, (false, args.json))
    };
    let once = |attempt: &Attempt, words: &str| {
        // A tool has the terminal for itself.
        let progress = (!deep.has_tool()).then(|| Progress::start(words));
        let played = play(attempt);
        drop(progress);
        played
    };
    let judge = |played: &Played, compares_files: bool| {
        let compares_files = compares_files && deep.is_whole();
        result_of_whole(current, plan, deep, (played, compares_files))
    };
    let mut first: Option<Played> = None;
    let mut sum = Executions::default();
    while let Some(attempt) = search.attempt() {
        if first.is_some() {
            // The files of the attempt before are no part of this one.
            directory::empty(own);
        }
        let mut played = once(&attempt, &words_of_whole(&search, attempt.shift))?;
        sum.add(&played);
        let compares_files = may_follow(&played, most);
        let result = judge(&played, compares_files)?;
        let is_equal = result == AttemptResult::Equal;
        let found = played.reconstruction.as_ref();
        if !deep.has_tool() && found.is_some_and(|found| found.is_to_be_confirmed(is_equal)) {
            played = threads_again(own, played, &mut sum, || play(&attempt))?;
            let again = judge(&played, compares_files)?;
            compare_results(&mut played, result, again);
            if is_unsteady(&played) {
                return Ok(after(played, &search, &sum));
            }
        }
        let (dated, shifts) = shifts_of(&played);
        search.ended(result, dated, shifts);
        if result == AttemptResult::Equal {
            return Ok(after(played, &search, &sum));
        }
        first.get_or_insert(played);
    }
    let first = first.unwrap_or_default();
    if search.tries() == 1 {
        return Ok(after(first, &search, &sum));
    }
    // The files that stay are to be those of the verdict.
    directory::empty(own);
    let words = "running the programs at the recorded time";
    let mut last = once(&Attempt::default(), words)?;
    sum.add(&last);
    let found = first.reconstruction.as_ref();
    if found.is_some_and(|found| found.likeness() == Likeness::Different) {
        last = compared_again(first, last);
    }
    // The first one was not equal.
    let result = judge(&last, true)?;
    compare_results(&mut last, AttemptResult::Different, result);
    Ok(after(last, &search, &sum))
}

/// The executions for a result so far.
#[derive(Debug, Default)]
struct Executions {
    /// How long they took, in ns.
    took: u64,
    calls: ExecutedCalls,
}

impl Executions {
    fn add(&mut self, played: &Played) {
        self.took += played.took;
        self.calls = self.calls.and(executed(played));
    }
}

/// True if another execution of the same input may have another result. Under a tool, the user
/// looks at one execution.
fn may_race(deep: &DeepRequest, played: &Played) -> bool {
    let found = played.reconstruction.as_ref();
    !deep.has_tool() && found.is_some_and(Reconstruction::may_race)
}

/// Executes the same input `once` more. The result is the second execution, which may count as
/// unsteady.
fn threads_again(
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
fn after(mut played: Played, search: &Search, sum: &Executions) -> Played {
    played.took = sum.took;
    if let Some(found) = &mut played.reconstruction {
        found.tries = search.tries();
    }
    played
}

/// Compares the result of an execution with that of one `before`, which had the same input. It
/// counts as unsteady if only one of them is equal, files included.
fn compare_results(played: &mut Played, before: AttemptResult, now: AttemptResult) {
    let differs = (before == AttemptResult::Equal) != (now == AttemptResult::Equal);
    if let Some(found) = played.reconstruction.as_mut().filter(|_| differs) {
        found.unsteady = found.unsteady.max(1);
    }
}

fn is_unsteady(played: &Played) -> bool {
    let found = played.reconstruction.as_ref();
    found.is_some_and(|found| found.unsteady > 0)
}

/// The changes of the clock that a date suggests, and those that the record allows. Programs that
/// hang would do so at any moment.
fn shifts_of(played: &Played) -> (&[ClockShift], &[ClockShift]) {
    let found = played.reconstruction.as_ref();
    let found = found.filter(|found| found.stopped.is_none());
    match found {
        Some(found) => (&found.dated, &found.shifts),
        None => (&[], &[]),
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
) -> Result<Reconstruction, Failure> {
    let tries = args.reconstruction.tries;
    let found = play(current, own, plan, Some(deep.as_recorded()), (tries, args))?;
    directory::empty(own);
    Ok(found.reconstruction.unwrap_or_default())
}

/// Runs the plan with what the request needs.
pub fn with_needed(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: &DeepRequest,
    (needed, args): (Reconstruction, &ReplayArgs),
) -> Result<Played, Failure> {
    let request = needed.request.unwrap_or_default();
    let deep = deep.at(&Attempt {
        fed: request.fed,
        shift: needed.shift,
    });
    let once = || {
        let again = Some(deep.clone());
        super::play(current, own, plan.clone(), again, (false, args.json))
    };
    let mut sum = Executions {
        took: 0,
        calls: request.executed,
    };
    let mut played = once()?;
    sum.add(&played);
    if may_race(&deep, &played) {
        played = threads_again(own, played, &mut sum, once)?;
    }
    if let Some(found) = &mut played.reconstruction {
        found.tries = needed.tries + 1;
        if let Some(request) = &mut found.request {
            request.executed = sum.calls;
        }
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
    let mut sum = Executions::default();
    // All attempts have the same start, so the first one looks for the obstacles to a copy.
    let mut obstacles = None;
    let is_client = deep.is_of_client()?;
    while let Some(attempt) = search.attempt() {
        if search.tries() > 1 {
            // The files of the attempt before are no part of this one.
            directory::empty(own);
        }
        let mut again = deep.at(&attempt);
        again.lists_obstacles &= obstacles.is_none();
        // The log has a bar of its own while it is read.
        super::feed(own, &again)?;
        let (tries, most) = (u64::from(search.tries()), u64::from(search.most()));
        let words = words(&search, &attempt, is_client);
        let progress = Progress::of(&words, most, Unit::Attempts);
        progress.done.set(tries.saturating_sub(1));
        let how = (false, args.json);
        let played = super::play_fed(current, own, plan.clone(), Some(again), how);
        progress.end();
        let played = played?;
        sum.add(&played);
        let found = played.reconstruction.as_ref();
        if let Some(request) = found.and_then(|found| found.request.as_ref()) {
            obstacles.get_or_insert_with(|| request.start.obstacles.clone());
        }
        let result = played.reconstruction.as_ref().map(result_of);
        let result = result.unwrap_or(AttemptResult::Different);
        let (dated, shifts) = shifts_of(&played);
        search.ended(result, dated, shifts);
        let came = rank(&played, search.has_connection());
        if result == AttemptResult::Equal || best.as_ref().is_none_or(|(best, _)| came > *best) {
            best = Some((came, played));
        }
    }
    let mut best = best.map(|(_, played)| played).unwrap_or_default();
    if may_race(deep, &best)
        && let Some(found) = &best.reconstruction
        && let Some(request) = &found.request
    {
        let mut again = deep.at(&Attempt {
            fed: request.fed.clone(),
            shift: found.shift,
        });
        again.lists_obstacles = false;
        best = threads_again(own, best, &mut sum, || {
            super::play(current, own, plan.clone(), Some(again), (false, args.json))
        })?;
    }
    let found = best.reconstruction.as_mut();
    if let Some(request) = found.and_then(|found| found.request.as_mut()) {
        request.executed = sum.calls;
        request.start.obstacles = obstacles.unwrap_or_default();
    }
    Ok(after(best, &search, &sum))
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

/// The same for a run, or for one of its programs.
fn words_of_whole(search: &Search, shift: ClockShift) -> String {
    let what = "running the programs again";
    let (number, most, clock) = (search.tries(), search.most(), shifted(shift));
    match most {
        1 => what.to_owned(),
        _ => format!("{what}, attempt {number} of at most {most}{clock}"),
    }
}

/// The change of the clock, as the end of a line.
fn shifted(shift: ClockShift) -> String {
    match shift.ns {
        0 => String::new(),
        _ => format!(", with the clock shifted by {}", shift.words()),
    }
}

/// The executions that the result of an attempt stands for.
fn executed(played: &Played) -> ExecutedCalls {
    let found = played.reconstruction.as_ref();
    let request = found.and_then(|found| found.request.as_ref());
    request.map_or_else(ExecutedCalls::default, |request| request.executed)
}

/// The second of two executions of the same input, which may count as unsteady.
fn compared_again(before: Played, mut played: Played) -> Played {
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

/// True if the result of an attempt at a run decides on another one, or is that of another moment.
fn may_follow(played: &Played, most: u32) -> bool {
    let (dated, shifts) = shifts_of(played);
    let found = played.reconstruction.as_ref();
    let is_shifted = found.is_some_and(|found| found.shift.ns != 0);
    is_shifted || most > 1 && !(dated.is_empty() && shifts.is_empty())
}

/// The result of an attempt at a run, or at one of its programs. With `compares_files`, it has the
/// verdict on the files that the replay gives afterwards. Other programs than the recorded ones
/// have no further attempts.
fn result_of_whole(
    current: &CurrentStore,
    plan: &Plan,
    deep: &DeepRequest,
    (played, compares_files): (&Played, bool),
) -> Result<AttemptResult, Failure> {
    let Some(found) = &played.reconstruction else {
        return Ok(AttemptResult::Different);
    };
    let result = result_of_bytes(found);
    if result != AttemptResult::Equal || !compares_files {
        return Ok(result);
    }
    let mut files = verdict::judge(&current.store, plan, &played.left, |_| true)?;
    let place = (current, plan.run.as_str());
    record_ends::judge_all(place, deep, (Some(found), true), &mut files)?;
    Ok(match files.is_identical() {
        true => AttemptResult::Equal,
        false => AttemptResult::Different,
    })
}

/// The result of an attempt at a run, without its files. A run of which only volatile parts differ
/// needs no other moment, so it counts as equal.
fn result_of_bytes(found: &Reconstruction) -> AttemptResult {
    match (found.likeness(), result_of(found)) {
        (Likeness::Different, AttemptResult::DifferentWithTime) if found.stopped.is_some() => {
            AttemptResult::Different
        }
        (Likeness::Different, result) => result,
        _ => AttemptResult::Equal,
    }
}

fn result_of(reconstruction: &Reconstruction) -> AttemptResult {
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

#[cfg(test)]
mod tests {
    use backstory_reconstruct::divergence::DivergenceKind;
    use backstory_reconstruct::matcher::ProcessMatcher;
    use backstory_reconstruct::process::RecordedProcess;
    use backstory_reconstruct::search::{AttemptResult, Candidates, Search};
    use backstory_reconstruct::shift::ClockShift;
    use backstory_reconstruct::verdict::{ProcessVerdict, Reconstruction};

    use super::{Executions, Played, compare_results, is_unsteady, may_follow, result_of};
    use super::{result_of_bytes, threads_again, words, words_of_whole};

    /// An execution of a program that took the time. It differs in a date, which has the name of a
    /// volatile part or none.
    fn dated(volatile: Option<&str>) -> Reconstruction {
        let matcher = ProcessMatcher::new(RecordedProcess::default());
        let mut divergence = matcher.blank(DivergenceKind::OtherOutput, "a file".to_owned());
        divergence.within = 100;
        divergence.volatile = volatile.map(str::to_owned);
        let process = ProcessVerdict {
            pid: 7,
            program: "dated".to_owned(),
            recorded_calls: 0,
            matched: 0,
            entered: 0,
            left: 0,
            came: 0,
            counted: 0,
            divergence: Some(divergence),
            differs_before: false,
            volatile: Vec::new(),
            complaint: Vec::new(),
            gap: None,
            lacks_calls: false,
            threads: 1,
            own_calls: 0,
        };
        Reconstruction {
            processes: vec![process],
            took_time: true,
            ..Reconstruction::default()
        }
    }

    #[test]
    fn a_run_of_which_only_volatile_parts_differ_is_tried_at_no_other_moment() {
        let named = dated(Some("a date"));
        assert_eq!(result_of_bytes(&named), AttemptResult::Equal);
        let mut lacking = named.clone();
        lacking.processes[0].lacks_calls = true;
        assert_eq!(result_of_bytes(&lacking), AttemptResult::Equal);
        // The same request is tried at other moments.
        assert_eq!(result_of(&named), AttemptResult::DifferentWithTime);
        let mut unnamed = dated(None);
        assert_eq!(result_of_bytes(&unnamed), AttemptResult::DifferentWithTime);
        unnamed.stopped = Some("no process made a call".to_owned());
        assert_eq!(result_of_bytes(&unnamed), AttemptResult::Different);
    }

    #[test]
    fn a_run_whose_files_alone_have_another_result_each_time_is_unsteady() {
        use AttemptResult::{Different, Equal};
        for (before, now, unsteady) in [
            (Equal, Equal, false),
            (Different, Different, false),
            (Different, Equal, true),
            (Equal, Different, true),
        ] {
            let mut played = Played {
                reconstruction: Some(Reconstruction::default()),
                ..Played::default()
            };
            compare_results(&mut played, before, now);
            assert_eq!(is_unsteady(&played), unsteady, "{before:?} {now:?}");
        }
    }

    #[test]
    fn files_decide_on_an_attempt_at_another_moment_and_before_one() {
        let shift = ClockShift {
            ns: 80,
            behind: Some(7),
        };
        let none = ClockShift::default();
        for (at, dated, allowed, most, decide) in [
            (none, Vec::new(), vec![shift], 14, true),
            (none, vec![shift], Vec::new(), 14, true),
            (none, vec![shift], vec![shift], 1, false),
            (none, Vec::new(), Vec::new(), 14, false),
            (shift, Vec::new(), Vec::new(), 2, true),
        ] {
            let played = Played {
                reconstruction: Some(Reconstruction {
                    shift: at,
                    dated,
                    shifts: allowed,
                    ..Reconstruction::default()
                }),
                ..Played::default()
            };
            assert_eq!(may_follow(&played, most), decide, "{at:?} {most}");
        }
    }

    #[test]
    fn a_second_execution_of_threads_replaces_the_first_one_and_its_time_counts() {
        let own = tempfile::tempdir().unwrap();
        let root = own.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let played = |took| Played {
            took,
            reconstruction: Some(Reconstruction::default()),
            ..Played::default()
        };
        let mut sum = Executions::default();
        sum.add(&played(5));
        let again = threads_again(own.path(), played(5), &mut sum, || {
            assert!(!root.exists(), "the files of the first execution");
            Ok(played(7))
        });
        let again = again.unwrap();
        assert_eq!((again.took, sum.took), (7, 12));
        assert!(!is_unsteady(&again));
    }

    #[test]
    fn an_attempt_tells_whether_its_request_is_alone() {
        let mut search = Search::new(&Candidates::default(), 9);
        let attempt = search.attempt().unwrap();
        let said = |is_client| words(&search, &attempt, is_client);
        assert_eq!(said(false), "attempt 1 of at most 9: the request alone");
        let all = "attempt 1 of at most 9: the request and all before it";
        assert_eq!(said(true), all);
    }

    #[test]
    fn an_attempt_at_a_run_tells_its_number_and_its_shift_if_others_may_follow() {
        let shift = ClockShift {
            ns: -80_000_000,
            behind: Some(7),
        };
        let number = ", attempt 1 of at most 9, with the clock shifted by -80 ms";
        for (most, behind) in [(1, ""), (9, number)] {
            let mut search = Search::new(&Candidates::default(), most);
            search.attempt().unwrap();
            let said = format!("running the programs again{behind}");
            assert_eq!(words_of_whole(&search, shift), said);
        }
    }
}
