//! Which engine a store has: a word in the file `DIR/engine`. Without the file it is SQLite.
//!
//! Invariant: an engine never opens the store of another one.

use std::io::ErrorKind;
use std::path::PathBuf;

use backstory_files::regular;
use backstory_vocabulary::{Word, vocabulary};

use crate::{Error, Home};

vocabulary! {
    /// An engine that keeps a store.
    pub enum StoreEngine: "storage engine" {
        /// One SQLite file. Every program has it.
        Sqlite = "sqlite",
        /// An LSM tree: fast to append to, for one process at a time.
        Lsm = "lsm",
        /// One file with a B-tree whose pages are never changed in place.
        Redb = "redb",
        /// A database of a PostgreSQL server, which a group shares.
        Postgresql = "postgresql",
        /// A B-tree of the C library Berkeley DB, for comparisons.
        BerkeleyDb = "berkeleydb",
        /// An LSM tree of the C library RocksDB, for comparisons.
        RocksDb = "rocksdb",
    }
}

fn mark_path(home: &Home) -> PathBuf {
    home.dir().join("engine")
}

impl StoreEngine {
    /// The engine of a store.
    ///
    /// Errors: [`Error::UnknownEngine`], [`Error::Io`].
    pub fn of(home: &Home) -> crate::Result<StoreEngine> {
        let path = mark_path(home);
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(StoreEngine::Sqlite),
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        let text = String::from_utf8_lossy(&text);
        StoreEngine::from_word(text.trim()).map_err(|unknown| Error::UnknownEngine {
            path,
            found: unknown.word,
        })
    }

    /// Makes this the engine of a store from now on, at once. The databases stay as they are. A
    /// power cut after that does not bring the old engine back.
    pub fn choose(self, home: &Home) -> crate::Result<()> {
        home.replace_file("engine", format!("{}\n", self.word()).as_bytes(), true)
    }

    /// True if this program was built with the engine.
    pub fn is_built(self) -> bool {
        match self {
            StoreEngine::Sqlite => true,
            StoreEngine::Lsm => cfg!(feature = "lsm"),
            StoreEngine::Redb => cfg!(feature = "redb"),
            StoreEngine::Postgresql => cfg!(feature = "postgresql"),
            StoreEngine::BerkeleyDb => cfg!(feature = "berkeleydb"),
            StoreEngine::RocksDb => cfg!(feature = "rocksdb"),
        }
    }

    /// True if the engine is there to compare the others with, and for nothing else.
    pub fn is_for_comparison(self) -> bool {
        matches!(self, StoreEngine::BerkeleyDb | StoreEngine::RocksDb)
    }

    /// The feature of the program that has the engine.
    fn feature(self) -> &'static str {
        match self {
            StoreEngine::Postgresql => "postgresql-store",
            other => other.word(),
        }
    }

    /// The error of a program that was built without the engine that a store is to have.
    pub fn not_offered(self) -> Error {
        Error::NoSuchEngine {
            engine: self.word(),
            feature: self.feature(),
        }
    }

    /// The error of a program that was built without the engine of a store.
    pub fn not_built(self, home: &Home) -> Error {
        Error::EngineNotBuilt {
            dir: home.dir().to_owned(),
            engine: self.word(),
            feature: self.feature(),
        }
    }

    /// Fails if the store has another engine.
    pub(crate) fn check(self, home: &Home) -> crate::Result<()> {
        match StoreEngine::of(home)? {
            found if found == self => Ok(()),
            found => Err(Error::OtherEngine {
                dir: home.dir().to_owned(),
                found: found.word(),
                wanted: self.word(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_without_a_mark_has_sqlite() {
        let tmp = tempfile::tempdir().unwrap();
        let home = Home::open(tmp.path()).unwrap();
        assert_eq!(StoreEngine::of(&home).unwrap(), StoreEngine::Sqlite);
        for engine in [StoreEngine::Redb, StoreEngine::Lsm, StoreEngine::Sqlite] {
            engine.choose(&home).unwrap();
            assert_eq!(StoreEngine::of(&home).unwrap(), engine);
        }
    }

    #[test]
    fn an_unknown_engine_is_an_error_that_names_the_file() {
        let tmp = tempfile::tempdir().unwrap();
        let home = Home::open(tmp.path()).unwrap();
        std::fs::write(mark_path(&home), "bdb\n").unwrap();
        let error = StoreEngine::of(&home).unwrap_err().to_string();
        assert!(
            error.contains("bdb") && error.contains("/engine"),
            "{error}"
        );
    }
}
