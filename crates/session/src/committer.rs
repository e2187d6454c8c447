//! Makes the log durable while the command runs (`--durability=ordered` and `sync`).
//!
//! In: calls that wait until everything logged so far is durable. One thread commits for all of
//! them: it drains every chunk, calls `fdatasync` on the log, and lets the calls go on. Calls that
//! arrive meanwhile wait for the next commit. So a call waits for two commits at most, however many
//! calls wait.
//!
//! Invariants:
//!
//! - A call never waits longer than [`PATIENCE`]. A second thread lets it go on then, even if the
//!   disk stopped the first one.
//! - If a commit fails, its calls go on at once, and the run says so.
//! - Calls do not wait for the disk if nothing new explains a content ([`DurablePart`]).
//! - All of the log is committed after each [`REGULAR`], whether a call waits or not. The kernel
//!   writes back what it was given much later (`vm.dirty_expire_centisecs`, 30 s).

use crate::drain::{Drainer, DurablePart};
use backstory_eventlog::Reason;
use backstory_guard::ParkedCall;
use backstory_sys as sys;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait of a call.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest interval between two commits of the whole log.
const REGULAR: Duration = Duration::from_secs(1);
/// How often calls are found that have waited too long.
const LOOK: Duration = Duration::from_millis(200);
/// Stack of a thread.
const STACK: usize = 256 << 10;

/// A call that waits, since when.
type WaitingCall = (Instant, ParkedCall);
/// Reports a reason of the run.
type ReportReason = Box<dyn Fn(Reason) + Send + Sync>;

#[derive(Default)]
struct CommitState {
    /// Calls for the next commit.
    waiting: Vec<WaitingCall>,
    /// Calls of the commit in progress.
    committing: Vec<WaitingCall>,
    stopped: bool,
}

impl CommitState {
    /// Takes the calls that have waited too long.
    fn take_late(&mut self) -> Vec<WaitingCall> {
        let late = |call: &mut WaitingCall| call.0.elapsed() >= PATIENCE;
        let mut all: Vec<_> = self.waiting.extract_if(.., late).collect();
        all.extend(self.committing.extract_if(.., late));
        all
    }
}

/// The commits of one run.
pub(crate) struct Committer {
    state: Mutex<CommitState>,
    work: Condvar,
    stop: Condvar,
    report: ReportReason,
}

/// The log, as the committing thread sees it.
struct CommittedLog {
    drainer: Arc<Mutex<Drainer>>,
    file: File,
    /// The log's directory, until its entry is durable.
    directory: Option<PathBuf>,
}

impl CommittedLog {
    /// Drains all chunks and makes the log durable, if it has frames of this part that are not.
    fn commit(&mut self, part: DurablePart) -> Result<(), String> {
        let drained = {
            let mut drainer = self.drainer.lock().unwrap_or_else(PoisonError::into_inner);
            drainer.drain_all(part)
        };
        // The lock is free: the disk must stop no thread that needs a chunk.
        if drained? {
            self.file.sync_data().map_err(|error| error.to_string())?;
        }
        if let Some(directory) = &self.directory {
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(|error| error.to_string())?;
            self.directory = None;
        }
        Ok(())
    }
}

impl Committer {
    /// Starts the threads. If that fails, calls do not wait, and the run says so.
    pub(crate) fn start(
        drainer: Arc<Mutex<Drainer>>,
        report: ReportReason,
    ) -> (Arc<Committer>, Vec<JoinHandle<()>>) {
        let committer = Arc::new(Committer {
            state: Mutex::default(),
            work: Condvar::new(),
            stop: Condvar::new(),
            report,
        });
        let threads = committer.threads(drainer).unwrap_or_else(|error| {
            committer.state().stopped = true;
            committer.unordered(error.to_string());
            Vec::new()
        });
        (committer, threads)
    }

    fn threads(
        self: &Arc<Committer>,
        drainer: Arc<Mutex<Drainer>>,
    ) -> std::io::Result<Vec<JoinHandle<()>>> {
        let (file, path) = {
            let drainer = drainer.lock().unwrap_or_else(PoisonError::into_inner);
            drainer.log_file()?
        };
        let directory = path.parent().map(PathBuf::from);
        let mut log = CommittedLog {
            drainer,
            file,
            directory,
        };
        let (committing, watching) = (Arc::clone(self), Arc::clone(self));
        let thread = |name: &str| {
            std::thread::Builder::new()
                .name(name.to_owned())
                .stack_size(STACK)
        };
        let late = thread("commit-late").spawn(move || watching.release_late())?;
        match thread("commit").spawn(move || committing.run(&mut log)) {
            Ok(commit) => Ok(vec![commit, late]),
            Err(error) => {
                self.state().stopped = true;
                self.stop.notify_all();
                let _ = late.join();
                Err(error)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, CommitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call go on after the next commit that begins. Does not wait.
    pub(crate) fn push(&self, call: ParkedCall) {
        let mut state = self.state();
        if state.stopped {
            drop(state);
            return drop(call);
        }
        state.waiting.push((Instant::now(), call));
        if state.committing.is_empty() {
            self.work.notify_one();
        }
    }

    /// Ends the threads after the commits that are due. From now on no call waits.
    pub(crate) fn end(&self, threads: Vec<JoinHandle<()>>) {
        self.state().stopped = true;
        self.work.notify_all();
        self.stop.notify_all();
        let until = Instant::now() + PATIENCE;
        for thread in threads {
            // A thread that waits for a dead disk ends with this process.
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        // Calls of a thread that still waits.
        let mut state = self.state();
        let calls = (
            std::mem::take(&mut state.waiting),
            std::mem::take(&mut state.committing),
        );
        drop(state);
        drop(calls);
    }

    /// The committing thread.
    fn run(&self, log: &mut CommittedLog) {
        // Calls wait for this thread. On a busy machine it would otherwise wait for a processor
        // many times longer than for the disk.
        sys::come_first();
        let mut whole = Instant::now();
        while let Some(part) = self.begin(whole) {
            if let Err(error) = log.commit(part) {
                self.unordered(error);
            }
            if part == DurablePart::Whole {
                whole = Instant::now();
            }
            let done = std::mem::take(&mut self.state().committing);
            drop(done); // outside the lock: this lets the calls go on
        }
    }

    /// Waits for a call or for the time of a regular commit, which calls before it do not move.
    /// Returns the part to commit, or `None` once there is nothing to do any more. `whole`: when
    /// all of the log was committed last.
    fn begin(&self, whole: Instant) -> Option<DurablePart> {
        let mut state = self.state();
        if state.waiting.is_empty() && !state.stopped {
            let rest = REGULAR.saturating_sub(whole.elapsed());
            let waited = self.work.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let goes_on = !state.stopped || !state.waiting.is_empty();
        state.committing = std::mem::take(&mut state.waiting);
        let is_regular = state.committing.is_empty() || whole.elapsed() >= REGULAR;
        goes_on.then_some(match is_regular {
            true => DurablePart::Whole,
            false => DurablePart::Explanations,
        })
    }

    /// The thread that lets calls go on that have waited too long.
    fn release_late(&self) {
        let mut state = self.state();
        loop {
            let late = state.take_late();
            if !late.is_empty() {
                drop(state);
                drop(late);
                let seconds = PATIENCE.as_secs();
                self.unordered(format!(
                    "the disk of the log did not respond in {seconds} s"
                ));
                state = self.state();
            }
            if state.stopped && state.waiting.is_empty() && state.committing.is_empty() {
                return;
            }
            let waited = self.stop.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn unordered(&self, why: String) {
        (self.report)(Reason::Unordered { why });
    }
}
