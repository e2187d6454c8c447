//! The threads that answer the guard's notifications: what they share, how they start and end.
//!
//! One receiver (`receiver`) is hot; the others sleep until calls queue up. A receiver never waits for anything but the next
//! notification: what could make it wait is left to the late thread (`late`), after the call has been answered.

use super::caller::{Caller, Callers};
use super::exits::Exits;
use super::holds::{Holders, Occasion};
use super::hooks::{Hooks, Watch};
use super::late::Late;
use super::preserve::Preservers;
use super::receiver::Worker;
use super::record_writer::RecordWriter;
use super::shared::{Notification, RECEIVERS, SharedMap};
use super::spare::{InHand, Looker};
use super::standby::Standby;
use super::uring::Rings;
use super::write::Environments;
use backstory_arena::RecordSink;
use backstory_sys::kernel as sys;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Receivers, the hot one included.
pub(super) const THREADS: usize = 4;
const _: () = assert!(THREADS < RECEIVERS); // and the spare one
const STACK: usize = 256 * 1024;
/// Longest wait for a thread that waits for somebody else: the prompt waits, too.
const PATIENCE: Duration = Duration::from_secs(2);

/// What all threads of the guard share.
pub(super) struct Common {
    pub(super) listener: Arc<OwnedFd>,
    pub(super) shared: Arc<SharedMap>,
    pub(super) watch: Watch,
    pub(super) hooks: Arc<dyn Hooks>,
    pub(super) callers: Callers,
    pub(super) mounts_changed: Arc<AtomicU64>,
    pub(super) environments: Environments,
    pub(super) exits: Exits,
    pub(super) holders: Holders,
    pub(super) preservers: Preservers,
    pub(super) rings: Rings,
    pub(super) stop: AtomicBool,
    /// Raised when calls queue up; helpers sleep on it.
    pub(super) wanted: AtomicU32,
    /// Thread ids of receivers, the spare one's last; 0 once they have ended.
    pub(super) running: [AtomicU32; THREADS + 1],
    /// A receiver that ends raises it.
    pub(super) ends: AtomicU32,
    pub(super) ended: AtomicBool,
    /// Calls in the late thread's queue.
    pub(super) queued: AtomicUsize,
    /// Raised when all receivers are stuck; the spare one sleeps on it.
    pub(super) alarms: AtomicU32,
    /// The calls that they are stuck at.
    pub(super) stuck: Mutex<InHand>,
    /// Somebody ended while waiting for a file server.
    pub(super) unanswered: AtomicBool,
}

/// Threads that start when they are needed.
pub(super) struct Reserve {
    pub(super) helpers: Standby,
    pub(super) late: Standby,
    pub(super) watcher: Standby,
    pub(super) spare: Standby,
}

/// The running guard.
pub struct Receivers {
    common: Arc<Common>,
    reserve: Arc<Reserve>,
    hot: JoinHandle<()>,
    jobs: Sender<Box<Late>>,
    /// Hangs up when the late thread is done.
    late_done: Receiver<()>,
}

impl Receivers {
    /// Starts to answer. `make_sink` is called once for each thread, before any of them runs.
    pub fn start<S: RecordSink + Send + 'static>(
        listener: OwnedFd,
        shared: Arc<SharedMap>,
        watch: Watch,
        mut make_sink: impl FnMut() -> S,
        hooks: Arc<dyn Hooks>,
    ) -> io::Result<Receivers> {
        if !sys::notification_sizes_fit(256, size_of::<libc::seccomp_notif_resp>()) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        sys::prepare_wake_signal();
        sys::wake_synchronously(listener.as_fd());
        let common = Common::new(listener, shared, watch, hooks)?;
        if common.hooks.keep().is_some() {
            Preservers::prepare(&common, &mut make_sink);
        }
        let (jobs, queue) = channel();
        let (working, late_done) = sync_channel(0);
        let (out, mine) = (RecordWriter::new(make_sink()), common.clone());
        let late = Standby::new(move || {
            let work = move || {
                mine.run_late(out, &queue);
                drop(working);
            };
            Ok(vec![spawn("guard-late", work)?])
        });
        let (mut out, mine) = (RecordWriter::new(make_sink()), common.clone());
        let watcher = Standby::new(move || {
            let work = move || {
                mine.exits
                    .watch(mine.listener.as_fd(), &mut out, || _ = mine.end())
            };
            Ok(vec![spawn("guard-exits", work)?])
        });
        let mine = common.clone();
        let spare = Standby::new(move || Ok(vec![spawn("guard-spare", move || mine.run_spare())?]));
        // The helpers' standby is in the reserve, and they have the reserve: a weak reference, or neither would ever be freed.
        let reserve = Arc::new_cyclic(|reserve: &Weak<Reserve>| Reserve {
            helpers: helpers(&common, reserve, &jobs, &mut make_sink),
            late,
            watcher,
            spare,
        });
        let worker = Worker::new(&common, Arc::downgrade(&reserve), &jobs, 0, make_sink());
        Ok(Receivers {
            hot: spawn("guard", move || worker.run())?,
            common,
            reserve,
            jobs,
            late_done,
        })
    }

    /// Who looks after the receivers: one that waits for a program's memory must not keep that program waiting.
    pub fn looker(&self) -> Looker {
        Looker::new(&self.common, &self.reserve)
    }

    /// True once nobody is left who has the filter.
    pub fn ended(&self) -> bool {
        let hung_up = || sys::poll(self.common.listener.as_fd(), 0, 0) & libc::POLLHUP != 0;
        self.common.ended.load(Ordering::Acquire) || hung_up()
    }

    /// Ends all threads and drops their sinks. After [`Receivers::ended`], all that happened has been logged; before it, whoever
    /// is still there must be served by the keeper from now on. Returns false if a thread still waits for a file server, or a program
    /// did until it ended; what came of it is then unknown.
    pub fn stop(self) -> bool {
        let whole = self.common.end();
        let mut receivers = self.reserve.helpers.end();
        receivers.extend(self.reserve.spare.end());
        receivers.push(self.hot);
        // Who still waits for memory ends with this process.
        for thread in receivers.into_iter().filter(|_| whole) {
            let _ = thread.join();
        }
        let kept = self.common.preservers.end();
        // Statuses that are still to come are waited for a moment once nobody is left, not at all before.
        if !self.common.ended.load(Ordering::Acquire) {
            self.common.exits.stop();
        }
        for thread in self.reserve.watcher.end() {
            let _ = thread.join();
        }
        let late = self.reserve.late.end();
        drop(self.jobs);
        if late.is_empty() {
            return whole && kept && self.common.queued.load(Ordering::Acquire) == 0;
        }
        // The prompt waits for this: not a tick longer than it takes.
        match self.late_done.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => false,
            _ => {
                let done = late.into_iter().all(|thread| thread.join().is_ok());
                whole && done && kept && !self.common.unanswered.load(Ordering::Acquire)
            }
        }
    }
}

/// All receivers but the hot one.
fn helpers<S: RecordSink + Send + 'static>(
    common: &Arc<Common>,
    reserve: &Weak<Reserve>,
    jobs: &Sender<Box<Late>>,
    make_sink: &mut impl FnMut() -> S,
) -> Standby {
    let mut helper = |index| Worker::new(common, reserve.clone(), jobs, index, make_sink());
    let workers: Vec<Worker<S>> = (1..THREADS).map(&mut helper).collect();
    Standby::new(move || {
        // Fewer than there could be do as well.
        let threads = workers.into_iter().map(|w| spawn("guard", move || w.run()));
        Ok(threads.flatten().collect())
    })
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(move || {
            sys::block_signals();
            run();
        })
}

impl Common {
    fn new(
        listener: OwnedFd,
        shared: Arc<SharedMap>,
        watch: Watch,
        hooks: Arc<dyn Hooks>,
    ) -> io::Result<Arc<Common>> {
        Ok(Arc::new(Common {
            exits: Exits::new(listener.as_fd())?,
            listener: Arc::new(listener),
            shared,
            watch,
            hooks,
            callers: Callers::new()?,
            mounts_changed: Arc::default(),
            environments: Environments::default(),
            holders: Holders::new()?,
            preservers: Preservers::default(),
            rings: Rings::default(),
            stop: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            running: std::array::from_fn(|_| AtomicU32::new(0)),
            ends: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            queued: AtomicUsize::new(0),
            alarms: AtomicU32::new(0),
            stuck: Mutex::default(),
            unanswered: AtomicBool::new(false),
        }))
    }

    pub(super) fn occasion<'a>(
        &'a self,
        caller: &'a Caller,
        call: &'a Notification,
        time: u64,
    ) -> Occasion<'a> {
        Occasion {
            callers: &self.callers,
            exits: &self.exits,
            caller,
            call,
            time,
        }
    }

    /// The receiver of this place has ended.
    pub(super) fn ends(&self, place: usize) {
        self.running[place].store(0, Ordering::Release);
        self.ends.fetch_add(1, Ordering::Release);
        sys::futex_wake(&self.ends, u32::MAX >> 1);
    }

    /// Makes every receiver look up and end. False if one of them still waits for memory of a program after so long a time.
    pub(super) fn end(&self) -> bool {
        self.stop.store(true, Ordering::Release);
        if sys::poll(self.listener.as_fd(), 0, 0) & libc::POLLHUP != 0 {
            self.ended.store(true, Ordering::Release);
        }
        for word in [&self.wanted, &self.alarms] {
            word.fetch_add(1, Ordering::Release);
            sys::futex_wake(word, THREADS as u32);
        }
        let began = Instant::now();
        // A signal that arrives just before a receiver blocks is lost, so it is sent until all have ended.
        let me = sys::gettid();
        let mut tries = 0;
        loop {
            let ends = self.ends.load(Ordering::Acquire);
            let tids = self.running.iter().map(|tid| tid.load(Ordering::Acquire));
            let mut others = tids.filter(|tid| *tid != 0 && *tid != me).peekable();
            if others.peek().is_none() {
                return true;
            }
            if began.elapsed() > PATIENCE {
                return false;
            }
            // Where nobody is left, the kernel itself has woken them.
            if tries > 0 || !self.ended.load(Ordering::Acquire) {
                others.for_each(sys::interrupt);
            }
            sys::futex_wait_for(
                &self.ends,
                ends,
                Duration::from_micros(if tries < 10 { 50 } else { 500 }),
            );
            tries += 1;
        }
    }
}
