//! The engine `lsm`: a log-structured merge tree, in a directory of its own. The library is the
//! tree of `fjall`, without fjall's journal and threads.
//!
//! An append of a run is one sorted, compressed table. A commit of a few rows goes to a short log.
//! So a process that asks one question reads little to open the database, and starts no thread. One
//! process at a time has the database: others wait for it. Stores of the same process share it.

mod manifest;
mod open_tree;
mod recent_commits;
#[cfg(test)]
mod tests;

use std::fs::DirBuilder;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::changes::Changes;
use super::damage::{caught, patiently};
use super::engine::{KeyValueEngine, KeyValueSnapshot, Look, ScanOrder, USUAL_MEMORY};
use super::files_below::size;
use super::open_databases::{OpenDatabase, OpenDatabases};
use crate::{EngineOptions, Error, Result};
use open_tree::{OpenTree, TreeState, failed};

static OPEN: OpenDatabases<Arc<OpenTree>> = OpenDatabases::new();

/// A database with one tree.
pub struct LsmEngine {
    /// Always there until it is dropped.
    opened: Option<OpenDatabase<Arc<OpenTree>>>,
    path: PathBuf,
    synced: bool,
}

/// One state of the tree.
pub struct LsmSnapshot {
    state: TreeState,
    path: PathBuf,
}

impl LsmEngine {
    fn opened(&self) -> Result<&Arc<OpenTree>> {
        let closed = Error::Damaged("database (it is closed)");
        Ok(&self.opened.as_ref().ok_or(closed)?.database)
    }

    /// Reads every row. The library compares each block with its checksum.
    fn read_all(&self) -> Result<()> {
        let go_on = &mut |_: &[u8], _: &[u8]| Ok(ControlFlow::Continue(()));
        let snapshot = self.snapshot()?;
        snapshot.scan(&[], &[u8::MAX], ScanOrder::Ascending, go_on)
    }
}

impl Drop for LsmEngine {
    fn drop(&mut self) {
        // Closing a damaged database may fail; there is nothing left to do then.
        let opened = self.opened.take();
        let _ = caught(&self.path, || {
            drop(opened);
            Ok(())
        });
    }
}

impl KeyValueEngine for LsmEngine {
    type Snapshot = LsmSnapshot;
    /// The process that has opened the database is the only one.
    type Writer = ();

    const EXCLUSIVE: bool = true;

    fn open(path: &Path, options: &EngineOptions) -> Result<Self> {
        let path = path.to_owned();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| Error::io("make", &path, error))?;
        let memory = options.memory.unwrap_or(USUAL_MEMORY) as u64;
        let open = || OpenTree::open(&path, memory).map(Arc::new);
        let opened = OPEN.get(&path, || patiently(|| caught(&path, open)))?;
        let engine = LsmEngine {
            opened: Some(opened),
            path,
            synced: options.synced,
        };
        if options.examined {
            engine.read_all()?;
        }
        Ok(engine)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn snapshot(&self) -> Result<LsmSnapshot> {
        Ok(LsmSnapshot {
            state: self.opened()?.state(),
            path: self.path.clone(),
        })
    }

    fn begin(&self) -> Result<()> {
        Ok(())
    }

    fn commit(&self, (): (), changes: Changes) -> Result<()> {
        let opened = self.opened()?;
        let changes = changes.into_values().collect();
        caught(&self.path, || opened.commit(changes, self.synced))
    }

    fn bytes(&self) -> Result<u64> {
        size(&self.path).map_err(|error| Error::io("look at", &self.path, error))
    }

    fn compact(&mut self) -> Result<()> {
        let opened = self.opened()?;
        caught(&self.path, || opened.compact())
    }
}

impl LsmSnapshot {
    /// Looks at rows until `look` says that it has seen enough.
    fn each(
        &self,
        mut rows: impl Iterator<Item = lsm_tree::Result<lsm_tree::KvPair>>,
        look: &mut Look<'_>,
    ) -> Result<()> {
        loop {
            let row = caught(&self.path, || {
                let row = rows.next().transpose();
                row.map_err(|error| failed("read", &self.path, error))
            })?;
            let Some((key, value)) = row else {
                return Ok(());
            };
            if look(&key, &value)?.is_break() {
                return Ok(());
            }
        }
    }
}

impl KeyValueSnapshot for LsmSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        caught(&self.path, || {
            let found = self.state.get(key);
            found.map_err(|error| failed("read", &self.path, error))
        })
    }

    fn scan(&self, from: &[u8], end: &[u8], order: ScanOrder, look: &mut Look<'_>) -> Result<()> {
        if from >= end {
            return Ok(());
        }
        match order {
            ScanOrder::Ascending => {
                let rows = caught(&self.path, || Ok(self.state.range_from(from)))?;
                self.each(rows, &mut |key, value| match key < end {
                    true => look(key, value),
                    false => Ok(ControlFlow::Break(())),
                })
            }
            ScanOrder::Descending => {
                let rows = caught(&self.path, || Ok(self.state.range(from, end).rev()))?;
                self.each(rows, look)
            }
        }
    }
}
