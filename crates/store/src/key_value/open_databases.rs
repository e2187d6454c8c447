//! The databases that this process has open. The libraries of some engines open a database only
//! once. A process may open its store more than once: one part of a command asks while another
//! appends.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Result;

/// The open databases of an engine by path, and how many stores have each. A clone of `D` shares
/// the database.
pub struct OpenDatabases<D> {
    open: Mutex<BTreeMap<PathBuf, (D, usize)>>,
}

/// An open database. The last one that is dropped closes it.
pub struct OpenDatabase<D: Clone + 'static> {
    /// The database.
    pub database: D,
    path: PathBuf,
    all: &'static OpenDatabases<D>,
}

impl<D: Clone> OpenDatabases<D> {
    /// No open database.
    pub const fn new() -> OpenDatabases<D> {
        OpenDatabases {
            open: Mutex::new(BTreeMap::new()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, (D, usize)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database at a path: the one that this process has, or else the one that `open` opens.
    pub fn get(
        &'static self,
        path: &Path,
        open: impl FnOnce() -> Result<D>,
    ) -> Result<OpenDatabase<D>> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut all = self.lock();
        let database = match all.get_mut(&path) {
            Some((database, stores)) => {
                *stores += 1;
                database.clone()
            }
            None => {
                let database = open()?;
                all.insert(path.clone(), (database.clone(), 1));
                database
            }
        };
        Ok(OpenDatabase {
            database,
            path,
            all: self,
        })
    }
}

impl<D: Clone> Drop for OpenDatabase<D> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        let Some((_, stores)) = all.get_mut(&self.path) else {
            return;
        };
        *stores -= 1;
        if *stores == 0 {
            all.remove(&self.path);
        }
    }
}
