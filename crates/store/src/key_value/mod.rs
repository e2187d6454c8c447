//! A store on any engine that is an ordered map of byte strings.
//!
//! In and out: as every store. The rows are those of the SQLite store: the same blocks
//! (`block_tables`, `codec`) under the same numbers ([`row_keys`]). An engine is one folder here,
//! and one line in the conformance suite.
//!
//! ```text
//! KeyValueStore   runs, facts, annotations; BlockTables for the graphs
//!      │          one transaction: changes in memory above a snapshot, and rows fetched ahead
//! KeyValueEngine  snapshot, get, scan; commit of all changes at once
//!      ├── RedbEngine   a B-tree (feature `redb`)
//!      ├── LsmEngine    an LSM tree (feature `lsm`)
//!      ├── CLibraryEngine  Berkeley DB, RocksDB (features `berkeleydb`, `rocksdb`)
//!      └── PostgresqlEngine  a table of a server (feature `postgresql`)
//! ```
//!
//! Invariant: the changes of an append are committed at once, or not at all.
//!
//! Absent: a run whose encoded rows are larger than the memory.

mod annotation_rows;
#[cfg(feature = "redb")]
mod b_tree;
mod block_rows;
#[cfg(feature = "c-library")]
mod c_library;
mod changes;
#[cfg(any(feature = "rust-engine", feature = "c-library"))]
mod damage;
mod engine;
mod fact_rows;
mod fetched_rows;
#[cfg(any(feature = "lsm", feature = "c-library"))]
mod files_below;
#[cfg(feature = "lsm")]
mod lsm_tree;
mod number_lists;
#[cfg(any(feature = "lsm", feature = "c-library"))]
mod open_databases;
#[cfg(feature = "postgresql")]
mod postgresql;
mod question_stop;
mod removal;
mod row_keys;
mod run_rows;
mod transaction;

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::{Digest, Ident};
use backstory_graph::model::{Activity, ActivityId, Entity};

use crate::annotations::{Annotation, AnnotationKind, AnnotationRecord, RunAnnotations};
use crate::appender::Body;
use crate::block_tables::{self, Cache, GraphReader};
use crate::facts::{DirectorySnapshot, Fact, JournalPosition, JournalRecord};
use crate::{
    ActivityKey, ContentFacts, EngineControl, EngineOptions, EntityKey, Error, GraphStore, Home,
    Label, Maintenance, ReadGuard, Result, RunKey, RunRecord, StopQuestion, StoreStats, Stream,
    VersionMatch, newest_first,
};
use question_stop::QuestionStop;
use row_keys::RowTable;
use transaction::OpenTransaction;

#[cfg(feature = "c-library")]
use c_library::CLibraryEngine;

#[cfg(feature = "redb")]
pub use b_tree::RedbEngine;
pub use engine::KeyValueEngine;
#[cfg(feature = "lsm")]
pub use lsm_tree::LsmEngine;
#[cfg(feature = "postgresql")]
pub use postgresql::PostgresqlEngine;

/// A store in an LSM tree.
#[cfg(feature = "lsm")]
pub type LsmStore = KeyValueStore<LsmEngine>;

/// A store in a database of Berkeley DB.
#[cfg(feature = "berkeleydb")]
pub type BerkeleyDbStore = KeyValueStore<CLibraryEngine<c_library::BerkeleyDb>>;

/// A store in a database of RocksDB.
#[cfg(feature = "rocksdb")]
pub type RocksDbStore = KeyValueStore<CLibraryEngine<c_library::RocksDb>>;

/// A store in a B-tree that copies what it changes.
#[cfg(feature = "redb")]
pub type RedbStore = KeyValueStore<RedbEngine>;

/// A store in a database of a PostgreSQL server.
#[cfg(feature = "postgresql")]
pub type PostgresqlStore = KeyValueStore<PostgresqlEngine>;

/// The number of the format of the rows. Format 1, from before version 0.1.0, had a row for each
/// text, activity and extended record. Format 2, likewise, had a row for each pair of numbers.
const FORMAT: u32 = 3;

/// A store on a key-value engine.
pub struct KeyValueStore<E: KeyValueEngine> {
    engine: E,
    cache: RefCell<Cache>,
    /// The state that all reads see, while a transaction or a guard is open.
    held: RefCell<Option<E::Snapshot>>,
    open: RefCell<Option<OpenTransaction<E>>>,
    stop: QuestionStop,
}

impl<E: KeyValueEngine> KeyValueStore<E> {
    /// Opens the database in the directory of `home` at a path, making it where needed.
    ///
    /// Errors: [`Error::NotWritable`] if the directory cannot be written, [`Error::Busy`],
    /// [`Error::Corrupt`], [`Error::NewerSchema`].
    pub fn open_at(home: &Home, path: &Path, options: &EngineOptions) -> Result<Self> {
        let access = rustix::fs::access(home.dir(), rustix::fs::Access::WRITE_OK);
        access.map_err(|error| Error::NotWritable {
            dir: home.dir().to_owned(),
            reason: std::io::Error::from(error).to_string(),
        })?;
        let store = KeyValueStore {
            engine: E::open(path, options)?,
            cache: RefCell::default(),
            held: RefCell::default(),
            open: RefCell::default(),
            stop: QuestionStop::default(),
        };
        store.check_format()?;
        Ok(store)
    }

    fn check_format(&self) -> Result<()> {
        let key = RowTable::Format.bytes(&[]);
        let row = match self.get(&key)? {
            Some(row) => row,
            None => self.transaction(|| self.make_format(&key))?,
        };
        match row.try_into().map(u32::from_be_bytes) {
            Ok(FORMAT) => Ok(()),
            Ok(1 | 2) => Err(Error::PreRelease(self.engine.path().to_owned())),
            Ok(found) => Err(Error::NewerSchema {
                path: self.engine.path().to_owned(),
                found: i64::from(found),
                known: i64::from(FORMAT),
            }),
            Err(_) => Err(Error::NotOurs(self.engine.path().to_owned())),
        }
    }

    /// Makes the row of the format in an empty database, unless another process has made it
    /// meanwhile.
    fn make_format(&self, key: &[u8]) -> Result<Vec<u8>> {
        if let Some(row) = self.get(key)? {
            return Ok(row);
        }
        if self.any((&[0], &[u8::MAX]))? {
            return Err(Error::NotOurs(self.engine.path().to_owned()));
        }
        self.put(key, FORMAT.to_be_bytes())?;
        Ok(FORMAT.to_be_bytes().to_vec())
    }

    fn graph(&self) -> GraphReader<'_, Self> {
        GraphReader::new(self)
    }
}

impl<E: KeyValueEngine> GraphStore for KeyValueStore<E> {
    fn append(
        &mut self,
        header: &RunHeader,
        end: &RunEnd,
        log_bytes: u64,
        body: &mut Body<'_>,
    ) -> Result<RunKey> {
        self.cache.get_mut().forget_directories();
        block_tables::append(&*self, header, end, log_bytes, body)
    }

    fn remove(&mut self, id: &str) -> Result<bool> {
        let removed = self.remove_run(id);
        *self.cache.get_mut() = Cache::default();
        removed
    }

    fn set_label(&mut self, id: &str, label: Label, text: Option<&str>) -> Result<()> {
        self.label(id, label, text)
    }

    fn runs(&self) -> Result<Vec<RunRecord>> {
        let mut runs = self.run_records(|_| true)?;
        newest_first(&mut runs);
        Ok(runs)
    }

    fn runs_in_order(&self) -> Result<Vec<RunKey>> {
        self.order_of_runs()
    }

    fn reading(&self) -> Result<ReadGuard<'_>> {
        if !self.hold()? {
            return Ok(ReadGuard::default());
        }
        let guard = ReadGuard::new(|| self.release());
        self.graph().renew_cache()?;
        Ok(guard)
    }

    fn run_ids(&self) -> Result<HashSet<String>> {
        self.all_run_ids()
    }

    fn run(&self, id: &str) -> Result<Option<RunRecord>> {
        match self.run_number(id)? {
            Some(key) => self.record_of(key),
            None => Ok(None),
        }
    }

    fn run_by_key(&self, key: RunKey) -> Result<Option<RunRecord>> {
        self.record_of(key)
    }

    fn run_id(&self, key: RunKey) -> Result<Option<String>> {
        self.id_of(key)
    }

    fn runs_named(&self, name: &str) -> Result<Vec<RunRecord>> {
        let mut runs = self.runs_called(name)?;
        newest_first(&mut runs);
        Ok(runs)
    }

    block_tables::graph_methods!();
}

impl<E: KeyValueEngine> ContentFacts for KeyValueStore<E> {
    fn learn(
        &mut self,
        learned: &[JournalRecord],
        read: JournalPosition,
        anew: bool,
    ) -> Result<()> {
        self.take_in(learned, read, anew)
    }

    fn learned(&self) -> Result<JournalPosition> {
        self.journal_position()
    }

    fn fact(&self, ident: &Ident) -> Result<Option<Fact>> {
        self.fact_of(ident)
    }

    fn facts(&self) -> Result<Vec<Fact>> {
        self.all_facts()
    }

    fn directory_snapshot(&self, run: &str) -> Result<Option<DirectorySnapshot>> {
        self.snapshot_of(run)
    }

    fn with_content(&self, digest: &Digest) -> Result<Vec<Ident>> {
        self.versions_with(digest)
    }

    fn digests_beginning(&self, digits: &str) -> Result<Vec<Digest>> {
        self.digests_with_prefix(digits)
    }

    fn runs_without_contents(&self) -> Result<Vec<RunRecord>> {
        let mut runs = self.waiting_runs()?;
        newest_first(&mut runs);
        runs.reverse();
        Ok(runs)
    }
}

impl<E: KeyValueEngine> RunAnnotations for KeyValueStore<E> {
    fn annotate(&mut self, records: &[AnnotationRecord], read: u64, anew: bool) -> Result<()> {
        self.add_annotations(records, read, anew)
    }

    fn annotations_read(&self) -> Result<u64> {
        self.position_of_annotations()
    }

    fn annotations(&self, run: &str) -> Result<Vec<Annotation>> {
        self.of_one_run(run)
    }

    fn annotations_of(&self, kind: AnnotationKind, key: Option<&str>) -> Result<Vec<Annotation>> {
        self.of_one_kind(kind, key)
    }
}

impl<E: KeyValueEngine> Maintenance for KeyValueStore<E> {
    fn stats(&self) -> Result<StoreStats> {
        self.totals()
    }

    fn forget_unreferred(&mut self) -> Result<()> {
        *self.cache.get_mut() = Cache::default();
        self.forget_shared()
    }

    fn compact(&mut self) -> Result<()> {
        self.engine.compact()
    }
}

impl<E: KeyValueEngine> EngineControl for KeyValueStore<E> {
    fn interrupt_when(&self, stop: Option<StopQuestion>) {
        self.stop.set(stop);
    }

    fn is_reading(&self) -> bool {
        self.held.borrow().is_some()
    }

    fn is_exclusive(&self) -> bool {
        E::EXCLUSIVE
    }

    fn is_shared(&self) -> bool {
        E::SHARED
    }

    fn own_runs(&self) -> Result<Option<HashSet<RunKey>>> {
        self.runs_of_this_user()
    }
}
