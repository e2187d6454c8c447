//! One receiver: receives notifications, has each handled, and responds.
//!
//! The receiver with index 0 is hot: it blocks in the kernel's receive call. The others sleep until
//! notifications queue up. A receiver waits for nothing but the next notification.

use crate::call_handler::handle;
use crate::call_logger::CallLogger;
use crate::deferred::{DeferredCall, log_unknown};
use crate::guard_state::GuardState;
use crate::notification_buffers::Notification;
use crate::on_demand::OnDemandThreads;
use crate::threads::{RECEIVER_THREADS, Reserve, ThreadControl};
use backstory_arena::RecordSink;
use backstory_sys as sys;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};

/// Calls that can wait for the deferred thread. The outcome of more calls stays unknown.
const MOST_DEFERRED: usize = 4096;
/// A receive that took fewer ticks than this did not sleep: more notifications may be queued.
const BUSY: u64 = 5_000;

/// One receiver.
pub(crate) struct NotificationReceiver<S> {
    pub(crate) state: Arc<GuardState>,
    pub(crate) control: Arc<ThreadControl>,
    pub(crate) reserve: Weak<Reserve>,
    pub(crate) deferred: Sender<Box<DeferredCall>>,
    pub(crate) index: usize,
    pub(crate) logger: CallLogger<S>,
}

impl<S: RecordSink> NotificationReceiver<S> {
    /// Receives until the guard is stopped or no process is left that has the filter.
    pub(crate) fn run(mut self) {
        self.control.runs(self.index);
        // A signal makes a call fail that waits to be received. On a busy machine that takes
        // milliseconds.
        sys::come_first();
        // Reads the table of mounts while the command is still being started, so that the first
        // call need not wait.
        self.logger.resolver.prepare(sys::clock::counter());
        while !self.control.stops() {
            if self.index > 0 && !self.is_wanted() {
                continue;
            }
            let before = sys::clock::counter();
            match self
                .state
                .buffers
                .receive(self.state.listener(), self.index)
            {
                Ok(notification) => {
                    let time = sys::clock::counter();
                    if time - before < BUSY && self.index + 1 < RECEIVER_THREADS {
                        self.call_help();
                    }
                    self.serve(&notification, time);
                }
                // A signal interrupted the receive, or the caller died before it was received.
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => {
                    if self.state.is_hung_up() {
                        break;
                    }
                }
            }
        }
        self.control.ends(self.index);
    }

    /// True if a notification waits for this helper. Otherwise sleeps until a receiver calls for
    /// help.
    fn is_wanted(&self) -> bool {
        let wanted = self.control.wanted.load(Ordering::Acquire);
        if self.state.has_pending() {
            return true;
        }
        if !self.control.stops() {
            sys::futex_wait(&self.control.wanted, wanted);
        }
        false
    }

    /// Wakes a helper if notifications are queued.
    fn call_help(&self) {
        if self.state.has_pending() {
            self.start(|reserve| &reserve.helpers);
            self.control.call_helpers(1);
        }
    }

    /// Starts threads of the reserve, if there still is one.
    fn start(&self, which: impl FnOnce(&Reserve) -> &OnDemandThreads) {
        if let Some(reserve) = self.reserve.upgrade() {
            which(&reserve).begin();
        }
    }

    /// Handles a notification and responds.
    fn serve(&mut self, notification: &Notification, time: u64) {
        self.state.note_call(notification);
        let response = handle(&self.state, &mut self.logger, notification, time);
        // The thread for exits has to run before the process goes on: it may be the run's last.
        if std::mem::take(&mut self.logger.met_process) && self.state.exits.was_used() {
            self.start(|reserve| &reserve.exits);
        }
        response.send(self.state.listener(), notification.id);
        self.state.buffers.clear(self.index);
        for call in std::mem::take(&mut self.logger.deferred) {
            self.defer(Box::new(call));
        }
    }

    /// Hands a call, which has been counted as deferred, to the deferred thread.
    fn defer(&mut self, call: Box<DeferredCall>) {
        if self.state.deferred.load(Ordering::Acquire) > MOST_DEFERRED {
            return log_unknown(&self.state, &mut self.logger.out, &call);
        }
        self.start(|reserve| &reserve.deferred);
        if let Err(returned) = self.deferred.send(call) {
            log_unknown(&self.state, &mut self.logger.out, &returned.0);
        }
    }
}
