//! Calls that take the time: they get the time of the recorded execution.
//!
//! The program is at the recorded call that answered last, so its time is that of this call. A
//! question can lie later, and so can its answer: see `crate::shift`.

use super::part::Part;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::matcher::ProcessMatcher;
use crate::shift::{self, ClockShift, Question};
use libc::*;
use std::io;

/// How much later each question for the time is than the one before, in ns.
const STEP: i64 = 1_000;
const NS: i64 = 1_000_000_000;

/// The time that passed in the new execution alone, and the questions for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Passed {
    /// Ns since the recorded call at `since`.
    ns: i64,
    since: u64,
    /// The first question behind the last recorded call that has one.
    question: Option<Question>,
    /// The shifts for the questions before it, the last question first.
    shifts: Vec<ClockShift>,
}

impl Passed {
    /// This recorded call answered last.
    fn reach(&mut self, reached: u64) {
        if self.since != reached {
            (self.ns, self.since) = (0, reached);
        }
    }
}

/// True if a difference of the program was found which is not volatile.
fn has_parted(matcher: &ProcessMatcher) -> bool {
    let difference = matcher.divergence.as_ref();
    difference.is_some_and(|difference| difference.volatile.is_none())
}

impl Supervisor {
    /// Ns since 1970 in the recorded execution. `None`: the log does not know.
    fn time(&mut self, index: usize) -> Option<i64> {
        let reached = self.matchers[index].time();
        let passed = &mut self.passed[index];
        passed.reach(reached);
        passed.ns += STEP;
        let given = self.clock.at(reached)? + passed.ns;
        if self.part.as_ref().is_none_or(Part::has_begun) {
            self.result.took_time = true;
            self.notes_question(index, reached, given);
        }
        let time = given + self.result.shift.at(reached);
        self.rules.give(time);
        Some(time)
    }

    /// Notes the first question for the time behind a recorded call. The questions behind a
    /// difference do not matter.
    fn notes_question(&mut self, index: usize, behind: u64, given: i64) {
        let (matcher, passed) = (&self.matchers[index], &mut self.passed[index]);
        let is_known = passed.question.is_some_and(|last| last.behind == behind);
        if is_known || has_parted(matcher) {
            return;
        }
        if let Some(before) = passed.question.replace(Question { behind, given }) {
            let shifts = before.shifts(&matcher.rest.pauses, &self.clock, behind);
            drop(passed.shifts.splice(..0, shifts));
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
            let last = passed.question.as_ref();
            let last = last.map(|last| last.shifts(&matcher.rest.pauses, &self.clock, until));
            let shifts = &mut self.result.shifts;
            shifts.extend(last.into_iter().flatten().chain(passed.shifts.clone()));
        }
        self.result.shifts.truncate(shift::MOST);
    }

    /// The program slept, so this much time passed.
    pub(super) fn slept(&mut self, index: usize, ns: i64) {
        let reached = self.matchers[index].time();
        let passed = &mut self.passed[index];
        passed.reach(reached);
        passed.ns = passed.ns.saturating_add(ns.max(0));
    }

    /// `clock_gettime`, `gettimeofday` and `time`. `None`: another clock than that of the wall.
    pub(super) fn wall_clock(
        &mut self,
        call: &NotifiedCall,
        index: usize,
    ) -> io::Result<Option<Response>> {
        if let Some(exact) = self.exact_time(call, index)? {
            return Ok(Some(exact));
        }
        let clock = match call.number {
            SYS_clock_gettime => call.int(0),
            _ => CLOCK_REALTIME,
        };
        let is_real = matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_TAI);
        let is_wall = is_real
            || matches!(
                clock,
                CLOCK_MONOTONIC | CLOCK_MONOTONIC_RAW | CLOCK_MONOTONIC_COARSE | CLOCK_BOOTTIME
            );
        if !is_wall {
            return Ok(None);
        }
        let Some(real) = self.time(index) else {
            return Ok(Some(Response::Continue));
        };
        let ns = if is_real {
            real
        } else {
            real - self.since_boot
        };
        put_time(call, ns).map(Some)
    }

    /// A sleep returns at once. A program that goes on to sleep behind its record waits.
    pub(super) fn sleep(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let (at, absolute) = match call.number {
            SYS_clock_nanosleep => (call.args[2], call.int(1) & TIMER_ABSTIME != 0),
            _ => (call.args[0], false),
        };
        let ns = call.duration(at)?;
        if self.part.is_some() && self.matchers[index].idles() {
            return Ok(self.hold(index));
        }
        if self.is_killed_asleep(index) {
            return Ok(self.await_killer(call, index, EINTR));
        }
        if !absolute {
            self.slept(index, ns);
        }
        Ok(Response::Value(0))
    }
}

/// Answers `clock_gettime`, `gettimeofday` or `time` with a time in ns.
pub(super) fn put_time(call: &NotifiedCall, ns: i64) -> io::Result<Response> {
    let pair = |unit: i64| {
        let mut bytes = (ns.div_euclid(NS)).to_le_bytes().to_vec();
        bytes.extend((ns.rem_euclid(NS) / unit).to_le_bytes());
        bytes
    };
    match call.number {
        SYS_clock_gettime => {
            call.put(call.args[1], &pair(1))?;
            Ok(Response::Value(0))
        }
        SYS_gettimeofday => {
            if call.args[0] != 0 {
                call.put(call.args[0], &pair(1_000))?;
            }
            if call.args[1] != 0 {
                call.put(call.args[1], &[0; 8])?;
            }
            Ok(Response::Value(0))
        }
        _ => {
            let seconds = ns.div_euclid(NS);
            if call.args[0] != 0 {
                call.put(call.args[0], &seconds.to_le_bytes())?;
            }
            Ok(Response::Value(seconds))
        }
    }
}

/// How much earlier the other clocks began than that of the wall, in ns.
pub(super) fn since_boot() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    let ns = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * NS + time.tv_nsec
    };
    ns(ClockId::Realtime) - ns(ClockId::Monotonic)
}
