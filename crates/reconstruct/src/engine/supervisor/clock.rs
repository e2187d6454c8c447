//! Calls that take the time: they get the time of the recorded execution.
//!
//! A thread is at the recorded call that answered it last, so its time is that of this call, see
//! `thread_clocks.rs`. A question can lie later, and so can its answer: see `crate::shift`.

use super::part::Part;
use super::sleeping::SleepEnd;
use super::thread_clocks::STEP;
use super::waiting::Ready;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use libc::*;
use std::io;

const NS: i64 = 1_000_000_000;

impl Supervisor {
    /// Ns since 1970 in the recorded execution of a thread, at its question for that. `None`: the
    /// log does not know.
    fn time(&mut self, thread: u32, index: usize) -> Option<i64> {
        let time = self.thread_time(thread, index, STEP)?;
        if self.part.as_ref().is_none_or(Part::has_begun) {
            self.result.took_time = true;
            self.notes_question(thread, index, time);
        }
        let time = time.given + self.clock_shift(index, time.reached);
        self.rules.give(time);
        Some(time)
    }

    /// How much later than recorded the time behind a recorded call is, in ns. A record with exact
    /// time has the time.
    fn clock_shift(&self, index: usize, reached: u64) -> i64 {
        match self.matchers[index].rest.times.is_empty() {
            true => self.result.shift.at(reached),
            false => 0,
        }
    }

    /// The moment of a time-stamp counter, in ns from an origin that all moments have.
    pub(super) fn moment(&self, counter: u64) -> i128 {
        let real = self.clock.at(counter).map(i128::from);
        real.unwrap_or_else(|| i128::from(counter))
    }

    /// The time that a clock has for a thread now, in ns. `None`: not known.
    fn time_of(&mut self, call: &NotifiedCall, index: usize, clock: i32) -> Option<i64> {
        let is_real = is_real(clock);
        if !is_real && !is_monotonic(clock) {
            return None;
        }
        if !self.matchers[index].rest.times.is_empty() {
            return self.passed[index].told(call.tid, clock);
        }
        let Some(time) = self.thread_time(call.tid, index, 0) else {
            // The program asks the kernel.
            return Some(kernel_time(is_real));
        };
        let real = time.given + self.clock_shift(index, time.reached);
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
        let Some(real) = self.time(call.tid, index) else {
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
        if self.part.is_some() {
            return Ok(match self.time_up(call, index, ns) {
                Ready::TimeUp => Response::Value(0),
                Ready::Later => Response::Park,
                Ready::Interrupted => Response::Continue,
                Ready::Some(_) | Ready::Never | Ready::Failed(_) | Ready::Again => self.hold(index),
            });
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
