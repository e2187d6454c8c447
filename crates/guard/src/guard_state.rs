//! The state that all threads of the guard share.
//!
//! It holds facts about processes, mounts and rings, and the hooks of the supervisor. It knows
//! nothing of the threads themselves (`threads`).

use crate::caller::Caller;
use crate::callers::Callers;
use crate::descriptor_tracker::{DescriptorTracker, TrackedCall};
use crate::environment::SeenEnvironments;
use crate::exit_watcher::ExitWatcher;
use crate::hooks::{GuardSettings, Hooks};
use crate::later_calls::LaterCalls;
use crate::mounts::MountTable;
use crate::notification_buffers::{Notification, SharedBuffers};
use crate::parked_call::ParkedCall;
use crate::path_resolver::PathResolver;
use crate::uring::Rings;
use backstory_sys as sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The state that all threads of the guard share.
pub(crate) struct GuardState {
    listener: Arc<OwnedFd>,
    /// The buffers that notifications are received into.
    pub(crate) buffers: Arc<SharedBuffers>,
    /// The settings of the run.
    pub(crate) settings: GuardSettings,
    /// The supervisor's side.
    pub(crate) hooks: Arc<dyn Hooks>,
    /// The threads met lately.
    pub(crate) callers: Callers,
    /// Environments logged in full already.
    pub(crate) environments: SeenEnvironments,
    /// The processes whose exit status is awaited.
    pub(crate) exits: ExitWatcher,
    /// How the descriptors of each process are known.
    pub(crate) descriptors: DescriptorTracker,
    /// The io_urings of the run.
    pub(crate) rings: Rings,
    /// Calls below this filter that were deferred and are not logged yet.
    pub(crate) deferred: AtomicUsize,
    /// Later calls of the threads of deferred calls.
    pub(crate) later_calls: LaterCalls,
}

/// The parts of [`GuardState`] that need no listener. They take longer to make than the rest.
pub(crate) struct StateParts {
    exits: ExitWatcher,
    descriptors: DescriptorTracker,
    callers: Callers,
}

impl StateParts {
    /// The parts for a filter with these settings.
    ///
    /// # Errors
    /// No descriptor is left, or `/proc` cannot be opened.
    pub(crate) fn new(settings: &GuardSettings) -> io::Result<StateParts> {
        Ok(StateParts {
            exits: ExitWatcher::new()?,
            descriptors: DescriptorTracker::new(!settings.joins_later)?,
            callers: Callers::new()?,
        })
    }
}

impl GuardState {
    pub(crate) fn new(
        listener: OwnedFd,
        buffers: Arc<SharedBuffers>,
        settings: GuardSettings,
        hooks: Arc<dyn Hooks>,
        parts: StateParts,
    ) -> io::Result<Arc<GuardState>> {
        parts.exits.watch_listener(listener.as_fd())?;
        Ok(Arc::new(GuardState {
            exits: parts.exits,
            listener: Arc::new(listener),
            descriptors: parts.descriptors,
            buffers,
            settings,
            hooks,
            callers: parts.callers,
            environments: SeenEnvironments::default(),
            rings: Rings::default(),
            deferred: AtomicUsize::new(0),
            later_calls: LaterCalls::default(),
        }))
    }

    /// The listener of the filter.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// True once no process is left that has the filter.
    pub(crate) fn is_hung_up(&self) -> bool {
        sys::poll(self.listener(), 0, 0) & libc::POLLHUP != 0
    }

    /// True if a notification waits to be received.
    pub(crate) fn has_pending(&self) -> bool {
        sys::poll(self.listener(), libc::POLLIN, 0) & libc::POLLIN != 0
    }

    /// True while the notified call still waits: what was read of its caller's memory is the
    /// caller's.
    pub(crate) fn still_waits(&self, id: u64) -> bool {
        sys::still_waits(self.listener(), id)
    }

    /// A resolver for one thread of the guard. With `waits` it may wait for a file system.
    pub(crate) fn resolver(&self, waits: bool) -> PathResolver {
        PathResolver::new(MountTable::new(self.settings.mounts.clone()), waits)
    }

    /// Remembers that the call `id` waits for another thread than a receiver. `None`: too many
    /// calls wait.
    pub(crate) fn park(&self, id: u64) -> Option<ParkedCall> {
        let parked = self.buffers.park(id);
        parked.then(|| ParkedCall::new(id, self.listener.clone(), self.buffers.clone()))
    }

    /// A call, for the tracker of descriptors.
    pub(crate) fn tracked<'a>(
        &'a self,
        caller: &'a Caller,
        notification: &'a Notification,
        time: u64,
    ) -> TrackedCall<'a> {
        TrackedCall {
            callers: &self.callers,
            exits: &self.exits,
            caller,
            notification,
            time,
            simulator: self.settings.simulator.as_ref(),
        }
    }

    /// With `reads`, the call that was just logged or counted may have read a file. To be called
    /// before the caller is answered, or before a deferred call is no longer counted.
    pub(crate) fn note_read(&self, reads: bool) {
        if let (true, Some(preserver)) = (reads, self.hooks.preserver()) {
            preserver.note_possible_read();
        }
    }

    /// Counts a call before its caller goes on: as deferred, if it was, and as a possible read.
    pub(crate) fn count(&self, reads: bool, deferred: bool) {
        if deferred {
            self.settings.deferred.fetch_add(1, Ordering::AcqRel);
            self.deferred.fetch_add(1, Ordering::AcqRel);
        }
        self.note_read(reads);
    }

    /// Notes a call that was received, if its thread may have a deferred one.
    pub(crate) fn note_call(&self, call: &Notification) {
        if self.has_deferred() {
            self.later_calls.note(call);
        }
    }

    /// A deferred call was logged.
    pub(crate) fn finish_deferred(&self) {
        self.deferred.fetch_sub(1, Ordering::AcqRel);
        self.settings.deferred.fetch_sub(1, Ordering::AcqRel);
        if !self.has_deferred() {
            self.later_calls.forget_if(|| !self.has_deferred());
        }
    }

    fn has_deferred(&self) -> bool {
        self.deferred.load(Ordering::Acquire) > 0
    }
}
