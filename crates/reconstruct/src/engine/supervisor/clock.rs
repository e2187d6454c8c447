//! Calls that take the time: they get the time of the recorded execution.
//!
//! The program is at the recorded call that answered last, so its time is that of this call. A
//! question can lie later, and so can its answer: see `crate::shift`.

use super::part::Part;
use super::sleeping::SleepEnd;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::shift::{self, ClockShift, Question};
use libc::*;
use std::collections::HashMap;
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
    /// With exact time: the time that each thread got last, by its number and the clock.
    told: HashMap<(u32, i32), i64>,
}

impl Passed {
    /// This recorded call answered last.
    fn reach(&mut self, reached: u64) {
        if self.since != reached {
            (self.ns, self.since) = (0, reached);
        }
    }

    /// A sleep or a wait of so many ns is over. It leaves the time `most` behind the recorded call
    /// at most, and never sets it back.
    fn sleep(&mut self, ns: i64, most: i64) {
        let later = self.ns.saturating_add(ns.max(0));
        self.ns = later.min(most.max(self.ns));
    }

    /// A thread gets a recorded time.
    pub fn tell(&mut self, tid: u32, clock: i32, ns: i64) {
        self.told.insert((tid, clock), ns);
    }
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
        if is_known || matcher.has_parted() {
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
        // A server may have asked for the time before the request's connection was handed out.
        // Recorded times do not shift.
        let mut shifting = self.matchers.iter();
        let apart = shifting.find_map(|one| one.apart.filter(|_| one.rest.times.is_empty()));
        if let Some(apart) = apart {
            self.result.dated = shift::dated(apart, &mut self.result.shifts);
        }
        self.result.shifts.truncate(shift::MOST);
    }

    /// The program slept, so this much time passed. If another thread is to answer the chosen
    /// request, no more time passes than until the recorded answer.
    pub(super) fn slept(&mut self, index: usize, ns: i64) {
        let reached = self.matchers[index].time();
        let most = self.time_until_answer(index, reached).unwrap_or(i64::MAX);
        let passed = &mut self.passed[index];
        passed.reach(reached);
        passed.sleep(ns, most);
    }

    /// Ns from a recorded call to the recorded write of the next bytes on the connection of the
    /// chosen request. `None`: this program does not write them, or they have left.
    fn time_until_answer(&self, index: usize, reached: u64) -> Option<i64> {
        let unit = self.part.as_ref().map(|part| part.unit)?;
        let streams = &self.matchers[index].rest.streams;
        let output = &streams.get(&unit.connection)?.output;
        let is_due = unit.process == index && output.remaining() > 0;
        let written = output.next_time().filter(|_| is_due)?;
        Some(
            self.clock
                .at(written)?
                .saturating_sub(self.clock.at(reached)?),
        )
    }

    /// The moment of a time-stamp counter, in ns from an origin that all moments have.
    pub(super) fn moment(&self, counter: u64) -> i128 {
        let real = self.clock.at(counter).map(i128::from);
        real.unwrap_or_else(|| i128::from(counter))
    }

    /// The moment that a program has come to.
    pub(super) fn present(&mut self, index: usize) -> i128 {
        let matcher = &self.matchers[index];
        let (reached, until) = (matcher.time(), matcher.passed_until());
        let passed = &mut self.passed[index];
        passed.reach(reached);
        let slept = i128::from(passed.ns);
        (self.moment(reached) + slept).max(self.moment(until))
    }

    /// The time that a clock has for a thread now, in ns. `None`: not known.
    fn time_of(&mut self, call: &NotifiedCall, index: usize, clock: i32) -> Option<i64> {
        let is_real = is_real(clock);
        if !is_real && !is_monotonic(clock) {
            return None;
        }
        let matcher = &self.matchers[index];
        let passed = &mut self.passed[index];
        if !matcher.rest.times.is_empty() {
            return passed.told.get(&(call.tid, clock)).copied();
        }
        let reached = matcher.time();
        passed.reach(reached);
        let Some(real) = self.clock.at(reached) else {
            // The program asks the kernel.
            return Some(kernel_time(is_real));
        };
        let real = real + passed.ns + self.result.shift.at(reached);
        Some(if is_real {
            real
        } else {
            real - self.since_boot
        })
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
        let is_real = is_real(clock);
        if !is_real && !is_monotonic(clock) {
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

    /// `nanosleep` and `clock_nanosleep`. A program that goes on to sleep behind its record waits.
    pub(super) fn sleep(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let ns = self.length_of_sleep(call, index)?;
        if self.part.is_some() && self.matchers[index].idles() {
            return Ok(self.hold(index));
        }
        Ok(match self.sleep_end(call, index, ns) {
            SleepEnd::TimeUp => Response::Value(0),
            SleepEnd::Later => Response::Park,
            SleepEnd::Interrupted(rest) => {
                put_rest(call, rest)?;
                Response::Errno(EINTR)
            }
        })
    }

    /// How long a sleep is, in ns. One until a time of a clock begins now.
    fn length_of_sleep(&mut self, call: &NotifiedCall, index: usize) -> io::Result<i64> {
        if call.number == SYS_nanosleep {
            return call.duration(call.args[0]);
        }
        let ns = call.duration(call.args[2])?;
        if !is_absolute(call) {
            return Ok(ns);
        }
        let now = self.time_of(call, index, call.int(0));
        Ok(now.map_or(0, |now| ns.saturating_sub(now).max(0)))
    }
}

/// True for `clock_nanosleep` until a time of its clock.
fn is_absolute(call: &NotifiedCall) -> bool {
    call.number == SYS_clock_nanosleep && call.int(1) & TIMER_ABSTIME != 0
}

/// Tells the rest of a sleep that a signal interrupted, in ns, if the program asks for it.
fn put_rest(call: &NotifiedCall, rest: i64) -> io::Result<()> {
    let at = match call.number {
        SYS_nanosleep => call.args[1],
        _ => call.args[3],
    };
    if at == 0 || is_absolute(call) {
        return Ok(());
    }
    let (seconds, ns) = (rest.div_euclid(NS), rest.rem_euclid(NS));
    let bytes = [seconds.to_le_bytes(), ns.to_le_bytes()].concat();
    call.put(at, &bytes)
}

/// True for a clock of the time of day.
fn is_real(clock: i32) -> bool {
    matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_TAI)
}

/// True for a clock of the time since the system began.
fn is_monotonic(clock: i32) -> bool {
    matches!(
        clock,
        CLOCK_MONOTONIC | CLOCK_MONOTONIC_RAW | CLOCK_MONOTONIC_COARSE | CLOCK_BOOTTIME
    )
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
    kernel_time(true) - kernel_time(false)
}

/// The kernel's time of day, or since the system began, in ns.
fn kernel_time(is_real: bool) -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(match is_real {
        true => ClockId::Realtime,
        false => ClockId::Monotonic,
    });
    time.tv_sec * NS + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::Passed;

    #[test]
    fn a_sleep_passes_no_recorded_answer_and_never_sets_the_clock_back() {
        let mut passed = Passed::default();
        for (ns, most, expected) in [
            (500, i64::MAX, 500),
            (500, 700, 700),
            (500, 700, 700),
            (500, 600, 700),
            (500, -1, 700),
            (-500, 900, 700),
            (i64::MAX, i64::MAX, i64::MAX),
        ] {
            passed.sleep(ns, most);
            assert_eq!(passed.ns, expected, "{ns} {most}");
        }
    }
}
