//! A pipe or a device in the place of a file that backstory opens delays no process, and fills no
//! memory.

use crate::oracle::common;
use backstory_testkit::oracle::{Bench, Case, sh, watch};
use backstory_testkit::procs::eventually;
use backstory_testkit::user::User;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run with small and large files, which are stored in different places.
const MADE: Case = sh(
    "made",
    "head -c 300000 /dev/urandom >large; cat a large >both; wc both >count",
);

/// The object put in a file's place.
#[derive(Debug, Clone, Copy)]
enum Instead {
    Pipe,
    Device,
}

fn put(what: Instead, at: &Path, bench: &Bench) {
    fs::remove_file(at).unwrap();
    match what {
        Instead::Pipe => {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, mode, 0).unwrap();
            bench.stage().user().owns(at).unwrap();
        }
        Instead::Device => symlink("/dev/zero", at).unwrap(),
    }
}

/// The files below, by their names from there.
fn files(top: &Path, below: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(top.join(below)).unwrap().flatten();
    let found = entries.flat_map(|entry| {
        let name = below.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => files(top, &name),
            false => vec![name],
        }
    });
    found.collect()
}

/// Asks within 2 GB of memory. Fails without an answer, whichever it is.
fn answers(bench: &Bench, store: &Path, question: &str, what: &str) {
    let directory = bench.stage().path().join("work/made");
    let line = format!("ulimit -v 2000000; exec $FIX/backstory {question}");
    let mut command = bench.stage().command("sh");
    command.args(["-c", &line]).env("BACKSTORY_STORE", store);
    let outcome = watch(&mut command, &directory).unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    let ended = outcome.status.is_some_and(|status| status.code().is_some());
    assert!(ended, "{what}: {question}: {:?} {said}", outcome.status);
    assert!(!said.contains("allocat"), "{what}: {question}: {said}");
    // A question without an answer gives a reason.
    assert!(
        outcome.code() == 0 || !said.trim().is_empty() || !outcome.stdout.is_empty(),
        "{what}: {question}"
    );
}

#[test]
fn a_pipe_or_a_device_among_a_stores_files_holds_no_question_up() {
    asks_stores(|number| vec![[Instead::Pipe, Instead::Device][number % 2]]);
}

#[test]
#[ignore = "a minute, as the same test of one object in the place of each file"]
fn a_pipe_and_a_device_in_the_place_of_each_file_of_a_store_hold_no_question_up() {
    asks_stores(|_| vec![Instead::Pipe, Instead::Device]);
}

/// Asks copies of a store. In each copy, one of the objects that `chosen` returns is in the place
/// of one file.
fn asks_stores(chosen: impl Fn(usize) -> Vec<Instead>) {
    let bench = common::bench(User::ordinary());
    let (outcome, store) = bench.recorded(&MADE, &["--name", "made"]).unwrap();
    assert_eq!(outcome.code(), 0);
    bench.ask(&store, &["index", "--wait"]).unwrap();
    // The background indexer closes the database a moment later, and removes this file.
    let open = store.join("graph.db-shm");
    assert!(eventually(Duration::from_secs(120), || !open.exists()));
    let mut all = files(&store, Path::new(""));
    all.sort();
    assert!(
        all.iter().any(|file| file.starts_with("contents/objects")),
        "{all:?}"
    );
    for (number, file) in all.into_iter().enumerate() {
        for what in chosen(number) {
            let copy = bench.stage().path().join(format!("copy{number}{what:?}"));
            let mut copying = bench.stage().command("cp");
            assert!(
                copying
                    .arg("-a")
                    .args([&store, &copy])
                    .status()
                    .unwrap()
                    .success()
            );
            put(what, &copy.join(&file), &bench);
            let told = format!("{what:?} at {}", file.display());
            let questions = [
                "log",
                "of both",
                "contents both -o told",
                "index --wait",
                "store verify",
                "store export made -o given",
                "record --name next -- true",
                "store gc --older-than 0d",
            ];
            for question in questions {
                answers(&bench, &copy, question, &told);
            }
        }
    }
}

#[test]
fn a_pipe_or_a_device_in_the_place_of_a_recorded_file_holds_no_question_up() {
    asks_about_files(&[
        ("--contents=off", &[Instead::Device]),
        ("--contents=lazy", &[Instead::Pipe]),
    ]);
}

#[test]
#[ignore = "half a minute, as the same test of half of the cases"]
fn a_pipe_and_a_device_in_the_place_of_a_recorded_file_hold_no_question_up() {
    let both = &[Instead::Pipe, Instead::Device][..];
    asks_about_files(&[("--contents=off", both), ("--contents=lazy", both)]);
}

/// Asks about files of a run, in whose places are these objects.
fn asks_about_files(ways: &[(&str, &[Instead])]) {
    let bench = common::bench(User::ordinary());
    for &(contents, objects) in ways {
        for &what in objects {
            let (outcome, store) = bench
                .recorded(&MADE, &["--name", "made", contents])
                .unwrap();
            assert_eq!(outcome.code(), 0);
            let directory = bench.stage().path().join("work/made");
            // Some before their content was stored, all of them before the question.
            for file in ["a", "large", "both", "count"] {
                put(what, &directory.join(file), &bench);
            }
            let told = format!("{what:?}, {contents}");
            for question in [
                "show",
                "of both",
                "uses a",
                "status",
                "files",
                "rerun -n both",
                "replay --allow-host",
                "store export made -o x",
            ] {
                answers(&bench, &store, question, &told);
            }
            for format in formats(&bench, &store) {
                answers(
                    &bench,
                    &store,
                    &format!("export {format} made -o ../{format}-{contents}-{what:?}"),
                    &told,
                );
            }
        }
    }
}

fn formats(bench: &Bench, store: &Path) -> Vec<String> {
    let listed = String::from_utf8(bench.ask(store, &["export"]).unwrap()).unwrap();
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(names.len() > 20, "{listed}");
    names
}
