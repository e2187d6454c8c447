//! The files of a database in the directory of a store: where they are, and how one database takes
//! the place of another.
//!
//! | engine | files |
//! | --- | --- |
//! | SQLite | `graph.db`, and beside it `graph.db-wal` and `graph.db-shm` |
//! | redb | `graph.redb` |
//! | LSM | the directory `graph.lsm` |
//! | Berkeley DB, RocksDB | the directories `graph.berkeleydb` and `graph.rocksdb` |
//! | PostgreSQL | `graph.postgresql`, which names the database of a server ([`ConnectionFile`]) |
//!
//! Absent: which engine a store has ([`StoreEngine::of`]).

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[cfg(doc)]
use crate::ConnectionFile;
use crate::{EngineOptions, Error, Home, Result, SqliteStore, Store, StoreEngine};

/// How long to wait for another process that has the database alone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// A database of a store, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFiles {
    home: Home,
    engine: StoreEngine,
    path: PathBuf,
}

impl DatabaseFiles {
    /// The database that an engine has in a store.
    pub fn of(home: &Home, engine: StoreEngine) -> DatabaseFiles {
        let name = match engine {
            StoreEngine::Sqlite => return DatabaseFiles::at(home, engine, home.database_path()),
            StoreEngine::Lsm => "graph.lsm",
            StoreEngine::Redb => "graph.redb",
            StoreEngine::Postgresql => "graph.postgresql",
            StoreEngine::BerkeleyDb => "graph.berkeleydb",
            StoreEngine::RocksDb => "graph.rocksdb",
        };
        DatabaseFiles::at(home, engine, home.dir().join(name))
    }

    fn at(home: &Home, engine: StoreEngine, path: PathBuf) -> DatabaseFiles {
        DatabaseFiles {
            home: home.clone(),
            engine,
            path,
        }
    }

    /// The database whose name has this ending: `.new` for one that is being made, `.old` for one
    /// that was replaced.
    pub fn beside(&self, ending: &str) -> DatabaseFiles {
        DatabaseFiles::at(&self.home, self.engine, with_ending(&self.path, ending))
    }

    /// Its file or directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if there is such a file or directory.
    pub fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Opens it, making it where needed.
    ///
    /// Errors: [`Error::EngineNotBuilt`] if this program was built without the engine.
    pub fn open(&self, options: &EngineOptions) -> Result<Box<dyn Store>> {
        let (home, path) = (&self.home, &self.path);
        match self.engine {
            StoreEngine::Sqlite => {
                let store = SqliteStore::open_at(home, path)?;
                store.use_options(options)?;
                Ok(Box::new(store))
            }
            #[cfg(feature = "lsm")]
            StoreEngine::Lsm => Ok(Box::new(crate::LsmStore::open_at(home, path, options)?)),
            #[cfg(feature = "redb")]
            StoreEngine::Redb => Ok(Box::new(crate::RedbStore::open_at(home, path, options)?)),
            #[cfg(feature = "postgresql")]
            StoreEngine::Postgresql => Ok(Box::new(crate::PostgresqlStore::open_at(
                home, path, options,
            )?)),
            #[cfg(feature = "berkeleydb")]
            StoreEngine::BerkeleyDb => Ok(Box::new(crate::BerkeleyDbStore::open_at(
                home, path, options,
            )?)),
            #[cfg(feature = "rocksdb")]
            StoreEngine::RocksDb => {
                Ok(Box::new(crate::RocksDbStore::open_at(home, path, options)?))
            }
            #[cfg(not(all(
                feature = "lsm",
                feature = "redb",
                feature = "postgresql",
                feature = "berkeleydb",
                feature = "rocksdb"
            )))]
            missing => Err(missing.not_built(home)),
        }
    }

    /// The files that the engine has, the one that names the database last.
    fn parts(&self) -> Vec<PathBuf> {
        let endings: &[&str] = match self.engine {
            StoreEngine::Sqlite => &["-wal", "-shm", ""],
            _ => &[""],
        };
        let part = |ending: &&str| with_ending(&self.path, ending);
        endings.iter().map(part).collect()
    }

    /// The files whose times change with each commit. `None` if their names change, too.
    pub fn written(&self) -> Option<Vec<PathBuf>> {
        match self.engine {
            StoreEngine::Sqlite => Some(vec![self.path.clone(), with_ending(&self.path, "-wal")]),
            StoreEngine::Redb => Some(vec![self.path.clone()]),
            _ => None,
        }
    }

    /// Removes all files. It is no error if they do not exist. Waits for processes that have it
    /// alone. A database of a server stays: others may use it.
    pub fn remove(&self) -> Result<()> {
        let _alone = self.wait_until_alone()?;
        for part in self.parts() {
            let directory = part.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            let removed = match directory {
                true => remove_directory(&part),
                false => fs::remove_file(&part),
            };
            or_missing(removed).map_err(|error| Error::io("remove", &part, error))?;
        }
        Ok(())
    }

    /// Puts this database into the place of `other`, which moves aside. A question in between finds
    /// no database, and makes one from the logs.
    pub fn replace(&self, other: &DatabaseFiles, aside: &DatabaseFiles) -> Result<()> {
        // No process may have it open alone: it would go on to write below the old name.
        let _alone = other.wait_until_alone()?;
        aside.remove()?;
        // The log of the old database must not be taken for one of the new.
        other.rename(aside)?;
        self.rename(other)
    }

    /// Gives this database the name of `other`, which is removed.
    pub fn take_name_of(&self, other: &DatabaseFiles) -> Result<()> {
        other.remove()?;
        self.rename(other)
    }

    /// Moves the database aside, and returns where it is.
    pub fn set_aside(&self) -> Result<DatabaseFiles> {
        let aside = self.beside(".old");
        aside.remove()?;
        let _alone = self.wait_until_alone()?;
        self.rename(&aside)?;
        Ok(aside)
    }

    fn rename(&self, to: &DatabaseFiles) -> Result<()> {
        for (from, to) in self.parts().iter().zip(to.parts()) {
            or_missing(fs::rename(from, to)).map_err(|error| Error::io("rename", from, error))?;
        }
        Ok(())
    }

    /// Waits until no process has the database alone. None can open it while the lock is held.
    fn wait_until_alone(&self) -> Result<Option<File>> {
        match self.engine {
            StoreEngine::Lsm | StoreEngine::BerkeleyDb | StoreEngine::RocksDb => (),
            _ => return Ok(None),
        }
        let path = self.path.join("lock");
        let fail = |error| Error::io("lock", &path, error);
        let lock = match File::options().read(true).write(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fail)?,
        };
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(lock)),
                Err(TryLockError::Error(error)) => return Err(fail(error)),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(Error::Busy(self.path.clone())),
            }
        }
    }

    /// Waits until the disk has all files, and their names.
    pub fn sync(&self) -> Result<()> {
        for part in self.parts() {
            or_missing(sync_below(&part)).map_err(|error| Error::io("sync", &part, error))?;
        }
        let dir = self.home.dir();
        let synced = File::open(dir).and_then(|dir| dir.sync_all());
        synced.map_err(|error| Error::io("sync", dir, error))
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Removes a directory under another name. Its lock is removed, too: a process that then opens the
/// database must not write into the directory.
fn remove_directory(path: &Path) -> io::Result<()> {
    let removed = with_ending(path, ".removed");
    // A removal that was killed leaves it.
    or_missing(fs::remove_dir_all(&removed))?;
    fs::rename(path, &removed)?;
    // A process that was about to make a file there has made it by the next attempt.
    let begun = Instant::now();
    loop {
        match fs::remove_dir_all(&removed) {
            Err(error)
                if error.kind() == ErrorKind::DirectoryNotEmpty && begun.elapsed() < PATIENCE =>
            {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

fn or_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Syncs a file, or a directory with all that is below it.
fn sync_below(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            sync_below(&entry?.path())?;
        }
    }
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_directory_is_removed_while_other_processes_open_the_database() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("graph.lsm");
        let done = AtomicBool::new(false);
        let open = || {
            let _ = fs::create_dir_all(&path);
            let _ = File::create(path.join("lock"));
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    open();
                }
            });
            for _ in 0..500 {
                open();
                let removed = or_missing(remove_directory(&path));
                done.store(removed.is_err(), Ordering::Relaxed);
                removed.unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
