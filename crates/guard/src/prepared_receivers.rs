//! Receivers that are prepared before their filter exists.
//!
//! In: the settings of a filter that will join a run. Out: its [`Receivers`], once there is a
//! listener. The process that has installed the filter waits for them. So the descriptors are
//! opened and the thread of the hot receiver is started beforehand.
//!
//! Invariant: that thread waits for its receiver alone, and ends if there never is one.

use crate::guard_state::{GuardState, StateParts};
use crate::hooks::{GuardSettings, Hooks};
use crate::notification_buffers::SharedBuffers;
use crate::receiver::NotificationReceiver;
use crate::receivers::{Receivers, prepare_process};
use crate::threads::spawn;
use backstory_arena::RecordSink;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Receivers without a filter.
pub struct PreparedReceivers<S> {
    parts: StateParts,
    settings: GuardSettings,
    make_sink: Box<dyn FnMut() -> S + Send>,
    hooks: Arc<dyn Hooks>,
    /// The thread of the hot receiver.
    thread: JoinHandle<()>,
    /// Passes the hot receiver to its thread.
    hot: Sender<NotificationReceiver<S>>,
}

impl<S: RecordSink + Send + 'static> PreparedReceivers<S> {
    /// Prepares receivers. The arguments are those of [`Receivers::start`].
    ///
    /// # Errors
    /// Those of [`Receivers::start`].
    pub fn new(
        settings: GuardSettings,
        make_sink: impl FnMut() -> S + Send + 'static,
        hooks: Arc<dyn Hooks>,
    ) -> io::Result<PreparedReceivers<S>> {
        prepare_process()?;
        let parts = StateParts::new(&settings)?;
        let (hot, passed) = channel::<NotificationReceiver<S>>();
        let work = move || {
            if let Ok(receiver) = passed.recv() {
                receiver.run();
            }
        };
        Ok(PreparedReceivers {
            parts,
            settings,
            make_sink: Box::new(make_sink),
            hooks,
            thread: spawn("guard", work)?,
            hot,
        })
    }

    /// Starts to respond to the notifications of a filter.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn start(self, listener: OwnedFd, buffers: Arc<SharedBuffers>) -> io::Result<Receivers> {
        let (hot, thread) = (self.hot, self.thread);
        let state = GuardState::new(listener, buffers, self.settings, self.hooks, self.parts)?;
        Receivers::begin(state, self.make_sink, |receiver| {
            let passed = hot.send(receiver);
            passed.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(thread)
        })
    }

    /// Ends the thread: there will be no filter.
    pub fn cancel(self) {
        drop(self.hot);
        // It has nothing to do, so it does not panic.
        let _ = self.thread.join();
    }
}
