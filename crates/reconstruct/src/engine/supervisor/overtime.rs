//! Work of the programs behind the last byte of a request.
//!
//! A program may compute from the last byte, and then write a file. So the work is awaited. A
//! thread that computes without an end must not keep the replay, so the wait has a bound.
//!
//! Invariant: the bound is never less than the patience. It is several times the recorded time
//! between the last byte and the last call for the request.

use super::Supervisor;
use super::parked::ParkedCall;
use super::processes::state_and_time;
use crate::time::RecordedClock;
use crate::unit::RecordedUnit;
use std::fs;
use std::time::{Duration, Instant};

/// How many times longer than in the record the work may take.
const SLOWER: u32 = 20;
/// How many times longer still, for a program under a tool, as Valgrind.
const SLOWER_UNDER_TOOL: u32 = 20;
/// The unit of processor times in `/proc`: the kernel's `USER_HZ` is 100.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// The work since the last call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overtime {
    since: Instant,
    /// The processor time at its beginning, in ticks.
    used: u64,
}

impl Overtime {
    pub fn begun(now: Instant, used: u64) -> Overtime {
        Overtime { since: now, used }
    }

    /// For how long the programs have worked, if that is longer than they may. On a busy machine
    /// they get a processor now and then only, so both the clock and their processor time count.
    fn beyond(&self, longest: Duration, now: Instant, used: u64) -> Option<Duration> {
        let ticks = used.saturating_sub(self.used);
        let worked = TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
        let passed = now.duration_since(self.since);
        (passed >= longest && worked >= longest).then_some(passed)
    }
}

/// The recorded time between the last byte of a unit and the last call for it.
fn recorded_work(clock: &RecordedClock, unit: &RecordedUnit) -> Duration {
    clock.between(unit.ended, unit.worked_until)
}

/// How long programs may work that did so for the recorded time.
fn longest_work(recorded: Duration, patience: Duration, has_tool: bool) -> Duration {
    let longest = recorded.saturating_mul(SLOWER).max(patience);
    match has_tool {
        true => longest.saturating_mul(SLOWER_UNDER_TOOL),
        false => longest,
    }
}

impl Supervisor {
    /// True if the programs have worked for too long since the last call. The request has been
    /// served.
    pub(super) fn is_overtime(&mut self) -> bool {
        if self.is_tool_alone() {
            return false;
        }
        let used = self.processor_time();
        let Some(part) = &mut self.part else {
            return false;
        };
        let now = Instant::now();
        let overtime = *part
            .overtime
            .get_or_insert_with(|| Overtime::begun(now, used));
        let recorded = recorded_work(&self.clock, &part.unit);
        let longest = longest_work(recorded, self.patience, self.has_tool);
        part.worked_on = overtime.beyond(longest, now, used);
        part.worked_on.is_some()
    }

    /// Processor time of all live processes, in ticks.
    pub(super) fn processor_time(&self) -> u64 {
        let all = self.live.keys().copied();
        all.filter_map(|pid| Some(state_and_time(pid)?.1)).sum()
    }

    /// True if a thread of a program computes, or waits for a processor or a disk.
    pub(super) fn a_thread_runs(&self) -> bool {
        self.a_thread_runs_but(|_| false)
    }

    /// The same, but for the threads that are `left_out`.
    pub(super) fn a_thread_runs_but(&self, left_out: impl Fn(u32) -> bool) -> bool {
        let tasks = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task"));
        let mut threads = self.live.keys().filter_map(|pid| tasks(pid).ok()).flatten();
        threads.any(|task| {
            let name = task.ok().map(|task| task.file_name());
            let tid: Option<u32> = name.and_then(|name| name.to_str()?.parse().ok());
            let found = tid.and_then(|tid| Some((tid, state_and_time(tid)?.0)));
            found.is_some_and(|(tid, state)| {
                works(state, || self.awaits_answer(tid)) && !left_out(tid)
            })
        })
    }

    /// True if a thread waits for the answer to a call.
    fn awaits_answer(&self, tid: u32) -> bool {
        let is_own = |parked: &ParkedCall| parked.call.tid == tid;
        self.held_threads.contains(&tid) || self.parked.iter().any(is_own)
    }
}

/// True if a thread in this state works.
///
/// In state D, it waits for a page of a file, or for the answer to a call that the supervisor has
/// received (`SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`).
fn works(state: char, awaits_answer: impl FnOnce() -> bool) -> bool {
    state == 'R' || state == 'D' && !awaits_answer()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn work_is_over_after_its_bound_on_the_clock_and_on_processors() {
        let begin = Instant::now();
        let overtime = Overtime::begun(begin, 500);
        let longest = 30 * SECOND;
        for (passed, used, over) in [
            (29, 500 + 2_900, false),
            // Two threads on two processors.
            (29, 500 + 5_800, false),
            // The machine is busy.
            (300, 500 + 2_900, false),
            // A program with much processor time has ended.
            (300, 0, false),
            (31, 500 + 3_000, true),
        ] {
            let found = overtime.beyond(longest, begin + passed * SECOND, used);
            assert_eq!(found, over.then_some(passed * SECOND), "{passed} {used}");
        }
    }

    #[test]
    fn a_thread_that_waits_for_a_disk_works_and_one_that_waits_for_an_answer_does_not() {
        for (state, awaits_answer, expected) in [
            ('R', false, true),
            ('D', false, true),
            ('D', true, false),
            ('S', false, false),
        ] {
            assert_eq!(works(state, || awaits_answer), expected, "{state}");
        }
    }

    #[test]
    fn a_long_computation_behind_the_last_byte_has_many_times_its_recorded_time() {
        let patience = 30 * SECOND;
        for (recorded, has_tool, longest) in [
            (0, false, 30),
            (1, false, 30),
            (60, false, 1_200),
            (0, true, 600),
            (60, true, 24_000),
        ] {
            let found = longest_work(recorded * SECOND, patience, has_tool);
            assert_eq!(found, longest * SECOND, "{recorded} {has_tool}");
        }
    }

    #[test]
    fn the_recorded_work_is_that_between_the_last_byte_and_the_last_call() {
        let unit = RecordedUnit {
            process: 0,
            connection: 0,
            is_client: true,
            began: 1_000,
            after: 0,
            until: u64::MAX,
            ended: 2_000,
            worked_until: 5_000,
            sent: 1_000,
            lasts: 9_000,
        };
        let clock = RecordedClock {
            from: (0, 0),
            to: Some((10_000, 5_000)),
        };
        assert_eq!(recorded_work(&clock, &unit), Duration::from_nanos(1_500));
        let unknown = RecordedClock::default();
        assert_eq!(recorded_work(&unknown, &unit), Duration::from_nanos(3_000));
    }
}
