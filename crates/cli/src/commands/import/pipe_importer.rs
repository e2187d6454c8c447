//! Imports the logs of a pipe in a thread of its own, so that the pipe is read meanwhile.
//!
//! In: copies of logs, that have ended or go on. Out: runs, and lines about them.
//!
//! Invariant: of a log, the store has the run of the longest part that was imported. The run of a
//! shorter part is removed after it, also if the reader was killed in between.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use backstory_import::LogFiles;

use super::copies::{LogCopy, note_runs_of_parts, runs_of_parts};
use super::{Import, report};
use crate::commands::Outcome;
use crate::commands::store::reclaim;
use crate::current_store::CurrentStore;
use crate::error::{self, Failure, complain};

/// Logs that wait to be imported. Each has an open file. With more, the pipe is read no further.
const WAITING: usize = 64;

/// An import of a part takes at most this part of the time.
const SHARE: u32 = 10;

/// A log to import.
enum Job {
    /// So many bytes of one that goes on.
    Part(PathBuf, u64),
    Whole(LogCopy),
}

/// The counters of the thread.
#[derive(Default)]
struct ImporterState {
    waiting: AtomicUsize,
    status: AtomicU8,
    /// Milliseconds that the last part took.
    took: AtomicU64,
}

/// The thread that imports. It ends when this is dropped.
pub(super) struct PipeImporter<'s> {
    jobs: SyncSender<Job>,
    state: &'s ImporterState,
}

/// Runs `read` beside the thread, and returns the worst exit status of the imports.
pub(super) fn beside_importer(
    import: &Import<'_>,
    pipe: &Path,
    read: impl FnOnce(PipeImporter<'_>) -> Result<(), Failure>,
) -> Outcome {
    let state = ImporterState::default();
    std::thread::scope(|scope| {
        let (jobs, arriving) = sync_channel(WAITING);
        let one = ImportingThread {
            import,
            pipe,
            state: &state,
        };
        start(scope, one, arriving);
        read(PipeImporter {
            jobs,
            state: &state,
        })
    })?;
    Ok(state.status.load(Ordering::Relaxed))
}

fn start<'s>(scope: &'s Scope<'s, '_>, one: ImportingThread<'s>, jobs: Receiver<Job>) {
    scope.spawn(move || {
        for job in jobs {
            one.run(job);
            one.state.waiting.fetch_sub(1, Ordering::Release);
        }
    });
}

impl PipeImporter<'_> {
    /// Imports a part of a log that goes on. False if there is other work first.
    pub(super) fn part(&self, copy: &LogCopy, bytes: u64) -> bool {
        let is_idle = self.state.waiting.load(Ordering::Acquire) == 0;
        if is_idle {
            self.send(Job::Part(copy.path().to_owned(), bytes));
        }
        is_idle
    }

    /// Imports a log that has ended.
    pub(super) fn whole(&self, copy: LogCopy) {
        self.send(Job::Whole(copy));
    }

    /// The exit status is 1.
    pub(super) fn failed(&self) {
        self.state.status.fetch_max(1, Ordering::Relaxed);
    }

    /// When the next part may be imported.
    pub(super) fn next(&self, every: Duration) -> Instant {
        let took = Duration::from_millis(self.state.took.load(Ordering::Relaxed));
        Instant::now() + every.max(took * (SHARE - 1))
    }

    fn send(&self, job: Job) {
        self.state.waiting.fetch_add(1, Ordering::Relaxed);
        // The thread lives as long as this.
        let _ = self.jobs.send(job);
    }
}

/// The command, the pipe and the counters, for the thread.
struct ImportingThread<'s> {
    import: &'s Import<'s>,
    pipe: &'s Path,
    state: &'s ImporterState,
}

impl ImportingThread<'_> {
    fn run(&self, job: Job) {
        let status = match job {
            Job::Part(copy, bytes) => {
                let began = Instant::now();
                let done = self.import(&copy, Some(bytes));
                let took = began.elapsed().as_millis();
                let took = u64::try_from(took).unwrap_or(u64::MAX);
                self.state.took.store(took, Ordering::Relaxed);
                // The log so far may have no element. Its end tells.
                done.unwrap_or(0)
            }
            Job::Whole(mut copy) => match self.import(copy.path(), None) {
                Ok(status) => {
                    copy.remove();
                    status
                }
                Err(failure) => {
                    let _ = error::report(&failure);
                    complain(&format!("the log is kept in {}", copy.keep().display()));
                    1
                }
            },
        };
        self.state.status.fetch_max(status, Ordering::Relaxed);
    }

    /// Imports a copy, or a part of it, and removes the runs of its shorter parts.
    fn import(&self, copy: &Path, part: Option<u64>) -> Outcome {
        let files = LogFiles::of_pipe(self.pipe, copy, part).map_err(Failure::not_found)?;
        let id = self.import.run_id(&files);
        let mut parts = runs_of_parts(copy);
        parts.retain(|run| *run != id.id);
        if part.is_some() {
            let all: Vec<String> = parts.iter().chain([&id.id]).cloned().collect();
            note(copy, &all)?;
        }
        let run = self.import.store(&files, &id)?;
        if !parts.is_empty() {
            let mut current = CurrentStore::open(Some(self.import.home.dir()))?;
            for run in &parts {
                reclaim::remove(&mut current, run)?;
            }
        }
        if part.is_some() {
            note(copy, std::slice::from_ref(&id.id))?;
        }
        report(self.import.args, &id.id, run, part.is_some())
    }
}

fn note(copy: &Path, runs: &[String]) -> Result<(), Failure> {
    let fail = |error| format!("cannot write beside {}: {error}", copy.display());
    note_runs_of_parts(copy, runs).map_err(|error| Failure::not_found(fail(error)))
}
