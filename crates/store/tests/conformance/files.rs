//! Database files that are not as they should be: a clear error, and nothing is changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use backstory_store::{EngineControl, Error, GraphStore, Home, SqliteStore};

use crate::graph::*;

fn filled(dir: &Path) -> Home {
    let home = Home::open(dir).unwrap();
    let mut store = SqliteStore::open(&home).unwrap();
    for i in 0..20 {
        let (from, to) = (format!("/in/{i}"), format!("/out/{i}"));
        copy(
            &mut store,
            &format!("run{i}"),
            i,
            (&from, ident(1, i)),
            (&to, ident(2, i)),
        );
    }
    home
}

fn sql(home: &Home, statement: &str) {
    rusqlite::Connection::open(home.database_path())
        .unwrap()
        .execute_batch(statement)
        .unwrap();
}

/// Why opening or the first questions fail.
fn failure(home: &Home) -> Error {
    let asked = SqliteStore::open(home).and_then(|store| {
        for run in store.runs()? {
            store.entities(run.key)?;
            store.activities(run.key)?;
        }
        Ok(())
    });
    asked.unwrap_err()
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let home = filled(tmp.path());
    sql(&home, "PRAGMA user_version = 99");
    let before = fs::read(home.database_path()).unwrap();
    let error = failure(&home);
    assert!(
        matches!(
            error,
            Error::NewerSchema {
                found: 99,
                known: 3,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("upgrade backstory"));
    assert!(fs::read(home.database_path()).unwrap() == before);
}

#[test]
fn a_database_from_before_the_first_release_is_reported_and_left_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let home = filled(tmp.path());
    for schema in 1..=5 {
        sql(
            &home,
            &format!("PRAGMA application_id = 1651733625; PRAGMA user_version = {schema}"),
        );
        let before = fs::read(home.database_path()).unwrap();
        let error = failure(&home);
        assert!(matches!(error, Error::PreRelease(_)), "{error}");
        assert!(error.to_string().contains("move it away"));
        assert!(fs::read(home.database_path()).unwrap() == before);
    }
}

#[test]
fn the_database_of_another_program_is_refused_and_left_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    sql(&home, "CREATE TABLE theirs (x); PRAGMA user_version = 1");
    let before = fs::read(home.database_path()).unwrap();
    assert!(matches!(failure(&home), Error::NotOurs(_)));
    assert!(fs::read(home.database_path()).unwrap() == before);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    let text = "no database at all\n".repeat(1000);
    fs::write(home.database_path(), &text).unwrap();
    let error = failure(&home);
    assert!(matches!(error, Error::NotOurs(_)), "{error}");
    assert_eq!(fs::read_to_string(home.database_path()).unwrap(), text);
    fs::remove_file(home.database_path()).unwrap();
    fs::create_dir(home.database_path()).unwrap();
    assert!(matches!(failure(&home), Error::NotOurs(_)));
}

#[test]
fn a_damaged_database_is_an_error_that_says_what_to_do() {
    let tmp = tempfile::tempdir().unwrap();
    let home = filled(tmp.path());
    let whole = fs::read(home.database_path()).unwrap();
    let mut errors = 0;
    // Wherever the damage is, there is an answer or an error, never a panic.
    for page in 0..whole.len() / 8192 {
        let mut damaged = whole.clone();
        damaged[page * 8192 + 100..(page + 1) * 8192].fill(0xa5);
        fs::write(home.database_path(), &damaged).unwrap();
        let asked = SqliteStore::open(&home).and_then(|store| {
            store
                .runs()?
                .iter()
                .try_for_each(|run| store.entities(run.key).map(drop))?;
            store.at_path(b"/out/3").map(drop)
        });
        if let Err(error) = asked {
            errors += 1;
            let text = error.to_string();
            assert!(
                text.contains("damaged")
                    || matches!(error, Error::Database { .. } | Error::NotOurs(_)),
                "{text}"
            );
        }
    }
    assert!(errors > 2);
    fs::write(home.database_path(), &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(failure(&home), Error::Corrupt { .. }));
}

#[test]
fn a_store_that_cannot_be_written_still_answers() {
    let tmp = tempfile::tempdir().unwrap();
    let home = filled(tmp.path());
    fs::set_permissions(tmp.path(), fs::Permissions::from_mode(0o500)).unwrap();
    if rustix::fs::access(tmp.path(), rustix::fs::Access::WRITE_OK).is_ok() {
        eprintln!("skipped: this user may write anywhere");
        return;
    }
    assert!(matches!(
        Home::open(tmp.path()),
        Err(Error::NotWritable { .. })
    ));
    let home = Home::open_to_read(home.dir()).unwrap();
    let mut store = SqliteStore::open(&home).unwrap();
    assert_eq!(store.runs().unwrap().len(), 20);
    let failed = store.append(&header("new", 1), &end(), 0, &mut |_| Ok(()));
    assert!(
        matches!(failed, Err(Error::NotWritable { .. })),
        "{failed:?}"
    );
    fs::set_permissions(tmp.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_local_store_journals_ahead() {
    let tmp = tempfile::tempdir().unwrap();
    let home = filled(tmp.path());
    let kind = rustix::fs::statfs(tmp.path()).unwrap().f_type as u64;
    if [0x0102_1997, 0x6573_5546, 0x6969].contains(&kind) {
        eprintln!("skipped: the temporary directory is on a file system shared between machines");
        return;
    }
    assert_eq!(
        SqliteStore::open(&home).unwrap().journal_mode().unwrap(),
        "wal"
    );
}

#[test]
fn a_rollback_journal_serves_as_well() {
    let tmp = tempfile::tempdir().unwrap();
    let home = filled(tmp.path());
    sql(&home, "PRAGMA journal_mode = DELETE");
    let mut store = SqliteStore::open(&home).unwrap();
    copy(
        &mut store,
        "more",
        1,
        ("/a", ident(1, 1)),
        ("/b", ident(2, 2)),
    );
    assert_eq!(store.runs().unwrap().len(), 21);
}

#[test]
fn a_process_that_leaves_the_log_leaves_the_checkpoint_to_the_next() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    drop(SqliteStore::open(&home).unwrap());
    let log = tmp.path().join("graph.db-wal");
    let left = || fs::metadata(&log).map_or(0, |meta| meta.len());
    let mut asking = SqliteStore::open(&home).unwrap();
    asking.leave_log().unwrap();
    copy(
        &mut asking,
        "run0",
        0,
        ("/in", ident(1, 1)),
        ("/out", ident(2, 2)),
    );
    drop(asking);
    assert!(left() > 0, "it was brought into the database");
    let other = SqliteStore::open(&home).unwrap();
    assert_eq!(other.runs().unwrap().len(), 1);
    drop(other);
    assert_eq!(left(), 0);
}
