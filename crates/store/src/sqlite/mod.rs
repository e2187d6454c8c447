//! The default store: one SQLite file beside the logs.
//!
//! Rows are blocks of compact records (`codec`) under integer keys. The rows of one run, or of one
//! directory, stand together. Many processes may read while one appends.
//!
//! Invariant: a database of a newer schema, or of another program, is never changed.

mod annotations;
mod block_rows;
mod control;
mod facts;
mod open;
mod runs;
mod schema;
mod select;
mod shared;
#[cfg(test)]
mod tests;
mod upgrade;
mod verify;

use backstory_vocabulary::{ContentsMode, Word};
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Digest;
use backstory_files::Ident;
use backstory_graph::model::{Activity, ActivityId, Entity};
use rusqlite::Connection;
use schema::MIGRATIONS;

use crate::annotations::{Annotation, AnnotationKind, AnnotationRecord, RunAnnotations};
use crate::appender::Body;
use crate::block_tables::{self, BlockTables, Cache, GraphReader};
use crate::facts::{DirectorySnapshot, Fact, JournalPosition, JournalRecord};
use crate::{
    ActivityKey, ContentFacts, EngineOptions, EntityKey, Error, GraphStore, Home, Label,
    Maintenance, ReadGuard, Result, RunKey, RunRecord, StoreEngine, StoreStats, Stream,
    VersionMatch,
};

/// A store in one SQLite file.
pub struct SqliteStore {
    conn: Connection,
    path: PathBuf,
    cache: RefCell<Cache>,
}

impl SqliteStore {
    /// Opens the database of `home`, making or upgrading it where needed. If the directory can't be
    /// written, it is opened for reading only.
    pub fn open(home: &Home) -> Result<SqliteStore> {
        StoreEngine::Sqlite.check(home)?;
        SqliteStore::open_at(home, &home.database_path())
    }

    /// The same with a database at another path in the directory of `home`.
    pub fn open_at(home: &Home, path: &Path) -> Result<SqliteStore> {
        let (conn, version) = open::open(home.dir(), path)?;
        conn.set_prepared_statement_cache_capacity(64);
        let store = SqliteStore {
            conn,
            path: path.to_owned(),
            cache: RefCell::default(),
        };
        if version < MIGRATIONS.len() {
            store.upgrade()?;
        }
        Ok(store)
    }

    /// Applies the migrations that are missing, in one transaction.
    fn upgrade(&self) -> Result<()> {
        self.begin()?;
        let upgraded = schema::migrate(&self.conn, &self.path, MIGRATIONS).and_then(|former| {
            if former < upgrade::BLOCKS {
                upgrade::move_rows(self)?;
            }
            self.commit()
        });
        if upgraded.is_err() {
            self.roll_back();
        }
        upgraded
    }

    /// Uses the machine so from now on.
    pub(crate) fn use_options(&self, options: &EngineOptions) -> Result<()> {
        let fail = |e| self.failed("set the options", e);
        let pragma = |name, value: i64| self.conn.pragma_update(None, name, value);
        if let Some(memory) = options.memory {
            pragma("cache_size", -((memory >> 10) as i64)).map_err(fail)?;
        }
        // 1 is NORMAL: only checkpoints wait for the disk. 2 is FULL.
        pragma("synchronous", 1 + i64::from(options.synced)).map_err(fail)
    }

    /// How the database journals: `wal`, or `delete` on file systems of other machines.
    pub fn journal_mode(&self) -> Result<String> {
        let mode = self
            .conn
            .query_row("PRAGMA journal_mode", [], |row| row.get(0));
        mode.map_err(|e| self.failed("ask for the journal mode", e))
    }

    fn graph(&self) -> GraphReader<'_, SqliteStore> {
        GraphReader::new(self)
    }

    fn failed(&self, doing: &'static str, error: rusqlite::Error) -> Error {
        Error::database(doing, &self.path, error)
    }
}

impl GraphStore for SqliteStore {
    fn append(
        &mut self,
        header: &RunHeader,
        end: &RunEnd,
        log_bytes: u64,
        body: &mut Body<'_>,
    ) -> Result<RunKey> {
        self.cache.get_mut().forget_directories();
        self.cache.get_mut().forget_records();
        block_tables::append(&*self, header, end, log_bytes, body)
    }

    fn remove(&mut self, id: &str) -> Result<bool> {
        *self.cache.get_mut() = Cache::default();
        self.remove_run(id)
    }

    fn set_label(&mut self, id: &str, label: Label, text: Option<&str>) -> Result<()> {
        let update = match label {
            Label::Name => "UPDATE runs SET name = ?2 WHERE id = ?1",
            Label::Note => "UPDATE runs SET note = ?2 WHERE id = ?1",
        };
        self.cache.get_mut().forget_records();
        self.update_run(id, update, text)
    }

    fn runs(&self) -> Result<Vec<RunRecord>> {
        let mut runs = self.run_records("", [])?;
        crate::newest_first(&mut runs);
        Ok(runs)
    }

    fn runs_in_order(&self) -> Result<Vec<RunKey>> {
        self.order_of_runs()
    }

    /// A transaction. Without it SQLite locks the file, and looks for its log, for each row.
    fn reading(&self) -> Result<ReadGuard<'_>> {
        if !self.conn.is_autocommit() {
            return Ok(ReadGuard::default());
        }
        self.conn
            .execute_batch("BEGIN")
            .map_err(|e| self.failed("begin to read", e))?;
        // Nothing was written. If this fails, closing the connection ends the transaction.
        let guard = ReadGuard::new(|| drop(self.conn.execute_batch("COMMIT")));
        self.graph().renew_cache()?;
        Ok(guard)
    }

    fn run_ids(&self) -> Result<HashSet<String>> {
        self.all_run_ids()
    }

    fn run(&self, id: &str) -> Result<Option<RunRecord>> {
        match self.number_of(id)? {
            Some(number) => self.run_record(number),
            None => Ok(None),
        }
    }

    fn run_by_key(&self, key: RunKey) -> Result<Option<RunRecord>> {
        self.run_record(key.0)
    }

    fn run_id(&self, key: RunKey) -> Result<Option<String>> {
        self.one("SELECT id FROM runs WHERE number = ?1", [key.0], |row| {
            row.get(0)
        })
    }

    fn runs_named(&self, name: &str) -> Result<Vec<RunRecord>> {
        let mut runs = self.run_records("WHERE name = ?1", [name])?;
        crate::newest_first(&mut runs);
        Ok(runs)
    }

    block_tables::graph_methods!();
}

impl ContentFacts for SqliteStore {
    fn learn(
        &mut self,
        learned: &[JournalRecord],
        mark: JournalPosition,
        anew: bool,
    ) -> Result<()> {
        self.take_in(learned, mark, anew)
    }

    fn learned(&self) -> Result<JournalPosition> {
        self.mark()
    }

    fn fact(&self, ident: &Ident) -> Result<Option<Fact>> {
        self.fact_of(ident)
    }

    fn facts_of(&self, idents: &[Ident]) -> Result<Vec<Option<Fact>>> {
        self.facts_of_all(idents)
    }

    fn facts(&self) -> Result<Vec<Fact>> {
        self.all_facts()
    }

    fn directory_snapshot(&self, run: &str) -> Result<Option<DirectorySnapshot>> {
        self.directory_snapshot_of(run)
    }

    fn with_content(&self, digest: &Digest) -> Result<Vec<Ident>> {
        self.versions_with(digest)
    }

    fn with_contents(&self, digests: &[Digest]) -> Result<Vec<Vec<Ident>>> {
        self.versions_with_all(digests)
    }

    fn digests_beginning(&self, digits: &str) -> Result<Vec<Digest>> {
        self.digests_with_prefix(digits)
    }

    fn runs_without_contents(&self) -> Result<Vec<RunRecord>> {
        // Few runs wait for their contents. The headers of the others are not read.
        let mut runs = self.run_records(
            "WHERE CASE WHEN EXISTS (SELECT 1 FROM directory_snapshots WHERE run = runs.id) THEN 0 \
             ELSE json_extract(header, '$.modes.contents') IN (?1, ?2) END",
            [ContentsMode::Lazy.word(), ContentsMode::All.word()],
        )?;
        crate::newest_first(&mut runs);
        runs.reverse();
        Ok(runs)
    }
}

impl RunAnnotations for SqliteStore {
    fn annotate(&mut self, records: &[AnnotationRecord], read: u64, anew: bool) -> Result<()> {
        self.add_annotations(records, read, anew)
    }

    fn annotations_read(&self) -> Result<u64> {
        self.journal_position_of_annotations()
    }

    fn annotations(&self, run: &str) -> Result<Vec<Annotation>> {
        self.annotations_of_run(run)
    }

    fn annotations_of(&self, kind: AnnotationKind, key: Option<&str>) -> Result<Vec<Annotation>> {
        self.annotations_of_kind(kind, key)
    }
}

impl Maintenance for SqliteStore {
    fn stats(&self) -> Result<StoreStats> {
        self.totals()
    }

    fn forget_unreferred(&mut self) -> Result<()> {
        *self.cache.get_mut() = Cache::default();
        self.forget_shared()
    }

    fn compact(&mut self) -> Result<()> {
        self.give_room_back()
    }
}
