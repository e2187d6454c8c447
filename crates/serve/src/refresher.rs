//! Keeps the store up to date while the server runs. A recorder's own background process adds its
//! run. This task adds tags, facts about contents, and runs whose indexer was killed.
//!
//! In: the times of the store's directories and journals. Out: calls of the caller's `refresh`,
//! only when one of them has changed.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::site::Site;

/// How often the files are looked at.
const PAUSE: Duration = Duration::from_secs(1);

/// Calls after a change. A recorder writes its log, then its facts, then the contents.
const CALLS: u32 = 3;

/// Runs until the server ends.
pub async fn keep_fresh(site: Site) {
    let mut last = stamp(&site);
    let mut due = 0;
    loop {
        tokio::time::sleep(PAUSE).await;
        let now = stamp(&site);
        if now != last {
            last = now;
            due = CALLS;
        }
        if due > 0 {
            due -= 1;
            let refresh = site.setup.hooks.refresh.clone();
            // If it fails, answers come from what the store has. The next change tries again.
            drop(tokio::task::spawn_blocking(move || refresh()).await);
        }
    }
}

fn stamp(site: &Site) -> Vec<Option<(u64, i64, i64)>> {
    let home = site.home();
    let watched = [home.runs_dir(), home.facts_path(), home.annotations_path()];
    let look = |path| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.len(), meta.mtime(), meta.mtime_nsec()))
    };
    watched.into_iter().map(look).collect()
}
