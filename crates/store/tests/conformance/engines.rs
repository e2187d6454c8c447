//! The engines that the suite tests. A new engine is one line here.

use std::path::Path;

use backstory_store::{Home, MemoryStore, SqliteStore, Store};

/// Makes an empty store of an engine in a directory.
type Make = fn(&Path) -> Box<dyn Store>;

const ENGINES: [(&str, Make); 2] = [
    ("memory", |_| Box::new(MemoryStore::default())),
    ("sqlite", |dir| {
        Box::new(SqliteStore::open(&Home::open(dir).unwrap()).unwrap())
    }),
];

/// Runs a test with an empty store of each engine. On a failure the last line that it prints names
/// the engine.
pub fn every_store(test: impl Fn(&mut dyn Store)) {
    for (engine, make) in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        println!("engine: {engine}");
        test(&mut *make(dir.path()));
    }
}

/// An empty store of each engine, the reference engine first. The directories live as long as the
/// stores.
pub fn all_stores() -> Vec<(tempfile::TempDir, Box<dyn Store>)> {
    let make = |(_, make): (&str, Make)| {
        let dir = tempfile::tempdir().unwrap();
        let store = make(dir.path());
        (dir, store)
    };
    ENGINES.into_iter().map(make).collect()
}
