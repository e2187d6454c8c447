//! Exact time (`record --time exact`): each question for the time gets the recorded answer.
//!
//! A thread has its answers in order, by clock. Its position is in its own questions and calls. So
//! a question that another thread adds moves nothing. If a thread has no further answer, it gets
//! its last one again. In a record without exact time, the time is that of `clock.rs`.

use super::clock::put_time;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use libc::*;
use std::io;

impl Supervisor {
    /// `clock_gettime`, `gettimeofday` and `time`. `None`: no answer was recorded.
    pub(super) fn exact_time(
        &mut self,
        call: &NotifiedCall,
        index: usize,
    ) -> io::Result<Option<Response>> {
        if self.matchers[index].rest.times.is_empty() {
            return Ok(None);
        }
        let clock = match call.number {
            SYS_clock_gettime => call.int(0),
            SYS_gettimeofday => CLOCK_REALTIME,
            _ => CLOCK_REALTIME_COARSE,
        };
        let thread = self.recorded_thread(call.tid, index);
        let matcher = &mut self.matchers[index];
        // In a part of a run, outputs for connections that are left out never come.
        let is_whole = self.part.is_none();
        let next = is_whole.then(|| matcher.next_output(thread, &self.resources));
        let Some(ns) = matcher.exact_time(thread, clock, next.flatten()) else {
            let beyond = self.passed[index].tell_beyond(call.tid, clock);
            return beyond.map(|ns| put_time(call, ns)).transpose();
        };
        if matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE) {
            self.rules.give(ns);
        }
        self.passed[index].tell(call.tid, clock, ns);
        put_time(call, ns).map(Some)
    }

    /// The caller makes the write that returned at this time, if it is known.
    pub(super) fn passes(&mut self, call: &NotifiedCall, index: usize, time: Option<u64>) {
        self.matchers[index].writes(time.unwrap_or(0));
        let rest = &self.matchers[index].rest;
        let is_exact = !rest.times.is_empty() || !rest.counters.is_empty();
        if let Some(time) = time.filter(|_| is_exact) {
            let thread = self.recorded_thread(call.tid, index);
            self.matchers[index].passes(thread, time);
        }
    }

    /// `getcpu`.
    pub(super) fn processor(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let thread = self.recorded_thread(call.tid, index);
        let Some((processor, node)) = self.matchers[index].processor(thread) else {
            return Ok(Response::Continue);
        };
        for (at, number) in [(call.args[0], processor), (call.args[1], node)] {
            if at != 0 {
                call.put(at, &number.to_le_bytes())?;
            }
        }
        Ok(Response::Value(0))
    }
}
