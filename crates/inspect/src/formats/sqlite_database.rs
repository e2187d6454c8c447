//! Databases of SQLite: tables with columns and numbers of rows, views, indexes, triggers, and
//! changed rows.
//!
//! Absent in facts and changes: rows that are only in the write-ahead log. `sqlite_history` reads
//! them.

use backstory_inspection::file_parts::{PartAnswer, PartName};
use backstory_inspection::row_changes::{DatabaseFiles, RowChanges, RowsWanted};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::sqlite_content::{JOURNAL, open, tables};
use super::sqlite_history;
use super::sqlite_rows::{TableReader, compare};
use crate::changes::{self, FileChanges};
use crate::parts::database_value;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct SqliteDatabase;

/// The most changed cells that a sentence shows, in all tables.
const SHOWN: usize = 5;

impl Inspector for SqliteDatabase {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        database_value::place(content.bytes, name)
    }

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
        let before = without_rows(&databases.0, old.bytes, &listed.0)?;
        let after = without_rows(&databases.1, new.bytes, &listed.1)?;
        found.append(changes::between(&before, &after));
        Ok(found)
    }

    fn row_changes(
        &self,
        wanted: &RowsWanted,
        older: DatabaseFiles<'_>,
        newer: DatabaseFiles<'_>,
    ) -> Read<RowChanges> {
        let mut found = sqlite_history::row_changes(wanted, older, newer)?;
        if wanted.as_one
            && let Some((before, after)) = sqlite_history::whole_contents(older, newer)
            && before != after
        {
            let facts = |bytes: &[u8]| {
                // An empty file is a database that has nothing yet.
                if bytes.is_empty() {
                    return Ok(FileFacts::default());
                }
                let database = open(bytes)?;
                without_rows(&database, bytes, &tables(&database)?)
            };
            found.schema = changes::between(&facts(&before)?, &facts(&after)?).sentences();
        }
        Ok(found)
    }
}

/// The facts of a database, without the numbers of rows.
fn without_rows(database: &Connection, content: &[u8], tables: &[TableReader]) -> Read<FileFacts> {
    let mut facts = schema(database, content)?;
    let tables = tables
        .iter()
        .map(|table| (table.name.clone(), json!({"columns": table.columns()})));
    facts.parts(("table", "tables"), tables.collect::<Vec<_>>());
    Ok(facts)
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
