//! The files of every engine: opened again, damaged, of a newer program.

use std::fs;
use std::path::{Path, PathBuf};

use backstory_store::{Error, Label, Store, VersionMatch};

use crate::engines;
use crate::graph::*;

const RUNS: i64 = 20;

fn fill(store: &mut dyn Store) {
    for i in 0..RUNS {
        let (from, to) = (format!("/in/{i}"), format!("/out/{i}"));
        copy(
            store,
            &format!("run{i}"),
            i,
            (&from, ident(1, i)),
            (&to, ident(2, i)),
        );
    }
    store
        .set_label("run3", Label::Note, Some("the third"))
        .unwrap();
    assert!(store.remove("run4").unwrap());
}

/// Asks everything, and returns how much was found.
fn ask(store: &dyn Store) -> Result<usize, Error> {
    let mut found = 0;
    for run in store.runs()? {
        found += store.activities(run.key)?.len() + store.extended(run.key)?.len();
        for entity in store.entities(run.key)? {
            found += store.at_path(&entity.path)?.len();
            if let Some(ident) = entity.ident {
                found += store.same(&ident, VersionMatch::Made)?.len();
                found += store.same(&ident, VersionMatch::Any)?.len();
            }
        }
    }
    Ok(found + store.directories_below(b"/")?.len() + store.facts()?.len())
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, new) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy_directory(&path, &new),
            false => drop(fs::copy(&path, &new).unwrap()),
        }
    }
}

#[test]
fn a_store_that_is_opened_again_has_all_that_was_committed() {
    for engine in engines::durable() {
        let tmp = tempfile::tempdir().unwrap();
        let mut store = engines::open(engine, tmp.path()).unwrap();
        fill(&mut *store);
        let before = (store.runs().unwrap(), ask(&*store).unwrap());
        drop(store);
        let mut store = engines::open(engine, tmp.path()).unwrap();
        assert_eq!((store.runs().unwrap(), ask(&*store).unwrap()), before);
        store.forget_unreferred().unwrap();
        store.compact().unwrap();
        assert_eq!((store.runs().unwrap(), ask(&*store).unwrap()), before);
        // A number is not given again, also after the newest run was removed.
        let newest = before.0[0].key;
        store.remove(&before.0[0].header.id).unwrap();
        drop(store);
        let mut store = engines::open(engine, tmp.path()).unwrap();
        let (from, to) = (("/a", ident(8, 8)), ("/b", ident(9, 9)));
        assert!(copy(&mut *store, "next", 99, from, to) > newest);
    }
}

/// An engine may find the damage or not, but it gives an answer or a clear error.
#[test]
fn a_damaged_file_is_an_answer_or_an_error_that_says_what_to_do() {
    for engine in engines::durable() {
        let tmp = tempfile::tempdir().unwrap();
        let sound = tmp.path().join("sound");
        let mut store = engines::open(engine, &sound).unwrap();
        fill(&mut *store);
        store.compact().unwrap();
        drop(store);
        let mut all = Vec::new();
        files(&sound, &mut all);
        let mut refused = 0;
        for (number, file) in all.iter().enumerate() {
            let length = fs::metadata(file).unwrap().len() as usize;
            for piece in 0..6.min(length) {
                let dir = tmp.path().join(format!("{number}-{piece}"));
                copy_directory(&sound, &dir);
                let path = dir.join(file.strip_prefix(&sound).unwrap());
                let mut bytes = fs::read(&path).unwrap();
                let at = length * piece / 6;
                for byte in bytes.iter_mut().skip(at).take(64) {
                    *byte ^= 0xa5;
                }
                fs::write(&path, bytes).unwrap();
                let asked = engines::open(engine, &dir).and_then(|store| ask(&*store));
                if let Err(error) = asked {
                    refused += 1;
                    let text = error.to_string();
                    let names = text.contains(dir.to_str().unwrap()) || text.contains("stored");
                    assert!(names, "{engine}: {text}");
                }
                fs::remove_dir_all(&dir).unwrap();
            }
        }
        assert!(refused > 0, "{engine}: no damage was found");
    }
}

/// The position of a section of the LSM tree's list of tables, from the list of sections.
#[cfg(feature = "lsm")]
fn section(list: &[u8], name: &[u8]) -> Option<usize> {
    let at = list.windows(name.len()).position(|part| part == name)?;
    let position = list.get(at.checked_sub(18)?..at - 10)?;
    Some(u64::from_le_bytes(position.try_into().ok()?) as usize)
}

/// Writes a great number where the file has another.
#[cfg(feature = "lsm")]
fn promise_billions(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at..at + 4].fill(0xfe);
    fs::write(path, bytes).unwrap();
}

/// The library takes memory for as many entries as a list promises.
#[cfg(feature = "lsm")]
#[test]
fn a_list_of_the_lsm_tree_that_promises_billions_of_entries_is_an_error() {
    let tmp = tempfile::tempdir().unwrap();
    let sound = tmp.path().join("sound");
    fill(&mut *engines::open("lsm", &sound).unwrap());
    engines::open("lsm", &sound).unwrap().compact().unwrap();
    let mut all = Vec::new();
    files(&sound, &mut all);
    let mut damaged = 0;
    for file in all {
        let bytes = fs::read(&file).unwrap();
        let sections = bytes.windows(4).rposition(|part| part == b"TOC!");
        let lists = [section(&bytes, b"blob_files"), sections.map(|at| at + 4)];
        for at in lists.into_iter().flatten() {
            let dir = tmp.path().join("damaged");
            copy_directory(&sound, &dir);
            promise_billions(&dir.join(file.strip_prefix(&sound).unwrap()), at);
            match engines::open("lsm", &dir).map(drop) {
                // The file is of an older state.
                Ok(()) => (),
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        text.contains("graph.lsm") && text.contains("rebuild"),
                        "{text}"
                    );
                    damaged += 1;
                }
            }
            fs::remove_dir_all(&dir).unwrap();
        }
    }
    assert!(damaged > 2, "{damaged} lists");
}

#[test]
fn a_question_that_should_stop_fails_and_the_next_one_is_answered() {
    for engine in engines::durable() {
        let tmp = tempfile::tempdir().unwrap();
        let mut store = engines::open(engine, tmp.path()).unwrap();
        for number in 0..200 {
            let run = format!("run{number}");
            let (from, to) = (("/in", ident(1, 1)), ("/out", ident(2, 2)));
            copy(&mut *store, &run, number, from, to);
        }
        let reading = store.reading().unwrap();
        assert!(store.is_reading());
        store.interrupt_when(Some(Box::new(|| true)));
        assert!(matches!(store.runs(), Err(Error::Interrupted(_))));
        drop(reading);
        assert!(!store.is_reading(), "the question left a transaction");
        store.interrupt_when(None);
        assert_eq!(store.runs().unwrap().len(), 200);
    }
}

/// An engine that checks its files finds every change of a byte that it reads. It opens none that
/// it would panic on.
#[test]
fn an_examined_database_has_no_damage_or_an_error() {
    for engine in engines::durable().filter(|engine| *engine != "sqlite") {
        let tmp = tempfile::tempdir().unwrap();
        let sound = tmp.path().join("sound");
        fill(&mut *engines::open(engine, &sound).unwrap());
        let before = ask(&*engines::open_examined(engine, &sound).unwrap()).unwrap();
        let mut all = Vec::new();
        files(&sound, &mut all);
        let mut refused = 0;
        for file in &all {
            let length = fs::metadata(file).unwrap().len() as usize;
            for piece in 0..5.min(length) {
                let dir = tmp.path().join("damaged");
                copy_directory(&sound, &dir);
                let path = dir.join(file.strip_prefix(&sound).unwrap());
                let mut bytes = fs::read(&path).unwrap();
                bytes[length * piece / 5] ^= 0x5a;
                fs::write(&path, bytes).unwrap();
                match engines::open_examined(engine, &dir).and_then(|store| ask(&*store)) {
                    // The byte was of no row, or of one that only the newest commit had.
                    Ok(found) => assert!(found <= before, "{engine}: {}", path.display()),
                    Err(error) => {
                        refused += 1;
                        let text = error.to_string();
                        assert!(text.contains(dir.to_str().unwrap()), "{engine}: {text}");
                    }
                }
                fs::remove_dir_all(&dir).unwrap();
            }
        }
        assert!(refused > 0, "{engine}: no damage was found");
    }
}
