//! The tables of blocks as SQLite tables.

use std::cell::RefCell;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use rusqlite::{Params, params};

use super::SqliteStore;
use crate::block_tables::{BlockTable, BlockTables, Cache, PairTable, column};
use crate::{Counts, Error, Result, RunKey};

/// The statements of a table of blocks.
struct BlockStatements {
    row: &'static str,
    before: &'static str,
    rows: &'static str,
    add: &'static str,
    /// The operation that a failed `add` names.
    adding: &'static str,
    replace: &'static str,
    remove: &'static str,
}

macro_rules! block_statements {
    ($table:literal, $adding:literal) => {
        const {
            &BlockStatements {
                row: concat!("SELECT block FROM ", $table, " WHERE id = ?1"),
                before: concat!(
                    "SELECT id, block FROM ",
                    $table,
                    " WHERE id <= ?1 ORDER BY id DESC LIMIT 1"
                ),
                rows: concat!(
                    "SELECT id, block FROM ",
                    $table,
                    " WHERE id BETWEEN ?1 AND ?2 ORDER BY id"
                ),
                add: concat!("INSERT INTO ", $table, " (id, block) VALUES (?, ?)"),
                adding: $adding,
                replace: concat!("UPDATE ", $table, " SET block = ?2 WHERE id = ?1"),
                remove: concat!("DELETE FROM ", $table, " WHERE id = ?1"),
            }
        }
    };
}

fn of_blocks(table: BlockTable) -> &'static BlockStatements {
    match table {
        BlockTable::Texts => block_statements!("texts", "add texts"),
        BlockTable::Directories => block_statements!("directories", "add directories"),
        BlockTable::Versions => block_statements!("versions", "add versions"),
        BlockTable::Members => block_statements!("members", "add entities"),
        BlockTable::Activities => block_statements!("activities", "add processes"),
        BlockTable::Segments => block_statements!("segments", "add lists of processes"),
        BlockTable::EdgeLists => block_statements!("edge_lists", "add edges"),
        BlockTable::Extended => block_statements!("extended", "add extended records"),
    }
}

/// The statements of a table of pairs: select, insert, delete, and the beginning of one that
/// selects the pairs of many numbers.
fn of_pairs(table: PairTable) -> [&'static str; 4] {
    match table {
        PairTable::Inodes => [
            "SELECT dir FROM inodes WHERE bucket = ?1 ORDER BY dir",
            "INSERT OR IGNORE INTO inodes (bucket, dir) VALUES (?, ?)",
            "DELETE FROM inodes WHERE bucket = ?1 AND dir = ?2",
            "SELECT bucket, dir FROM inodes WHERE bucket",
        ],
        PairTable::Touched => [
            "SELECT members FROM touched WHERE dir = ?1 ORDER BY members",
            "INSERT INTO touched (dir, members) VALUES (?, ?)",
            "DELETE FROM touched WHERE dir = ?1 AND members = ?2",
            "SELECT dir, members FROM touched WHERE dir",
        ],
        PairTable::Made => [
            "SELECT entity FROM made WHERE version = ?1 ORDER BY entity",
            "INSERT INTO made (version, entity) VALUES (?, ?)",
            "DELETE FROM made WHERE version = ?1 AND entity = ?2",
            "SELECT version, entity FROM made WHERE version",
        ],
        PairTable::TextKeys => [
            "SELECT text FROM text_keys WHERE key = ?1 ORDER BY text",
            "INSERT INTO text_keys (key, text) VALUES (?, ?)",
            "DELETE FROM text_keys WHERE key = ?1 AND text = ?2",
            "SELECT key, text FROM text_keys WHERE key",
        ],
    }
}

/// All blocks of entities that touch a directory, those of the latest run first.
const MEMBERS_IN: &str = "SELECT members.id, block FROM touched JOIN members ON members.id = touched.members \
                          WHERE dir = ?1 ORDER BY touched.members DESC";

impl SqliteStore {
    /// Looks at the key and the block of each row.
    fn blocks(
        &self,
        select: &str,
        params: impl Params,
        mut look: impl FnMut(i64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let fail = |e| self.failed("read", e);
        let mut select = self.conn.prepare_cached(select).map_err(fail)?;
        let mut rows = select.query(params).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let key = row.get(0).map_err(fail)?;
            let block = row.get_ref(1).and_then(|block| Ok(block.as_blob()?));
            look(key, block.map_err(fail)?)?;
        }
        Ok(())
    }

    /// Executes a statement that changes rows. An error names the operation `doing`.
    pub(super) fn change(
        &self,
        doing: &'static str,
        statement: &str,
        row: impl Params,
    ) -> Result<()> {
        let changed = self
            .conn
            .prepare_cached(statement)
            .and_then(|mut statement| statement.execute(row));
        changed.map(drop).map_err(|e| self.failed(doing, e))
    }
}

impl BlockTables for SqliteStore {
    fn cache(&self) -> &RefCell<Cache> {
        &self.cache
    }

    fn data_version(&self) -> Result<i64> {
        let found = self.one("PRAGMA data_version", [], |row| row.get(0))?;
        Ok(found.unwrap_or_default())
    }

    fn row<R>(
        &self,
        table: BlockTable,
        key: i64,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.one(of_blocks(table).row, [key], |row| {
            Ok(look(row.get_ref(0)?.as_blob()?))
        })
    }

    fn row_before(&self, table: BlockTable, key: i64) -> Result<Option<(i64, Vec<u8>)>> {
        self.one(of_blocks(table).before, [key], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    fn rows(
        &self,
        table: BlockTable,
        keys: (i64, i64),
        look: impl FnMut(i64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.blocks(of_blocks(table).rows, keys, look)
    }

    fn add_row(&self, table: BlockTable, key: i64, row: &[u8]) -> Result<()> {
        let statements = of_blocks(table);
        self.change(statements.adding, statements.add, params![key, row])
    }

    fn replace_row(&self, table: BlockTable, key: i64, row: &[u8]) -> Result<()> {
        let replace = of_blocks(table).replace;
        self.change("replace a block", replace, params![key, row])
    }

    fn remove_row(&self, table: BlockTable, key: i64) -> Result<()> {
        self.change("remove a block", of_blocks(table).remove, [key])
    }

    fn partners(&self, table: PairTable, first: i64) -> Result<Vec<i64>> {
        let [select, ..] = of_pairs(table);
        self.all(select, [first], |row| row.get(0))
    }

    fn partners_of(&self, table: PairTable, firsts: &[i64]) -> Result<Vec<(i64, i64)>> {
        let [.., select] = of_pairs(table);
        let pairs = self.of_keys(select, firsts, |row| Ok((row.get(0)?, row.get(1)?)));
        let mut pairs: Vec<(i64, i64)> = pairs?;
        pairs.sort_unstable();
        Ok(pairs)
    }

    fn add_pairs(&self, table: PairTable, pairs: &[(i64, i64)]) -> Result<()> {
        let fail = |e| self.failed("index entities", e);
        let [_, insert, ..] = of_pairs(table);
        let mut insert = self.conn.prepare_cached(insert).map_err(fail)?;
        for pair in pairs {
            insert.execute(*pair).map_err(fail)?;
        }
        Ok(())
    }

    fn remove_pair(&self, table: PairTable, pair: (i64, i64)) -> Result<()> {
        let [_, _, delete, _] = of_pairs(table);
        self.change("remove a pair", delete, pair)
    }

    fn members_in(&self, dir: u32, look: impl FnMut(i64, &[u8]) -> Result<()>) -> Result<()> {
        self.blocks(MEMBERS_IN, [dir], look)
    }

    fn directory_id(&self, path: &[u8]) -> Result<Option<u32>> {
        let select = "SELECT dir FROM paths WHERE path = ?1";
        self.one(select, [path], |row| row.get(0))
    }

    fn add_directory(&self, path: &[u8], number: u32) -> Result<()> {
        let insert = "INSERT INTO paths (path, dir) VALUES (?, ?)";
        self.change("add a directory", insert, params![path, number])
    }

    fn directories(&self, own: &[u8], prefix: &[u8]) -> Result<Vec<(u32, Bytes)>> {
        self.all(
            "SELECT dir, path FROM paths WHERE path = ?1 OR path >= ?2 AND substr(path, 1, length(?2)) = ?2",
            [own, prefix],
            |row| Ok((row.get(0)?, row.get_ref(1)?.as_blob()?.into())),
        )
    }

    fn touched_directories(&self, from: &[u8], end: &[u8]) -> Result<Vec<Bytes>> {
        self.all(
            "SELECT path FROM paths WHERE path >= ?1 AND path < ?2 \
             AND EXISTS (SELECT 1 FROM touched WHERE touched.dir = paths.dir) ORDER BY path",
            [from, end],
            |row| Ok(row.get_ref(0)?.as_blob()?.into()),
        )
    }

    fn run_start(&self, run: RunKey) -> Result<Option<Time>> {
        let select = "SELECT started FROM runs WHERE number = ?1";
        self.one(select, [run.0], |row| row.get(0))
    }

    fn run_numbers(&self) -> Result<Vec<u32>> {
        self.all("SELECT number FROM runs", [], |row| row.get(0))
    }

    fn has_run(&self, id: &str) -> Result<bool> {
        let found = self.one("SELECT 1 FROM runs WHERE id = ?1", [id], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn add_run(
        &self,
        header: &RunHeader,
        environment: u64,
        end: &RunEnd,
        log_bytes: u64,
    ) -> Result<u32> {
        let values = params![
            header.id,
            header.name,
            header.started,
            json(header)?,
            column(environment),
            json(end)?,
            log_bytes as i64
        ];
        let insert = "INSERT INTO runs (id, name, started, header, environment, end, log_bytes) VALUES (?, ?, ?, ?, ?, ?, ?)";
        self.change("add a run", insert, values)?;
        u32::try_from(self.conn.last_insert_rowid()).map_err(|_| Error::TooMany("runs"))
    }

    fn complete_run(&self, number: u32, unknown: &[String], counts: &Counts) -> Result<()> {
        let values = params![
            number,
            json(unknown)?,
            counts.activities as i64,
            counts.entities as i64,
            counts.edges as i64,
            counts.files_read as i64,
            counts.files_written as i64,
        ];
        let update = "UPDATE runs SET unknown = ?2, activities = ?3, entities = ?4, edges = ?5, files_read = ?6, files_written = ?7 \
                      WHERE number = ?1";
        self.change("complete a run", update, values)
    }

    fn begin(&self) -> Result<()> {
        // The transaction sees what other processes have added.
        self.cache.borrow_mut().forget_facts();
        let begun = self.conn.execute_batch("BEGIN IMMEDIATE");
        begun.map_err(|e| self.failed("begin a transaction", e))
    }

    fn commit(&self) -> Result<()> {
        let committed = self.conn.execute_batch("COMMIT");
        committed.map_err(|e| self.failed("commit a run", e))
    }

    fn roll_back(&self) {
        // A failed roll-back leaves nothing to do: closing the connection rolls back, too.
        let _ = self.conn.execute_batch("ROLLBACK");
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(Error::source_failed)
}
