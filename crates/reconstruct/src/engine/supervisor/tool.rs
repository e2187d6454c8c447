//! Programs under a tool of the user: a debugger, a tracer, a profiler.
//!
//! A program that a debugger has stopped is not idle: the user looks at it. When a request has been
//! served, its programs get a signal that the tool sees, and the tool ends by itself. So it can
//! report, and a debugger stays as long as its user does.

use super::processes::{Role, state_and_time};
use super::{Response, Supervisor};
use backstory_sys as sys;
use std::io::{IsTerminal, stdin};
use std::time::{Duration, Instant};

/// A program is looked at after so long without a call.
const LOOK: Duration = Duration::from_millis(100);

/// Programs that go on after the signal are killed after so long.
const GRACE: Duration = Duration::from_secs(5);

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

    /// The request is over: ends its programs so that the tool can report. False: there is no tool.
    pub(super) fn closes(&mut self) -> bool {
        if !self.has_tool || self.follows_bytes {
            return false;
        }
        self.closing = Some(Instant::now());
        self.signal_programs(libc::SIGTERM);
        let parked = std::mem::take(&mut self.parked).into_iter();
        for call in parked.map(|(call, _)| call).chain(self.held.split_off(0)) {
            // A handler of the program runs when its call returns.
            self.answer(&call, Response::Errno(libc::EINTR));
        }
        true
    }

    /// True if the tool has ended, or has to be ended.
    pub(super) fn has_closed(&self, since: Instant) -> bool {
        let late = since.elapsed() > GRACE;
        let mut states = self.program_states().peekable();
        let is_left = states.peek().is_some();
        if late && !states.any(|(_, state)| is_stopped(state)) {
            self.signal_programs(libc::SIGKILL);
        }
        let endless = stdin().is_terminal();
        self.result.status.is_some()
            || !is_left && !endless && since.elapsed() > GRACE + self.patience
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

fn is_stopped(state: char) -> bool {
    matches!(state, 't' | 'T')
}
