//! The engine `fjall`: an LSM tree, in a directory of its own.
//!
//! A commit is appended to a journal and sorted in memory. Background threads write sorted tables
//! and merge them. One process at a time has the database: others wait for it. Stores of the same
//! process share it.

mod manifest;

use std::fs::{DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};

use super::changes::Changes;
use super::damage::{caught, corrupt, failed_io, patiently};
use super::engine::{KeyValueEngine, KeyValueSnapshot, Look, ScanOrder, USUAL_MEMORY};
use super::files_below::size;
use super::open_databases::{OpenDatabase, OpenDatabases};
use crate::{EngineOptions, Error, Result};

/// Threads that write and merge tables.
const WORKERS: usize = 1;

/// A database and its tree.
#[derive(Clone)]
struct OneTree {
    database: Database,
    rows: Keyspace,
}

static OPEN: OpenDatabases<OneTree> = OpenDatabases::new();

/// A database of fjall with one tree.
pub struct LsmEngine {
    /// Always there until it is dropped.
    opened: Option<OpenDatabase<OneTree>>,
    path: PathBuf,
    synced: bool,
}

/// One state of the tree.
pub struct LsmSnapshot {
    snapshot: Snapshot,
    rows: Keyspace,
    path: PathBuf,
}

impl LsmEngine {
    fn opened(&self) -> Result<(&Database, &Keyspace)> {
        let closed = Error::Damaged("database (it is closed)");
        let tree = &self.opened.as_ref().ok_or(closed)?.database;
        Ok((&tree.database, &tree.rows))
    }

    /// Reads every row. fjall compares each block with its checksum.
    fn read_all(&self) -> Result<()> {
        let all = (&[][..], &[u8::MAX][..]);
        let go_on = &mut |_: &[u8], _: &[u8]| Ok(ControlFlow::Continue(()));
        self.snapshot()?
            .scan(all.0, all.1, ScanOrder::Ascending, go_on)
    }
}

impl Drop for LsmEngine {
    fn drop(&mut self) {
        // Closing a damaged database may fail; there is nothing left to do then.
        let opened = self.opened.take();
        let _ = caught(&self.path, || {
            drop(opened);
            Ok(())
        });
    }
}

/// Takes the lock of a database, if it exists. [`Error::Busy`] if another process has it open.
fn lock(database: &Path) -> Result<Option<File>> {
    let path = database.join("lock");
    let fail = |error| failed_io("lock", &path, error);
    let file = match File::options().read(true).write(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(fail)?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Error::Busy(database.to_owned())),
        Err(TryLockError::Error(error)) => Err(fail(error)),
    }
}

/// Sorts a failure by what the user can do about it.
fn failed(doing: &'static str, path: &Path, error: fjall::Error) -> Error {
    use fjall::Error::*;
    match error {
        Locked => Error::Busy(path.to_owned()),
        Io(error) | Storage(fjall::LsmError::Io(error)) => match error.kind() {
            std::io::ErrorKind::NotFound => corrupt(path, error.to_string()),
            _ => failed_io(doing, path, error),
        },
        Storage(error) => corrupt(path, error.to_string()),
        InvalidTrailer | InvalidTag(_) | Unrecoverable | Decompress(_) | JournalRecovery(_)
        | InvalidVersion(_) => corrupt(path, error.to_string()),
        error => Error::Engine {
            doing,
            path: path.to_owned(),
            reason: error.to_string(),
        },
    }
}

impl KeyValueEngine for LsmEngine {
    type Snapshot = LsmSnapshot;
    /// The process that has opened the database is the only one.
    type Writer = ();

    const EXCLUSIVE: bool = true;

    fn open(path: &Path, options: &EngineOptions) -> Result<Self> {
        let path = path.to_owned();
        let doing = "open the database";
        let fail = |error| failed(doing, &path, error);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| Error::io("make", &path, error))?;
        let open = || {
            {
                // Another process may change the lists.
                let _alone = lock(&path)?;
                manifest::check(&path)?;
            }
            let half = options.memory.unwrap_or(USUAL_MEMORY) as u64 / 2;
            let database = Database::builder(&path)
                .cache_size(half)
                .worker_threads(WORKERS)
                .open()
                .map_err(fail)?;
            let tree = || KeyspaceCreateOptions::default().max_memtable_size(half / 2);
            let rows = database.keyspace("rows", tree).map_err(fail)?;
            Ok(OneTree { database, rows })
        };
        let opened = OPEN.get(&path, || patiently(|| caught(&path, open)))?;
        let engine = LsmEngine {
            opened: Some(opened),
            path,
            synced: options.synced,
        };
        if options.examined {
            engine.read_all()?;
        }
        Ok(engine)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn snapshot(&self) -> Result<LsmSnapshot> {
        let (database, rows) = self.opened()?;
        Ok(LsmSnapshot {
            snapshot: caught(&self.path, || Ok(database.snapshot()))?,
            rows: rows.clone(),
            path: self.path.clone(),
        })
    }

    fn begin(&self) -> Result<()> {
        Ok(())
    }

    fn commit(&self, (): (), changes: Changes) -> Result<()> {
        let (database, rows) = self.opened()?;
        caught(&self.path, || {
            let mode = match self.synced {
                true => PersistMode::SyncAll,
                false => PersistMode::Buffer,
            };
            let mut batch = database.batch().durability(Some(mode));
            for (key, value) in changes.into_values() {
                match value {
                    Some(value) => batch.insert(rows, key, value),
                    None => batch.remove(rows, key),
                }
            }
            let committed = batch.commit();
            committed.map_err(|error| failed("commit", &self.path, error))
        })
    }

    fn bytes(&self) -> Result<u64> {
        size(&self.path).map_err(|error| Error::io("look at", &self.path, error))
    }

    fn compact(&mut self) -> Result<()> {
        let (_, rows) = self.opened()?;
        caught(&self.path, || {
            let fail = |error| failed("compact", &self.path, error);
            rows.rotate_memtable_and_wait().map_err(fail)?;
            rows.major_compact().map_err(fail)
        })
    }
}

impl KeyValueSnapshot for LsmSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        caught(&self.path, || {
            let found = self.snapshot.get(&self.rows, key);
            let found = found.map_err(|error| failed("read", &self.path, error))?;
            Ok(found.map(|value| value.to_vec()))
        })
    }

    fn scan(&self, from: &[u8], end: &[u8], order: ScanOrder, look: &mut Look<'_>) -> Result<()> {
        if from >= end {
            return Ok(());
        }
        let range = (Bound::Included(from), Bound::Excluded(end));
        let mut rows = caught(&self.path, || {
            Ok(self.snapshot.range::<&[u8], _>(&self.rows, range))
        })?;
        loop {
            let row = caught(&self.path, || {
                let row = match order {
                    ScanOrder::Ascending => rows.next(),
                    ScanOrder::Descending => rows.next_back(),
                };
                let row = row.map(fjall::Guard::into_inner).transpose();
                row.map_err(|error| failed("read", &self.path, error))
            })?;
            let Some((key, value)) = row else {
                return Ok(());
            };
            if let ControlFlow::Break(()) = look(&key, &value)? {
                return Ok(());
            }
        }
    }
}
