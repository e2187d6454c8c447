//! Programs under a tool of the user: a debugger, a tracer, a profiler.
//!
//! A program that a debugger has stopped is not idle: the user looks at it. When a request has been
//! served, its programs get a signal that the tool sees, and the tool ends by itself. So it can
//! report, and a debugger stays as long as its user does.

use super::processes::{Role, state_and_time};
use super::signal_sets::bit;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::signals;
use backstory_sys as sys;
use std::fs;
use std::io::{IsTerminal, stdin};
use std::time::{Duration, Instant};

/// A program is looked at after so long without a call.
const LOOK: Duration = Duration::from_millis(100);

/// The error of a call that begins again behind a signal (`ERESTARTSYS`). If the signal is there,
/// the kernel makes the call again, and the program never sees the error.
pub(super) const BEGINS_AGAIN: i32 = 512;

/// Programs that go on after the signal are killed if they did not work for so long.
const GRACE: Duration = Duration::from_secs(5);

/// Programs that got the signal to end.
#[derive(Debug)]
pub(super) struct Closing {
    since: Instant,
    /// The processor time that they had used, and since when.
    used: (u64, Instant),
}

impl Closing {
    fn begun(now: Instant) -> Closing {
        Closing {
            since: now,
            used: (0, now),
        }
    }

    /// True if the programs had time enough to end. Under Valgrind, a program still searches for
    /// leaks. `used`: their processor time.
    fn is_late(&mut self, used: u64, now: Instant, patience: Duration) -> bool {
        if used != self.used.0 {
            self.used = (used, now);
        }
        let idle = now.duration_since(self.used.1);
        idle > GRACE || now.duration_since(self.since) > GRACE + patience
    }
}

impl Supervisor {
    /// True if the user decides how long the program makes no call: a debugger has stopped it, or
    /// waits at its prompt without a program. `idle`: since the last call.
    pub(super) fn is_in_hand(&self, idle: Duration) -> bool {
        let has_ended = self.result.status.is_some();
        if !self.has_tool || has_ended || self.follows_bytes || idle < LOOK {
            return false;
        }
        let mut states = self.program_states().peekable();
        match states.peek() {
            None => stdin().is_terminal(),
            Some(_) => states.any(|(_, state)| is_stopped(state)),
        }
    }

    /// True if a tool runs without a program: it has not started one yet, or reports.
    pub(super) fn is_tool_alone(&self) -> bool {
        self.has_tool && !self.follows_bytes && self.program_states().next().is_none()
    }

    /// Lets a debugger stop a thread whose call waits. True if the call is answered.
    ///
    /// After the supervisor has received a call, only a deadly signal interrupts it. A debugger
    /// that stops all programs waits for this thread, too. The call may wait for a program that has
    /// been stopped already. So it begins again when the debugger lets the thread go on.
    pub(super) fn lets_stop(&mut self, call: &NotifiedCall) -> bool {
        if !self.has_tool || self.follows_bytes {
            return false;
        }
        let status = fs::read_to_string(format!("/proc/{}/status", call.tid));
        let stops = status.is_ok_and(|status| is_to_stop(&status));
        if stops {
            self.pipes.leave(call.id);
            self.suspended.remove(&call.id);
            self.answer(call, Response::Errno(BEGINS_AGAIN));
        }
        stops
    }

    /// The same for the calls that nothing answers before the end.
    pub(super) fn let_held_stop(&mut self) {
        let held = std::mem::take(&mut self.held).into_iter();
        let left: Vec<NotifiedCall> = held.filter(|call| !self.lets_stop(call)).collect();
        self.held = left;
    }

    /// The request is over: ends its programs so that the tool can report. False: there is no tool.
    pub(super) fn closes(&mut self) -> bool {
        if !self.has_tool || self.follows_bytes {
            return false;
        }
        self.closing = Some(Closing::begun(Instant::now()));
        self.signal_programs(libc::SIGTERM);
        let parked = std::mem::take(&mut self.parked).into_iter();
        for call in parked
            .map(|parked| parked.call)
            .chain(self.held.split_off(0))
        {
            // A handler of the program runs when its call returns.
            self.answer(&call, Response::Errno(libc::EINTR));
        }
        true
    }

    /// The response to a call while programs end: the kernel makes it. A signal to a group reaches
    /// no process outside of the replay.
    pub(super) fn closing_response(&self, call: &NotifiedCall) -> Response {
        let sent = match call.number {
            libc::SYS_kill => self.signal_group(call, call.int(0), call.int(1)),
            _ => None,
        };
        sent.unwrap_or(Response::Continue)
    }

    /// True if the tool has ended, or has to be ended.
    pub(super) fn has_closed(&mut self) -> bool {
        let (used, patience) = (self.processor_time(), self.patience);
        let Some(closing) = &mut self.closing else {
            return false;
        };
        let late = closing.is_late(used, Instant::now(), patience);
        let since = closing.since;
        let mut states = self.program_states().peekable();
        let is_left = states.peek().is_some();
        if late && !states.any(|(_, state)| is_stopped(state)) {
            self.signal_programs(libc::SIGKILL);
        }
        let endless = stdin().is_terminal();
        self.result.status.is_some() || !is_left && !endless && since.elapsed() > GRACE + patience
    }

    fn signal_programs(&self, signal: i32) {
        for (pid, _) in self.program_states() {
            let _ = sys::kill(pid as sys::Pid, signal);
        }
    }

    /// The recorded programs that run, with their states.
    fn program_states(&self) -> impl Iterator<Item = (u32, char)> {
        let all = self.live.iter();
        let all = all.filter(|(_, process)| matches!(process.role, Role::Program(_)));
        let states = all.filter_map(|(pid, _)| Some((*pid, state_and_time(*pid)?.0)));
        states.filter(|(_, state)| !matches!(state, 'Z' | 'X'))
    }
}

/// True if a debugger has sent a thread the signal to stop, by its `status` in `/proc`. One that
/// stops a whole process does not count.
fn is_to_stop(status: &str) -> bool {
    signals(status, "SigPnd") & bit(libc::SIGSTOP) != 0
}

fn is_stopped(state: char) -> bool {
    matches!(state, 't' | 'T')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_to_stop_if_the_signal_is_there_for_it_alone() {
        assert!(is_to_stop(
            "SigPnd:\t0000000000040000\nShdPnd:\t0000000000000000\n"
        ));
        assert!(!is_to_stop(
            "SigPnd:\t0000000000000001\nShdPnd:\t0000000000040000\n"
        ));
        assert!(!is_to_stop("State:\tD (disk sleep)\n"));
    }

    #[test]
    fn a_program_that_works_after_its_end_was_asked_for_may_report() {
        let second = Duration::from_secs(1);
        let patience = 60 * second;
        let begin = Instant::now();
        let mut closing = Closing::begun(begin);
        for number in 1..60 {
            let now = begin + number * second;
            assert!(!closing.is_late(u64::from(number), now, patience));
        }
        let last = begin + 59 * second;
        assert!(closing.is_late(59, last + GRACE + second, patience));
        let mut closing = Closing::begun(begin);
        assert!(!closing.is_late(0, begin + GRACE, patience));
        let end = begin + GRACE + patience + second;
        assert!(closing.is_late(1, end, patience), "it works without an end");
    }
}
