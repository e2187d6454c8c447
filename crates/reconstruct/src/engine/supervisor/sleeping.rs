//! Sleeps. They take no time, unless a signal ended them in the record, or comes first.
//!
//! In: the length of a sleep, and the recorded handlers of signals. Out: how the sleep ends. The
//! record has no sleep, but it says when each handler ran, and what its thread did next. The moment
//! that the program has come to is known, and so is the moment at which a sleep would end.
//!
//! Three kinds of sleeps wait for a signal, with a bound:
//!
//! - A handler ran between two calls, before the sleep would have ended.
//! - A signal killed the process: no call of it followed the sleep.
//! - A handler of the parent ran before the sleep would have ended: the parent may have waited for
//!   this process.
//!
//! Invariant: a recorded handler is awaited once. A sleep that waited in vain goes on as any other.

use super::child_waits::has_ended;
use super::due_signals::{DueHandler, Sender, sender};
use super::ends::is_alive;
use super::processes::Role;
use super::signal_sets::{bit, handled_signals, own_mask};
use super::suspended::STILL;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::threads;
use crate::process::HandlerRun;
use backstory_sys as sys;
use libc::{EINTR, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::time::Duration;

/// A signal of a process is awaited so long at most, however much other programs do.
const LONGEST: Duration = Duration::from_secs(60);

/// A child waits so long at most for a signal that a process sends to its parent.
const LONGEST_FOR_PARENT: Duration = Duration::from_secs(3);

/// The signals by which users and service managers end programs. Runtimes that stop their own
/// threads by signals take other ones.
const OF_USERS: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// How a sleep goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SleepEnd {
    /// Its time is up.
    TimeUp,
    /// It is looked at again.
    Later,
    /// A signal ends it, so many ns before its time would be up.
    Interrupted(i64),
}

/// Whether the signal of a recorded handler comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// It may still come.
    Awaited,
    /// It is there.
    There,
    /// It does not come any more, or its handler has run.
    Missing,
    /// The thread does not handle it now.
    Unhandled,
}

impl Supervisor {
    /// How a sleep of so many ns ends in a whole run. `time_up.rs` has the sleeps of a part.
    pub(super) fn sleep_end(&mut self, call: &NotifiedCall, index: usize, ns: i64) -> SleepEnd {
        let is_gone = || has_ended(&call.tid.to_string()) != Some(false);
        let end = match !self.parked_for.is_zero() && is_gone() {
            true => SleepEnd::TimeUp,
            false => self.signal_in_sleep(call, index, ns.max(0)),
        };
        if end == SleepEnd::Later {
            self.asleep.insert(call.tid);
            return end;
        }
        self.suspended.remove(&call.id);
        if end == SleepEnd::TimeUp {
            self.slept(call, index, ns);
        }
        end
    }

    fn signal_in_sleep(&mut self, call: &NotifiedCall, index: usize, ns: i64) -> SleepEnd {
        self.pass_handlers(index);
        let present = self.present(call, index);
        let end = present + i128::from(ns);
        let interrupted = self.handler_in_sleep(call, index, present, end);
        let ended = interrupted.or_else(|| self.death_in_sleep(call, index, end));
        match ended {
            Some(ended) => ended,
            None if self.parent_is_first(call, index, end) => SleepEnd::Later,
            None => SleepEnd::TimeUp,
        }
    }

    /// Handlers are not due any more if their threads have come behind them.
    pub(super) fn pass_handlers(&mut self, index: usize) {
        let matcher = &self.matchers[index];
        match matcher.rest.threads.is_empty() {
            true => self.due[index].pass(matcher.passed_until()),
            false => self.due[index].pass_each(|thread| matcher.passed_by(thread)),
        }
    }

    /// How a sleep between two moments ends if a handler ran in it. `None`: none did.
    fn handler_in_sleep(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        present: i128,
        end: i128,
    ) -> Option<SleepEnd> {
        if self.due[index].is_empty() {
            return None;
        }
        let thread = self.recorded_thread(call.tid, index);
        while let Some(due) = self.due[index].in_sleep(thread) {
            let ran = due.ran;
            let began = self.moment(ran.time);
            if began >= end {
                return None;
            }
            // The whole sleep does not fit behind the handler. So the handler ran in the sleep.
            let goes_on = (ran.next_call != u64::MAX).then(|| self.moment(ran.next_call));
            let is_certain = goes_on.is_some_and(|next| next - began < end - present);
            let arrival = self.arrival(call, index, &due, is_certain);
            if arrival == Arrival::Awaited {
                return Some(SleepEnd::Later);
            }
            self.due[index].remove(&ran);
            if arrival == Arrival::Missing && !self.parked_for.is_zero() {
                self.due[index].miss();
            }
            let ends = is_certain && arrival != Arrival::Unhandled;
            if ends || arrival == Arrival::There {
                let rest = (end - began).clamp(0, end - present);
                let matcher = &mut self.matchers[index];
                let signals = &mut matcher.rest.signals;
                signals.retain(|one| *one != (ran.signal, ran.time));
                matcher.reached(ran.time);
                return Some(SleepEnd::Interrupted(i64::try_from(rest).unwrap_or(0)));
            }
        }
        None
    }

    /// Whether the signal of a handler comes in a sleep. `is_certain`: it ended the sleep in the
    /// record. It is then sent if it comes from no process of the run.
    fn arrival(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        due: &DueHandler,
        is_certain: bool,
    ) -> Arrival {
        let ran = &due.ran;
        let sender = sender(ran.signal);
        // In this order: a child that ends in between has sent its signal.
        let child_is_late =
            sender == Some(Sender::Child) && self.awaits_child(call, index, ran.time);
        let blocked = own_mask(call).unwrap_or_default();
        let (handled, there) = handled_signals(call.tid, blocked).unwrap_or_default();
        if there & bit(ran.signal) != 0 {
            return Arrival::There;
        }
        if handled & bit(ran.signal) == 0 {
            return Arrival::Unhandled;
        }
        if due.has_come() {
            return Arrival::Missing;
        }
        let is_awaited = match sender {
            Some(Sender::Child) => child_is_late,
            _ => self.may_be_sent(call, index, ran, LONGEST),
        };
        if is_awaited {
            return Arrival::Awaited;
        }
        let group = self.group_of(call);
        // The threads of a process may stop each other by other signals.
        let is_of_thread = || threads(group) > 1 && !OF_USERS.contains(&ran.signal);
        let is_from_outside = sender == Some(Sender::Process) && is_certain && !is_of_thread();
        let sends = || sys::kill_thread(group as sys::Pid, call.tid as sys::Pid, ran.signal);
        match is_from_outside && sends().is_ok() {
            true => Arrival::There,
            false => Arrival::Missing,
        }
    }

    /// True if the signal of a timer of a program may still come, for which a wait is held. A timer
    /// takes at most as long as the program had run in the record.
    pub(super) fn alarm_may_come(&self, program: usize, ran: &HandlerRun) -> bool {
        let began = self.matchers[program].rest.began;
        self.parked_for < self.longest_wait(began, ran)
    }

    /// True if the signal of a handler of a program may still come, for which a sleep waits.
    ///
    /// A process sends nothing any more if no program has done anything for longer than in the
    /// record. The same holds if the sleep has waited for `most`.
    fn may_be_sent(
        &mut self,
        call: &NotifiedCall,
        program: usize,
        ran: &HandlerRun,
        most: Duration,
    ) -> bool {
        if sender(ran.signal) == Some(Sender::Kernel) {
            return self.alarm_may_come(program, ran);
        }
        let passed = self.matchers[program].passed_by(ran.thread);
        let longest = self.longest_wait(passed, ran);
        self.parked_for < most && self.still_for(call) < longest
    }

    /// The longest wait for a signal that came this long after a recorded moment.
    fn longest_wait(&self, from: u64, ran: &HandlerRun) -> Duration {
        let recorded = self.clock.between(from, ran.time);
        recorded.saturating_add(STILL).min(self.patience / 2)
    }

    /// How a sleep until this moment ends if a signal killed its process in it. `None`: none did.
    fn death_in_sleep(&mut self, call: &NotifiedCall, index: usize, end: i128) -> Option<SleepEnd> {
        if self.is_killed_asleep(index) {
            let response = self.await_killer(call, index, EINTR);
            return Some(match response {
                Response::Park => SleepEnd::Later,
                _ => SleepEnd::Interrupted(0),
            });
        }
        let killed_at = self.matchers[index].rest.killed_at;
        let outlasts = self.is_killed(index) && killed_at.is_some_and(|at| self.moment(at) < end);
        if self.due[index].outlives || !outlasts && !self.never_ended(index) {
            return None;
        }
        if self.awaits_kill(index) {
            return Some(SleepEnd::Later);
        }
        self.due[index].outlives = true;
        None
    }

    /// True if the parent of a program has a handler to run before this moment, for which the sleep
    /// of a child waits.
    fn parent_is_first(&mut self, call: &NotifiedCall, index: usize, end: i128) -> bool {
        let Some(parent) = self.live_parent(index) else {
            return false;
        };
        self.pass_handlers(parent);
        while let Some(ran) = self.due[parent].before_children() {
            if self.moment(ran.time) >= end {
                return false;
            }
            if self.may_be_sent(call, parent, &ran, LONGEST_FOR_PARENT) {
                return true;
            }
            self.due[parent].pass_over(&ran);
            self.due[parent].miss();
        }
        false
    }

    /// The program of the parent of a process, if it runs and has handlers that are due.
    fn live_parent(&self, index: usize) -> Option<usize> {
        let parent = self.matchers[index].rest.parent;
        let found = self.live.iter().find_map(|(pid, process)| {
            let Role::Program(program) = process.role else {
                return None;
            };
            let is_parent = program != index && self.matchers[program].rest.pid == parent;
            is_parent.then_some((*pid, program))
        });
        let (pid, program) = found?;
        (!self.due[program].is_empty() && is_alive(pid)).then_some(program)
    }

    /// A thread begins a wait for signals that the kernel makes.
    pub(super) fn enters_kernel(&mut self, call: &NotifiedCall, index: usize) {
        if !self.due[index].is_empty() {
            let thread = self.recorded_thread(call.tid, index);
            self.pass_handlers(index);
            self.due[index].enter_kernel(thread);
        }
    }

    /// A thread makes a call, so its last wait is over.
    pub(super) fn leaves_kernel(&mut self, call: &NotifiedCall, index: usize) {
        if self.due[index].has_in_kernel() {
            let thread = self.recorded_thread(call.tid, index);
            self.due[index].leave_kernel(thread);
        }
    }
}
