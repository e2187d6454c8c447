//! The memory of indexing is bounded by the files and processes of a run, not by its operations.
//! `docs/graph.md` and `docs/formats/store.md` say what is held.
//!
//! The kernel enforces the bound (`ulimit -d`): an indexer that needs more dies. The mapped pages
//! of the log do not count.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use backstory_testkit::fixtures;

fn backstory() -> Command {
    Command::new(env!("CARGO_BIN_EXE_backstory"))
}

/// A store with the run of a command that was indexed within this many megabytes. The store, and
/// the directory of the command, are removed when this value is dropped.
struct Indexed {
    place: PathBuf,
    store: PathBuf,
}

impl Indexed {
    /// `option`: one of `record`. `name`: that of the place.
    fn within(megabytes: u64, name: &str, option: &str, command: &[&OsStr]) -> Indexed {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&place);
        let (store, work) = (place.join("store"), place.join("work"));
        for dir in [&store, &work] {
            fs::create_dir_all(dir).expect("a place for the test");
        }
        // The holder of the lock indexes. Until it is released, no background process does.
        let lock = File::create(store.join("index.lock")).expect("the lock file");
        lock.lock().expect("the store's lock");
        let recorded = backstory()
            .args(["record", option, "--store"])
            .arg(&store)
            .arg("--")
            .args(command)
            .current_dir(&work)
            .output()
            .expect("a recording");
        assert!(recorded.status.success(), "{recorded:?}");
        drop(lock);
        let kilobytes = (megabytes * 1024).to_string();
        let indexed = Command::new("sh")
            .args(["-c", "ulimit -d $0 && exec \"$@\"", &kilobytes])
            .arg(env!("CARGO_BIN_EXE_backstory"))
            .args(["index", "--wait", "--store"])
            .arg(&store)
            .output()
            .expect("an indexer");
        assert!(
            indexed.status.success(),
            "with {megabytes} MB: {} {}",
            indexed.status,
            String::from_utf8_lossy(&indexed.stderr)
        );
        assert_eq!(asked(&store, "show")["lost"], 0);
        Indexed { place, store }
    }
}

impl Drop for Indexed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// Records `many_looks` without suppression, indexes the log within this many megabytes, and
/// asserts that everything is there.
fn indexed_within(megabytes: u64, files: u64, operations: u64) {
    let looks = fixture(Path::new(env!("CARGO_TARGET_TMPDIR")), "many_looks");
    let numbers = [files.to_string(), operations.to_string()];
    let command = [looks.as_os_str(), numbers[0].as_ref(), numbers[1].as_ref()];
    let name = format!("memory-{files}-{operations}");
    let indexed = Indexed::within(megabytes, &name, "--suppress=off", &command);
    let used = asked(&indexed.store, "files");
    let used = used.as_array().expect("an array").len() as u64;
    assert!(used >= files, "{used} paths");
    let log: u64 = fs::read_dir(indexed.store.join("runs"))
        .expect("the logs")
        .map(|entry| entry.expect("a log").metadata().expect("its size").len())
        .sum();
    assert!(
        log > operations * 16,
        "every operation is in the log: {log} bytes"
    );
}

fn asked(store: &Path, question: &str) -> serde_json::Value {
    let answer = backstory()
        .args([question, "--json", "--store"])
        .arg(store)
        .output();
    serde_json::from_slice(&answer.expect("an answer").stdout).expect("JSON")
}

fn fixture(target: &Path, name: &str) -> PathBuf {
    let built = fixtures::build(target).expect("fixtures compile");
    let mut found = built.into_iter();
    found
        .find(|path| path.file_stem().is_some_and(|stem| stem == name))
        .expect("a C compiler")
}

#[test]
fn three_hundred_thousand_operations_are_indexed_in_40_megabytes() {
    indexed_within(40, 1_000, 300_000);
}

/// Each round of the loop makes a version of one file, and reads it.
#[test]
fn three_thousand_versions_of_a_file_are_indexed_in_100_megabytes() {
    let rounds = "i=0; while [ $i -lt 3000 ]; do echo $i >f; read x <f; i=$((i+1)); done";
    let command = ["sh", "-c", rounds].map(OsStr::new);
    Indexed::within(100, "memory-versions", "--contents=lazy", &command);
}

#[test]
#[ignore = "records ten million operations"]
fn ten_million_operations_are_indexed_in_40_megabytes() {
    indexed_within(40, 1_000, 10_000_000);
}

#[test]
#[ignore = "makes a hundred thousand files"]
fn a_hundred_thousand_files_are_indexed_in_160_megabytes() {
    indexed_within(160, 100_000, 600_000);
}
