//! Finds the things that a source of records named: tables and rows of databases.
//!
//! In: a name, in full or in part. Out: the versions of the one thing that it means. A name is
//! `SCHEME://HOST:PORT/DATABASE/SCHEMA.TABLE`, and for a row then `?COLUMN=VALUE&…`. A database
//! without schemas has the table alone. In a part of a name, `%` and two digits stand for a byte.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::{Bytes, Pid, UNNUMBERED};
use backstory_graph::model::EntityKind;
use backstory_store::{EntityKey, RunKey, Store};

use crate::{Error, Result};

/// The databases whose things sources name.
const SCHEMES: [Scheme; 3] = [
    Scheme {
        begin: "postgres://",
        has_schemas: true,
        is_server: true,
    },
    Scheme {
        begin: "mariadb://",
        has_schemas: false,
        is_server: true,
    },
    // The program that uses the database names its tables, by the extension of SQLite.
    Scheme {
        begin: "sqlite://",
        has_schemas: false,
        is_server: false,
    },
];

/// How the names of a database's things are made.
struct Scheme {
    /// They begin so.
    begin: &'static str,
    /// A table is in a schema of its database.
    has_schemas: bool,
    /// A server has it, and clients connect to it.
    is_server: bool,
}

/// True for the full name of a table or a row of a database.
pub fn is_of_database(name: &[u8]) -> bool {
    let begins = |scheme: &Scheme| name.starts_with(scheme.begin.as_bytes());
    SCHEMES.iter().any(begins)
}

/// True for the full name of a table or a row of a watched server. A database inside a program has
/// no server.
pub fn is_of_server(name: &[u8]) -> bool {
    let begins = |scheme: &&Scheme| name.starts_with(scheme.begin.as_bytes());
    SCHEMES
        .iter()
        .any(|scheme| scheme.is_server && begins(&scheme))
}

/// True for the number of an activity in a run that watched a server, if it is no process: a
/// transaction, or a session.
///
/// # Errors
///
/// The store fails.
pub fn is_transaction(store: &dyn Store, run: RunKey, number: Pid) -> Result<bool> {
    if number < UNNUMBERED {
        return Ok(false);
    }
    let record = store.run_by_key(run)?;
    let source = record.and_then(|record| record.header.source);
    let is_own = |scheme: &Scheme| {
        let name = scheme.begin.strip_suffix("://");
        scheme.is_server && name == source.as_deref()
    };
    Ok(SCHEMES.iter().any(is_own))
}

/// `SCHEMA.TABLE` of the full name of a table of a server.
pub fn qualified_table(name: &[u8]) -> Option<String> {
    let name = String::from_utf8_lossy(name);
    let is_own = |scheme: &&Scheme| scheme.is_server && name.starts_with(scheme.begin);
    let scheme = SCHEMES.iter().find(is_own)?;
    let (place, table) = name.rsplit_once('/')?;
    let (schema, table) = match scheme.has_schemas {
        true => table.split_once('.')?,
        false => (place.rsplit('/').next()?, table),
    };
    Some(format!("{}.{}", decoded(schema), decoded(table)))
}

/// The versions of a table, or of one of its rows: those of
/// [`table_versions`](crate::table_versions), without a look for gaps.
///
/// # Errors
///
/// [`Error::NoTable`] and [`Error::ManyTables`].
pub(crate) fn known_versions(
    store: &dyn Store,
    table: &str,
    key: Option<&str>,
    run: Option<RunKey>,
) -> Result<Vec<EntityKey>> {
    let as_written = |full: &str| is_table(full, table);
    let (mut by_name, has_table) = by_full_name(store, &as_written, key, run)?;
    // A table that has the name as it is written is meant, whether it has this row or not.
    if by_name.is_empty() && !has_table {
        let unquoted = |full: &str| is_unquoted_table(full, table);
        (by_name, _) = by_full_name(store, &unquoted, key, run)?;
    }
    let asked = || match key {
        Some(key) => format!("row {key} of table {table}"),
        None => format!("table {table}"),
    };
    if by_name.len() > 1 {
        let names = by_name
            .keys()
            .map(|name| String::from_utf8_lossy(name).into_owned());
        let names: Vec<String> = names.take(5).collect();
        return Err(Error::ManyTables(asked(), names.join(", ")));
    }
    let Some(mut versions) = by_name.into_values().next() else {
        return Err(Error::NoTable(asked()));
    };
    versions.sort_unstable();
    Ok(versions.into_iter().rev().map(|(.., key)| key).collect())
}

/// Versions by the full name of their table or row, with their run and number.
type VersionsByName = BTreeMap<Bytes, Vec<(RunKey, u32, EntityKey)>>;

/// The versions of the tables whose full names are meant, or of their rows with this key. And
/// whether any run has such a table.
fn by_full_name(
    store: &dyn Store,
    is_meant: &dyn Fn(&str) -> bool,
    key: Option<&str>,
    run: Option<RunKey>,
) -> Result<(VersionsByName, bool)> {
    let has_table = Cell::new(false);
    let wanted = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        let (of, row) = match name.split_once('?') {
            Some((of, row)) => (of, Some(row)),
            None => (&*name, None),
        };
        let is_own = is_meant(of);
        has_table.set(has_table.get() || is_own);
        is_own && is_row(row, key)
    };
    let mut by_name = VersionsByName::new();
    for scheme in &SCHEMES {
        // Before the first slash, which the store takes for the end of a directory.
        let directory = scheme.begin.trim_end_matches('/').as_bytes();
        for found in store.below(directory, &wanted)? {
            let entity = store.entity(found)?;
            if entity.kind == EntityKind::Resource && run.is_none_or(|run| found.run() == run) {
                let versions = by_name.entry(entity.path).or_default();
                versions.push((found.run(), entity.version, found));
            }
        }
    }
    Ok((by_name, has_table.get()))
}

/// The full names of recorded tables, at most `most` of them, in order.
pub(crate) fn known_tables(
    store: &dyn Store,
    run: Option<RunKey>,
    most: usize,
) -> Result<Vec<String>> {
    let is_table = |name: &[u8]| !name.contains(&b'?');
    let mut names = BTreeSet::new();
    for scheme in &SCHEMES {
        let directory = scheme.begin.trim_end_matches('/').as_bytes();
        for found in store.below(directory, &is_table)? {
            let entity = store.entity(found)?;
            if entity.kind == EntityKind::Resource && run.is_none_or(|run| found.run() == run) {
                names.insert(String::from_utf8_lossy(&entity.path).into_owned());
            }
        }
    }
    Ok(names.into_iter().take(most).collect())
}

/// A table of a database of SQLite, as a question means it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteTable {
    /// The name that the extension of SQLite gives the database, with a slash at its end.
    database: String,
    /// The table's name.
    pub table: String,
}

impl SqliteTable {
    /// The table of the database at a path that a question can mean. `None` if the question names
    /// another database.
    pub fn meant(path: &[u8], wanted: &str) -> Option<SqliteTable> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let name = String::from_utf8_lossy(name);
        let database = format!("sqlite://{}/", encoded(path, b""));
        let table = match wanted.rsplit_once('/') {
            Some((place, table)) if wanted.starts_with("sqlite://") => {
                let is_own = database.strip_suffix('/') == Some(place);
                decoded(is_own.then_some(table)?)
            }
            Some((place, table)) => (place == name).then(|| table.to_owned())?,
            None => match wanted.strip_prefix(&*name) {
                Some(rest) if rest.starts_with('.') => rest[1..].to_owned(),
                _ => wanted.to_owned(),
            },
        };
        Some(SqliteTable { database, table })
    }

    /// The full name of a row.
    pub fn row(&self, table: &str, key: &[(String, String)]) -> String {
        let part = |text: &str| encoded(text.as_bytes(), b"/");
        let columns = key
            .iter()
            .map(|(column, value)| format!("{}={}", part(column), part(value)));
        format!(
            "{}{}?{}",
            self.database,
            part(table),
            columns.collect::<Vec<_>>().join("&")
        )
    }
}

/// The bytes of a name as the extension of SQLite writes them.
fn encoded(bytes: &[u8], also: &[u8]) -> String {
    let mut name = Vec::new();
    for byte in bytes {
        match byte {
            0..33 | 127 | b'%' | b'&' | b'=' | b'?' | b'#' | b',' => {
                name.extend(format!("%{byte:02x}").bytes());
            }
            byte if also.contains(byte) => name.extend(format!("%{byte:02x}").bytes()),
            byte => name.push(*byte),
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}

/// The versions of the thing with this full name, the newest first.
pub(crate) fn versions_of(
    store: &dyn Store,
    name: &[u8],
    run: Option<RunKey>,
) -> Result<Vec<EntityKey>> {
    let mut versions = Vec::new();
    for key in store.at_path(name)? {
        if run.is_none_or(|run| key.run() == run) {
            versions.push((key.run(), store.entity(key)?.version, key));
        }
    }
    versions.sort_unstable();
    Ok(versions.into_iter().rev().map(|(.., key)| key).collect())
}

/// True if a full name of a table is meant by a part of it.
fn is_table(full: &str, wanted: &str) -> bool {
    if full == wanted {
        return true;
    }
    let Some((place, name)) = full.rsplit_once('/') else {
        return false;
    };
    let parent = place.rsplit('/').next().unwrap_or_default();
    let lacks_schemas = |scheme: &&Scheme| full.starts_with(scheme.begin) && !scheme.has_schemas;
    let (schema, table) = match SCHEMES.iter().find(lacks_schemas) {
        Some(_) => (parent, name),
        None => name.split_once('.').unwrap_or(("", name)),
    };
    let (schema, table) = (decoded(schema), decoded(table));
    let (database, wanted) = match wanted.rsplit_once('/') {
        Some((database, rest)) => (Some(database), rest),
        None => (None, wanted),
    };
    let in_database = database.is_none_or(|one| parent == one);
    in_database && (table == wanted || format!("{schema}.{table}") == wanted)
}

/// True if a full name of a table is meant by a name without quotes, where the database has
/// schemas. The server reads such a name in lower case, and takes `DATABASE.SCHEMA.TABLE`, too.
fn is_unquoted_table(full: &str, wanted: &str) -> bool {
    let has_schemas = |scheme: &Scheme| full.starts_with(scheme.begin) && scheme.has_schemas;
    let Some((place, _)) = full.rsplit_once('/') else {
        return false;
    };
    if !SCHEMES.iter().any(has_schemas) {
        return false;
    }
    let database = decoded(place.rsplit('/').next().unwrap_or_default());
    let folded = wanted.to_lowercase();
    let in_database = |name: &str| {
        let rest = name.strip_prefix(&*database)?.strip_prefix(['.', '/'])?;
        Some(rest.to_lowercase())
    };
    let behind = in_database(wanted).or_else(|| in_database(&folded));
    is_table(full, &folded) || behind.is_some_and(|table| is_table(full, &table))
}

/// True if the part of a full name after `?` is the row with this key.
fn is_row(row: Option<&str>, key: Option<&str>) -> bool {
    let (Some(row), Some(key)) = (row, key) else {
        return row.is_none() && key.is_none();
    };
    let parts: Vec<(String, String)> = row
        .split('&')
        .filter_map(|part| part.split_once('='))
        .map(|(column, value)| (decoded(column), decoded(value)))
        .collect();
    if let [(_, value)] = &parts[..]
        && value == key
    {
        return true;
    }
    let written = parts
        .iter()
        .map(|(column, value)| format!("{column}={value}"));
    written.collect::<Vec<_>>().join(",") == key
}

fn decoded(part: &str) -> String {
    let bytes = backstory_eventlog::percent::decoded(part.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
