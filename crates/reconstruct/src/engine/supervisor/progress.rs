//! Whether the programs go on in their record.
//!
//! In: what is left of the record, and the processor time of the programs. Out: for how long they
//! have taken nothing more of it, if that is too long. A timer that ticks, or a wait with a timeout
//! in a loop, makes calls without an end. So a call alone is no progress.
//!
//! Invariant: programs that compute go on. Only the processor time of a thread that waits all the
//! time is left out. The record is finite, so the programs end at some time.

use super::Supervisor;
use super::overtime::TICK;
use super::part::STALLED;
use super::processes::Role;
use crate::engine::caller::NotifiedCall;
use crate::matcher::ProcessMatcher;
use backstory_sys as sys;
use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// The bound of a whole run, in times of the patience. Each wait of the supervisor for a signal, a
/// child or another thread is shorter, with the usual patience.
const TIMES: u32 = 4;

/// Programs that use less than this part of a processor do not compute.
const IDLE_PART: u32 = 20;

/// A thread does not compute that uses at most so much processor time for each of its waits.
const WORK_OF_WAIT: Duration = Duration::from_millis(1);

/// The programs since they last took something of their record.
#[derive(Debug)]
pub(super) struct RecordProgress {
    looked: Instant,
    since: Instant,
    /// As of [`Supervisor::left_of_record`].
    left: (u64, usize),
    /// The processor time of all processes, in ticks.
    used: u64,
    /// The threads whose waits have ended without anything.
    waits: HashMap<u32, VainWaits>,
}

impl RecordProgress {
    fn begun(now: Instant, left: (u64, usize), used: u64) -> RecordProgress {
        RecordProgress {
            looked: now,
            since: now,
            left,
            used,
            waits: HashMap::new(),
        }
    }
}

/// The waits of a thread whose time was up, or that nothing ends.
#[derive(Debug)]
struct VainWaits {
    /// The process of the thread.
    group: u32,
    count: u32,
    /// The processor time of the thread at the first one, in ticks.
    used: u64,
}

impl VainWaits {
    /// The ticks that the thread has used for its waits alone, by its processor time now. `None`:
    /// it computes, too.
    fn ticks(&self, now: u64) -> Option<u64> {
        let ticks = now.saturating_sub(self.used);
        (in_time(ticks) <= WORK_OF_WAIT.saturating_mul(self.count)).then_some(ticks)
    }
}

impl Supervisor {
    /// The time of a wait of a thread is up, or nothing ends the wait.
    pub(super) fn waits_in_vain(&mut self, call: &NotifiedCall) {
        let group = self.group_of(call);
        if let Some(progress) = &mut self.progress {
            let first = || VainWaits {
                group,
                count: 0,
                used: thread_ticks(group, call.tid),
            };
            let waits = progress.waits.entry(call.tid).or_insert_with(first);
            waits.count = waits.count.saturating_add(1);
        }
    }

    /// For how long the programs have taken nothing more of the record, if that is too long and
    /// none computes.
    pub(super) fn stands_still(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let looked = self.progress.as_ref().map(|progress| progress.looked);
        if looked.is_some_and(|looked| now.duration_since(looked) < LOOK) {
            return None;
        }
        let left = self.left_of_record();
        let known = self.progress.take();
        if self.is_tool_alone() {
            return None;
        }
        let Some(mut progress) = known.filter(|progress| progress.left == left) else {
            self.progress = Some(RecordProgress::begun(now, left, self.all_ticks()));
            return None;
        };
        progress.looked = now;
        let still = now.duration_since(progress.since);
        let is_long = still > self.patience && still > self.longest_standstill();
        if is_long && self.have_computed(&progress, still) {
            progress = RecordProgress::begun(now, left, self.all_ticks());
        }
        let is_over = is_long && progress.since != now && !self.a_thread_computes(&progress);
        self.progress = Some(progress);
        is_over.then_some(still)
    }

    /// Ends all: they have taken nothing more of the record for so long.
    pub(super) fn stop_standstill(&mut self, still: Duration) {
        let seconds = still.as_secs();
        self.result.stopped = Some(format!(
            "the programs took nothing more of the record for {seconds} s and did not compute, so \
             all were ended"
        ));
        self.progress = None;
        self.kill_all();
    }

    /// The size of the record that no program has taken, and the number of started programs.
    fn left_of_record(&self) -> (u64, usize) {
        let left = self.matchers.iter().map(|matcher| matcher.rest.left());
        let started = self.started.iter().filter(|started| **started);
        (left.sum(), started.count())
    }

    /// For how long the programs may take nothing of the record. In a whole run, the time is added
    /// in which the record itself did nothing: a timer of the kernel takes its full time again.
    fn longest_standstill(&self) -> Duration {
        match self.part {
            Some(_) => self.patience.max(2 * STALLED),
            None => self
                .recorded_silence()
                .saturating_add(self.patience.saturating_mul(TIMES)),
        }
    }

    /// The recorded time from the moment that was reached until a program did something that it has
    /// not done again. A program without a deep record may take all of the run.
    fn recorded_silence(&self) -> Duration {
        let is_unknown = |role| matches!(role, Role::Shallow | Role::KilledEarly(_));
        if self.live.values().any(|process| is_unknown(process.role)) {
            let (begin, _) = self.clock.from;
            let end = self.clock.to.map_or(begin, |(end, _)| end);
            return self.clock.between(begin, end);
        }
        let all = self.matchers.iter().zip(&self.started);
        let started = all.filter_map(|(matcher, started)| started.then_some(matcher));
        let reached = started.clone().map(ProcessMatcher::passed_until).max();
        let reached = reached.unwrap_or(0);
        let next = started.filter_map(|matcher| matcher.rest.next_after(reached));
        next.min()
            .map_or(Duration::ZERO, |next| self.clock.between(reached, next))
    }

    /// True if the programs have computed in this time, besides waits of threads that do nothing
    /// else.
    fn have_computed(&self, progress: &RecordProgress, still: Duration) -> bool {
        // A process may have ended, and its ticks with it.
        let Some(all) = self.all_ticks().checked_sub(progress.used) else {
            return true;
        };
        let waits = progress.waits.iter();
        let in_waits =
            waits.filter_map(|(tid, waits)| waits.ticks(thread_ticks(waits.group, *tid)));
        let computed = all.saturating_sub(in_waits.sum());
        in_time(computed).saturating_mul(IDLE_PART) >= still
    }

    /// True if a thread computes now, or waits for a processor or a disk.
    fn a_thread_computes(&self, progress: &RecordProgress) -> bool {
        self.a_thread_runs_but(|tid| {
            let waits = progress.waits.get(&tid);
            waits.is_some_and(|waits| waits.ticks(thread_ticks(waits.group, tid)).is_some())
        })
    }

    /// The processor time of all processes and of the children that they waited for.
    fn all_ticks(&self) -> u64 {
        let all = self.live.keys();
        all.map(|pid| ticks(&format!("/proc/{pid}/stat"), 4)).sum()
    }
}

fn thread_ticks(group: u32, tid: u32) -> u64 {
    ticks(&format!("/proc/{group}/task/{tid}/stat"), 2)
}

/// The sum of the first times in a file `stat` of `/proc`: those in user mode and in the kernel,
/// then the same of children. Nothing for one that has ended.
fn ticks(path: &str, count: usize) -> u64 {
    let stat = fs::read(path).unwrap_or_default();
    let Some(fields) = sys::process_tree::stat_fields(&stat) else {
        return 0;
    };
    // The state comes first.
    let times = fields.skip(11).take(count);
    times.filter_map(|time| time.parse::<u64>().ok()).sum()
}

fn in_time(ticks: u64) -> Duration {
    TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_waits_alone_is_no_work() {
        for (count, ticks, alone) in [
            (0, 0, true),
            // One wait, and then a computation.
            (1, 100, false),
            // A tenth of a millisecond for each wait.
            (10_000, 100, true),
            (1_000, 101, false),
        ] {
            let waits = VainWaits {
                group: 1,
                count,
                used: 50,
            };
            let found = waits.ticks(50 + ticks);
            assert_eq!(found, alone.then_some(ticks), "{count} {ticks}");
        }
        // The thread has ended.
        let ended = VainWaits {
            group: 1,
            count: 1,
            used: 50,
        };
        assert_eq!(ended.ticks(0), Some(0));
    }

    #[test]
    fn the_times_of_a_process_and_of_its_children_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let stat = directory.path().join("stat");
        fs::write(
            &stat,
            "7 (a b) S 1 7 7 0 -1 4194304 9 8 7 6 100 20 3 4 20 0 1 0 5\n",
        )
        .unwrap();
        let path = stat.to_str().unwrap();
        assert_eq!((ticks(path, 2), ticks(path, 4)), (120, 127));
        assert_eq!(ticks("/nowhere", 2), 0);
    }
}
