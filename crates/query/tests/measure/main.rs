//! Measures a store: bytes per edge, edges appended per second, times of `of` and `uses`.
//!
//! ```text
//! cargo test --release -p backstory-query --test measure -- --ignored --nocapture
//! ```
//!
//! - `BACKSTORY_MEASURE_EDGES`: size of the synthetic store (10,000,000 edges).
//! - `BACKSTORY_MEASURE_KEEP`: a directory in which the store stays, for `time backstory of …
//!   --store DIR`. The store of recorded runs is not measured then.
//! - `BACKSTORY_MEASURE_RUNS`: number of runs in a store of small runs (10,000). It is made only if
//!   a directory is named in which it stays.
//! - `BACKSTORY_MEASURE_SIZES`, `BACKSTORY_MEASURE_MEMORY`: numbers of edges and MB of memory, each
//!   list with commas, for the comparison of the engines (500000,2000000 and 32). Engines beside
//!   SQLite need `--features backstory-store/lsm,backstory-store/redb`.
//! - `BACKSTORY_MEASURE_ENGINES`: names of the engines that are measured, with commas (all).
//! - `BACKSTORY_MEASURE_STORE`: directory of a store whose recorded runs are measured, too. The
//!   engines take them in with each size of memory. `backstory-bench engines --keep DIR` makes one
//!   with the workload of the Story Book paper.
//! - `BACKSTORY_MEASURE_ROUNDS`: how often the parts of ingestion (5) and the sizes of memory (1)
//!   are measured.
//! - `BACKSTORY_MEASURE_OUT`: a CSV to which these two add their figures, each to one of its own.
//! - `BACKSTORY_MEASURE_TIMES`: how often each of these runs is appended (1). A repetition is
//!   later, and has made other files.
//! - `BACKSTORY_MEASURE_POSTGRESQL`: connection to an empty database for the engine `postgresql`.
//!
//! `docs/design/store.md` has the figures.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod csv;
mod engines;
mod ingestion;
mod recorded;
mod report;
mod synthetic;

use std::path::{Path, PathBuf};

use backstory_store::{Home, SqliteStore};

use report::Question;
use synthetic::{LIBRARIES, PROJECTS, UNITS};

#[test]
#[ignore = "a measurement, of some minutes"]
fn a_store_of_synthetic_builds_is_measured() {
    let edges = std::env::var("BACKSTORY_MEASURE_EDGES").map_or(10_000_000, |n| n.parse().unwrap());
    let tmp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let kept = std::env::var_os("BACKSTORY_MEASURE_KEEP").map(PathBuf::from);
    let home = Home::open(kept.as_deref().unwrap_or(tmp.path())).unwrap();
    let mut store = SqliteStore::open(&home).unwrap();
    let filled = synthetic::fill(&mut store, edges);
    println!(
        "{} edges in {:?} of processor time: {:.2} million a second",
        filled.edges,
        filled.processor,
        filled.edges as f64 / filled.processor.as_secs_f64() / 1e6
    );
    drop(store);
    report::print_room(&home);
    let path = |n: u64, name: &str| {
        PathBuf::from(format!(
            "/home/user/src/project{}/build/{name}",
            n % PROJECTS
        ))
    };
    let archives: Vec<_> = (0..1000)
        .map(|n| path(n, &format!("lib{}.a", n / PROJECTS % LIBRARIES)))
        .collect();
    report::time_questions(&home, Question::Ancestry, &archives);
    report::time_questions(&home, Question::AncestryWithLookups, &archives);
    let objects: Vec<_> = (0..1000)
        .map(|n| path(n, &format!("unit{}.o", n % (LIBRARIES * UNITS))))
        .collect();
    report::time_questions(&home, Question::Influence, &objects);
}

#[test]
#[ignore = "makes a store in the directory that BACKSTORY_MEASURE_KEEP names"]
fn a_store_of_many_small_runs_is_made() {
    let Some(kept) = std::env::var_os("BACKSTORY_MEASURE_KEEP") else {
        eprintln!("skipped: BACKSTORY_MEASURE_KEEP does not name a directory");
        return;
    };
    let runs = std::env::var("BACKSTORY_MEASURE_RUNS").map_or(10_000, |n| n.parse().unwrap());
    let home = Home::open(Path::new(&kept)).unwrap();
    synthetic::fill_small(&mut SqliteStore::open(&home).unwrap(), runs);
    report::print_room(&home);
}

#[test]
#[ignore = "a measurement, of a store that BACKSTORY_MEASURE_STORE names"]
fn a_store_of_recorded_runs_is_measured() {
    let Some(from) = std::env::var_os("BACKSTORY_MEASURE_STORE") else {
        eprintln!("skipped: BACKSTORY_MEASURE_STORE does not name a store");
        return;
    };
    let from = Home::open_to_read(Path::new(&from)).unwrap();
    let times = std::env::var("BACKSTORY_MEASURE_TIMES").map_or(1, |n| n.parse().unwrap());
    let tmp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let kept = std::env::var_os("BACKSTORY_MEASURE_KEEP").map(PathBuf::from);
    let home = Home::open(kept.as_deref().unwrap_or(tmp.path())).unwrap();
    let mut store = SqliteStore::open(&home).unwrap();
    let filled = recorded::copy(&from, times, &mut store);
    println!(
        "{} edges in {:?} of processor time: {:.2} million a second",
        filled.edges,
        filled.processor,
        filled.edges as f64 / filled.processor.as_secs_f64() / 1e6
    );
    drop(store);
    report::print_room(&home);
    if kept.is_some() {
        return;
    }
    let store = SqliteStore::open(&home).unwrap();
    let (made, read) = (
        recorded::paths(&store, true, 1000),
        recorded::paths(&store, false, 1000),
    );
    drop(store);
    report::time_questions(&home, Question::Ancestry, &made);
    report::time_questions(&home, Question::AncestryWithLookups, &made);
    report::time_questions(&home, Question::Influence, &read);
}
