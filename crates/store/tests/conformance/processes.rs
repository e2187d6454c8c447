//! More than one process: several append at once, one dies in the middle.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use backstory_graph::model::*;
use backstory_store::{GraphStore, Home, Maintenance, SqliteStore};

use crate::graph::*;

/// Names the store to a process that this test starts from its own executable.
const DIR: &str = "BACKSTORY_TEST_STORE";
const NAME: &str = "BACKSTORY_TEST_NAME";

fn start(test: &str, dir: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("processes::{test}"),
            "--ignored",
            "--nocapture",
        ])
        .env(DIR, dir)
        .env(NAME, name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Nothing, if no test has started us.
fn given() -> Option<(Home, String)> {
    let dir = std::env::var_os(DIR)?;
    Some((
        Home::open(Path::new(&dir)).unwrap(),
        std::env::var(NAME).unwrap(),
    ))
}

#[test]
#[ignore = "started by another test"]
fn appends_many() {
    let Some((home, name)) = given() else { return };
    // Opening, too, is done at the same time as others do it.
    let mut store = SqliteStore::open(&home).unwrap();
    for i in 0..25 {
        let out = format!("/out/{name}-{i}");
        copy(
            &mut store,
            &format!("{name}-{i}"),
            i,
            ("/shared/in", ident(1, 1)),
            (&out, ident(2, i)),
        );
    }
}

#[test]
fn several_processes_append_at_once_and_nothing_is_lost() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    let children: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|name| start("appends_many", tmp.path(), name))
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = SqliteStore::open(&home).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 75);
    for run in &runs {
        assert_eq!(store.entities(run.key).unwrap().len(), 2);
        assert_eq!(
            store
                .at_path(format!("/out/{}", run.header.id).as_bytes())
                .unwrap()
                .len(),
            1
        );
    }
    assert_eq!(store.at_path(b"/shared/in").unwrap().len(), 75);
}

#[test]
#[ignore = "started by another test"]
fn dies_while_it_appends() {
    let Some((home, _)) = given() else { return };
    let mut store = SqliteStore::open(&home).unwrap();
    let _ = store.append(&header("half", 1), &end(), 0, &mut |sink| {
        copy_body(
            sink,
            1,
            ("/half/in", ident(1, 1)),
            ("/half/out", ident(2, 2)),
        )?;
        // More than the page cache holds, so that some of it is in the files when we die.
        for _ in 0..48 {
            sink.extended(ActivityId(0), 1, b"big", &vec![7; 1 << 20])?;
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
        !start("dies_while_it_appends", tmp.path(), "")
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
