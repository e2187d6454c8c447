//! The engines of C libraries: Berkeley DB and RocksDB, each in a directory of its own. They are
//! what the other engines are compared with, and no released program has them.
//!
//! One process at a time has the database: others wait for it. Stores of the same process share it.
//!
//! Absent: the libraries' own functions, see `backstory-c-engines`.

use std::fs::DirBuilder;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use backstory_c_engines::{LibraryError, MapLibrary, MapSnapshot, OrderedMap};

use super::changes::Changes;
use super::damage::{corrupt, failed_io, patiently};
use super::engine::{KeyValueEngine, KeyValueSnapshot, Look, ScanOrder, USUAL_MEMORY};
use super::files_below::size;
use super::open_databases::{OpenDatabase, OpenDatabases};
use crate::{EngineOptions, Error, Result};

static OPEN: OpenDatabases<OrderedMap> = OpenDatabases::new();

/// Names a library by a type.
pub trait NamedLibrary {
    /// The library.
    const LIBRARY: MapLibrary;
}

/// Berkeley DB.
#[cfg(feature = "berkeleydb")]
pub struct BerkeleyDb;

#[cfg(feature = "berkeleydb")]
impl NamedLibrary for BerkeleyDb {
    const LIBRARY: MapLibrary = MapLibrary::BerkeleyDb;
}

/// RocksDB.
#[cfg(feature = "rocksdb")]
pub struct RocksDb;

#[cfg(feature = "rocksdb")]
impl NamedLibrary for RocksDb {
    const LIBRARY: MapLibrary = MapLibrary::RocksDb;
}

/// A database of a C library.
pub struct CLibraryEngine<L> {
    opened: OpenDatabase<OrderedMap>,
    path: PathBuf,
    library: PhantomData<fn() -> L>,
}

/// One state of the database.
pub struct CLibrarySnapshot {
    snapshot: MapSnapshot,
    path: PathBuf,
}

/// Sorts a failure by what the user can do about it.
fn failed(doing: &'static str, path: &Path, error: LibraryError) -> Error {
    match error {
        LibraryError::Locked => Error::Busy(path.to_owned()),
        LibraryError::Damaged(detail) => corrupt(path, detail),
        LibraryError::System(error) => failed_io(doing, path, error),
        LibraryError::Other(reason) => Error::Engine {
            doing,
            path: path.to_owned(),
            reason,
        },
    }
}

impl<L: NamedLibrary> CLibraryEngine<L> {
    /// Reads every row. The library compares each block or page with its checksum.
    fn read_all(&self) -> Result<()> {
        let go_on = &mut |_: &[u8], _: &[u8]| Ok(ControlFlow::Continue(()));
        let snapshot = self.snapshot()?;
        snapshot.scan(&[], &[u8::MAX], ScanOrder::Ascending, go_on)
    }
}

impl<L: NamedLibrary> KeyValueEngine for CLibraryEngine<L> {
    type Snapshot = CLibrarySnapshot;
    /// The process that has opened the database is the only one.
    type Writer = ();

    const EXCLUSIVE: bool = true;

    fn open(path: &Path, options: &EngineOptions) -> Result<Self> {
        let path = path.to_owned();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| Error::io("make", &path, error))?;
        let memory = options.memory.unwrap_or(USUAL_MEMORY);
        let open = || {
            let opened = OrderedMap::open(L::LIBRARY, &path, memory, options.synced);
            opened.map_err(|error| failed("open the database", &path, error))
        };
        let engine = CLibraryEngine {
            opened: OPEN.get(&path, || patiently(open))?,
            path,
            library: PhantomData,
        };
        if options.examined {
            engine.read_all()?;
        }
        Ok(engine)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn snapshot(&self) -> Result<CLibrarySnapshot> {
        let snapshot = self.opened.database.snapshot();
        Ok(CLibrarySnapshot {
            snapshot: snapshot.map_err(|error| failed("read", &self.path, error))?,
            path: self.path.clone(),
        })
    }

    fn begin(&self) -> Result<()> {
        Ok(())
    }

    fn commit(&self, (): (), changes: Changes) -> Result<()> {
        let commit = || {
            let mut batch = self.opened.database.begin()?;
            for (key, value) in changes.into_values() {
                match value {
                    Some(value) => batch.put(&key, &value)?,
                    None => batch.erase(&key)?,
                }
            }
            batch.commit()
        };
        commit().map_err(|error| failed("commit", &self.path, error))
    }

    fn bytes(&self) -> Result<u64> {
        size(&self.path).map_err(|error| Error::io("look at", &self.path, error))
    }

    fn compact(&mut self) -> Result<()> {
        let compacted = self.opened.database.compact();
        compacted.map_err(|error| failed("compact", &self.path, error))
    }
}

impl KeyValueSnapshot for CLibrarySnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.snapshot.get(key);
        found.map_err(|error| failed("read", &self.path, error))
    }

    fn scan(&self, from: &[u8], end: &[u8], order: ScanOrder, look: &mut Look<'_>) -> Result<()> {
        if from >= end {
            return Ok(());
        }
        let fail = |error| failed("read", &self.path, error);
        let backwards = order == ScanOrder::Descending;
        let mut cursor = self.snapshot.cursor().map_err(fail)?;
        let first = if backwards { end } else { from };
        let mut row = cursor.seek(first, backwards).map_err(fail)?;
        while let Some((key, value)) = row {
            if key < from || key >= end || look(key, value)?.is_break() {
                break;
            }
            row = cursor.step(backwards).map_err(fail)?;
        }
        Ok(())
    }
}
