//! The queue of calls that are parked while the content they change is preserved, and its threads.
//!
//! Invariant: a call is parked before it enters the queue, and is answered when it leaves, whatever
//! became of the content. The threads receive no notifications, so a process that they wait for can
//! always make calls. They start when there is work and no thread is idle.

use crate::change_preserver::{ChangeSource, ChangingCall, log_not_preserved, preserve};
use crate::guard_state::GuardState;
use crate::hooks::Effort;
use crate::notification_buffers::Notification;
use crate::parked_call::ParkedCall;
use crate::record_writer::RecordWriter;
use crate::threads::{PATIENCE, spawn};
use backstory_arena::RecordSink;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Threads that there can be.
const THREADS: usize = 8;

/// A parked call and what it is about to change.
pub(crate) struct PreserveJob {
    /// Responds to the call when dropped.
    pub(crate) parked: ParkedCall,
    pub(crate) notification: Notification,
    pub(crate) time: u64,
    pub(crate) source: ChangeSource,
}

/// The function that a thread of the queue runs.
type ThreadBody = Box<dyn FnOnce() + Send>;
/// Logs that the content which a call changes was not preserved, with the errno that says why.
type FailureLogger = Box<dyn FnMut(&Notification, u64, &ChangeSource, i32) + Send>;

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<PreserveJob>,
    /// Threads that can still be started.
    unstarted: Vec<ThreadBody>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    running: usize,
    /// The calls that the threads work on.
    begun: Vec<(Notification, u64)>,
    log_failure: Option<FailureLogger>,
    ended: bool,
}

impl QueueState {
    /// Lets all queued calls go on: no thread can preserve what they change.
    fn give_up(&mut self, errno: i32) {
        for job in std::mem::take(&mut self.jobs) {
            self.fail(&job, errno);
        }
    }

    fn fail(&mut self, job: &PreserveJob, errno: i32) {
        if let Some(log) = &mut self.log_failure {
            log(&job.notification, job.time, &job.source, errno);
        }
    }
}

/// The queue.
#[derive(Default)]
pub(crate) struct PreserveQueue {
    state: Mutex<QueueState>,
    work: Condvar,
    done: Condvar,
}

impl PreserveQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the threads ready to be started.
    pub(crate) fn prepare<S: RecordSink + Send + 'static>(
        self: &Arc<Self>,
        guard: &Arc<GuardState>,
        make_sink: &mut impl FnMut() -> S,
    ) {
        let mut thread = || -> ThreadBody {
            // The queue holds the thread's body: a strong reference would keep both for ever.
            let (queue, guard) = (Arc::downgrade(self), guard.clone());
            let out = RecordWriter::new(make_sink());
            Box::new(move || run(&queue, &guard, out))
        };
        let unstarted = (0..THREADS).map(|_| thread()).collect();
        let mut out = RecordWriter::new(make_sink());
        let mut state = self.state();
        state.unstarted = unstarted;
        state.log_failure = Some(Box::new(move |notification, time, source, errno| {
            log_not_preserved(&mut out, notification, time, source, errno);
        }));
    }

    /// Adds a call. Does not wait.
    pub(crate) fn push(&self, job: PreserveJob) {
        let mut state = self.state();
        if state.ended {
            return state.fail(&job, libc::ESHUTDOWN); // the job is dropped, which responds
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.work.notify_one();
            return;
        }
        if let Some(thread) = state.unstarted.pop() {
            match spawn("guard-keep", thread) {
                Ok(thread) => {
                    state.threads.push(thread);
                    state.running += 1;
                }
                Err(error) if state.running == 0 => {
                    state.give_up(error.raw_os_error().unwrap_or(libc::EAGAIN));
                }
                Err(_) => {}
            }
        }
    }

    /// The next call; `None` once the queue has ended and is empty.
    fn next(&self) -> Option<PreserveJob> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.begun.push((job.notification, job.time));
                return Some(job);
            }
            if state.ended {
                state.running -= 1;
                self.done.notify_all();
                return None;
            }
            state.idle += 1;
            let waited = self.work.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn finish(&self, job: PreserveJob) {
        let id = job.notification.id;
        self.state().begun.retain(|(begun, _)| begun.id != id);
        drop(job.parked);
    }

    /// Ends the threads once they have done what they have begun. False: a thread still waits for a
    /// file system.
    pub(crate) fn end(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state();
        state.ended = true;
        state.unstarted.clear();
        self.work.notify_all();
        while state.running > 0 {
            let left: Duration = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.give_up(libc::ETIMEDOUT);
                let begun = std::mem::take(&mut state.begun);
                if let Some(mut log) = state.log_failure.take() {
                    for (notification, time) in &begun {
                        log(
                            notification,
                            *time,
                            &ChangeSource::Recorder,
                            libc::ETIMEDOUT,
                        );
                    }
                }
                return false;
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let threads = std::mem::take(&mut state.threads);
        state.log_failure = None;
        drop(state);
        threads.into_iter().all(|thread| thread.join().is_ok())
    }
}

/// One thread of the queue.
fn run<S: RecordSink>(queue: &Weak<PreserveQueue>, guard: &GuardState, mut out: RecordWriter<S>) {
    let Some(queue) = queue.upgrade() else {
        return;
    };
    let mut resolver = guard.resolver(true);
    while let Some(job) = queue.next() {
        if let Some(preserver) = guard.hooks.preserver() {
            let at = ChangingCall {
                notification: &job.notification,
                time: job.time,
                source: &job.source,
            };
            // This thread may make any effort, so the result says nothing.
            let _ = preserve(guard, preserver, Effort::Any, &at, &mut resolver, &mut out);
        }
        queue.finish(job);
    }
}
