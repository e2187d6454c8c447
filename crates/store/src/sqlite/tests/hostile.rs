//! Databases made to take over, or to wear down, the process that opens them: one test for each
//! closed path.

use super::*;
use crate::codec::members::VersionRef;
use crate::codec::versions::{Builder, VersionName};
use rusqlite::config::DbConfig;

/// A directory that no honest run has.
const DIR: u32 = 7_000;

/// A store that backstory made, and `spoil` then changed as its owner could.
fn spoilt(spoil: &str) -> (tempfile::TempDir, Home) {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    SqliteStore::open(&home)
        .unwrap()
        .append(&header("r"), &RunEnd::default(), 0, &mut turns)
        .unwrap();
    let conn = Connection::open(home.database_path()).unwrap();
    conn.execute_batch(spoil).unwrap();
    (tmp, home)
}

fn is_refused(what: &str, spoil: &str) {
    let (_tmp, home) = spoilt(spoil);
    let opened = SqliteStore::open(&home).map(|_| ());
    assert!(
        matches!(opened, Err(Error::NotOurs(_))),
        "{what}: {opened:?}"
    );
}

#[test]
fn a_view_in_the_place_of_a_table_is_refused() {
    is_refused(
        "a view that never ends",
        "DROP TABLE texts; CREATE VIEW texts AS \
         WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, zeroblob(9) AS bytes FROM n",
    );
}

#[test]
fn a_trigger_on_a_table_is_refused() {
    is_refused(
        "a trigger",
        "CREATE TRIGGER spoil AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
    );
}

#[test]
fn a_virtual_table_is_refused() {
    is_refused(
        "a virtual table",
        "DROP TABLE texts; CREATE VIRTUAL TABLE texts USING rtree(id, low, high)",
    );
}

#[test]
fn the_schema_of_a_database_is_not_trusted_and_cannot_be_written() {
    let tmp = tempfile::tempdir().unwrap();
    let store = store(&tmp);
    let is = |what| store.conn.db_config(what).unwrap();
    assert!(!is(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA));
    assert!(is(DbConfig::SQLITE_DBCONFIG_DEFENSIVE));
}

/// A block of one version, called as the one at `earlier`, or `x`.
fn block(earlier: Option<u32>) -> Vec<u8> {
    let mut builder = Builder::default();
    let name = earlier.map_or(VersionName::Here(b"x"), VersionName::As);
    builder.push(name, EntityKind::File, None);
    builder.finish()
}

fn insert(store: &SqliteStore, index: u32, block: &[u8]) {
    let row = rusqlite::params![i64::from(DIR) << 32 | i64::from(index), block];
    store
        .conn
        .prepare_cached("INSERT INTO versions (id, block) VALUES (?, ?)")
        .unwrap()
        .execute(row)
        .unwrap();
}

fn name_at(store: &SqliteStore, index: u32) -> Result<Bytes> {
    let at = VersionRef { dir: DIR, index };
    store.graph().version(at, |version| version.name.clone())
}

#[test]
fn a_chain_of_names_as_long_as_a_directory_is_followed_without_recursion() {
    const LENGTH: u32 = 20_000;
    let long = move || {
        let tmp = tempfile::tempdir().unwrap();
        let store = store(&tmp);
        store.conn.execute_batch("BEGIN").unwrap();
        for index in 0..LENGTH {
            insert(&store, index, &block(index.checked_sub(1)));
        }
        store.conn.execute_batch("COMMIT").unwrap();
        assert_eq!(&*name_at(&store, LENGTH - 1).unwrap(), b"x");
    };
    // A stack that recursion through so many blocks would overflow.
    let asked = std::thread::Builder::new().stack_size(1 << 20).spawn(long);
    asked.unwrap().join().unwrap();
}

#[test]
fn names_that_refer_to_themselves_or_to_later_ones_are_damage() {
    let tmp = tempfile::tempdir().unwrap();
    let store = store(&tmp);
    for (index, refers_to) in [(0, 0), (1, 2), (2, 1), (3, 9)] {
        insert(&store, index, &block(Some(refers_to)));
    }
    for index in 0..4 {
        let name = name_at(&store, index);
        assert!(matches!(name, Err(Error::Damaged(_))), "{index}: {name:?}");
    }
}
