//! Calls that take the time: they get the time of the recorded execution.
//!
//! The program is at the recorded call that answered last, so its time is that of this call.

use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use libc::*;
use std::io;

/// How much later each question for the time is than the one before, in ns.
const STEP: i64 = 1_000;
const NS: i64 = 1_000_000_000;

/// The time that passed in the new execution alone.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Passed {
    /// Ns since the recorded call at `since`.
    ns: i64,
    since: u64,
}

impl Supervisor {
    /// Ns since 1970 in the recorded execution. `None`: the log does not know.
    fn time(&mut self, index: usize) -> Option<i64> {
        let reached = self.matchers[index].time();
        let passed = &mut self.passed[index];
        if passed.since != reached {
            *passed = Passed {
                ns: 0,
                since: reached,
            };
        }
        passed.ns += STEP;
        let mut shift = 0;
        if let Some(part) = &mut self.part {
            part.takes_time();
            shift = part.shift;
        }
        let time = self.clock.at(reached)? + passed.ns + shift;
        self.rules.give(time);
        Some(time)
    }

    /// The program slept, so this much time passed.
    pub(super) fn slept(&mut self, index: usize, ns: i64) {
        let reached = self.matchers[index].time();
        let passed = &mut self.passed[index];
        if passed.since != reached {
            *passed = Passed {
                ns: 0,
                since: reached,
            };
        }
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
