//! The attempts to run a request or a whole run again.
//!
//! A request gets more of what it may need, from attempt to attempt. Both are tried at other
//! moments if the time may be the reason for a difference. Invariant: threads with another result
//! each time are not tried until they are equal by chance. A run with threads that is equal at
//! another moment is equal there twice.

use std::path::Path;

use backstory_reconstruct::search::{Attempt, AttemptResult, Candidates, Search};
use backstory_reconstruct::shift::ClockShift;
use backstory_reconstruct::verdict::{Likeness, Reconstruction};
use backstory_replay::plan::Plan;
use backstory_replay::verdict;

use super::attempt_results::{
    Executions, after, compared_again, may_race, result_of, shifted, shifts_of, threads_again,
};
use super::copies::Starts;
use super::deep::DeepRequest;
use super::{Played, directory, record_ends, request_attempts};
use crate::args::replay::ReplayArgs;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::progress::Progress;

/// Runs the plan. Fed from a deep log, at most so many attempts follow until one is equal. Returns
/// the best one: the last equal one, else of a request the one that came farthest.
pub fn play(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: Option<DeepRequest>,
    (most, args, starts): (u32, &ReplayArgs, &mut Starts),
) -> Result<Played, Failure> {
    let Some(deep) = deep else {
        let how = (!args.no_record, args.json);
        return super::play(current, own, plan.clone(), None, how);
    };
    // Under a tool, the user looks at one execution.
    let most = if deep.has_tool() { 1 } else { most };
    match deep.search(most)? {
        Some(search) => {
            let place = (current, own, plan);
            request_attempts::searched(place, &deep, search, (args, starts))
        }
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

/// Finds the earlier requests that a request needs, and the change of the clock, with the programs
/// as they were recorded. A tool or another program must not decide about that.
pub fn needed(
    current: &CurrentStore,
    own: &Path,
    plan: &Plan,
    deep: &DeepRequest,
    (args, starts): (&ReplayArgs, &mut Starts),
) -> Result<Reconstruction, Failure> {
    let how = (args.reconstruction.tries, args, starts);
    let found = play(current, own, plan, Some(deep.as_recorded()), how)?;
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

/// The same for a run, or for one of its programs.
fn words_of_whole(search: &Search, shift: ClockShift) -> String {
    let what = "running the programs again";
    let (number, most, clock) = (search.tries(), search.most(), shifted(shift));
    match most {
        1 => what.to_owned(),
        _ => format!("{what}, attempt {number} of at most {most}{clock}"),
    }
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

#[cfg(test)]
mod tests {
    use backstory_reconstruct::divergence::DivergenceKind;
    use backstory_reconstruct::matcher::ProcessMatcher;
    use backstory_reconstruct::process::RecordedProcess;
    use backstory_reconstruct::search::{AttemptResult, Candidates, Search};
    use backstory_reconstruct::shift::ClockShift;
    use backstory_reconstruct::verdict::{ProcessVerdict, Reconstruction};

    use super::{Executions, Played, compare_results, is_unsteady, may_follow, result_of};
    use super::{result_of_bytes, threads_again, words_of_whole};

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
