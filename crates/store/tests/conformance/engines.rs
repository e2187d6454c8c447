//! The engines that the suite tests. A new engine is one line here.

use std::path::Path;

use backstory_store::{EngineOptions, Home, MemoryStore, Store, StoreEngine, open_engine};
use backstory_vocabulary::Word;

#[cfg(feature = "postgresql")]
use crate::postgresql_server;

/// Opens the store of an engine in a directory, making it if it is not there.
type Open = fn(&Path) -> Result<Box<dyn Store>, backstory_store::Error>;

const ENGINES: &[(&str, Open)] = &[
    ("memory", |_| Ok(Box::new(MemoryStore::default()))),
    ("sqlite", |dir| opened(StoreEngine::Sqlite, dir)),
    #[cfg(feature = "lsm")]
    ("lsm", |dir| opened(StoreEngine::Lsm, dir)),
    #[cfg(feature = "redb")]
    ("redb", |dir| opened(StoreEngine::Redb, dir)),
    #[cfg(feature = "berkeleydb")]
    ("berkeleydb", |dir| opened(StoreEngine::BerkeleyDb, dir)),
    #[cfg(feature = "rocksdb")]
    ("rocksdb", |dir| opened(StoreEngine::RocksDb, dir)),
    #[cfg(feature = "postgresql")]
    ("postgresql", |dir| {
        postgresql_server::name_database(dir);
        opened(StoreEngine::Postgresql, dir)
    }),
];

/// The engines that this machine can test.
fn engines() -> impl Iterator<Item = &'static (&'static str, Open)> {
    ENGINES.iter().filter(|(engine, _)| is_here(engine))
}

#[cfg(feature = "postgresql")]
fn is_here(engine: &str) -> bool {
    engine != "postgresql" || postgresql_server::is_installed()
}

#[cfg(not(feature = "postgresql"))]
fn is_here(_: &str) -> bool {
    true
}

/// Makes what the processes of a test share before the first of them opens the store.
pub fn prepare(engine: &str, dir: &Path) {
    #[cfg(feature = "postgresql")]
    if engine == "postgresql" {
        postgresql_server::name_database(dir);
    }
    let _ = (engine, dir);
}

fn opened(engine: StoreEngine, dir: &Path) -> Result<Box<dyn Store>, backstory_store::Error> {
    open_engine(&Home::open(dir)?, engine, &EngineOptions::default())
}

/// Runs a test with an empty store of each engine. On a failure the last line that it prints names
/// the engine.
pub fn every_store(test: impl Fn(&mut dyn Store)) {
    for (engine, open) in engines() {
        let dir = tempfile::tempdir().unwrap();
        println!("engine: {engine}");
        test(&mut *open(dir.path()).unwrap());
    }
}

/// An empty store of each engine, the reference engine first. The directories live as long as the
/// stores.
pub fn all_stores() -> Vec<(tempfile::TempDir, Box<dyn Store>)> {
    stores(|_| true)
}

/// The same for the engines that have no server.
pub fn local_stores() -> Vec<(tempfile::TempDir, Box<dyn Store>)> {
    stores(|engine| engine != "postgresql")
}

fn stores(wanted: impl Fn(&str) -> bool) -> Vec<(tempfile::TempDir, Box<dyn Store>)> {
    let make = |(_, open): &(&str, Open)| {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).unwrap();
        (dir, store)
    };
    engines()
        .filter(|(engine, _)| wanted(engine))
        .map(make)
        .collect()
}

/// The engines that keep their store in files.
pub fn durable() -> impl Iterator<Item = &'static str> {
    let names = engines().map(|(engine, _)| *engine);
    names.filter(|engine| *engine != "memory")
}

/// Opens the store of an engine in a directory.
pub fn open(engine: &str, dir: &Path) -> Result<Box<dyn Store>, backstory_store::Error> {
    println!("engine: {engine}");
    let mut engines = ENGINES.iter();
    let found = engines.find(|(name, _)| *name == engine);
    found.expect("the engine's feature is on").1(dir)
}

/// The same, after the engine has checked its files.
pub fn open_examined(engine: &str, dir: &Path) -> Result<Box<dyn Store>, backstory_store::Error> {
    println!("engine: {engine}");
    prepare(engine, dir);
    let home = Home::open(dir)?;
    let options = EngineOptions {
        examined: true,
        ..EngineOptions::default()
    };
    let engine = StoreEngine::from_word(engine).expect("an engine with files");
    open_engine(&home, engine, &options)
}
