//! The clocks of threads: each has come to its own moment of the recorded execution.
//!
//! In: the recorded calls that answered a thread, and its sleeps. Out: the time of the thread, and
//! other times that the record allows. All input is there from the beginning, so one thread may be
//! far ahead of another one.
//!
//! A thread may wait for another one, as for a lock: no call says so. It may have done so behind
//! its output, or if it got no answer for a while. It then gets the latest time of any thread, but
//! none behind its own next recorded call.
//!
//! Invariant: other threads move no thread behind its next recorded call, if that is known.

use super::Supervisor;
use crate::engine::caller::NotifiedCall;
use crate::shift::{self, ClockShift, Question};
use crate::time::RecordedClock;
use std::cmp::Reverse;
use std::collections::HashMap;

/// How much later each question for the time is than the one before, in ns.
pub(super) const STEP: i64 = 1_000;

/// Ns.
const SECOND: i64 = 1_000_000_000;

/// Most questions in a row that get the last recorded time again, if the record has no more.
const MOST_BEYOND: u32 = 1000;

/// Most shifts that are kept of the questions of a program before the last ones. A program that
/// runs for days has more.
const MOST_KEPT: usize = 1024;

/// The time that passed in the new execution of a program alone, and the questions for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Passed {
    /// By the number of the thread.
    threads: HashMap<u32, ThreadClock>,
    /// The latest moment that a thread is known to have come to, in ns since 1970.
    latest: i64,
    /// The shifts for the questions before the last one of each thread, the last question first.
    shifts: Vec<ClockShift>,
    /// With exact time: the time that each thread got last, by its number and the clock.
    told: HashMap<(u32, i32), ToldTime>,
}

/// The time that a thread got last from a clock, with the sleeps since.
#[derive(Debug, Clone, Copy, Default)]
struct ToldTime {
    ns: i64,
    /// Questions in a row for which the record had no time.
    beyond: u32,
}

/// The clock of one thread.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadClock {
    /// Ns since the recorded call at `since`.
    ns: i64,
    since: u64,
    /// The last time that it has got since then, in ns since 1970.
    last: Option<i64>,
    /// The first question behind the last recorded call that has one.
    asked: Option<AskedTime>,
}

impl ThreadClock {
    /// A sleep or a wait of so many ns is over. It leaves the time `most` behind the recorded call
    /// at most, and never sets it back.
    fn sleep(&mut self, ns: i64, most: i64) {
        let later = self.ns.saturating_add(ns.max(0));
        self.ns = later.min(most.max(self.ns));
    }
}

/// A question of a thread.
#[derive(Debug, Clone, Copy)]
struct AskedTime {
    question: Question,
    /// Because of another thread, the answer was a later second.
    is_lifted: bool,
}

impl AskedTime {
    /// The other answers that the record allows. See [`Question::shifts`].
    fn shifts(&self, pauses: &[(u64, u64)], clock: &RecordedClock, until: u64) -> Vec<ClockShift> {
        let behind = self.question.behind;
        // With a shift, other threads do not matter.
        let own = ClockShift {
            ns: STEP,
            behind: Some(behind),
        };
        let own = (self.is_lifted && behind < until).then_some(own);
        let others = self.question.shifts(pauses, clock, until);
        own.into_iter().chain(others).collect()
    }
}

/// The time of a thread, in ns since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadTime {
    /// Time-stamp counter when the recorded call returned that answered the thread last.
    pub reached: u64,
    /// By its own calls and sleeps.
    own: i64,
    /// The answer. The calls of other threads may count, too.
    pub given: i64,
}

impl Passed {
    /// The clock of a thread, which a recorded call at this time answered last.
    fn of(&mut self, thread: u32, reached: u64) -> &mut ThreadClock {
        let own = self.threads.entry(thread).or_default();
        if own.since != reached {
            (own.ns, own.since, own.last) = (0, reached, None);
        }
        own
    }

    /// A thread makes another one. Its clock goes on in both.
    pub fn makes_thread(&mut self, maker: u32, thread: u32) {
        let own = self.threads.get(&maker).copied().unwrap_or_default();
        let own = ThreadClock { asked: None, ..own };
        self.threads.insert(thread, own);
    }

    /// Another question has come behind the one with these shifts.
    fn keep_first(&mut self, shifts: Vec<ClockShift>) {
        drop(self.shifts.splice(..0, shifts));
        self.shifts.truncate(MOST_KEPT);
    }

    /// A thread gets a recorded time.
    pub fn tell(&mut self, tid: u32, clock: i32, ns: i64) {
        self.told.insert((tid, clock), ToldTime { ns, beyond: 0 });
    }

    /// The time that a thread got last from a clock, with the sleeps since.
    pub fn told(&self, tid: u32, clock: i32) -> Option<i64> {
        Some(self.told.get(&(tid, clock))?.ns)
    }

    /// The answer to a question for which the record has no time: the program asks more often than
    /// it did. Such a question has taken the answer to a later one, and no more time has passed.
    /// `None`: the thread got no time before. Or it asks so often that it may wait for a time.
    pub fn tell_beyond(&mut self, tid: u32, clock: i32) -> Option<i64> {
        let told = self.told.get_mut(&(tid, clock))?;
        told.beyond = told.beyond.saturating_add(1);
        told.ns = told.ns.saturating_add(STEP);
        (told.beyond <= MOST_BEYOND).then_some(told.ns)
    }

    /// A thread slept so many ns.
    fn sleeps(&mut self, tid: u32, ns: i64) {
        let own = self.told.iter_mut().filter(|((of, _), _)| *of == tid);
        for (_, told) in own {
            told.ns = told.ns.saturating_add(ns.max(0));
        }
    }
}

impl Supervisor {
    /// The time of a thread when so many ns more have passed for it.
    pub(super) fn thread_time(
        &mut self,
        thread: u32,
        index: usize,
        step: i64,
    ) -> Option<ThreadTime> {
        let position = self.matchers[index].position(thread);
        let reached = position.time;
        let clock = self.passed[index].of(thread, reached);
        clock.ns = clock.ns.saturating_add(step);
        let own = self.clock.at(reached)?.saturating_add(clock.ns);
        let last = clock.last.map_or(own, |last| last.saturating_add(step));
        let is_shifted = self.result.shift.behind == Some(reached);
        let others = self.time_of_others(thread, index, own);
        let others = others.filter(|_| position.may_have_waited() && !is_shifted);
        let given = own.max(last).max(others.unwrap_or(own));
        self.passed[index].of(thread, reached).last = Some(given);
        Some(ThreadTime {
            reached,
            own,
            given,
        })
    }

    /// The latest moment that a thread of a program has come to. It is not behind the next recorded
    /// call of this thread, and not behind the answer to the chosen request. `own`: its time by its
    /// own calls and sleeps. `None`: it is alone.
    fn time_of_others(&mut self, thread: u32, index: usize, own: i64) -> Option<i64> {
        if self.matchers[index].rest.threads.is_empty() {
            return None;
        }
        let next = self.notes_moment(thread, index, own);
        let latest = self.passed[index].latest;
        let bounds = [next, self.answer_time(index)].into_iter().flatten();
        Some(bounds.fold(latest, i64::min))
    }

    /// Notes that a thread has come to this moment, for the other threads. Whether it slept so long
    /// in the record, only its next recorded call says. Returns when that one began.
    fn notes_moment(&mut self, thread: u32, index: usize, own: i64) -> Option<i64> {
        let matcher = &self.matchers[index];
        let next = matcher.next_call(thread);
        let next = next.and_then(|next| self.clock.at(next));
        let reached = self.clock.at(matcher.time()).unwrap_or(0);
        let known = next.map_or(reached, |next| own.min(next));
        let latest = &mut self.passed[index].latest;
        *latest = (*latest).max(known).max(reached);
        next
    }

    /// Notes the first question of a thread behind a recorded call. The questions behind a
    /// difference do not matter.
    pub(super) fn notes_question(&mut self, thread: u32, index: usize, time: ThreadTime) {
        let (matcher, passed) = (&self.matchers[index], &mut self.passed[index]);
        let clock = passed.of(thread, time.reached);
        let behind = time.reached;
        let is_known = clock
            .asked
            .is_some_and(|last| last.question.behind == behind);
        if is_known || matcher.has_parted() {
            return;
        }
        let given = time.own;
        let asked = AskedTime {
            question: Question { behind, given },
            is_lifted: time.given.div_euclid(SECOND) != given.div_euclid(SECOND),
        };
        if let Some(before) = clock.asked.replace(asked) {
            let shifts = before.shifts(&matcher.rest.pauses, &self.clock, behind);
            passed.keep_first(shifts);
        }
    }

    /// Notes the shifts of the clock for the programs that differ. If none does, a file may differ.
    pub(super) fn note_shifts(&mut self) {
        let all = self.matchers.iter().zip(&self.passed);
        let has_difference = all.clone().any(|(matcher, _)| matcher.divergence.is_some());
        for (matcher, passed) in all {
            let difference = matcher.divergence.as_ref();
            if has_difference && difference.is_none() {
                continue;
            }
            let left = difference.map(|difference| difference.time);
            let until = left.filter(|time| *time > 0).unwrap_or(u64::MAX);
            let last = passed.threads.values().filter_map(|clock| clock.asked);
            let mut last: Vec<AskedTime> = last.collect();
            last.sort_by_key(|asked| Reverse(asked.question.behind));
            let pauses = &matcher.rest.pauses;
            let last = last.into_iter();
            let last = last.flat_map(|asked| asked.shifts(pauses, &self.clock, until));
            let shifts = &mut self.result.shifts;
            shifts.extend(last.chain(passed.shifts.iter().copied()));
        }
        // A server may have asked for the time before the request's connection was handed out.
        // Recorded times do not shift.
        let mut shifting = self.matchers.iter();
        let apart = shifting.find_map(|one| one.apart.filter(|_| one.rest.times.is_empty()));
        if let Some(apart) = apart {
            self.result.dated = shift::dated(apart, &mut self.result.shifts);
        }
        self.result.shifts.truncate(shift::MOST);
    }

    /// A thread slept, so this much time passed for it. Before the answer to the chosen request, no
    /// more time passes than until the recorded one.
    pub(super) fn slept(&mut self, call: &NotifiedCall, index: usize, ns: i64) {
        if ns > 0 {
            self.waits_in_vain(call);
        }
        let reached = self.matchers[index].position(call.tid).time;
        let most = self.time_until_answer(index, reached).unwrap_or(i64::MAX);
        let clock = self.passed[index].of(call.tid, reached);
        let before = clock.ns;
        clock.sleep(ns, most);
        let slept = clock.ns;
        self.passed[index].sleeps(call.tid, slept.saturating_sub(before));
        self.matchers[index].slept();
        if let Some(real) = self.clock.at(reached) {
            self.notes_moment(call.tid, index, real.saturating_add(slept));
        }
    }

    /// Ns from a recorded call to the recorded write of the next bytes on the connection of the
    /// chosen request. `None`: this program does not write them, or they have left.
    fn time_until_answer(&self, index: usize, reached: u64) -> Option<i64> {
        let answer = self.answer_time(index)?;
        Some(answer.saturating_sub(self.clock.at(reached)?))
    }

    /// When the next bytes on the connection of the chosen request were written in the record, in
    /// ns since 1970. `None`: as for [`Self::time_until_answer`].
    fn answer_time(&self, index: usize) -> Option<i64> {
        let unit = self.part.as_ref().map(|part| part.unit)?;
        let streams = &self.matchers[index].rest.streams;
        let output = &streams.get(&unit.connection)?.output;
        let is_due = unit.process == index && output.remaining() > 0;
        let written = output.next_time().filter(|_| is_due)?;
        self.clock.at(written)
    }

    /// Ns since 1970 when a wait of this length ends that a thread begins now.
    pub(super) fn end_of_wait(&mut self, thread: u32, index: usize, ns: i64) -> Option<i64> {
        let reached = self.matchers[index].position(thread).time;
        let passed = self.passed[index].of(thread, reached).ns;
        let now = self.clock.at(reached)?.saturating_add(passed);
        Some(now.saturating_add(ns))
    }

    /// The moment that a thread has come to.
    pub(super) fn present(&mut self, call: &NotifiedCall, index: usize) -> i128 {
        let own = self.matchers[index].position(call.tid);
        let slept = i128::from(self.passed[index].of(call.tid, own.time).ns);
        (self.moment(own.time) + slept).max(self.moment(own.wrote))
    }
}

#[cfg(test)]
mod tests {
    use super::{AskedTime, MOST_BEYOND, MOST_KEPT, Passed, STEP, ThreadClock};
    use crate::shift::{ClockShift, Question};
    use crate::time::RecordedClock;

    #[test]
    fn the_shifts_of_a_long_run_are_those_of_its_last_questions() {
        let mut passed = Passed::default();
        let questions = 1..=2 * MOST_KEPT as u64;
        for behind in questions.clone() {
            let behind = Some(behind);
            passed.keep_first(vec![ClockShift { ns: STEP, behind }]);
        }
        let kept = passed.shifts.iter().filter_map(|shift| shift.behind);
        assert!(kept.eq(questions.rev().take(MOST_KEPT)));
    }

    #[test]
    fn questions_beyond_the_recorded_ones_get_the_last_time_again_and_sleeps_count() {
        let mut passed = Passed::default();
        assert_eq!(passed.tell_beyond(7, 1), None);
        passed.tell(7, 1, 5_000);
        assert_eq!(passed.tell_beyond(7, 1), Some(5_000 + STEP));
        assert_eq!(passed.tell_beyond(8, 1), None);
        passed.sleeps(7, 300);
        passed.sleeps(8, 300);
        assert_eq!(passed.told(7, 1), Some(5_300 + STEP));
        assert_eq!(passed.tell_beyond(7, 1), Some(5_300 + 2 * STEP));
        // A loop that waits for a time gets it.
        assert!((2..MOST_BEYOND).all(|_| passed.tell_beyond(7, 1).is_some()));
        assert_eq!(passed.tell_beyond(7, 1), None);
        passed.tell(7, 1, 9_000);
        assert_eq!(passed.tell_beyond(7, 1), Some(9_000 + STEP));
    }

    #[test]
    fn a_sleep_passes_no_recorded_answer_and_never_sets_the_clock_back() {
        let mut clock = ThreadClock::default();
        for (ns, most, expected) in [
            (500, i64::MAX, 500),
            (500, 700, 700),
            (500, 700, 700),
            (500, 600, 700),
            (500, -1, 700),
            (-500, 900, 700),
            (i64::MAX, i64::MAX, i64::MAX),
        ] {
            clock.sleep(ns, most);
            assert_eq!(clock.ns, expected, "{ns} {most}");
        }
    }

    #[test]
    fn a_thread_that_other_threads_have_moved_is_also_tried_at_its_own_time() {
        const BEHIND: u64 = 7;
        let shifts = |is_lifted, until| {
            let asked = AskedTime {
                question: Question {
                    behind: BEHIND,
                    given: 0,
                },
                is_lifted,
            };
            asked.shifts(&[], &RecordedClock::default(), until)
        };
        let own = ClockShift {
            ns: STEP,
            behind: Some(BEHIND),
        };
        assert_eq!(shifts(true, 9), [own]);
        assert!(shifts(true, BEHIND).is_empty());
        assert!(shifts(false, 9).is_empty());
    }
}
