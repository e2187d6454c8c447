//! Deletes texts and directories that no run refers to any more.
//!
//! Invariants:
//!
//! - A text or directory that a run refers to keeps its number.
//! - A directory's number is never given again: other processes may have decoded the old directory.
//!
//! Absent: deletion of single versions. A version's number is its position in its directory.

use std::collections::HashSet;

use rusqlite::{Transaction, TransactionBehavior};

use super::SqliteStore;
use crate::block_tables::column;
use crate::codec::activity;
use crate::{Error, Result};

/// Directories that no block of entities touches. The last one stays, so that its number is not
/// given again.
const FORGOTTEN: &str = "CREATE TEMP TABLE forgotten AS
    SELECT id FROM dirs WHERE id NOT IN (SELECT dir FROM touched) AND id < (SELECT max(id) FROM dirs)";
const FORGET: &str = "
    DELETE FROM versions WHERE id >> 32 IN (SELECT id FROM temp.forgotten);
    DELETE FROM inodes WHERE dir IN (SELECT id FROM temp.forgotten);
    DELETE FROM dirs WHERE id IN (SELECT id FROM temp.forgotten);
    DROP TABLE temp.forgotten";

impl SqliteStore {
    /// Forgets, in one transaction, texts and directories that no run refers to.
    pub(super) fn forget_shared(&mut self) -> Result<()> {
        let path = self.path.clone();
        let fail = |e| Error::database("forget what no run refers to", &path, e);
        let tx = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        let referred = texts_referred_to(&tx, &fail)?;
        let all: Vec<i64> = {
            let mut select = tx.prepare("SELECT id FROM texts").map_err(fail)?;
            let rows = select.query_map([], |row| row.get(0)).map_err(fail)?;
            rows.collect::<rusqlite::Result<_>>().map_err(fail)?
        };
        {
            let mut delete = tx
                .prepare("DELETE FROM texts WHERE id = ?1")
                .map_err(fail)?;
            for id in all.into_iter().filter(|id| !referred.contains(id)) {
                delete.execute([id]).map_err(fail)?;
            }
        }
        tx.execute_batch(FORGOTTEN)
            .and_then(|()| tx.execute_batch(FORGET))
            .map_err(fail)?;
        tx.commit().map_err(fail)
    }

    /// Rewrites the file without its free pages. Meanwhile that needs as much free disk as what is
    /// left.
    pub(super) fn give_room_back(&self) -> Result<()> {
        let free: i64 = self
            .conn
            .query_row("PRAGMA freelist_count", [], |row| row.get(0))
            .map_err(|e| self.failed("ask for its free pages", e))?;
        if free == 0 {
            return Ok(());
        }
        // A process that reads meanwhile keeps the log long. The next one that closes the database
        // cuts it.
        self.conn
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(|e| self.failed("give free room back", e))
    }
}

/// The numbers of the texts that runs and processes name.
fn texts_referred_to(
    tx: &Transaction<'_>,
    fail: &impl Fn(rusqlite::Error) -> Error,
) -> Result<HashSet<i64>> {
    let mut found = HashSet::new();
    let mut select = tx.prepare("SELECT environment FROM runs").map_err(fail)?;
    let mut rows = select.query([]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        found.insert(row.get(0).map_err(fail)?);
    }
    let mut select = tx
        .prepare("SELECT id, record FROM activities")
        .map_err(fail)?;
    let mut rows = select.query([]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        let id: i64 = row.get(0).map_err(fail)?;
        let record = row
            .get_ref(1)
            .and_then(|v| Ok(v.as_blob()?))
            .map_err(fail)?;
        // The lower half is the process's number within its run, to which its parent's is relative.
        found.extend(activity::decode(record, id as u32)?.texts().map(column));
    }
    Ok(found)
}
