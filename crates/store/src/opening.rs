//! Opens a store with the engine that its directory names.

use crate::{DatabaseFiles, EngineOptions, Home, Result, SqliteStore, Store, StoreEngine};

/// Opens the database of `home` with its own engine, making it where needed.
///
/// Errors: [`Error::UnknownEngine`](crate::Error::UnknownEngine), and
/// [`Error::EngineNotBuilt`](crate::Error::EngineNotBuilt) if this program was built without the
/// engine.
pub fn open_store(home: &Home) -> Result<Box<dyn Store>> {
    match StoreEngine::of(home)? {
        StoreEngine::Sqlite => Ok(Box::new(SqliteStore::open(home)?)),
        other => open_engine(home, other, &EngineOptions::default()),
    }
}

/// Opens the database of `home` as [`open_store`] does. Where the engine can check its files it
/// does so first: damage is an error then, and never a panic. Reads the whole database.
pub fn open_examined(home: &Home) -> Result<Box<dyn Store>> {
    let options = EngineOptions {
        examined: true,
        ..EngineOptions::default()
    };
    open_engine(home, StoreEngine::of(home)?, &options)
}

/// Checks every page of the database of `home`. Out: sentences about the damage, none if the
/// database is intact.
///
/// Errors: if the database cannot be opened, for damage or another reason.
pub fn examine(home: &Home) -> Result<Vec<String>> {
    match StoreEngine::of(home)? {
        StoreEngine::Sqlite => Ok(SqliteStore::open(home)?.integrity()),
        _ => open_examined(home).map(|_| Vec::new()),
    }
}

/// Opens the database that `engine` has in the directory of `home`, whatever engine the store has.
/// For copies from one engine to another, and for comparisons.
pub fn open_engine(
    home: &Home,
    engine: StoreEngine,
    options: &EngineOptions,
) -> Result<Box<dyn Store>> {
    DatabaseFiles::of(home, engine).open(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use backstory_vocabulary::Word;

    #[test]
    fn a_store_is_opened_by_its_own_engine_and_by_no_other() {
        for &engine in StoreEngine::ALL {
            let tmp = tempfile::tempdir().unwrap();
            let home = Home::open(tmp.path()).unwrap();
            engine.choose(&home).unwrap();
            match open_store(&home) {
                Ok(store) => assert_eq!(store.stats().unwrap().runs, 0),
                Err(Error::EngineNotBuilt { engine: named, .. }) => {
                    assert_eq!(named, engine.word());
                    assert!(!engine.is_built(), "{engine}");
                }
                // Its database is on a server, which the conformance suite starts.
                Err(Error::NoConnection { path, .. }) => {
                    assert_eq!(engine, StoreEngine::Postgresql);
                    assert!(path.starts_with(tmp.path()));
                }
                Err(error) => panic!("{engine}: {error}"),
            }
            let database = home.database_path().exists();
            assert_eq!(database, engine == StoreEngine::Sqlite, "{engine}");
            let sqlite = SqliteStore::open(&home).map(drop);
            match engine {
                StoreEngine::Sqlite => sqlite.unwrap(),
                other => {
                    let error = sqlite.unwrap_err().to_string();
                    assert!(error.contains(other.word()), "{error}");
                    assert!(!home.database_path().exists());
                }
            }
        }
    }
}
