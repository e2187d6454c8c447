//! One row of a table of SQLite, found by its key.
//!
//! In: a table, and the text of a key. Out: the row in the form that the extension of SQLite gives
//! it. Invariant: two images are equal only if all values are, also where the form cuts them.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value as Json, json};

use super::sqlite_rows::{Cell, TableReader, quoted, shown};

/// The most characters of a text in an image.
const MOST_TEXT: usize = 200;

/// A row: the columns of its key as texts, and all columns.
#[derive(Debug, Clone, PartialEq)]
pub struct RowImage {
    /// The columns of the key, in the order of the table.
    pub key: Vec<(String, String)>,
    /// All columns, in the form that the extension of SQLite gives them.
    pub columns: serde_json::Map<String, Json>,
    /// That of all values. `columns` has long values cut, and blobs as their lengths.
    digest: blake3::Hash,
}

impl TableReader {
    /// The row with this key: its value, or `COLUMN=VALUE,…`. `None` if no row has it.
    pub fn row(&self, database: &Connection, key: &str) -> rusqlite::Result<Option<RowImage>> {
        let Some(bound) = self.bound(key) else {
            return Ok(None);
        };
        let all = self.columns.iter().map(|column| quoted(&column.name));
        let selected: Vec<String> = self.key.iter().cloned().chain(all).collect();
        let mut query = database.prepare(&self.row_query(&selected.join(", ")))?;
        let mut rows = query.query(rusqlite::params_from_iter(bound))?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let names = self.key_names();
        let mut digest = blake3::Hasher::new();
        let (mut keys, mut shown) = (Vec::new(), serde_json::Map::new());
        for (at, name) in names.iter().enumerate() {
            let value = Cell::from(row.get_ref(at)?);
            keys.push(((*name).to_owned(), value.text(database)?));
        }
        // The extension names a row by the columns in the order of the table.
        let place = |name: &str| self.columns.iter().position(|column| column.name == name);
        keys.sort_by_key(|(name, _)| place(name));
        for (at, column) in self.columns.iter().enumerate() {
            let value = Cell::from(row.get_ref(names.len() + at)?);
            value.add_to(&mut digest);
            shown.insert(column.name.clone(), value.json(database)?);
        }
        Ok(Some(RowImage {
            key: keys,
            columns: shown,
            digest: digest.finalize(),
        }))
    }

    /// The rowid of the row with this key, and the type of the value in a column. `None` if no row
    /// has the key, or the table has no rowids.
    pub fn rowid(
        &self,
        database: &Connection,
        key: &str,
        column: Option<&str>,
    ) -> rusqlite::Result<Option<(i64, String)>> {
        let (Some(rowid), Some(bound)) = (self.rowid_name(), self.bound(key)) else {
            return Ok(None);
        };
        let value = column.map_or("NULL".to_owned(), quoted);
        let query = self.row_query(&format!("{rowid}, typeof({value})"));
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found = database.query_row(&query, rusqlite::params_from_iter(bound), row);
        found.optional()
    }

    /// The values of a key as a query has them: each as a number and as a text. `None`: the text is
    /// of another key.
    fn bound(&self, key: &str) -> Option<Vec<Value>> {
        let mut bound = Vec::new();
        for value in self.key_values(key)? {
            let text = Value::Text(value.to_owned());
            bound.push(value.parse().map_or(text.clone(), Value::Integer));
            bound.push(value.parse().map_or(text.clone(), Value::Real));
            bound.push(text);
        }
        Some(bound)
    }

    /// Selects something of one row.
    fn row_query(&self, selected: &str) -> String {
        // A column may hold a number or its text.
        let tests = self.key.iter().enumerate().map(|(at, column)| {
            let at = at * 3;
            format!(
                "({column} = ?{} OR {column} = ?{} OR {column} = ?{})",
                at + 1,
                at + 2,
                at + 3
            )
        });
        format!(
            "SELECT {selected} FROM {} WHERE {} LIMIT 1",
            quoted(&self.name),
            tests.collect::<Vec<_>>().join(" AND ")
        )
    }

    /// The values of the key's columns. `None` if the text is of another key.
    fn key_values<'k>(&self, key: &'k str) -> Option<Vec<&'k str>> {
        let names = self.key_names();
        let of = |part: &'k str, name: &str| {
            let (column, value) = part.split_once('=')?;
            column.eq_ignore_ascii_case(name).then_some(value)
        };
        if let [name] = names[..] {
            return Some(vec![of(key, name).unwrap_or(key)]);
        }
        let parts: Vec<&str> = key.split(',').collect();
        let value = |name: &&str| parts.iter().find_map(|part| of(part, name));
        let is_whole = !names.is_empty() && parts.len() == names.len();
        is_whole
            .then(|| names.iter().map(value).collect())
            .flatten()
    }
}

impl Cell {
    /// The value as SQLite writes it.
    fn text(&self, database: &Connection) -> rusqlite::Result<String> {
        match self {
            // The digits of a number are those of SQLite.
            Cell::Real(number) => {
                database.query_row("SELECT CAST(?1 AS TEXT)", [number], |row| row.get(0))
            }
            other => Ok(shown(other)),
        }
    }

    /// Adds the whole value and its type. Two lists of values never give the same bytes.
    fn add_to(&self, digest: &mut blake3::Hasher) {
        let (kind, bytes): (u8, &[u8]) = match self {
            Cell::Null => (0, &[]),
            Cell::Integer(number) => (1, &number.to_le_bytes()),
            Cell::Real(number) => (2, &number.to_bits().to_le_bytes()),
            Cell::Text(text) => (3, text),
            Cell::Blob(bytes) => (4, bytes),
        };
        digest.update(&[kind]);
        digest.update(&(bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    }

    fn json(&self, database: &Connection) -> rusqlite::Result<Json> {
        Ok(match self {
            Cell::Null => Json::Null,
            Cell::Blob(bytes) => json!({"bytes": bytes.len()}),
            Cell::Text(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                match text.char_indices().nth(MOST_TEXT) {
                    Some((end, _)) => json!({"begins": &text[..end], "bytes": bytes.len()}),
                    None => Json::String(text.into_owned()),
                }
            }
            number => Json::String(number.text(database)?),
        })
    }
}
