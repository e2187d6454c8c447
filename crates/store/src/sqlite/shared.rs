//! Deletes texts and directories that no run refers to any more.
//!
//! Invariants:
//!
//! - A text or directory that a run refers to keeps its number.
//! - A directory's number is never given again: other processes may have decoded the old directory.
//!
//! Absent: deletion of single versions. A version's number is its position in its directory.

use std::collections::BTreeSet;

use super::SqliteStore;
use crate::Result;
use crate::block_tables::BlockTables;
use crate::block_tables::directories::forget_paths;
use crate::block_tables::texts::forget_texts;

/// Directories that no block of entities touches. The last one stays, so that its number is not
/// given again.
const FORGOTTEN: &str = "CREATE TEMP TABLE forgotten AS
    SELECT dir AS id FROM paths WHERE dir NOT IN (SELECT dir FROM touched) AND dir < (SELECT max(dir) FROM paths)";
const FORGET: &str = "
    DELETE FROM versions WHERE id >> 32 IN (SELECT id FROM temp.forgotten);
    DELETE FROM inodes WHERE dir IN (SELECT id FROM temp.forgotten);
    DELETE FROM paths WHERE dir IN (SELECT id FROM temp.forgotten);
    DROP TABLE temp.forgotten";

impl SqliteStore {
    /// Forgets, in one transaction, texts and directories that no run refers to.
    pub(super) fn forget_shared(&self) -> Result<()> {
        self.begin()?;
        let forgotten = self.forget_in_transaction().and_then(|()| self.commit());
        if forgotten.is_err() {
            self.roll_back();
        }
        forgotten
    }

    fn forget_in_transaction(&self) -> Result<()> {
        let runs = self.all("SELECT environment FROM runs", [], |row| {
            row.get::<_, i64>(0)
        })?;
        forget_texts(self, runs.into_iter().map(|id| id as u64).collect())?;
        let execute = |statements| {
            let done = self.conn.execute_batch(statements);
            done.map_err(|e| self.failed("forget what no run refers to", e))
        };
        execute(FORGOTTEN)?;
        let forgotten = self.all("SELECT id FROM temp.forgotten", [], |row| row.get(0))?;
        let forgotten: BTreeSet<u32> = forgotten.into_iter().collect();
        execute(FORGET)?;
        forget_paths(self, &forgotten)
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
