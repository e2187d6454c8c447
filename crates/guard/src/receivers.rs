//! Starts and ends the threads of the guard.
//!
//! | thread | what it does | when it starts |
//! | --- | --- | --- |
//! | hot receiver | receives, logs, responds (`receiver`) | with the guard |
//! | helpers | the same | when notifications queue up |
//! | deferred | concludes deferred calls (`deferred`) | at the first such call |
//! | exits | awaits the exits of processes (`exit_watcher`) | at the first such process |
//! | preserving | preserve contents for parked calls (`preserve_queue`) | at the first such call |
//! | spare receiver | lets calls go on while all receivers are stuck (`stuck_receivers`) | then |
//!
//! A run can have several filters (`--guard=auto`). The processes below two of them are disjoint.
//! So each filter has these threads of its own. The receivers of two filters share only the hooks.

use crate::call_logger::CallLogger;
use crate::deferred::{DeferredCall, run_deferred};
use crate::guard_state::{GuardState, StateParts};
use crate::hooks::{GuardSettings, Hooks};
use crate::notification_buffers::SharedBuffers;
use crate::on_demand::OnDemandThreads;
use crate::preserve_queue::PreserveQueue;
use crate::receiver::NotificationReceiver;
use crate::record_writer::RecordWriter;
use crate::stuck_receivers::{StuckReceiverMonitor, run_spare};
use crate::threads::{PATIENCE, RECEIVER_THREADS, Reserve, ThreadControl, spawn};
use backstory_arena::RecordSink;
use backstory_sys as sys;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// Bytes of the largest notification that a buffer has room for.
const NOTIFICATION_SIZE: usize = 256;

/// The running guard.
pub struct Receivers {
    state: Arc<GuardState>,
    control: Arc<ThreadControl>,
    preserve_queue: Arc<PreserveQueue>,
    reserve: Arc<Reserve>,
    hot: JoinHandle<()>,
    deferred: Sender<Box<DeferredCall>>,
    /// Hangs up when the deferred thread has ended.
    deferred_done: Receiver<()>,
}

impl Receivers {
    /// Starts to respond to notifications. `make_sink` is called once for each thread, before any
    /// of them runs.
    ///
    /// # Errors
    /// The kernel's notifications are larger than known here, or there are no descriptors
    /// or threads left.
    pub fn start<S: RecordSink + Send + 'static>(
        listener: OwnedFd,
        buffers: Arc<SharedBuffers>,
        settings: GuardSettings,
        make_sink: impl FnMut() -> S,
        hooks: Arc<dyn Hooks>,
    ) -> io::Result<Receivers> {
        prepare_process()?;
        let parts = StateParts::new(&settings)?;
        let state = GuardState::new(listener, buffers, settings, hooks, parts)?;
        Receivers::begin(state, make_sink, |hot| spawn("guard", move || hot.run()))
    }

    /// Makes all threads ready. `begin_hot` has a thread run the hot receiver.
    pub(crate) fn begin<S: RecordSink + Send + 'static>(
        state: Arc<GuardState>,
        mut make_sink: impl FnMut() -> S,
        begin_hot: impl FnOnce(NotificationReceiver<S>) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<Receivers> {
        sys::wake_synchronously(state.listener());
        let control = Arc::new(ThreadControl::default());
        let preserve_queue = Arc::new(PreserveQueue::default());
        if state.hooks.preserver().is_some() {
            preserve_queue.prepare(&state, &mut make_sink);
        }
        let (deferred, queue) = channel();
        let (deferred_thread, deferred_done) =
            deferred_thread(&state, &control, make_sink(), queue);
        let exits = exit_thread(&state, &control, make_sink());
        let spare = spare_thread(&state, &control);
        let mut receiver = |reserve: &Weak<Reserve>, index| NotificationReceiver {
            logger: CallLogger::new(&state, &preserve_queue, make_sink()),
            state: state.clone(),
            control: control.clone(),
            reserve: reserve.clone(),
            deferred: deferred.clone(),
            index,
        };
        // The helpers are in the reserve and refer to it: by a weak reference, or neither would
        // ever be freed.
        let reserve = Arc::new_cyclic(|reserve: &Weak<Reserve>| Reserve {
            helpers: helpers(
                (1..RECEIVER_THREADS)
                    .map(|i| receiver(reserve, i))
                    .collect(),
            ),
            deferred: deferred_thread,
            exits,
            spare,
        });
        let hot = receiver(&Arc::downgrade(&reserve), 0);
        Ok(Receivers {
            hot: begin_hot(hot)?,
            state,
            control,
            preserve_queue,
            reserve,
            deferred,
            deferred_done,
        })
    }

    /// The process that installed this filter later has a recorder, and was met before. To be
    /// called before any of its calls is notified, and before [`Receivers::await_exits`].
    pub fn adopt(&self, pid: u32) {
        let introduced = self.state.callers.introduce(pid);
        self.state.descriptors.set_recorded(pid);
        let Some((parent, pidfd)) = introduced else {
            return;
        };
        if self.state.hooks.collects_children_of(parent) {
            return;
        }
        match pidfd {
            Some(pidfd) => self.state.exits.follow_pidfd(pid, Arc::new(pidfd)),
            None => self.state.exits.follow(pid),
        }
    }

    /// Starts the thread that writes the exits of adopted processes, unless it runs. The processes
    /// need not wait for that: an exit stays until the thread has written it.
    pub fn await_exits(&self) {
        if self.state.exits.was_used() {
            self.reserve.exits.begin();
        }
    }

    /// Writes the exits of processes below this filter that have happened. A process without the
    /// filter is about to change a file at `time`. Returns that time, or a later one.
    pub fn write_ended<S: RecordSink>(&self, time: u64, out: &mut RecordWriter<S>) -> u64 {
        self.state.exits.write_ended(time, out)
    }

    /// A monitor of the receivers: a receiver that waits for a program's memory must not stop that
    /// program.
    pub fn monitor(&self) -> StuckReceiverMonitor {
        StuckReceiverMonitor::new(&self.state, &self.control, &self.reserve)
    }

    /// True once no process is left that has the filter.
    pub fn ended(&self) -> bool {
        self.control.is_hung_up() || self.state.is_hung_up()
    }

    /// Ends all threads and drops their sinks.
    ///
    /// After [`Receivers::ended`] everything that happened has been logged. Before it, the keeper
    /// must respond to the processes that are left. Returns false if a thread still waits for a
    /// file server, or if a program did so until it ended. The outcome of such a call is unknown.
    pub fn stop(self) -> bool {
        self.await_exits();
        let receivers_ended = self.control.stop_receivers(&self.state);
        let mut receivers = self.reserve.helpers.end();
        receivers.extend(self.reserve.spare.end());
        receivers.push(self.hot);
        // A receiver that still waits for a program's memory ends with this process.
        if receivers_ended {
            for thread in receivers {
                let _ = thread.join();
            }
        }
        let preserved = self.preserve_queue.end();
        // Once no process is left the exit thread awaits outstanding statuses for a moment; before
        // that, not at all.
        if !self.control.is_hung_up() {
            self.state.exits.stop();
        }
        for thread in self.reserve.exits.end() {
            let _ = thread.join();
        }
        let deferred = self.reserve.deferred.end();
        drop(self.deferred);
        if deferred.is_empty() {
            let none_left = self.state.deferred.load(Ordering::Acquire) == 0;
            return receivers_ended && preserved && none_left;
        }
        // The user's prompt waits for this, so it must not take longer than the thread does.
        match self.deferred_done.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => false,
            _ => {
                let joined = deferred.into_iter().all(|thread| thread.join().is_ok());
                let unanswered = self.control.unanswered.load(Ordering::Acquire);
                receivers_ended && joined && preserved && !unanswered
            }
        }
    }
}

/// Prepares this process for receivers.
///
/// # Errors
/// The kernel's notifications are larger than known here.
pub(crate) fn prepare_process() -> io::Result<()> {
    let response = size_of::<libc::seccomp_notif_resp>();
    if !sys::notification_sizes_fit(NOTIFICATION_SIZE, response) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    sys::prepare_wake_signal();
    Ok(())
}

/// The receivers but the hot one. Fewer threads than there could be do as well.
fn helpers<S: RecordSink + Send + 'static>(
    receivers: Vec<NotificationReceiver<S>>,
) -> OnDemandThreads {
    OnDemandThreads::new(move || {
        let threads = receivers
            .into_iter()
            .map(|receiver| spawn("guard", move || receiver.run()));
        Ok(threads.flatten().collect())
    })
}

/// The deferred thread, and a channel that hangs up when it has ended.
fn deferred_thread<S: RecordSink + Send + 'static>(
    state: &Arc<GuardState>,
    control: &Arc<ThreadControl>,
    sink: S,
    queue: Receiver<Box<DeferredCall>>,
) -> (OnDemandThreads, Receiver<()>) {
    let (working, done) = sync_channel(0);
    let (state, control) = (state.clone(), control.clone());
    let out = RecordWriter::new(sink);
    let threads = OnDemandThreads::new(move || {
        let work = move || {
            run_deferred(&state, &control, out, &queue);
            drop(working);
        };
        Ok(vec![spawn("guard-late", work)?])
    });
    (threads, done)
}

fn exit_thread<S: RecordSink + Send + 'static>(
    state: &Arc<GuardState>,
    control: &Arc<ThreadControl>,
    sink: S,
) -> OnDemandThreads {
    let (state, control) = (state.clone(), control.clone());
    let mut out = RecordWriter::new(sink);
    OnDemandThreads::new(move || {
        let work = move || {
            let hung_up = || _ = control.stop_receivers(&state);
            state.exits.watch(state.listener(), &mut out, hung_up);
        };
        Ok(vec![spawn("guard-exits", work)?])
    })
}

fn spare_thread(state: &Arc<GuardState>, control: &Arc<ThreadControl>) -> OnDemandThreads {
    let (state, control) = (state.clone(), control.clone());
    OnDemandThreads::new(move || {
        let work = move || run_spare(&state, &control);
        Ok(vec![spawn("guard-spare", work)?])
    })
}
