//! The threads of the guard: how many there are, how they are started and how they are made to end.

use crate::guard_state::GuardState;
use crate::on_demand::OnDemandThreads;
use backstory_sys as sys;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Receivers, the hot one included and the spare one not.
pub(crate) const RECEIVER_THREADS: usize = 4;
/// The index of the spare receiver.
pub(crate) const SPARE: usize = RECEIVER_THREADS;
const _: () = assert!(SPARE < crate::notification_buffers::RECEIVERS);
/// Bytes of a thread's stack.
const STACK: usize = 256 * 1024;
/// Longest wait at the end of a run for a thread that waits for a file system or a program's
/// memory. The user's prompt waits, too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The notifications that the receivers are handling, by receiver; 0 for a receiver that handles
/// none.
pub(crate) type InProgress = [u64; RECEIVER_THREADS];

/// Threads that start when they are needed.
pub(crate) struct Reserve {
    /// The receivers but the hot one.
    pub(crate) helpers: OnDemandThreads,
    /// The thread for deferred calls.
    pub(crate) deferred: OnDemandThreads,
    /// The thread that waits for exits.
    pub(crate) exits: OnDemandThreads,
    /// The spare receiver.
    pub(crate) spare: OnDemandThreads,
}

/// By what the threads wake and end each other.
#[derive(Default)]
pub(crate) struct ThreadControl {
    /// Every receiver is to end.
    stop: AtomicBool,
    /// No process is left that has the filter.
    hung_up: AtomicBool,
    /// Raised when notifications queue up. Helpers sleep on it.
    pub(crate) wanted: AtomicU32,
    /// Raised when all receivers are stuck. The spare receiver sleeps on it.
    pub(crate) alarms: AtomicU32,
    /// The notifications that all receivers were stuck at when the last alarm was raised.
    pub(crate) stuck: Mutex<InProgress>,
    /// A process ended while its deferred call waited for a file server.
    pub(crate) unanswered: AtomicBool,
    /// Thread ids of the receivers, the spare one's last; 0 for one that does not run.
    running: [AtomicU32; RECEIVER_THREADS + 1],
    /// Raised by each receiver that ends.
    ended: AtomicU32,
}

impl ThreadControl {
    /// The calling thread is the receiver `index` from now on.
    pub(crate) fn runs(&self, index: usize) {
        self.running[index].store(sys::gettid(), Ordering::Release);
    }

    /// The receiver `index` has ended.
    pub(crate) fn ends(&self, index: usize) {
        self.running[index].store(0, Ordering::Release);
        self.ended.fetch_add(1, Ordering::Release);
        sys::futex_wake(&self.ended, u32::MAX >> 1);
    }

    /// The thread id of the receiver `index`; 0 if it does not run.
    pub(crate) fn thread(&self, index: usize) -> u32 {
        self.running[index].load(Ordering::Acquire)
    }

    /// True once every receiver is to end.
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// True once a receiver or the exit watcher has seen that no process is left.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Acquire)
    }

    /// Wakes up to `count` helpers.
    pub(crate) fn call_helpers(&self, count: u32) {
        self.wanted.fetch_add(1, Ordering::Release);
        sys::futex_wake(&self.wanted, count);
    }

    /// Makes every receiver end, and waits for them. False if one still waits for a program's
    /// memory after [`PATIENCE`].
    pub(crate) fn stop_receivers(&self, state: &GuardState) -> bool {
        self.stop.store(true, Ordering::Release);
        if state.is_hung_up() {
            self.hung_up.store(true, Ordering::Release);
        }
        for word in [&self.wanted, &self.alarms] {
            word.fetch_add(1, Ordering::Release);
            sys::futex_wake(word, RECEIVER_THREADS as u32);
        }
        let began = Instant::now();
        // A signal that arrives just before a receiver blocks is lost, so it is sent until all have
        // ended.
        let me = sys::gettid();
        let mut tries = 0;
        loop {
            let ended = self.ended.load(Ordering::Acquire);
            let tids = self.running.iter().map(|tid| tid.load(Ordering::Acquire));
            let mut others = tids.filter(|tid| *tid != 0 && *tid != me).peekable();
            if others.peek().is_none() {
                return true;
            }
            if began.elapsed() > PATIENCE {
                return false;
            }
            // Where no process is left, the kernel itself has woken the receivers.
            if tries > 0 || !self.is_hung_up() {
                others.for_each(sys::interrupt);
            }
            let pause = Duration::from_micros(if tries < 10 { 50 } else { 500 });
            sys::futex_wait_for(&self.ended, ended, pause);
            tries += 1;
        }
    }
}

/// Starts a thread of the guard. It blocks all signals but those that the guard itself needs.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(move || {
            sys::block_signals();
            run();
        })
}
