//! The filters of a run, and the receivers of each.
//!
//! A run with `--guard=on` has one filter, which its command starts with. With `--guard=auto`, each
//! process that needs a filter installs one. Its listener arrives by the socket (`guard_socket`).
//!
//! Invariant: once the process that installed a filter goes on, its notifications are responded to
//! by receivers here, or by the keeper.

use crate::keeper_messages::{BUFFERS, LISTENER, SERVE, SERVE_LAST};
use backstory_arena::{ChunkSupply, ChunkWriter};
use backstory_eventlog::Reason;
use backstory_guard::{
    GuardSettings, Hooks, MountFacts, Receivers, RecordWriter, SharedBuffers, StuckReceiverMonitor,
};
use backstory_sys as sys;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The filters of a run.
pub(crate) struct GuardFilters {
    hooks: Arc<dyn Hooks>,
    stock: Arc<ChunkSupply>,
    /// Makes the settings of a filter; true for one that joins later.
    settings: Box<dyn Fn(bool) -> GuardSettings + Send + Sync>,
    to_keeper: OwnedFd,
    /// Calls below all filters that are not logged yet.
    deferred: Arc<AtomicUsize>,
    /// What all receivers know about mounts.
    mounts: Arc<MountFacts>,
    running: Mutex<RunningFilters>,
    monitors: Arc<Mutex<Vec<StuckReceiverMonitor>>>,
}

#[derive(Default)]
struct RunningFilters {
    receivers: Vec<Receivers>,
    /// A receiver that has ended left a call without an outcome.
    slow: bool,
    /// The keeper responds for filters that arrive from now on.
    ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GuardFilters {
    /// No filter yet.
    pub(crate) fn new(
        hooks: Arc<dyn Hooks>,
        stock: &Arc<ChunkSupply>,
        settings: Box<dyn Fn(bool) -> GuardSettings + Send + Sync>,
        to_keeper: OwnedFd,
    ) -> GuardFilters {
        let monitors = Arc::<Mutex<Vec<StuckReceiverMonitor>>>::default();
        let all = Arc::clone(&monitors);
        let look = move || lock(&all).iter().for_each(StuckReceiverMonitor::check);
        stock.look_regularly(Box::new(look));
        GuardFilters {
            hooks,
            stock: Arc::clone(stock),
            settings,
            to_keeper,
            deferred: Arc::default(),
            mounts: Arc::default(),
            running: Mutex::default(),
            monitors,
        }
    }

    fn receivers(
        &self,
        listener: OwnedFd,
        buffers: Arc<SharedBuffers>,
        joins_later: bool,
    ) -> io::Result<Receivers> {
        let stock = Arc::clone(&self.stock);
        let make_sink = move || ChunkWriter::new(Arc::clone(&stock));
        let settings = GuardSettings {
            deferred: Arc::clone(&self.deferred),
            mounts: Arc::clone(&self.mounts),
            ..(self.settings)(joins_later)
        };
        let hooks = Arc::clone(&self.hooks);
        Receivers::start(listener, buffers, settings, make_sink, hooks)
    }

    /// Starts the receivers of the filter that the command starts with. The keeper has its
    /// listener.
    ///
    /// # Errors
    /// Those of [`Receivers::start`]. The keeper responds then.
    pub(crate) fn begin(&self, listener: OwnedFd, buffers: Arc<SharedBuffers>) -> io::Result<()> {
        let started = self.receivers(listener, buffers, false);
        if started.is_err() {
            // The keeper has the listener, too, and no other duty.
            let _ = rustix::io::write(&self.to_keeper, &[SERVE]);
        }
        self.run(&mut lock(&self.running), started?);
        Ok(())
    }

    /// Starts the receivers of a filter that a process has just installed. `adopted` is the
    /// process, if its recorder goes on in it. If no receiver can be started, or the run has ended,
    /// the keeper responds.
    ///
    /// # Errors
    /// Neither this process nor the keeper can respond.
    pub(crate) fn join(&self, listener: OwnedFd, adopted: Option<u32>) -> io::Result<()> {
        let mut running = lock(&self.running);
        self.remove_ended(&mut running);
        let (buffers, sent) = self.pass_to_keeper(&listener)?;
        if running.ended {
            sent?;
            return Ok(rustix::io::write(&self.to_keeper, &[SERVE_LAST]).map(drop)?);
        }
        match self.receivers(listener, buffers, true) {
            Ok(receivers) => {
                if let Some(pid) = adopted {
                    receivers.adopt(pid);
                }
                self.run(&mut running, receivers);
                // A keeper that has died is reported where its death is noticed.
                if let Err(error) = sent {
                    let error = error.to_string();
                    self.hooks.report(Reason::KeeperWithoutListener { error });
                }
            }
            Err(error) => {
                sent?;
                rustix::io::write(&self.to_keeper, &[SERVE_LAST])?;
                let error = error.to_string();
                self.hooks.report(Reason::GuardSilent { error });
            }
        }
        Ok(())
    }

    /// Passes a listener and its buffers to the keeper. Returns the buffers, and whether the keeper
    /// has both.
    fn pass_to_keeper(
        &self,
        listener: &OwnedFd,
    ) -> io::Result<(Arc<SharedBuffers>, io::Result<()>)> {
        Ok(match SharedBuffers::create_in_file() {
            Ok((buffers, file)) => {
                let sent = sys::send_fd(self.to_keeper.as_fd(), BUFFERS, file.as_fd());
                let sent = sent.and_then(|()| {
                    sys::send_fd(self.to_keeper.as_fd(), LISTENER, listener.as_fd())
                });
                (Arc::new(buffers), sent)
            }
            // No descriptor is left for the keeper.
            Err(error) => (Arc::new(SharedBuffers::create()?), Err(error)),
        })
    }

    /// Calls below all filters that are not logged yet.
    pub(crate) fn deferred(&self) -> &AtomicUsize {
        &self.deferred
    }

    /// The time of a change that a process without the filter is about to make, and that was
    /// received at `time`. The processes that have ended until then get their exits in the log,
    /// before this time.
    pub(crate) fn time_of_change(&self, time: u64, out: &mut RecordWriter<ChunkWriter>) -> u64 {
        let running = lock(&self.running);
        let receivers = running.receivers.iter();
        receivers.fold(time, |time, one| one.write_ended(time, out))
    }

    fn run(&self, running: &mut RunningFilters, receivers: Receivers) {
        lock(&self.monitors).push(receivers.monitor());
        running.receivers.push(receivers);
    }

    /// Ends the receivers of filters that no process has any more.
    fn remove_ended(&self, running: &mut RunningFilters) {
        for index in (0..running.receivers.len()).rev() {
            if running.receivers[index].ended() {
                lock(&self.monitors).remove(index);
                running.slow |= !running.receivers.remove(index).stop();
            }
        }
    }

    /// Ends all receivers. Returns false if the outcome of a call is unknown, because a receiver
    /// still waits for a file system. The keeper responds to processes that go on.
    pub(crate) fn end(&self) -> bool {
        let mut running = lock(&self.running);
        running.ended = true;
        lock(&self.monitors).clear();
        let mut left = false;
        for receivers in std::mem::take(&mut running.receivers) {
            left |= !receivers.ended();
            running.slow |= !receivers.stop();
        }
        if left {
            let _ = rustix::io::write(&self.to_keeper, &[SERVE]);
        }
        !running.slow
    }
}
