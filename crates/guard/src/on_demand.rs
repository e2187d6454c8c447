//! Threads that most runs never need, and that start when they are first needed.
//!
//! Invariant: a thread is started at most once, and never after [`OnDemandThreads::end`]. The start
//! of a recording does not wait for these threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Starts the threads.
type Start = Box<dyn FnOnce() -> io::Result<Vec<JoinHandle<()>>> + Send>;

enum State {
    Waiting(Start),
    Running(Vec<JoinHandle<()>>),
    Ended,
}

/// Threads that start when they are first needed.
pub struct OnDemandThreads {
    state: Mutex<State>,
    begun: AtomicBool,
}

impl OnDemandThreads {
    /// Threads that are not started yet.
    pub fn new(
        start: impl FnOnce() -> io::Result<Vec<JoinHandle<()>>> + Send + 'static,
    ) -> OnDemandThreads {
        OnDemandThreads {
            state: Mutex::new(State::Waiting(Box::new(start))),
            begun: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the threads unless they were started. If that fails no thread runs: a caller that
    /// gives them work has to expect that.
    pub fn begin(&self) {
        if self.begun.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.state();
        if let State::Waiting(_) = *state
            && let State::Waiting(start) = std::mem::replace(&mut *state, State::Ended)
        {
            *state = State::Running(start().unwrap_or_default());
        }
        self.begun.store(true, Ordering::Release);
    }

    /// The threads, to be joined. No thread is started any more.
    pub fn end(&self) -> Vec<JoinHandle<()>> {
        self.begun.store(true, Ordering::Release);
        match std::mem::replace(&mut *self.state(), State::Ended) {
            State::Running(threads) => threads,
            State::Waiting(_) | State::Ended => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    fn counted() -> (Arc<AtomicU32>, OnDemandThreads) {
        let count = Arc::new(AtomicU32::new(0));
        let mine = count.clone();
        let start = move || {
            Ok(vec![std::thread::spawn(move || {
                mine.fetch_add(1, Ordering::Relaxed);
            })])
        };
        (count, OnDemandThreads::new(start))
    }

    #[test]
    fn a_thread_is_started_once_when_needed() {
        let (count, standby) = counted();
        standby.begin();
        standby.begin();
        standby.end().into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn no_thread_is_started_after_the_end() {
        let (count, standby) = counted();
        assert!(standby.end().is_empty());
        standby.begin();
        assert!(standby.end().is_empty());
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}
