//! Runs as rows: listing, naming, removing, totals.

use std::collections::{BTreeSet, HashSet};

use backstory_eventlog::run::{RunEnd, RunHeader};
use rusqlite::{Params, Row, params};

use super::SqliteStore;
use crate::block_tables::rename_lists::RUNS;
use crate::block_tables::{BlockTable, BlockTables, PairTable, environment, range, version_key};
use crate::codec::members::Block;
use crate::{Counts, Error, Result, RunKey, RunRecord, StoreStats};

/// Tables whose keys begin with the run's number.
const BY_RUN: [&str; 5] = [
    "members",
    "activities",
    "segments",
    "edge_lists",
    "extended",
];

/// The operation that a failed removal names.
const REMOVING: &str = "remove a run";

/// Deletes the pairs of a directory, or of a list of renames, that lead to a run.
const UNTOUCH: &str = "DELETE FROM touched WHERE dir = ?1 AND members BETWEEN ?2 AND ?3";

impl SqliteStore {
    pub(super) fn all_run_ids(&self) -> Result<HashSet<String>> {
        Ok(self
            .all("SELECT id FROM runs", [], |row| row.get(0))?
            .into_iter()
            .collect())
    }

    /// Reads only what decides the order. A record takes some KB of memory, most of them for the
    /// environment.
    pub(super) fn order_of_runs(&self) -> Result<Vec<RunKey>> {
        let begins = self.all("SELECT number, header FROM runs", [], |row| {
            let text = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
            Ok((RunKey(row.get(0)?), serde_json::from_str(text)))
        })?;
        let begins = begins.into_iter().map(|(key, begin)| {
            let begin = begin.map_err(|_| Error::Damaged("run"))?;
            Ok((key, begin))
        });
        Ok(crate::order::order_of_runs(begins.collect::<Result<_>>()?))
    }

    pub(super) fn run_records(&self, which: &str, params: impl Params) -> Result<Vec<RunRecord>> {
        let select = format!(
            "SELECT number, header, end, name, note, log_bytes, unknown, activities, entities, edges, files_read, files_written, \
             environment FROM runs {which}"
        );
        let found = self.all(&select, params, |row| {
            Ok((record(row), row.get::<_, i64>(12)?))
        })?;
        let found = found.into_iter().map(|(record, environment)| {
            let mut record = record.map_err(|e| self.failed("read a run", e))??;
            let text = self.graph().text(environment as u64)?;
            record.header.environment = environment::decode(text.as_ref())?;
            Ok(record)
        });
        found.collect()
    }

    /// The run with this number. An answer asks for the run of each of its parts, so that a record
    /// that was read is kept. Between two transactions, another process may change it.
    pub(super) fn run_record(&self, number: u32) -> Result<Option<RunRecord>> {
        let is_one_state = !self.conn.is_autocommit();
        let known = self.cache.borrow().record(number);
        if let Some(record) = known.filter(|_| is_one_state) {
            return Ok(Some(record));
        }
        let record = self.run_records("WHERE number = ?1", [number])?.pop();
        if let Some(record) = record.as_ref().filter(|_| is_one_state) {
            self.cache.borrow_mut().keep_record(record);
        }
        Ok(record)
    }

    /// The number of the run with this id.
    pub(super) fn number_of(&self, id: &str) -> Result<Option<u32>> {
        let select = "SELECT number FROM runs WHERE id = ?1";
        self.one(select, [id], |row| row.get(0))
    }

    pub(super) fn update_run(&self, id: &str, update: &str, value: Option<&str>) -> Result<()> {
        let changed = self
            .conn
            .execute(update, params![id, value])
            .map_err(|e| self.failed("change a run", e))?;
        if changed == 0 {
            Err(Error::NoRun(id.to_owned()))
        } else {
            Ok(())
        }
    }

    /// Versions, directories and texts stay: other runs may share them.
    pub(super) fn remove_run(&self, id: &str) -> Result<bool> {
        self.begin()?;
        let removed = self.remove_in_transaction(id);
        let removed = removed.and_then(|found| self.commit().map(|()| found));
        if removed.is_err() {
            self.roll_back();
        }
        removed
    }

    fn remove_in_transaction(&self, id: &str) -> Result<bool> {
        let Some(number) = self.number_of(id)? else {
            return Ok(false);
        };
        let (from, to) = range(number);
        self.remove_pairs((from, to))?;
        for table in BY_RUN {
            let delete = format!("DELETE FROM {table} WHERE id BETWEEN ?1 AND ?2");
            self.change(REMOVING, &delete, [from, to])?;
        }
        self.change(REMOVING, "DELETE FROM runs WHERE number = ?1", [number])?;
        Ok(true)
    }

    /// Removes the pairs that lead to the entities of a run, which have these keys. The pairs of
    /// other runs are not looked at, because a store may have any number of them.
    fn remove_pairs(&self, (from, to): (i64, i64)) -> Result<()> {
        let mut blocks: Vec<(i64, Vec<u8>)> = Vec::new();
        self.rows(BlockTable::Members, (from, to), |first, block| {
            blocks.push((first, block.to_vec()));
            Ok(())
        })?;
        let reader = self.graph();
        let mut dirs: BTreeSet<u32> = self.directory_id(RUNS)?.into_iter().collect();
        let mut made = Vec::new();
        for (first, block) in blocks {
            let block = Block::decode(&block)?;
            dirs.extend(block.dirs());
            dirs.extend(reader.lists_of(&block)?);
            for (entity, member) in (first..).zip(&block.members) {
                let ident = reader.version(member.version, |version| version.ident)?;
                made.extend(ident.map(|ident| (version_key(&ident), entity)));
            }
        }
        for dir in dirs {
            self.change(REMOVING, UNTOUCH, params![dir, from, to])?;
        }
        // In the order of the index, which is faster.
        made.sort_unstable();
        for pair in made {
            self.remove_pair(PairTable::Made, pair)?;
        }
        Ok(())
    }

    pub(super) fn totals(&self) -> Result<StoreStats> {
        let select = "SELECT count(*), total(activities), total(entities), total(edges), total(files_read), total(files_written) FROM runs";
        let number = |row: &Row<'_>, i| Ok::<u64, rusqlite::Error>(row.get::<_, f64>(i)? as u64);
        let counted = self.conn.query_row(select, [], |row| {
            let counts = Counts {
                activities: number(row, 1)?,
                entities: number(row, 2)?,
                edges: number(row, 3)?,
                files_read: number(row, 4)?,
                files_written: number(row, 5)?,
            };
            Ok((row.get::<_, i64>(0)? as u64, counts))
        });
        let pages = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
        let bytes = self.conn.query_row(pages, [], |row| row.get::<_, i64>(0));
        match (counted, bytes) {
            (Ok((runs, counts)), Ok(bytes)) => Ok(StoreStats {
                runs,
                counts,
                bytes: bytes as u64,
            }),
            (Err(e), _) | (_, Err(e)) => Err(self.failed("count", e)),
        }
    }
}

/// The record of a row, without its environment. The outer error is SQLite's, the inner one says
/// that the record is damaged.
fn record(row: &Row<'_>) -> rusqlite::Result<Result<RunRecord>> {
    let text = |i: usize| row.get_ref(i)?.as_str().map_err(rusqlite::Error::from);
    let number = |i: usize| Ok::<u64, rusqlite::Error>(row.get::<_, i64>(i)? as u64);
    let decoded = (
        serde_json::from_str::<RunHeader>(text(1)?),
        serde_json::from_str::<RunEnd>(text(2)?),
        serde_json::from_str::<Vec<String>>(text(6)?),
    );
    let (Ok(header), Ok(end), Ok(unknown)) = decoded else {
        return Ok(Err(Error::Damaged("run")));
    };
    let counts = Counts {
        activities: number(7)?,
        entities: number(8)?,
        edges: number(9)?,
        files_read: number(10)?,
        files_written: number(11)?,
    };
    let (key, log_bytes) = (RunKey(row.get(0)?), number(5)?);
    Ok(Ok(RunRecord {
        key,
        header,
        end,
        name: row.get(3)?,
        note: row.get(4)?,
        log_bytes,
        unknown,
        counts,
    }))
}
