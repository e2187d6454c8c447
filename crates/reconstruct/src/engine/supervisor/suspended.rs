//! Programs that wait for signals alone (`sigsuspend`, `pause`). The record has no such call.
//!
//! Signals of children, of timers and of other programs come again from the kernel. One from
//! outside the run does not: it is sent when no program of the run does anything.
//!
//! Invariant: a signal that came before the last recorded call that answered is not sent.

use super::due_signals::{Sender, sender};
use super::processes::state_and_time;
use super::signal_sets::{bit, handled_signals};
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::threads;
use backstory_sys as sys;
use libc::*;
use std::io;
use std::time::{Duration, Instant};

/// No program has done anything for so long when a signal from outside is sent.
pub(super) const STILL: Duration = Duration::from_secs(1);

/// A suspended program is looked at so often.
const LOOK: Duration = Duration::from_millis(10);

/// The work of all programs until the last look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stillness {
    /// Their calls and their processor time.
    progress: (u64, u64),
    /// Since when these are the same, and no program runs.
    since: Instant,
    looked: Instant,
}

impl Stillness {
    /// True if the programs were looked at just now.
    pub fn is_recent(&self) -> bool {
        self.looked.elapsed() < LOOK
    }

    /// For how long no program has done anything.
    pub fn lasts(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Supervisor {
    /// True for a wait for signals that is left to the kernel at once. In a part of a run, each one
    /// is: a part has no signals. So is that of a thread without a call before.
    pub(super) fn leaves_suspended(&self, call: &NotifiedCall) -> bool {
        let suspends = matches!(call.number, SYS_rt_sigsuspend | SYS_pause);
        suspends && (self.part.is_some() || !self.groups.contains_key(&call.tid))
    }

    /// A program waits for a signal, and the kernel makes the wait. It begins when a signal is
    /// there, if the record has one from outside.
    pub(super) fn suspend(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        self.enters_kernel(call, index);
        let known = self.suspended.remove(&call.id);
        let reached = self.matchers[index].time();
        let signals = self.matchers[index].rest.signals.iter().copied();
        let of_process = |signal| sender(signal) == Some(Sender::Process);
        let from_outside = |one: &(i32, u64)| one.1 > reached && of_process(one.0);
        let due: Vec<(i32, u64)> = signals.filter(from_outside).collect();
        if due.is_empty() {
            return Ok(Response::Continue);
        }
        if let Some(known) = known
            && known.is_recent()
        {
            self.suspended.insert(call.id, known);
            return Ok(Response::Park);
        }
        let group = self.group_of(call);
        if threads(group) > 1 {
            // The kernel chooses the thread that handles a signal.
            return Ok(Response::Continue);
        }
        let blocked = match call.number {
            SYS_pause => None,
            _ => Some(call.word(call.args[0])?),
        };
        let (handled, pending) = handled_signals(call.tid, blocked)?;
        let next = due.into_iter().find(|one| handled & bit(one.0) != 0);
        let Some(next) = next.filter(|_| pending == 0) else {
            return Ok(Response::Continue);
        };
        let now = self.stillness(known);
        if now.lasts() < STILL {
            self.suspended.insert(call.id, now);
            return Ok(Response::Park);
        }
        let matcher = &mut self.matchers[index];
        matcher.rest.signals.retain(|one| *one != next);
        matcher.reached(next.1);
        sys::kill_thread(group as sys::Pid, call.tid as sys::Pid, next.0)?;
        Ok(Response::Continue)
    }

    /// For how long no program has done anything while this call waits.
    pub(super) fn still_for(&mut self, call: &NotifiedCall) -> Duration {
        let now = match self.suspended.remove(&call.id) {
            Some(known) if known.is_recent() => known,
            known => self.stillness(known),
        };
        self.suspended.insert(call.id, now);
        now.lasts()
    }

    /// The work of all programs until now. A call that waits for its answer is no work.
    pub(super) fn stillness(&self, known: Option<Stillness>) -> Stillness {
        let mut live = self.live.keys();
        let runs = live.any(|pid| state_and_time(*pid).is_some_and(|(state, _)| state == 'R'));
        let progress = (self.calls_so_far(), self.processor_time());
        let same = known.filter(|known| !runs && known.progress == progress);
        let looked = Instant::now();
        Stillness {
            progress,
            since: same.map_or(looked, |known| known.since),
            looked,
        }
    }
}
