//! The content of a database of SQLite, opened in memory.
//!
//! The library of SQLite reads it. Nothing that the database defines is executed: views are not
//! queried, generated columns and virtual tables are not read.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB};

use super::sqlite_rows::TableReader;
use crate::{Read, UnreadableContent};

/// Where the head says how to write and how to read: 1 with a rollback journal, 2 with a
/// write-ahead log.
pub const JOURNAL: std::ops::Range<usize> = 18..20;

/// The first bytes of each database.
pub const MAGIC: &[u8] = b"SQLite format 3\0";

/// Opens a database in memory, to read only.
pub fn open(content: &[u8]) -> Read<Connection> {
    if !content.starts_with(MAGIC) || content.len() < 100 {
        return Err(UnreadableContent("it is no database of SQLite".to_owned()));
    }
    // A database in memory cannot have a log beside it.
    let mut head = content[..100].to_vec();
    head[JOURNAL].fill(1);
    let bytes = std::io::Read::chain(&*head, &content[100..]);
    let opened = || {
        let mut database = Connection::open_in_memory()?;
        database.deserialize_read_exact(MAIN_DB, bytes, content.len(), true)?;
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        database.pragma_update(None, "temp_store", "MEMORY")?;
        // A file that the library takes for a database may still be none.
        database.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
        Ok::<_, rusqlite::Error>(database)
    };
    opened().map_err(UnreadableContent::of)
}

/// The tables whose rows can be read, by name.
pub fn tables(database: &Connection) -> Read<Vec<TableReader>> {
    let read = || {
        let mut query = database.prepare(
            "SELECT name, wr FROM pragma_table_list \
             WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
             ORDER BY name",
        )?;
        let named = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
        named
            .map(|named| {
                let (name, without_rowid): (String, bool) = named?;
                TableReader::new(database, name, without_rowid)
            })
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    read().map_err(UnreadableContent::of)
}
