//! The list of all runs, read once and again after each change of the database. Ten thousand runs
//! take a third of a second to read, and the table of runs asks for them at every keystroke.

use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use backstory_query::answer::RunSummary;
use backstory_query::{self as query, RunFilter};
use backstory_store::{DatabaseFiles, Home, StoreEngine};

use crate::problem::Answer;
use crate::readers::Reading;

/// File systems count time in ticks. A file that changed in this span before now may change again
/// with the same times.
const TICK: Duration = Duration::from_millis(50);

/// The list of all runs, as last read.
#[derive(Default)]
pub struct RunList {
    known: Mutex<Option<(DatabaseStamp, Arc<Vec<RunSummary>>)>>,
}

/// Differs if the database was written in between: device, inode, size and times of its files.
type DatabaseStamp = Vec<Option<(u64, u64, u64, i64, i64)>>;

impl RunList {
    /// All runs of the store, the newest first.
    pub fn read(&self, reading: &Reading<'_>) -> Answer<Arc<Vec<RunSummary>>> {
        // Requests that come at once wait for one reading, as those of the first view do.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(reading.home);
        if let (Some(stamp), Some((last, runs))) = (&stamp, &*known)
            && stamp == last
        {
            return Ok(runs.clone());
        }
        let runs = Arc::new(query::runs_where(reading.store, &RunFilter::default())?);
        *known = stamp.map(|stamp| (stamp, runs.clone()));
        Ok(runs)
    }
}

/// The stamp of the database. `None` if a file was written just now, or if no file tells.
fn stamp(home: &Home) -> Option<DatabaseStamp> {
    let database = DatabaseFiles::of(home, StoreEngine::of(home).ok()?);
    let now = SystemTime::now();
    let mut stamp = Vec::new();
    for path in database.written()? {
        let Ok(meta) = std::fs::metadata(path) else {
            stamp.push(None);
            continue;
        };
        let written = meta.modified().ok()?;
        if now.duration_since(written).ok()? < TICK {
            return None;
        }
        stamp.push(Some((
            meta.dev(),
            meta.ino(),
            meta.len(),
            meta.mtime(),
            meta.mtime_nsec(),
        )));
    }
    Some(stamp)
}
