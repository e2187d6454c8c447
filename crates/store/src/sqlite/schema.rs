//! The schema: its number, its migrations, and whose database a file is.
//!
//! SQLite's `application_id` says that a database is one of backstory, `user_version` is the number
//! of its schema. A program upgrades databases of earlier schemas, one migration after the other,
//! and refuses those of later ones.
//!
//! Invariant: a database that this module refuses is never changed.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::{Error, Result};

/// `application_id` of a database: "bsto".
const APPLICATION: i64 = 0x6273_746f;

/// `application_id` of databases from before the first release, "bsty". Their schemas had the
/// numbers 1 to 5.
const PRE_RELEASE: i64 = 0x6273_7479;

/// The migration at index N brings a database from schema N to schema N + 1. A released migration
/// is never edited.
pub const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
];

/// The number of the schema: 0 if the database is empty. `known` is the newest schema that the
/// program knows.
///
/// Errors: [`Error::NotOurs`], [`Error::PreRelease`], [`Error::NewerSchema`].
pub fn check(conn: &Connection, path: &Path, known: usize) -> Result<usize> {
    let pragma =
        |name: &str| conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    let fail = |e| Error::database("read the schema's number", path, e);
    // The owner of the file may have put expressions into its schema. They may compute, and nothing
    // else.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)
        .map_err(fail)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)
        .map_err(fail)?;
    let found = pragma("user_version").map_err(fail)?;
    let application = pragma("application_id").map_err(fail)?;
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
        .map_err(fail)?;
    match (application, found, tables) {
        (0, 0, 0) => return Ok(0),
        (APPLICATION, ..) => {}
        (PRE_RELEASE, ..) => return Err(Error::PreRelease(path.to_owned())),
        _ => return Err(Error::NotOurs(path.to_owned())),
    }
    // A view or a trigger in the place of a table could make a question run for ever.
    let foreign: i64 = conn
        .query_row(
            "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'",
            [],
            |row| row.get(0),
        )
        .map_err(fail)?;
    if foreign > 0 {
        return Err(Error::NotOurs(path.to_owned()));
    }
    match usize::try_from(found) {
        Ok(version) if version <= known => Ok(version),
        _ => Err(Error::NewerSchema {
            path: path.to_owned(),
            found,
            known: known as i64,
        }),
    }
}

/// Applies the migrations that are missing, in the open transaction. Another process may have
/// applied them meanwhile. Returns the number of the schema before.
pub fn migrate(conn: &Connection, path: &Path, migrations: &[&str]) -> Result<usize> {
    let fail = |e| Error::database("upgrade the schema", path, e);
    let version = check(conn, path, migrations.len())?;
    for migration in &migrations[version..] {
        conn.execute_batch(migration).map_err(fail)?;
    }
    conn.pragma_update(None, "application_id", APPLICATION)
        .map_err(fail)?;
    conn.pragma_update(None, "user_version", migrations.len() as i64)
        .map_err(fail)?;
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDED: &str =
        "CREATE TABLE added (x INTEGER) STRICT; INSERT INTO added SELECT number FROM runs;";

    fn of_schema_1() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, Path::new("db"), &MIGRATIONS[..1]).unwrap();
        let row = "INSERT INTO runs (id, started, header, environment, end, log_bytes) VALUES ('r', 0, '', 0, '', 0)";
        conn.execute_batch(row).unwrap();
        conn
    }

    fn tables(conn: &Connection) -> Vec<String> {
        let mut select = conn
            .prepare("SELECT name FROM sqlite_master ORDER BY name")
            .unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn an_earlier_schema_is_upgraded_and_its_rows_stay() {
        let conn = of_schema_1();
        let migrations = [MIGRATIONS[0], ADDED];
        assert_eq!(check(&conn, Path::new("db"), 2).unwrap(), 1);
        for _ in 0..2 {
            migrate(&conn, Path::new("db"), &migrations).unwrap();
            assert_eq!(check(&conn, Path::new("db"), 2).unwrap(), 2);
        }
        let count = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM runs"), 1);
        assert_eq!(count("SELECT count(*) FROM added"), 1);
    }

    #[test]
    fn a_failed_migration_changes_nothing() {
        let mut conn = of_schema_1();
        let before = tables(&conn);
        let migrations = [MIGRATIONS[0], ADDED, "CREATE TABLE runs (x);"];
        {
            let transaction = conn.transaction().unwrap();
            assert!(migrate(&transaction, Path::new("db"), &migrations).is_err());
        }
        assert_eq!(check(&conn, Path::new("db"), 3).unwrap(), 1);
        assert_eq!(tables(&conn), before);
    }
}
