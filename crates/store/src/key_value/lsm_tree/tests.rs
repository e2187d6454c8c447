use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::key_value::engine::KeyValueEngine;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(path: &Path) -> LsmEngine {
    LsmEngine::open(path, &EngineOptions::default()).unwrap()
}

fn rows(engine: &LsmEngine) -> Model {
    let mut found = Model::new();
    let look = &mut |key: &[u8], value: &[u8]| {
        found.insert(key.to_vec(), value.to_vec());
        Ok(ControlFlow::Continue(()))
    };
    let snapshot = engine.snapshot().unwrap();
    let all = (&[][..], &[u8::MAX][..]);
    snapshot
        .scan(all.0, all.1, ScanOrder::Ascending, look)
        .unwrap();
    found
}

/// A commit that sets some keys and removes others. A large one becomes a table.
fn commit(engine: &LsmEngine, model: &mut Model, number: usize, large: bool) {
    let mut changes = Changes::default();
    for key in 0..if large { 2000 } else { 5 } {
        let key = format!("{:05}", (key * 7 + number * 3) % 3000).into_bytes();
        if number % 3 == 2 && key.ends_with(b"1") {
            changes.delete(key.clone());
            model.remove(&key);
        } else {
            let value = format!("{number} of a value that is long enough to fill a table");
            changes.put(key.clone(), value.clone().into_bytes());
            model.insert(key, value.into_bytes());
        }
    }
    engine.commit((), changes).unwrap();
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, new) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copied(&path, &new),
            false => drop(fs::copy(&path, &new).unwrap()),
        }
    }
}

fn tables(path: &Path) -> usize {
    fs::read_dir(path.join("tree/tables")).unwrap().count()
}

#[test]
fn small_and_large_commits_are_there_after_the_process_was_killed() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("db");
    let (engine, mut model) = (open(&path), Model::new());
    let mut before: Option<(LsmSnapshot, Model)> = None;
    let mut made = 0;
    for number in 0..14 {
        let log = fs::read(path.join("recent.log")).unwrap();
        commit(&engine, &mut model, number, number % 4 == 1);
        assert!(rows(&engine) == model, "commit {number}");
        // A process that starts after this one was killed finds these files.
        let copy = tmp.path().join(format!("copy{number}"));
        copied(&path, &copy);
        assert!(rows(&open(&copy)) == model, "commit {number}, opened again");
        made = made.max(tables(&path));
        if number % 4 == 1 {
            assert_eq!(fs::metadata(path.join("recent.log")).unwrap().len(), 0);
            // It was killed before it emptied the log.
            fs::write(copy.join("recent.log"), log).unwrap();
            assert!(rows(&open(&copy)) == model, "commit {number}, with its log");
        }
        // A snapshot keeps its state, also while tables are merged.
        if let Some((snapshot, then)) = before.take() {
            for (key, value) in &then {
                assert_eq!(snapshot.get(key).unwrap().as_ref(), Some(value));
            }
        }
        before = Some((engine.snapshot().unwrap(), model.clone()));
    }
    assert!(made > 1, "{made} tables");
    drop((before, engine));
    let mut engine = open(&path);
    engine.compact().unwrap();
    assert!(rows(&engine) == model);
    commit(&engine, &mut model, 99, false);
    drop(engine);
    assert!(rows(&open(&path)) == model);
    // Nothing reads the merged tables any more.
    assert_eq!(tables(&path), 1);
}

#[test]
fn a_table_that_a_killed_process_left_unfinished_is_removed() {
    let tmp = tempfile::tempdir().unwrap();
    let mut model = Model::new();
    let engine = open(tmp.path());
    commit(&engine, &mut model, 1, true);
    drop(engine);
    let unfinished = tmp.path().join("tree/tables/77");
    fs::write(&unfinished, "half a table").unwrap();
    assert!(rows(&open(tmp.path())) == model);
    assert!(!unfinished.exists());
}

#[test]
fn a_database_of_an_older_program_is_refused_with_the_remedy() {
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir(tmp.path().join("keyspaces")).unwrap();
    let refused = LsmEngine::open(tmp.path(), &EngineOptions::default()).map(drop);
    assert!(matches!(refused, Err(Error::PreRelease(_))), "{refused:?}");
}
