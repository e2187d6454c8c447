//! The databases that this process has open. The library opens a database only once. A process may
//! open its store more than once: one part of a command asks while another appends.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fjall::{Database, Keyspace};

use crate::Result;

/// The open databases by path, and how many stores have each.
static OPEN: Mutex<BTreeMap<PathBuf, SharedTree>> = Mutex::new(BTreeMap::new());

/// A database and the number of its stores.
struct SharedTree {
    database: Database,
    rows: Keyspace,
    stores: usize,
}

/// An open database. The last one that is dropped closes it.
pub struct OpenTree {
    /// The database.
    pub database: Database,
    /// Its tree.
    pub rows: Keyspace,
    path: PathBuf,
}

fn trees() -> MutexGuard<'static, BTreeMap<PathBuf, SharedTree>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenTree {
    /// The database at a path: the one that this process has, or else the one that `open` opens.
    pub fn open(
        path: &Path,
        open: impl FnOnce() -> Result<(Database, Keyspace)>,
    ) -> Result<OpenTree> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut trees = trees();
        if let Some(shared) = trees.get_mut(&path) {
            shared.stores += 1;
            return Ok(OpenTree {
                database: shared.database.clone(),
                rows: shared.rows.clone(),
                path,
            });
        }
        let (database, rows) = open()?;
        let shared = SharedTree {
            database: database.clone(),
            rows: rows.clone(),
            stores: 1,
        };
        trees.insert(path.clone(), shared);
        Ok(OpenTree {
            database,
            rows,
            path,
        })
    }
}

impl Drop for OpenTree {
    fn drop(&mut self) {
        let mut trees = trees();
        let Some(shared) = trees.get_mut(&self.path) else {
            return;
        };
        shared.stores -= 1;
        if shared.stores == 0 {
            trees.remove(&self.path);
        }
    }
}
