//! Signals from outside the run, for programs that have nothing else left to do.
//!
//! In: the recorded handlers that have not run again. Out: their signals. A process with several
//! threads may wait for a signal anywhere, as for a lock. The kernel makes such a wait, so no call
//! of it comes.
//!
//! Invariant: no signal is sent while a program does something, or while a call waits for its
//! answer with a bound of its own.

use super::Supervisor;
use super::due_signals::{Sender, sender};
use super::ends::is_alive;
use super::processes::Role;
use super::signal_sets::{bit, handled_signals, has_handler};
use super::suspended::STILL;
use crate::process::HandlerRun;
use backstory_sys as sys;
use std::time::Duration;

/// The programs are looked at when no call has come for so long.
const SILENCE: Duration = Duration::from_millis(200);

/// A signal whose handler is the next one of a process.
#[derive(Debug, Clone, Copy)]
struct NextSignal {
    process: u32,
    program: usize,
    ran: HandlerRun,
}

impl Supervisor {
    /// Sends the next signal from outside if nothing else is left to do. `silent`: for how long no
    /// call has come. True if one was sent.
    pub(super) fn sends_from_outside(&mut self, silent: Duration) -> bool {
        let is_whole = self.part.is_none() && self.closing.is_none();
        let mut parked = self.parked.iter();
        let waits = !parked.all(|parked| self.staying.contains(&parked.call.tid));
        if !is_whole || silent < SILENCE || waits {
            self.still = None;
            return false;
        }
        let known = self.still;
        if known.is_some_and(|known| known.is_recent()) {
            return false;
        }
        let Some(next) = self.next_from_outside() else {
            self.still = None;
            return false;
        };
        let now = self.stillness(known);
        self.still = Some(now);
        if now.lasts() < self.silence_before(&next) || self.a_thread_runs() {
            return false;
        }
        self.still = None;
        let NextSignal {
            process, program, ..
        } = next;
        let signal = (next.ran.signal, next.ran.time);
        let signals = &mut self.matchers[program].rest.signals;
        signals.retain(|one| *one != signal);
        self.due[program].remove(&next.ran);
        self.signal_as_recorded(process, program, signal)
    }

    fn next_from_outside(&self) -> Option<NextSignal> {
        let all = self.live.iter().filter_map(|(process, about)| {
            let Role::Program(program) = about.role else {
                return None;
            };
            let ran = self.next_handler(program)?;
            let next = NextSignal {
                process: *process,
                program,
                ran,
            };
            is_alive(*process).then_some(next)
        });
        all.min_by_key(|next| next.ran.time)
    }

    /// The next handler of a program whose signal no process of the run has sent again.
    fn next_handler(&self, program: usize) -> Option<HandlerRun> {
        let matcher = &self.matchers[program];
        // These signals have the order of the handlers, and some are gone.
        let mut left = matcher.rest.signals.iter().peekable();
        let mut handlers = matcher.rest.handlers.iter().filter(|ran| {
            let next = left.next_if(|one| **one == (ran.signal, ran.time));
            next.is_some()
        });
        let found = handlers.find(|ran| {
            sender(ran.signal) == Some(Sender::Process)
                && ran.time > matcher.passed_by(ran.thread)
                && !self.due[program].is_sent(ran)
        });
        found.copied()
    }

    /// For how long no program does anything before a signal is sent. Where another program may
    /// send it, or output is missing that came before it, that is longer than in the record.
    fn silence_before(&self, next: &NextSignal) -> Duration {
        let NextSignal { program, ran, .. } = next;
        let from = self.matchers[*program].passed_by(ran.thread);
        let may_go_on = self.live.iter().any(|(process, about)| {
            let goes_on = match about.role {
                Role::Program(other) => self.matchers[other].owes(&self.resources, ran.time),
                Role::Tool | Role::Failing => false,
                Role::Waiting(_) | Role::Loading(_) | Role::Shallow | Role::KilledEarly(_) => true,
            };
            goes_on && is_alive(*process)
        });
        if !may_go_on && !self.has_timer(*program, from, ran.time) {
            return STILL;
        }
        let recorded = self.clock.between(from, ran.time);
        recorded.saturating_add(STILL).min(self.patience / 2)
    }

    /// Sends a signal to the thread in which its handler ran. `signal`: with the time-stamp counter
    /// when the handler began. False: the process has no handler by now, so the signal would end
    /// it. It came natively before.
    pub(super) fn signal_as_recorded(
        &mut self,
        process: u32,
        program: usize,
        signal: (i32, u64),
    ) -> bool {
        let (number, time) = signal;
        if !has_handler(process, number) {
            return false;
        }
        let pid = process as sys::Pid;
        let mut handlers = self.matchers[program].rest.handlers.iter();
        let ran = handlers.find(|ran| (ran.signal, ran.time) == signal);
        let thread = ran.map(|ran| ran.thread);
        if let Some(thread) = thread
            && let Some(tid) = self.live_thread(process, program, thread)
            && handles(tid, number)
            && sys::kill_thread(pid, tid as sys::Pid, number).is_ok()
        {
            let matcher = &mut self.matchers[program];
            matcher.turns_to(tid, thread);
            matcher.reached(time);
            return true;
        }
        sys::kill(pid, number).is_ok()
    }

    /// The thread of a process that has this recorded number.
    fn live_thread(&self, process: u32, program: usize, recorded: u32) -> Option<u32> {
        if recorded == self.matchers[program].rest.own_pid {
            return Some(process);
        }
        let mut known = self.threads.iter();
        let own = known.find(|((of, _), number)| *of == program && **number == recorded);
        // A thread that has made no call yet has its recorded number.
        let is_announced = self.announced.contains(&(program, recorded));
        let own = own.map(|((_, tid), _)| *tid);
        own.or(is_announced.then_some(recorded))
    }
}

/// True if a thread has a handler for a signal, and does not block it.
fn handles(tid: u32, signal: i32) -> bool {
    handled_signals(tid, None).is_ok_and(|(handled, _)| handled & bit(signal) != 0)
}
