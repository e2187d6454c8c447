//! The recorded handlers of signals that have not run again.
//!
//! In: the handlers of a program. Out: which of them ends a sleep, or belongs to a signal that
//! another program sends. Invariant: a handler behind whose place the program has come is not due.
//!
//! The kernel notifies of no handler. So one that ran between two calls of the new execution stays
//! due until the program has come behind its place.

use crate::process::HandlerRun;
use libc::*;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A signal that another program sent is there after so long.
const DELIVERY: Duration = Duration::from_millis(500);

/// Waits in vain, before nothing waits any more for a signal of the program.
const MOST_IN_VAIN: u32 = 4;

/// How a signal comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// A child ends.
    Child,
    /// The kernel sends it: a timer's time is up.
    Kernel,
    /// A process sends it, of the run or from outside.
    Process,
}

/// The knowledge about a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// Nothing.
    Open,
    /// It ends a wait that the kernel makes.
    InKernel,
    /// Another program of the run sent it at this moment.
    Sent(Instant),
}

/// A recorded handler that has not run again.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueHandler {
    pub ran: HandlerRun,
    delivery: Delivery,
    /// Children do not wait for it any more.
    is_passed_over: bool,
}

impl DueHandler {
    /// True if its wait is left to the kernel.
    pub fn is_in_kernel(&self) -> bool {
        self.delivery == Delivery::InKernel
    }

    /// True if it was sent, and not just now: it is there, or its handler has run.
    pub fn has_come(&self) -> bool {
        matches!(self.delivery, Delivery::Sent(at) if at.elapsed() > DELIVERY)
    }

    fn is_sent(&self) -> bool {
        matches!(self.delivery, Delivery::Sent(_))
    }
}

/// The handlers of one program that are due, in the order of time.
#[derive(Debug, Clone, Default)]
pub(super) struct DueSignals {
    due: VecDeque<DueHandler>,
    /// One of them may end a wait that the kernel makes.
    has_in_kernel: bool,
    in_vain: u32,
    /// A sleep of the program waited in vain for the end of the program.
    pub outlives: bool,
}

impl DueSignals {
    pub fn of(handlers: &[HandlerRun]) -> DueSignals {
        let mut all = handlers.to_vec();
        all.sort_by_key(|ran| ran.time);
        let one = |ran| DueHandler {
            ran,
            delivery: Delivery::Open,
            is_passed_over: false,
        };
        DueSignals {
            due: all.into_iter().map(one).collect(),
            has_in_kernel: false,
            in_vain: 0,
            outlives: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// The program has come to this time of the record.
    pub fn pass(&mut self, time: u64) {
        while self.due.front().is_some_and(|one| one.ran.time <= time) {
            self.due.pop_front();
        }
    }

    /// Each thread has come to its own time of the record, by its recorded number.
    pub fn pass_each(&mut self, until: impl Fn(u32) -> u64) {
        self.due.retain(|one| one.ran.time > until(one.ran.thread));
    }

    /// The next handler of a thread that may have interrupted a sleep.
    pub fn in_sleep(&self, thread: u32) -> Option<DueHandler> {
        let mut all = self.due.iter();
        let found = all.find(|one| {
            let is_own = one.ran.thread == thread && !one.ran.in_call;
            is_own && !one.is_in_kernel() && sender(one.ran.signal).is_some()
        });
        found.copied()
    }

    /// The last handler that ran in a call of a thread before this time. If a signal interrupted
    /// the call that returned then, it is that one.
    pub fn last_in_call(&self, thread: u32, returned: u64) -> Option<HandlerRun> {
        let mut all = self.due.iter().rev().map(|one| one.ran);
        all.find(|ran| ran.thread == thread && ran.in_call && ran.time < returned)
    }

    /// The next handler that children do not go on before.
    pub fn before_children(&self) -> Option<HandlerRun> {
        let mut all = self.due.iter();
        let found = all.find(|one| {
            let sender = sender(one.ran.signal);
            let is_awaited = !one.is_passed_over && !one.is_sent();
            is_awaited && matches!(sender, Some(Sender::Kernel | Sender::Process))
        });
        found.map(|one| one.ran)
    }

    /// Children do not wait for this handler any more.
    pub fn pass_over(&mut self, ran: &HandlerRun) {
        self.change(ran, |one| one.is_passed_over = true);
    }

    /// The next handler of a signal that no program of the run has sent yet.
    pub fn unsent(&self, signal: i32) -> Option<DueHandler> {
        let mut all = self.due.iter();
        let found = all.find(|one| one.ran.signal == signal && !one.is_sent());
        found.copied()
    }

    /// True if a program of the run has sent the signal of this handler.
    pub fn is_sent(&self, ran: &HandlerRun) -> bool {
        self.due.iter().any(|one| one.ran == *ran && one.is_sent())
    }

    /// A program of the run sends the signal of this handler.
    pub fn send(&mut self, ran: &HandlerRun) {
        self.change(ran, |one| one.delivery = Delivery::Sent(Instant::now()));
    }

    /// This handler runs now, or does not run any more.
    pub fn remove(&mut self, ran: &HandlerRun) {
        let at = self.due.iter().position(|one| one.ran == *ran);
        if let Some(at) = at {
            self.due.remove(at);
        }
    }

    /// A signal was awaited in vain. Programs that handle many signals get other ones in each
    /// execution.
    pub fn miss(&mut self) {
        self.in_vain += 1;
        if self.in_vain >= MOST_IN_VAIN {
            self.due.clear();
        }
    }

    /// The kernel makes a wait of a thread. The next handler of the thread ends it.
    pub fn enter_kernel(&mut self, thread: u32) {
        let mut all = self.due.iter_mut();
        let next = all.find(|one| one.ran.thread == thread && !one.ran.in_call);
        if let Some(next) = next
            && next.delivery == Delivery::Open
        {
            next.delivery = Delivery::InKernel;
            self.has_in_kernel = true;
        }
    }

    /// True if the kernel may make a wait of a thread that a recorded handler ends.
    pub fn has_in_kernel(&self) -> bool {
        self.has_in_kernel
    }

    /// A thread makes another call, so its wait is over.
    pub fn leave_kernel(&mut self, thread: u32) {
        self.due
            .retain(|one| one.ran.thread != thread || !one.is_in_kernel());
        self.has_in_kernel = self.due.iter().any(DueHandler::is_in_kernel);
    }

    fn change(&mut self, ran: &HandlerRun, change: impl FnOnce(&mut DueHandler)) {
        if let Some(one) = self.due.iter_mut().find(|one| one.ran == *ran) {
            change(one);
        }
    }
}

/// How a signal comes again that interrupts a sleep. `None`: a sleeping thread does not get it by
/// itself. It is that of a fault of the thread, or of its processor time.
pub(super) fn sender(signal: i32) -> Option<Sender> {
    match signal {
        SIGCHLD => Some(Sender::Child),
        SIGALRM | SIGIO | SIGURG => Some(Sender::Kernel),
        SIGVTALRM | SIGPROF | SIGPIPE | SIGSEGV | SIGBUS | SIGFPE | SIGILL | SIGTRAP | SIGSYS => {
            None
        }
        _ => Some(Sender::Process),
    }
}

#[cfg(test)]
mod tests {
    use super::DueSignals;
    use crate::process::HandlerRun;
    use libc::{SIGALRM, SIGCHLD, SIGSEGV, SIGTERM};

    fn ran(signal: i32, time: u64, thread: u32) -> HandlerRun {
        HandlerRun {
            signal,
            time,
            thread,
            in_call: false,
            next_call: u64::MAX,
        }
    }

    fn in_sleep(due: &DueSignals, thread: u32) -> Option<u64> {
        due.in_sleep(thread).map(|one| one.ran.time)
    }

    #[test]
    fn a_sleep_is_interrupted_by_the_next_signal_of_its_thread() {
        let in_call = HandlerRun {
            in_call: true,
            ..ran(SIGTERM, 2, 1)
        };
        let all = [
            ran(SIGTERM, 4, 1),
            in_call,
            ran(SIGSEGV, 3, 1),
            ran(SIGALRM, 1, 2),
        ];
        let mut due = DueSignals::of(&all);
        assert_eq!(in_sleep(&due, 1), Some(4));
        assert_eq!(in_sleep(&due, 2), Some(1));
        due.pass(1);
        assert_eq!(in_sleep(&due, 2), None);
        due.remove(&ran(SIGTERM, 4, 1));
        assert_eq!(in_sleep(&due, 1), None);
    }

    #[test]
    fn the_last_handler_in_a_call_interrupted_the_call_that_returned_next() {
        let in_call = |signal, time, thread| HandlerRun {
            in_call: true,
            ..ran(signal, time, thread)
        };
        let all = [
            in_call(SIGTERM, 1, 1),
            in_call(SIGALRM, 2, 1),
            in_call(SIGTERM, 3, 2),
            ran(SIGTERM, 4, 1),
            in_call(SIGTERM, 6, 1),
        ];
        let due = DueSignals::of(&all);
        let last = |thread, returned| due.last_in_call(thread, returned).map(|ran| ran.time);
        assert_eq!(last(1, 5), Some(2));
        assert_eq!(last(2, 5), Some(3));
        assert_eq!(last(1, 1), None);
    }

    #[test]
    fn a_signal_is_sent_once_for_each_recorded_handler() {
        let mut due = DueSignals::of(&[ran(SIGTERM, 1, 1), ran(SIGTERM, 2, 1)]);
        for time in [1, 2] {
            let next = due.unsent(SIGTERM).unwrap().ran;
            assert_eq!(next.time, time);
            due.send(&next);
        }
        assert!(due.unsent(SIGTERM).is_none());
        // It is awaited in the sleep that it interrupted.
        assert_eq!(in_sleep(&due, 1), Some(1));
        assert!(!due.in_sleep(1).unwrap().has_come());
    }

    #[test]
    fn a_signal_that_ends_a_wait_of_the_kernel_interrupts_no_later_sleep() {
        let mut due = DueSignals::of(&[ran(SIGTERM, 1, 1), ran(SIGALRM, 2, 1)]);
        due.enter_kernel(1);
        // The same wait is looked at again.
        due.enter_kernel(1);
        assert!(due.has_in_kernel());
        assert!(due.unsent(SIGTERM).unwrap().is_in_kernel());
        due.leave_kernel(2);
        assert!(due.has_in_kernel());
        due.leave_kernel(1);
        assert!(!due.has_in_kernel());
        assert_eq!(in_sleep(&due, 1), Some(2));
    }

    #[test]
    fn nothing_waits_for_signals_of_a_program_behind_a_few_waits_in_vain() {
        let mut due = DueSignals::of(&[ran(SIGTERM, 1, 1), ran(SIGTERM, 2, 1)]);
        for _ in 0..super::MOST_IN_VAIN {
            assert!(!due.is_empty());
            due.miss();
        }
        assert!(due.is_empty());
    }

    #[test]
    fn children_wait_for_the_signals_of_timers_and_processes_before_them() {
        let mut due = DueSignals::of(&[ran(SIGCHLD, 1, 1), ran(SIGALRM, 2, 1), ran(SIGTERM, 3, 1)]);
        let next = |due: &DueSignals| due.before_children().map(|ran| ran.time);
        assert_eq!(next(&due), Some(2));
        due.pass_over(&ran(SIGALRM, 2, 1));
        assert_eq!(next(&due), Some(3));
        due.send(&ran(SIGTERM, 3, 1));
        assert_eq!(next(&due), None);
    }
}
