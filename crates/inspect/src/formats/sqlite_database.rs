//! Databases of SQLite: tables with columns and numbers of rows, views, indexes, triggers, and
//! changed rows.
//!
//! The library of SQLite reads the content in memory. Nothing that the database defines is
//! executed: views are not queried, generated columns and virtual tables are not read.
//!
//! Absent: changes that are only in the write-ahead log (`sqlite_log`).

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB};
use serde_json::{Value, json};

use super::sqlite_rows::{TableReader, compare};
use crate::changes::{self, FileChanges};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct SqliteDatabase;

/// The first bytes of each database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Where the head says how to write and how to read: 1 with a rollback journal, 2 with a
/// write-ahead log.
const JOURNAL: std::ops::Range<usize> = 18..20;

/// The most changed cells that a sentence shows, in all tables.
const SHOWN: usize = 5;

impl Inspector for SqliteDatabase {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let database = open(content.bytes)?;
        let mut facts = schema(&database, content.bytes)?;
        let tables = tables(&database)?.into_iter().map(|table| {
            let mut told = json!({"columns": table.columns()});
            match table.count(&database) {
                Ok(rows) => told["rows"] = json!(rows),
                Err(error) => told["unread"] = json!(error.to_string()),
            }
            (table.name, told)
        });
        facts.parts(("table", "tables"), tables.collect::<Vec<_>>());
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        if old.bytes == new.bytes {
            return Ok(FileChanges::default());
        }
        let databases = (open(old.bytes)?, open(new.bytes)?);
        let listed = (tables(&databases.0)?, tables(&databases.1)?);
        let mut found = FileChanges::default();
        let mut told = serde_json::Map::new();
        let mut shown = 0;
        for table in &listed.1 {
            let Some(before) = listed.0.iter().find(|other| other.name == table.name) else {
                continue;
            };
            let name = &table.name;
            // A table may need a collation that its program defines, or be damaged alone.
            let difference = match compare((&databases.0, before), (&databases.1, table)) {
                Ok(difference) => difference,
                Err(error) => {
                    found.say(format!(
                        "`{name}`: its rows cannot be compared (SQLite: {error})"
                    ));
                    continue;
                }
            };
            if let Some(summary) = difference.summary() {
                found.say(format!("`{name}`: {summary}"));
                told.insert(name.clone(), difference.json());
            }
            for cell in difference.cells.iter().take(SHOWN - shown) {
                shown += 1;
                found.say(format!(
                    "`{name}.{}` of {} {}: {} → {}",
                    cell.column, difference.key, cell.row, cell.from, cell.to
                ));
            }
        }
        found.detail("rows_of_tables", &Value::Object(told));
        let facts = |database, bytes, tables: &[TableReader]| {
            let mut facts = schema(database, bytes)?;
            let tables = tables
                .iter()
                .map(|table| (table.name.clone(), json!({"columns": table.columns()})));
            facts.parts(("table", "tables"), tables.collect::<Vec<_>>());
            Ok(facts)
        };
        let before = facts(&databases.0, old.bytes, &listed.0)?;
        let after = facts(&databases.1, new.bytes, &listed.1)?;
        found.append(changes::between(&before, &after));
        Ok(found)
    }
}

/// Opens a database in memory, to read only.
fn open(content: &[u8]) -> Read<Connection> {
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

/// The facts that no row belongs to.
fn schema(database: &Connection, content: &[u8]) -> Read<FileFacts> {
    let read = || {
        let mut facts = FileFacts::default();
        for name in ["page_size", "page_count", "user_version", "application_id"] {
            let number: i64 = database.pragma_query_value(None, name, |row| row.get(0))?;
            if number != 0 {
                facts.value(name, number);
            }
        }
        let encoding: String = database.pragma_query_value(None, "encoding", |row| row.get(0))?;
        facts.value("encoding", encoding);
        if content[JOURNAL] == [2, 2] {
            facts.value("journal", "write-ahead log");
        }
        for (kind, words) in [
            ("view", ("view", "views")),
            ("index", ("index", "indexes")),
            ("trigger", ("trigger", "triggers")),
        ] {
            let mut query = database.prepare(
                "SELECT name, sql FROM sqlite_schema WHERE type = ?1 AND sql IS NOT NULL \
                 ORDER BY name",
            )?;
            let parts = query.query_map([kind], |row| {
                let (name, sql): (String, String) = (row.get(0)?, row.get(1)?);
                Ok((name, Value::String(sql)))
            })?;
            let parts = parts.collect::<rusqlite::Result<Vec<_>>>()?;
            if !parts.is_empty() {
                facts.parts(words, parts);
            }
        }
        Ok::<_, rusqlite::Error>(facts)
    };
    read().map_err(UnreadableContent::of)
}

/// The tables whose rows can be read, by name.
fn tables(database: &Connection) -> Read<Vec<TableReader>> {
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
