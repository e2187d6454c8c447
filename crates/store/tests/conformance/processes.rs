//! More than one process: several append at once, one dies in the middle. Every engine that has
//! files.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use backstory_graph::model::*;
use backstory_store::{GraphStore, Home, Maintenance, SqliteStore, Store};

use crate::engines;
use crate::graph::*;

/// Names the store to a process that this test starts from its own executable.
const DIR: &str = "BACKSTORY_TEST_STORE";
const NAME: &str = "BACKSTORY_TEST_NAME";
const ENGINE: &str = "BACKSTORY_TEST_ENGINE";

/// The longest time, in microseconds, until a process is killed.
const LATEST: &str = "20000";

fn start(test: &str, engine: &str, dir: &Path, name: &str) -> Child {
    engines::prepare(engine, dir);
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("processes::{test}"),
            "--ignored",
            "--nocapture",
        ])
        .env(DIR, dir)
        .env(NAME, name)
        .env(ENGINE, engine)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Directory and name. Nothing, if no test has started us.
fn given() -> Option<(PathBuf, String)> {
    let dir = std::env::var_os(DIR)?;
    Some((PathBuf::from(dir), std::env::var(NAME).unwrap()))
}

/// The store of the engine that the test has named. Opening, too, is done at the same time as other
/// processes do it.
fn opened(dir: &Path) -> Box<dyn Store> {
    engines::open(&std::env::var(ENGINE).unwrap(), dir).unwrap()
}

fn append_one(store: &mut dyn Store, id: &str, i: i64) {
    let out = format!("/out/{id}");
    copy(
        store,
        id,
        i,
        ("/shared/in", ident(1, 1)),
        (&out, ident(2, i)),
    );
}

/// Fails unless every run has all that [`append_one`] gave it.
fn are_whole(store: &dyn Store) -> usize {
    let runs = store.runs().unwrap();
    for run in &runs {
        assert_eq!(store.entities(run.key).unwrap().len(), 2);
        let out = format!("/out/{}", run.header.id);
        assert_eq!(store.at_path(out.as_bytes()).unwrap().len(), 1);
    }
    assert_eq!(store.at_path(b"/shared/in").unwrap().len(), runs.len());
    runs.len()
}

#[test]
#[ignore = "started by another test"]
fn appends_many() {
    let Some((dir, name)) = given() else { return };
    let mut store = opened(&dir);
    for i in 0..25 {
        append_one(&mut *store, &format!("{name}-{i}"), i);
    }
}

#[test]
fn several_processes_append_at_once_and_nothing_is_lost() {
    for engine in engines::durable() {
        let tmp = tempfile::tempdir().unwrap();
        let children: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .map(|name| start("appends_many", engine, tmp.path(), name))
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success(), "{engine}");
        }
        let store = engines::open(engine, tmp.path()).unwrap();
        assert_eq!(are_whole(&*store), 75);
    }
}

#[test]
#[ignore = "started by another test"]
fn is_killed_while_it_appends() {
    let Some((dir, name)) = given() else { return };
    let delay = Duration::from_micros(name.parse().unwrap());
    let mut store = opened(&dir);
    // The last process gets far enough on any machine.
    if name == LATEST {
        append_one(&mut *store, "first", 0);
    }
    std::thread::spawn(move || {
        std::thread::sleep(delay);
        std::process::abort()
    });
    for i in 0.. {
        append_one(&mut *store, &format!("{name}-{i}"), i);
    }
}

#[test]
fn a_process_that_is_killed_at_any_time_leaves_only_whole_runs() {
    for engine in engines::durable() {
        let tmp = tempfile::tempdir().unwrap();
        let mut before = 0;
        for delay in ["0", "700", "3000", LATEST] {
            let mut child = start("is_killed_while_it_appends", engine, tmp.path(), delay);
            assert!(!child.wait().unwrap().success(), "{engine}");
            let store = engines::open(engine, tmp.path()).unwrap();
            let now = are_whole(&*store);
            assert!(now >= before, "{engine}: {now} of {before} runs");
            before = now;
        }
        assert!(before > 0, "{engine}: no process got far enough");
    }
}

#[test]
#[ignore = "started by another test"]
fn dies_while_it_appends() {
    let Some((dir, _)) = given() else { return };
    let mut store = opened(&dir);
    let _ = store.append(&header("half", 1), &end(), 0, &mut |sink| {
        copy_body(
            sink,
            1,
            ("/half/in", ident(1, 1)),
            ("/half/out", ident(2, 2)),
        )?;
        // More than the page cache holds, so that some of it is in the files when we die.
        let mut state = 7u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let noise: Vec<u8> = (0..1 << 20).map(|_| byte()).collect();
        for _ in 0..48 {
            sink.extended(ActivityId(0), 1, b"big", &noise)?;
        }
        std::process::abort()
    });
}

#[test]
fn a_process_that_dies_while_appending_leaves_the_store_as_it_was() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    let mut store = SqliteStore::open(&home).unwrap();
    copy(
        &mut store,
        "whole",
        1,
        ("/a", ident(1, 1)),
        ("/b", ident(2, 2)),
    );
    let before = (store.runs().unwrap(), store.stats().unwrap().counts);
    assert!(
        !start("dies_while_it_appends", "sqlite", tmp.path(), "")
            .wait()
            .unwrap()
            .success()
    );
    assert!(
        std::fs::metadata(tmp.path().join("graph.db-wal"))
            .unwrap()
            .len()
            > 1 << 20,
        "it did not get far enough"
    );
    drop(store);
    let mut store = SqliteStore::open(&home).unwrap();
    assert_eq!(
        (store.runs().unwrap(), store.stats().unwrap().counts),
        before
    );
    assert!(store.at_path(b"/half/out").unwrap().is_empty());
    copy(
        &mut store,
        "half",
        1,
        ("/half/in", ident(1, 1)),
        ("/half/out", ident(2, 2)),
    );
    assert_eq!(store.runs().unwrap().len(), 2);
}
