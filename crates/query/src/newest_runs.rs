//! The newest runs that used a file, for an answer of one screen.
//!
//! In: the versions of a file in all runs, and a number of processes. Out: the versions in the
//! newest runs, as many as have that number of processes between them, at least one run. So a file
//! that every compiler reads is answered without reading the whole store.

use std::collections::BTreeMap;

use backstory_store::{EntityKey, RunKey, Store};

use crate::Result;

/// The versions of a file in the newest runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestRuns {
    /// The versions, in the order in which they were given.
    pub versions: Vec<EntityKey>,
    /// The oldest of these runs.
    pub since: RunKey,
    /// The number of all runs that touched the file, these included.
    pub all: usize,
}

/// The newest runs in which no more than `most` processes touched the file. `None` if these are all
/// runs.
pub fn newest_runs(
    store: &dyn Store,
    versions: &[EntityKey],
    most: usize,
) -> Result<Option<NewestRuns>> {
    let _one_state = store.reading()?;
    let mut by_run: BTreeMap<RunKey, Vec<EntityKey>> = BTreeMap::new();
    for key in versions {
        by_run.entry(key.run()).or_default().push(*key);
    }
    let (mut processes, mut since) = (0, None);
    for (run, keys) in by_run.iter().rev() {
        for key in keys {
            processes += store.touching(*key)?.len();
        }
        if processes > most && since.is_some() {
            break;
        }
        since = Some(*run);
    }
    let shown = |since: RunKey| by_run.range(since..).count();
    let Some(since) = since.filter(|since| shown(*since) < by_run.len()) else {
        return Ok(None);
    };
    let kept = versions.iter().filter(|key| key.run() >= since);
    Ok(Some(NewestRuns {
        versions: kept.copied().collect(),
        since,
        all: by_run.len(),
    }))
}
