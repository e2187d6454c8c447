//! Finds the version that a path stands for: the one that a run produced last.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::Entity;
use backstory_query::Asked;
use backstory_store::{EntityKey, Store, VersionMatch};

use crate::Result;
use crate::loaded_runs::LoadedRuns;
use crate::present_files::PresentFiles;

/// The versions that runs made in one directory, by name.
type MadeVersions = Rc<HashMap<Bytes, Vec<EntityKey>>>;

/// Finds results. Each directory is looked up once.
pub struct ResultFinder<'s> {
    store: &'s dyn Store,
    runs: &'s LoadedRuns<'s>,
    present: &'s PresentFiles,
    directories: RefCell<HashMap<Vec<u8>, MadeVersions>>,
}

impl<'s> ResultFinder<'s> {
    /// Finds results of a store's runs.
    pub fn new(
        store: &'s dyn Store,
        runs: &'s LoadedRuns<'s>,
        present: &'s PresentFiles,
    ) -> ResultFinder<'s> {
        ResultFinder {
            store,
            runs,
            present,
            directories: RefCell::default(),
        }
    }

    /// The last version that a run made at one of the path's names. Without one, the file that is
    /// there now, if a run made it under another name.
    pub fn last_produced(&self, asked: &Asked) -> Result<Option<(EntityKey, Entity)>> {
        let mut keys = Vec::new();
        for path in asked.names() {
            keys.extend(self.all_produced_at(path)?);
        }
        if keys.is_empty()
            && let Some(path) = asked.names().first()
            && let Ok(ident) = self.present.ident(&Bytes::from(*path))
        {
            keys = self.store.same(&ident, VersionMatch::Made)?;
        }
        self.newest(keys)
    }

    /// The last version that a run made at a path.
    pub fn produced_at(&self, path: &[u8]) -> Result<Option<(EntityKey, Entity)>> {
        self.newest(self.all_produced_at(path)?)
    }

    /// All versions that runs made at a path.
    pub fn all_produced_at(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
        let slash = path.iter().rposition(|&byte| byte == b'/');
        let (directory, name) = path.split_at(slash.map_or(0, |slash| slash + 1));
        let made = self.made_in(directory)?;
        Ok(made.get(name).cloned().unwrap_or_default())
    }

    fn newest(&self, keys: Vec<EntityKey>) -> Result<Option<(EntityKey, Entity)>> {
        let mut standing = Vec::new();
        for key in keys {
            if !self.runs.is_undone(key.run())? {
                standing.push(key);
            }
        }
        let keys = standing;
        let Some(run) = keys.iter().map(|key| key.run()).max() else {
            return Ok(None);
        };
        let run = self.runs.get(run)?;
        let here = keys.iter().filter(|key| key.run() == run.recording.key);
        let versions = here.map(|&key| (key, run.recording.entity(key.local())));
        let made = versions.filter(|(_, version)| run.is_made(version));
        let best = made.max_by_key(|(key, version)| (version.last, version.version, *key));
        Ok(best.map(|(key, version)| (key, version.clone())))
    }

    fn made_in(&self, directory: &[u8]) -> Result<MadeVersions> {
        if let Some(known) = self.directories.borrow().get(directory) {
            return Ok(known.clone());
        }
        let mut made: HashMap<Bytes, Vec<EntityKey>> = HashMap::new();
        for (name, key) in self.store.made_in(directory)? {
            made.entry(name).or_default().push(key);
        }
        let made = Rc::new(made);
        let mut directories = self.directories.borrow_mut();
        directories.insert(directory.to_vec(), made.clone());
        Ok(made)
    }
}
