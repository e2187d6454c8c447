//! Any log becomes a graph, and the graph answers.

use super::framed::repaired;
use super::place;
use backstory_eventlog::run::RunEnd;
use backstory_eventlog::{Identities, Log};
use backstory_files::Ident;
use backstory_graph::{FinalState, fold};
use backstory_query::answer::Scope;
use backstory_query::{ancestry, details, files, influence, processes};
use backstory_store::{Home, MemoryStore, SqliteStore, Store};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

struct Taken(Identities);

impl FinalState for Taken {
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        self.0.of(path, follow)
    }
}

/// Folds the bytes, with repaired checksums, into a store in memory. If the first byte is even,
/// also into a database.
pub fn run(data: &[u8]) {
    let path = place::file("folded");
    std::fs::write(&path, repaired(data)).expect("write");
    let Ok(log) = Log::open(&path) else { return };
    let mut store = MemoryStore::default();
    append(&log, &mut store).expect("the strict store takes it");
    ask(&store);
    if log.len() % 8 == 0 {
        let place = place::new();
        let home = Home::open(place.path()).expect("a home");
        let mut kept = SqliteStore::open(&home).expect("a database");
        append(&log, &mut kept).expect("the database takes it");
        ask(&kept);
    }
}

/// Folds a log into a store.
pub fn append(log: &Log, store: &mut dyn Store) -> backstory_store::Result<()> {
    let mut header = log.header().clone();
    header.id = "fuzzfuzz".to_owned();
    let end = log.end().cloned().unwrap_or_else(RunEnd::default);
    let known = Taken(log.identities());
    let length = log.len() as u64;
    let mut body = |sink: &mut backstory_store::Appender<'_>| {
        fold(&header, Some(&end), log.events(), &known, sink)
    };
    store.append(&header, &end, length, &mut body).map(drop)
}

/// Asks every question. An answer may be an error.
pub fn ask(store: &dyn Store) {
    let Ok(runs) = backstory_query::runs(store) else {
        return;
    };
    for run in runs.iter().take(3) {
        let _ = details(store, &run.id);
        let _ = processes(store, &run.id);
        let Ok(files) = files(store, &run.id) else {
            continue;
        };
        for file in files.iter().filter(|f| f.path.starts_with(b"/")).take(6) {
            let path = Path::new(OsStr::from_bytes(&file.path));
            for lookups in [false, true] {
                let scope = Scope {
                    possible: true,
                    lookups,
                    ..Scope::default()
                };
                let _ = ancestry(store, path, &scope);
                let _ = influence(store, path, &scope);
            }
        }
    }
}
