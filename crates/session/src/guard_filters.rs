//! The filters of a run, and the receivers of each.
//!
//! A run with `--guard=on` has one filter, which its command starts with. With `--guard=auto`, each
//! process that needs a filter installs one. Its listener arrives by the socket (`guard_socket`).
//!
//! The process that installed the filter waits meanwhile. Work that it need not wait for comes
//! after the response ([`GuardFilters::settle`]): the ends of other receivers, and the preparation
//! of the next ones.
//!
//! Invariants:
//!
//! - Once the process that installed a filter goes on, its notifications are responded to by
//!   receivers here, or by the keeper. The keeper has the listener by then.
//! - Locks are taken in this order: `stopping`, `running`, `monitors`. No lock is taken while
//!   `prepared` is held.

use crate::keeper_messages::{BUFFERS, LISTENER, SERVE, SERVE_LAST};
use backstory_arena::{ChunkSupply, ChunkWriter};
use backstory_eventlog::Reason;
use backstory_guard::{
    GuardSettings, Hooks, MountFacts, PreparedReceivers, Receivers, RecordWriter, SharedBuffers,
    StuckReceiverMonitor,
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
    /// Facts about mounts that all receivers share.
    mounts: Arc<MountFacts>,
    running: Mutex<RunningFilters>,
    /// Held while receivers without processes are stopped. They are in no list then.
    stopping: Mutex<()>,
    /// For the next filter that joins.
    prepared: Mutex<Option<PreparedFilter>>,
    monitors: Arc<Mutex<Vec<StuckReceiverMonitor>>>,
}

#[derive(Default)]
struct RunningFilters {
    receivers: Vec<Receivers>,
    /// Filters that have joined.
    joined: usize,
    /// A receiver that has ended left a call without an outcome.
    slow: bool,
    /// The keeper responds for filters that arrive from now on.
    ended: bool,
}

/// A filter that joins after so many others finds its receivers prepared. Before that, another one
/// may never join.
const FEW: usize = 2;

/// Receivers and buffers without a filter.
struct PreparedFilter {
    receivers: PreparedReceivers<ChunkWriter>,
    buffers: JoiningBuffers,
}

/// The buffers of a filter that joins.
struct JoiningBuffers {
    shared: Arc<SharedBuffers>,
    /// Their memory, for the keeper; or why the keeper cannot have it.
    file: io::Result<OwnedFd>,
}

impl JoiningBuffers {
    fn create() -> io::Result<JoiningBuffers> {
        let (shared, file) = match SharedBuffers::create_in_file() {
            Ok((shared, file)) => (shared, Ok(file)),
            // No descriptor is left for the keeper.
            Err(error) => (SharedBuffers::create()?, Err(error)),
        };
        Ok(JoiningBuffers {
            shared: Arc::new(shared),
            file,
        })
    }
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
            stopping: Mutex::default(),
            prepared: Mutex::default(),
            monitors,
        }
    }

    /// The settings of a filter: of one that joins later (true), or of the command's.
    fn settings_of(&self, joins_later: bool) -> GuardSettings {
        GuardSettings {
            deferred: Arc::clone(&self.deferred),
            mounts: Arc::clone(&self.mounts),
            ..(self.settings)(joins_later)
        }
    }

    /// Makes a sink for each thread of receivers.
    fn make_sink(&self) -> Box<dyn FnMut() -> ChunkWriter + Send> {
        let stock = Arc::clone(&self.stock);
        Box::new(move || ChunkWriter::new(Arc::clone(&stock)))
    }

    fn receivers(
        &self,
        listener: OwnedFd,
        buffers: Arc<SharedBuffers>,
        joins_later: bool,
    ) -> io::Result<Receivers> {
        let (settings, hooks) = (self.settings_of(joins_later), Arc::clone(&self.hooks));
        Receivers::start(listener, buffers, settings, self.make_sink(), hooks)
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
        let prepared = lock(&self.prepared).take();
        let (prepared, buffers) = match prepared {
            Some(one) => (Some(one.receivers), one.buffers),
            None => (None, JoiningBuffers::create()?),
        };
        let mut running = lock(&self.running);
        let sent = self.pass_to_keeper(&listener, buffers.file);
        if running.ended {
            sent?;
            return Ok(rustix::io::write(&self.to_keeper, &[SERVE_LAST]).map(drop)?);
        }
        running.joined += 1;
        let started = match prepared {
            Some(prepared) => prepared.start(listener, buffers.shared),
            None => self.receivers(listener, buffers.shared, true),
        };
        match started {
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

    /// Passes a listener and its buffers to the keeper. The caller holds the lock of `running`, so
    /// the two stay together.
    fn pass_to_keeper(&self, listener: &OwnedFd, buffers: io::Result<OwnedFd>) -> io::Result<()> {
        sys::send_fd(self.to_keeper.as_fd(), BUFFERS, buffers?.as_fd())?;
        sys::send_fd(self.to_keeper.as_fd(), LISTENER, listener.as_fd())
    }

    /// Does the work of [`GuardFilters::join`] that the process which joined need not wait for. To
    /// be called once it has its response.
    pub(crate) fn settle(&self) {
        let running = lock(&self.running);
        running.receivers.iter().for_each(Receivers::await_exits);
        drop(running);
        self.stop_ended();
        self.prepare();
    }

    /// Prepares the receivers of the next filter that joins, if another one is likely.
    fn prepare(&self) {
        let has_one = lock(&self.prepared).is_some();
        let few = lock(&self.running).joined < FEW;
        if has_one || few {
            return;
        }
        // Without prepared ones, the receivers are made when the filter joins.
        let Ok(one) = self.prepared_filter() else {
            return;
        };
        let other = lock(&self.prepared).replace(one);
        if let Some(other) = other {
            other.receivers.cancel();
        }
        let ended = lock(&self.running).ended;
        if ended {
            self.cancel_prepared();
        }
    }

    fn prepared_filter(&self) -> io::Result<PreparedFilter> {
        let (shared, file) = SharedBuffers::create_in_file()?;
        let (settings, hooks) = (self.settings_of(true), Arc::clone(&self.hooks));
        Ok(PreparedFilter {
            receivers: PreparedReceivers::new(settings, self.make_sink(), hooks)?,
            buffers: JoiningBuffers {
                shared: Arc::new(shared),
                file: Ok(file),
            },
        })
    }

    fn cancel_prepared(&self) {
        let prepared = lock(&self.prepared).take();
        if let Some(one) = prepared {
            one.receivers.cancel();
        }
    }

    /// Calls below all filters that are not logged yet.
    pub(crate) fn deferred(&self) -> &AtomicUsize {
        &self.deferred
    }

    /// The time of a change that a process without the filter is about to make, and that was
    /// received at `time`. The processes that have ended until then get their exits in the log,
    /// before this time.
    pub(crate) fn time_of_change(&self, time: u64, out: &mut RecordWriter<ChunkWriter>) -> u64 {
        // Receivers that are being stopped have written all exits afterwards.
        let _stopped = lock(&self.stopping);
        let running = lock(&self.running);
        let receivers = running.receivers.iter();
        receivers.fold(time, |time, one| one.write_ended(time, out))
    }

    fn run(&self, running: &mut RunningFilters, receivers: Receivers) {
        lock(&self.monitors).push(receivers.monitor());
        running.receivers.push(receivers);
    }

    /// Stops the receivers of filters that no process has any more, unless another thread does.
    fn stop_ended(&self) {
        let Ok(_alone) = self.stopping.try_lock() else {
            return;
        };
        let ended = self.take_ended();
        let mut slow = false;
        for receivers in ended {
            slow |= !receivers.stop();
        }
        lock(&self.running).slow |= slow;
    }

    /// Takes the receivers of filters that no process has any more from the list.
    fn take_ended(&self) -> Vec<Receivers> {
        let mut running = lock(&self.running);
        let mut monitors = lock(&self.monitors);
        let mut ended = Vec::new();
        for index in (0..running.receivers.len()).rev() {
            if running.receivers[index].ended() {
                monitors.remove(index);
                ended.push(running.receivers.remove(index));
            }
        }
        ended
    }

    /// Ends all receivers. Returns false if the outcome of a call is unknown, because a receiver
    /// still waits for a file system. The keeper responds to processes that go on.
    pub(crate) fn end(&self) -> bool {
        let _stopped = lock(&self.stopping);
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
        let slow = running.slow;
        drop(running);
        self.cancel_prepared();
        !slow
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use backstory_arena::Arena;
    use backstory_guard::{Filter, FilterSpec, InstallError, ParkedCall};
    use std::sync::mpsc::{Sender, channel};
    use std::thread::JoinHandle;

    /// A run without services for the guard.
    pub(crate) struct NoServices;

    impl Hooks for NoServices {
        fn announce_chunk(&self, _: u32, _: u32, _: u32) {}
        fn request_chunk(&self, _: ParkedCall) {}
        fn pid_namespace_created(&self) {}
        fn report(&self, _: Reason) {}
    }

    /// The filters of a run that has no filter yet, its chunks, and the keeper's end of the socket.
    pub(crate) fn filters(test: &str) -> (GuardFilters, Arc<ChunkSupply>, OwnedFd) {
        let id = format!("unit-filters-{test}-{}", std::process::id());
        let arena = Arena::create(&id, 0).unwrap();
        arena.remove();
        let (to_keeper, keepers) = sys::socket_pair().unwrap();
        let settings = |joins_later| GuardSettings {
            joins_later,
            ..GuardSettings::default()
        };
        let (hooks, stock) = (Arc::new(NoServices), ChunkSupply::new(arena));
        let filters = GuardFilters::new(hooks, &stock, Box::new(settings), to_keeper);
        (filters, stock, keepers)
    }

    /// A thread that installs a filter. After a message, it opens a file and returns whether that
    /// worked.
    pub(crate) fn guarded() -> (Result<OwnedFd, InstallError>, Sender<()>, JoinHandle<bool>) {
        let (tell, installed) = channel();
        let (go, may_go) = channel();
        let thread = std::thread::spawn(move || {
            tell.send(Filter::build(&FilterSpec::default()).install())
                .unwrap();
            may_go.recv().is_ok() && std::fs::File::open("/dev/null").is_ok()
        });
        (installed.recv().unwrap(), go, thread)
    }

    #[test]
    fn each_filter_that_joins_is_served_and_the_keeper_has_its_listener() {
        let (filters, _, keepers) = filters("join");
        for joined in 1..=4 {
            let (listener, go, thread) = guarded();
            let listener = match listener {
                Ok(listener) => listener,
                Err(error) => {
                    return backstory_testkit::need::skipped(
                        "a filter that joins",
                        &error.to_string(),
                    );
                }
            };
            assert_eq!(lock(&filters.prepared).is_some(), joined > FEW, "{joined}");
            filters.join(listener, Some(std::process::id())).unwrap();
            for message in [BUFFERS, LISTENER] {
                let (byte, descriptor) = sys::receive_fd(keepers.as_fd()).unwrap();
                assert!(byte == message && descriptor.is_some(), "{joined}");
            }
            filters.settle();
            go.send(()).unwrap();
            assert!(thread.join().unwrap(), "{joined}");
        }
        assert!(filters.end());
        assert!(lock(&filters.prepared).is_none());
    }

    #[test]
    fn after_the_end_the_keeper_is_asked_to_serve_a_filter_that_joins() {
        let (filters, _, keepers) = filters("late");
        assert!(filters.end());
        let (listener, go, thread) = guarded();
        let listener = match listener {
            Ok(listener) => listener,
            Err(error) => {
                return backstory_testkit::need::skipped("a filter that joins", &error.to_string());
            }
        };
        filters.join(listener, None).unwrap();
        let messages = [BUFFERS, LISTENER, SERVE_LAST].map(|_| {
            let (byte, _) = sys::receive_fd(keepers.as_fd()).unwrap();
            byte
        });
        assert_eq!(messages, [BUFFERS, LISTENER, SERVE_LAST]);
        drop(go);
        assert!(!thread.join().unwrap());
    }
}
