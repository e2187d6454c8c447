//! Which run makes the file that is at a path now?
//!
//! In: a version that a run found or left. Out: the version of the run whose work is at that place
//! now, if it is another run. A file that a person changed since has no such version: the person's
//! file is a source. Across runs the present file counts, also if a person made it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;

use backstory_eventlog::event::Bytes;
use backstory_files::{Ident, VersionId};
use backstory_graph::model::{Entity, EntityKind};
use backstory_ordering::SmallSort;
use backstory_store::{EntityKey, Store, VersionMatch};
use backstory_workflow::paths::is_system;

use crate::Result;
use crate::file_state::{FileComparison, FileState};
use crate::loaded_runs::{LoadedRun, LoadedRuns};
use crate::present_files::PresentFiles;
use crate::results::ResultFinder;

/// Finds the makers of files. Each path is looked up once.
pub struct PresentMakers<'s> {
    store: &'s dyn Store,
    runs: &'s LoadedRuns<'s>,
    files: &'s FileComparison<'s>,
    finder: &'s ResultFinder<'s>,
    by_path: RefCell<HashMap<Bytes, Option<EntityKey>>>,
    by_identity: RefCell<HashMap<VersionId, Option<EntityKey>>>,
}

impl<'s> PresentMakers<'s> {
    /// Finds makers among the runs of a store.
    pub fn new(
        store: &'s dyn Store,
        runs: &'s LoadedRuns<'s>,
        files: &'s FileComparison<'s>,
        finder: &'s ResultFinder<'s>,
    ) -> PresentMakers<'s> {
        PresentMakers {
            store,
            runs,
            files,
            finder,
            by_path: RefCell::default(),
            by_identity: RefCell::default(),
        }
    }

    /// The files of this machine.
    pub fn present(&self) -> &'s PresentFiles {
        self.files.present
    }

    /// The version of another run that stands for a version of this one. `None`: this run's own
    /// version stands for itself, or no run made the file.
    pub fn of(&self, run: &LoadedRun, entity: &Entity) -> Result<Option<EntityKey>> {
        if !is_kept(entity.kind) || is_system(&entity.path) {
            return Ok(None);
        }
        let left = run.left(&entity.path);
        let found = match (run.is_made(entity), left) {
            // The run changed the file again. The version that it found is gone.
            (false, Some(_)) => self.former(run, entity)?,
            (false, None) => match self.at(&entity.path)? {
                Some(now) => Some(now),
                None => self.identical(entity.ident.as_ref())?,
            },
            (true, Some(left)) if left.id == entity.id && left.last => {
                let now = self.at(&entity.path)?;
                now.filter(|now| now.run() > run.recording.key)
            }
            (true, _) => None,
        };
        Ok(found.filter(|found| found.run() != run.recording.key))
    }

    /// The version that a run produced last at the path, if the file still has its content.
    fn at(&self, path: &Bytes) -> Result<Option<EntityKey>> {
        if let Some(known) = self.by_path.borrow().get(path) {
            return Ok(*known);
        }
        let mut found = None;
        if let Some((key, version)) = self.finder.produced_at(path)? {
            let ended = self.runs.get(key.run())?.ended;
            let state = self.files.state(path, &version, ended)?;
            found = (state == FileState::Current).then_some(key);
        }
        if found.is_none()
            && let Ok(now) = self.files.present.ident(path)
        {
            found = self.identical(Some(&now))?;
        }
        self.by_path.borrow_mut().insert(path.clone(), found);
        Ok(found)
    }

    /// The newest version with this identity that a run made.
    fn identical(&self, ident: Option<&Ident>) -> Result<Option<EntityKey>> {
        let Some(ident) = ident else { return Ok(None) };
        let by = ident.version_id();
        if let Some(known) = self.by_identity.borrow().get(&by) {
            return Ok(*known);
        }
        let mut found: Option<EntityKey> = None;
        for key in self.store.same(ident, VersionMatch::Made)? {
            if !self.runs.is_undone(key.run())? {
                found = found.max(Some(key));
            }
        }
        self.by_identity.borrow_mut().insert(by, found);
        Ok(found)
    }

    /// The version that an earlier run left where this run found `entity`: by identity, else by
    /// digest. If the digest is not known, it is the newest one.
    fn former(&self, run: &LoadedRun, entity: &Entity) -> Result<Option<EntityKey>> {
        if let Some(known) = self.identical(entity.ident.as_ref())? {
            return Ok(Some(known));
        }
        let mut earlier = self.finder.all_produced_at(&entity.path)?;
        earlier.retain(|key| key.run() < run.recording.key);
        earlier.sort_small_by_key(|key| Reverse(key.run()));
        let digest = match &entity.ident {
            Some(ident) => self.files.digest(ident)?,
            None => None,
        };
        // A repetition begins with the file that the repeated run had found.
        let mut repeated = run.recording.details.summary.repeats.clone();
        for key in earlier {
            let made = self.runs.get(key.run())?;
            let summary = &made.recording.details.summary;
            if repeated.as_ref() == Some(&summary.id) {
                repeated.clone_from(&summary.repeats);
                continue;
            }
            let ident = made.recording.entity(key.local()).ident;
            let known = match &ident {
                Some(ident) if digest.is_some() => self.files.digest(ident)?,
                _ => None,
            };
            if known.is_none() || known == digest {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }
}

/// True if a version of this kind can be found at its path by another run.
fn is_kept(kind: EntityKind) -> bool {
    matches!(kind, EntityKind::File | EntityKind::Symlink)
}
