//! An open tree: its tables, the log of its recent commits, and its snapshots.
//!
//! ```text
//! DIR/lock         locked (flock) by the process that has the database
//! DIR/recent.log   commits whose rows are in no table yet (`recent_commits`)
//! DIR/tree/        the tables, in the format of the library
//! ```
//!
//! A small commit is appended to the log, and its rows are sorted in memory. A large one becomes a
//! sorted table at once, with the rows of the log: an append of a run is written once. There is no
//! thread. A commit that makes a table also merges tables where there are too many.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsm_tree::compaction::Leveled;
use lsm_tree::config::{BlockSizePolicy, CompressionPolicy};
use lsm_tree::{AbstractTree, AnyTree, Cache, CompressionType, SequenceNumberCounter};

use super::manifest;
use super::recent_commits::{Change, Commit, RecentCommits};
use crate::key_value::damage::{corrupt, failed_io};
use crate::{Error, Result};

/// Bytes of a block before it is compressed. The larger it is, the more neighbours share.
const BLOCK: u32 = 16 << 10;

/// Bytes of the largest table that a merge makes.
const TABLE: u64 = 64 << 20;

/// A database.
pub struct OpenTree {
    tree: AnyTree,
    /// The next sequence number.
    next: SequenceNumberCounter,
    /// Rows with lower numbers are visible.
    visible: SequenceNumberCounter,
    log: Mutex<RecentCommits>,
    /// The numbers of the snapshots, and how many have each.
    snapshots: Mutex<BTreeMap<u64, usize>>,
    path: PathBuf,
    /// Dropped last.
    _lock: File,
}

/// One state of the tree.
pub struct TreeState {
    pub opened: Arc<OpenTree>,
    /// Rows with lower numbers belong to it.
    number: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sorts a failure by what the user can do about it.
pub fn failed(doing: &'static str, path: &Path, error: lsm_tree::Error) -> Error {
    match error {
        lsm_tree::Error::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            corrupt(path, error.to_string())
        }
        lsm_tree::Error::Io(error) => failed_io(doing, path, error),
        error => corrupt(path, error.to_string()),
    }
}

/// Takes the lock. [`Error::Busy`] if another process has it.
fn lock(database: &Path) -> Result<File> {
    let path = database.join("lock");
    let fail = |error| failed_io("lock", &path, error);
    let mut file = File::options();
    let file = file.read(true).write(true).create(true).truncate(false);
    let file = file.open(&path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Busy(database.to_owned())),
        Err(TryLockError::Error(error)) => Err(fail(error)),
    }
}

impl OpenTree {
    /// Opens the database in a directory, which exists, making it where needed. `memory`: bytes for
    /// blocks that were read.
    pub fn open(path: &Path, memory: u64) -> Result<OpenTree> {
        let lock = lock(path)?;
        if path.join("keyspaces").exists() {
            return Err(Error::PreRelease(path.to_owned()));
        }
        let directory = path.join("tree");
        manifest::check(path, &directory)?;
        let (next, visible) = (
            SequenceNumberCounter::default(),
            SequenceNumberCounter::default(),
        );
        let compression = CompressionPolicy::all(CompressionType::Lz4);
        let tree = lsm_tree::Config::new(directory, next.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(memory)))
            .data_block_size_policy(BlockSizePolicy::all(BLOCK))
            .data_block_compression_policy(compression)
            .open()
            .map_err(|error| failed("open the database", path, error))?;
        let tabled = tree.get_highest_persisted_seqno();
        let mut last = tabled.unwrap_or_default();
        let log = RecentCommits::open(&path.join("recent.log"), |commit| {
            if tabled.is_none_or(|tabled| commit.number > tabled) {
                last = last.max(commit.number);
                put_all(&tree, commit.number, commit.changes);
            }
            Ok(())
        });
        let log = log.map_err(|error| failed_io("read", path, error))??;
        next.set(last + 1);
        visible.set(last + 1);
        Ok(OpenTree {
            tree,
            next,
            visible,
            log: Mutex::new(log),
            snapshots: Mutex::default(),
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// The state now.
    pub fn state(self: &Arc<Self>) -> TreeState {
        let mut snapshots = locked(&self.snapshots);
        let number = self.visible.get();
        *snapshots.entry(number).or_default() += 1;
        TreeState {
            opened: self.clone(),
            number,
        }
    }

    /// Rows that a row with a lower number hides are seen by no snapshot.
    fn oldest_state(&self) -> u64 {
        let oldest = locked(&self.snapshots).keys().next().copied();
        oldest.unwrap_or_else(|| self.visible.get())
    }

    /// Applies changes, in the order of their keys.
    pub fn commit(&self, changes: Vec<Change>, synced: bool) -> Result<()> {
        let fail_io = |error| failed_io("commit", &self.path, error);
        let mut log = locked(&self.log);
        let number = self.next.next();
        let commit = Commit { number, changes };
        if log.append(&commit, synced).map_err(fail_io)? {
            put_all(&self.tree, number, commit.changes);
            self.visible.fetch_max(number + 1);
            return Ok(());
        }
        let fail = |error| failed("commit", &self.path, error);
        let mut table = self.tree.ingestion().map_err(fail)?;
        for (key, value) in commit.changes {
            let written = match value {
                Some(value) => table.write(key, value),
                None => table.write_tombstone(key),
            };
            written.map_err(fail)?;
        }
        // Makes a table of the rows of the log first.
        table.finish().map_err(fail)?;
        log.clear().map_err(fail_io)?;
        let merge = Arc::new(Leveled::default());
        self.tree.compact(merge, self.oldest_state()).map_err(fail)
    }

    /// Makes one table of all.
    pub fn compact(&self) -> Result<()> {
        let fail = |error| failed("compact", &self.path, error);
        let mut log = locked(&self.log);
        let oldest = self.oldest_state();
        self.tree.flush_active_memtable(oldest).map_err(fail)?;
        let cleared = log.clear();
        cleared.map_err(|error| failed_io("compact", &self.path, error))?;
        self.tree.major_compact(TABLE, oldest).map_err(fail)
    }
}

/// Sorts the changes of a commit into the rows in memory.
fn put_all(tree: &AnyTree, number: u64, changes: Vec<Change>) {
    for (key, value) in changes {
        match value {
            Some(value) => tree.insert(key, value, number),
            None => tree.remove(key, number),
        };
    }
}

impl TreeState {
    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> lsm_tree::Result<Option<Vec<u8>>> {
        let found = self.opened.tree.get(key, self.number)?;
        Ok(found.map(|value| value.to_vec()))
    }

    /// The rows from one key to before another.
    pub fn range(
        &self,
        from: &[u8],
        end: &[u8],
    ) -> impl DoubleEndedIterator<Item = lsm_tree::Result<lsm_tree::KvPair>> + use<> {
        let rows = self
            .opened
            .tree
            .range::<&[u8], _>(from..end, self.number, None);
        rows.map(lsm_tree::Guard::into_inner)
    }

    /// The rows from a key on, for a caller that stops by itself. The library would look for the
    /// end of a range in each table before it returns the first row.
    pub fn range_from(
        &self,
        from: &[u8],
    ) -> impl DoubleEndedIterator<Item = lsm_tree::Result<lsm_tree::KvPair>> + use<> {
        let tree = &self.opened.tree;
        let rows = tree.range::<&[u8], _>(from.., self.number, None);
        rows.map(lsm_tree::Guard::into_inner)
    }
}

impl Drop for TreeState {
    fn drop(&mut self) {
        let mut snapshots = locked(&self.opened.snapshots);
        if let Some(count) = snapshots.get_mut(&self.number) {
            *count -= 1;
            if *count == 0 {
                snapshots.remove(&self.number);
            }
        }
    }
}
