//! The engine `redb`: one file with a B-tree whose pages are never changed in place.
//!
//! Any number of processes may read while one writes. A commit is one write of the root. It always
//! waits for the disk: redb has no other commits for a file that processes share.

mod errors;

use std::fs::{self, OpenOptions};
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use redb::{
    ConcurrencyMode, Database, ReadOnlyTable, ReadableDatabase, TableDefinition, WriteTransaction,
};

use super::changes::Changes;
use super::damage::{caught, patiently};
use super::engine::{KeyValueEngine, KeyValueSnapshot, Look, ScanOrder, USUAL_MEMORY};
use crate::{EngineOptions, Error, Result};
use errors::failed;

/// The one table of the file.
const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

/// A database of redb.
pub struct RedbEngine {
    /// Always there until it is dropped.
    database: Option<Database>,
    path: PathBuf,
}

/// One state of the table.
pub struct RedbSnapshot {
    rows: ReadOnlyTable<&'static [u8], &'static [u8]>,
    path: PathBuf,
}

impl RedbEngine {
    fn database(&self) -> Result<&Database> {
        let closed = Error::Damaged("database (it is closed)");
        self.database.as_ref().ok_or(closed)
    }

    /// Makes the table if the file is new.
    fn make_table(&self) -> Result<()> {
        if self.snapshot().is_ok() {
            return Ok(());
        }
        let writer = self.begin()?;
        self.commit(writer, Changes::default())
    }
}

impl Drop for RedbEngine {
    fn drop(&mut self) {
        // Closing a damaged file may fail; there is nothing left to do then.
        let database = self.database.take();
        let _ = caught(&self.path, || {
            drop(database);
            Ok(())
        });
    }
}

impl KeyValueEngine for RedbEngine {
    type Snapshot = RedbSnapshot;
    type Writer = WriteTransaction;

    const EXCLUSIVE: bool = false;

    fn open(path: &Path, options: &EngineOptions) -> Result<Self> {
        let path = path.to_owned();
        let doing = "open the database";
        // A pipe or a device would keep the process waiting.
        if fs::metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::NotOurs(path));
        }
        let open = || {
            let mut file = OpenOptions::new();
            let file = file.read(true).write(true).create(true).truncate(false);
            let file = file.mode(0o600).open(&path);
            drop(file.map_err(|error| Error::io(doing, &path, error))?);
            Database::builder()
                .set_cache_size(options.memory.unwrap_or(USUAL_MEMORY))
                .set_concurrency_mode(ConcurrencyMode::MultiWriter)
                .set_check_integrity_on_open(options.examined)
                .create(&path)
                .map_err(|error| failed(doing, &path, error.into()))
        };
        let database = patiently(|| caught(&path, open))?;
        let engine = RedbEngine {
            database: Some(database),
            path,
        };
        engine.make_table()?;
        Ok(engine)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn snapshot(&self) -> Result<RedbSnapshot> {
        let fail = |error| failed("read", &self.path, error);
        let rows = caught(&self.path, || {
            let transaction = self.database()?.begin_read();
            let transaction = transaction.map_err(|error| fail(error.into()))?;
            transaction
                .open_table(ROWS)
                .map_err(|error| fail(error.into()))
        })?;
        Ok(RedbSnapshot {
            rows,
            path: self.path.clone(),
        })
    }

    fn begin(&self) -> Result<WriteTransaction> {
        patiently(|| {
            caught(&self.path, || {
                let begun = self.database()?.try_begin_write();
                begun.map_err(|error| failed("begin a transaction", &self.path, error.into()))
            })
        })
    }

    fn commit(&self, writer: WriteTransaction, changes: Changes) -> Result<()> {
        let fail = |error| failed("commit", &self.path, error);
        caught(&self.path, || {
            {
                let mut rows = writer
                    .open_table(ROWS)
                    .map_err(|error| fail(error.into()))?;
                for (key, value) in changes.into_values() {
                    let done = match value {
                        Some(value) => rows.insert(&*key, &*value).map(drop),
                        None => rows.remove(&*key).map(drop),
                    };
                    done.map_err(|error| fail(error.into()))?;
                }
            }
            writer.commit().map_err(|error| fail(error.into()))
        })
    }

    fn bytes(&self) -> Result<u64> {
        let meta = fs::metadata(&self.path);
        Ok(meta
            .map_err(|error| Error::io("look at", &self.path, error))?
            .len())
    }

    fn compact(&mut self) -> Result<()> {
        let path = self.path.clone();
        let database = self.database.as_mut();
        caught(&path, || match database.map(Database::compact) {
            Some(Err(error)) => Err(failed("compact", &path, error.into())),
            _ => Ok(()),
        })
    }
}

impl KeyValueSnapshot for RedbSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        caught(&self.path, || {
            let found = self.rows.get(key);
            let found = found.map_err(|error| failed("read", &self.path, error.into()))?;
            Ok(found.map(|value| value.value().to_vec()))
        })
    }

    fn scan(&self, from: &[u8], end: &[u8], order: ScanOrder, look: &mut Look<'_>) -> Result<()> {
        if from >= end {
            return Ok(());
        }
        let fail = |error: redb::StorageError| failed("read", &self.path, error.into());
        let range = (Bound::Included(from), Bound::Excluded(end));
        let mut rows = caught(&self.path, || self.rows.range::<&[u8]>(range).map_err(fail))?;
        loop {
            let row = caught(&self.path, || {
                let row = match order {
                    ScanOrder::Ascending => rows.next(),
                    ScanOrder::Descending => rows.next_back(),
                };
                row.transpose().map_err(fail)
            })?;
            let Some((key, value)) = row else {
                return Ok(());
            };
            if let ControlFlow::Break(()) = look(key.value(), value.value())? {
                return Ok(());
            }
        }
    }
}
