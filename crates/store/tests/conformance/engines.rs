//! The engines that the suite tests. A new engine is one line here.

use std::path::Path;

use backstory_store::{Home, MemoryStore, SqliteStore, Store};

/// Opens the store of an engine in a directory, making it if it is not there.
type Open = fn(&Path) -> Result<Box<dyn Store>, backstory_store::Error>;

const ENGINES: &[(&str, Open)] = &[
    ("memory", |_| Ok(Box::new(MemoryStore::default()))),
    ("sqlite", |dir| {
        Ok(Box::new(SqliteStore::open(&Home::open(dir)?)?))
    }),
    #[cfg(feature = "lsm")]
    ("lsm", |dir| {
        Ok(Box::new(backstory_store::LsmStore::open(&Home::open(
            dir,
        )?)?))
    }),
    #[cfg(feature = "redb")]
    ("redb", |dir| {
        Ok(Box::new(backstory_store::RedbStore::open(&Home::open(
            dir,
        )?)?))
    }),
];

/// Runs a test with an empty store of each engine. On a failure the last line that it prints names
/// the engine.
pub fn every_store(test: impl Fn(&mut dyn Store)) {
    for (engine, open) in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        println!("engine: {engine}");
        test(&mut *open(dir.path()).unwrap());
    }
}

/// An empty store of each engine, the reference engine first. The directories live as long as the
/// stores.
pub fn all_stores() -> Vec<(tempfile::TempDir, Box<dyn Store>)> {
    let make = |(_, open): &(&str, Open)| {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).unwrap();
        (dir, store)
    };
    ENGINES.iter().map(make).collect()
}

/// The engines that keep their store in files.
pub fn durable() -> impl Iterator<Item = &'static str> {
    let names = ENGINES.iter().map(|(engine, _)| *engine);
    names.filter(|engine| *engine != "memory")
}

/// Opens the store of an engine in a directory.
pub fn open(engine: &str, dir: &Path) -> Result<Box<dyn Store>, backstory_store::Error> {
    println!("engine: {engine}");
    let mut engines = ENGINES.iter();
    let found = engines.find(|(name, _)| *name == engine);
    found.expect("the engine's feature is on").1(dir)
}
