//! Runs in progress: their logs grow, and the store does not have them yet.

use backstory_ordering::SmallSort;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use backstory_eventlog::Log;
use backstory_eventlog::run::RunHeader;
use backstory_store::Home;

/// A list is used for so long before the directory is read again.
const FRESH: Duration = Duration::from_millis(300);

/// The log of a run in progress, and its header.
type LiveRun = (PathBuf, RunHeader);

/// The headers of runs in progress, as last read.
#[derive(Default)]
pub struct LiveRuns {
    known: Mutex<Option<(Instant, Vec<LiveRun>)>>,
}

impl LiveRuns {
    /// The runs in progress, the newest first: their logs and headers.
    pub fn read(&self, home: &Home, is_recording: fn(&std::path::Path) -> bool) -> Vec<LiveRun> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, runs)) = &*known
            && at.elapsed() < FRESH
        {
            return runs.clone();
        }
        let unfinished = home.unfinished().unwrap_or_default();
        let parts = unfinished.iter().map(|run| home.part_path(run));
        let header = |part: PathBuf| Some((part.clone(), Log::open(part).ok()?.header().clone()));
        let mut runs: Vec<_> = parts
            .filter(|part| is_recording(part))
            .filter_map(header)
            .collect();
        runs.sort_small_by_key(|(_, header)| std::cmp::Reverse(header.started));
        *known = Some((Instant::now(), runs.clone()));
        runs
    }
}
