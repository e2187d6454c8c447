//! Runs of other machines that have not come back yet: one file for each, in the store.
//!
//! The wrapper writes the file before it executes ssh. The file goes when the run is in the store.
//! Only this user can write it, because its words are executed. So nothing of it travels with
//! exchanged runs.

use backstory_ordering::SmallSort;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use backstory_files::regular;
use serde::{Deserialize, Serialize};

/// A run that is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRun {
    /// Its id.
    pub run: String,
    /// The name of the connection, which is in the graphs of both runs.
    pub connection: String,
    /// `[USER@]HOST`
    pub machine: String,
    /// The command that connects, without the destination.
    pub ssh: Vec<String>,
    /// The directory in which it connects: paths of keys may be relative.
    pub directory: PathBuf,
    /// The program there.
    pub program: String,
    /// The process that runs ssh, and the clock tick of its start.
    pub client: (u32, u64),
    /// Attempts to fetch it that failed.
    pub tried: u32,
}

/// `tools.toml` knows the name: the wrapper's file is no result of a run.
fn directory(store: &Path) -> PathBuf {
    store.join(".backstory-remote")
}

/// The file that one process locks while it fetches.
pub fn lock_path(store: &Path) -> PathBuf {
    directory(store).join("lock")
}

impl PendingRun {
    fn path(&self, store: &Path) -> PathBuf {
        directory(store).join(format!("{}.json", self.run))
    }

    /// Writes or replaces the file.
    pub fn write(&self, store: &Path) -> io::Result<()> {
        let directory = directory(store);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&directory)?;
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        regular::replace(&self.path(store), |file| file.write_all(&text))
    }

    /// Removes the file.
    pub fn remove(&self, store: &Path) {
        let _ = fs::remove_file(self.path(store));
    }

    /// True while its ssh runs.
    pub fn is_connected(&self) -> bool {
        start_of(self.client.0) == Some(self.client.1)
    }

    /// When the file was written last.
    pub fn tried_at(&self, store: &Path) -> Option<std::time::SystemTime> {
        fs::metadata(self.path(store)).ok()?.modified().ok()
    }
}

/// All files of a store. Files that cannot be read are left alone.
pub fn all(store: &Path) -> Vec<PendingRun> {
    let Ok(entries) = fs::read_dir(directory(store)) else {
        return Vec::new();
    };
    let mut found: Vec<PendingRun> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter_map(|path| {
            let file = regular::open(&path).ok()?;
            serde_json::from_reader(file).ok()
        })
        .collect();
    found.sort_small_by(|one, two| one.run.cmp(&two.run));
    found
}

/// The clock tick at which a process started. `None` if it has ended.
pub fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    (fields.next()? != "Z")
        .then_some(fields.nth(18)?)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_run_is_written_read_and_removed() {
        let store = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let pending = PendingRun {
            run: "0123abcd".into(),
            connection: "box/0123abcd".into(),
            machine: "box".into(),
            ssh: vec!["/usr/bin/ssh".into()],
            directory: "/".into(),
            program: "/p".into(),
            client: (own, start_of(own).unwrap()),
            tried: 0,
        };
        pending.write(store.path()).unwrap();
        assert_eq!(all(store.path()), std::slice::from_ref(&pending));
        assert!(pending.is_connected());
        let other = PendingRun {
            client: (own, 0),
            ..pending.clone()
        };
        assert!(!other.is_connected());
        pending.remove(store.path());
        assert!(all(store.path()).is_empty());
    }
}
