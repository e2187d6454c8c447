//! Lists of renames: which entities a run renamed, by their paths.
//!
//! ```text
//! path of a list           := 0 path of the entities 0    entries: keys of entities
//! path of the list of runs := 0                           entries: run << 32
//! ```
//!
//! A list is a directory without versions. It has a number, and [`PairTable::Touched`] has a pair
//! of the number and each entry. So a list is made, found and forgotten as a directory is.
//!
//! The list of runs has the runs whose renames are listed. An earlier program lists no renames of
//! the runs that it appends. It also leaves the entries of a run that it removes.
//!
//! Invariant: no directory of an entity has the path of a list. Such a path is empty or ends with a
//! slash.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::iter;
use std::rc::Rc;

use super::cache::ListedRuns;
use super::{BlockTables, GraphReader, PairTable};
use crate::codec::members::Block;
use crate::{EntityKey, Result, RunKey, may_be_directory};

/// The path of the list of runs. The paths of all lists begin with it.
pub const RUNS: &[u8] = &[0];

/// The path of the list of the renamed entities at a path.
pub fn list_at(path: &[u8]) -> Vec<u8> {
    [RUNS, path, &[0]].concat()
}

/// The entry of a run in the list of runs.
pub fn run_entry(run: RunKey) -> i64 {
    i64::from(run.0) << 32
}

impl<T: BlockTables> GraphReader<'_, T> {
    /// See [`crate::GraphStore::rename_candidates`].
    pub fn rename_candidates(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
        self.renew_cache()?;
        let runs = self.listed_runs()?;
        let mut found = Vec::new();
        for entry in self.entries(&list_at(path))? {
            let key = EntityKey(entry as u64);
            if runs.listed.contains(&key.run().0) {
                found.push(key);
            }
        }
        if !runs.others.is_empty() {
            let others = self.at_path(path)?.into_iter();
            found.extend(others.filter(|key| runs.others.contains(&key.run().0)));
        }
        found.sort_unstable_by_key(|key| (Reverse(key.run()), key.local()));
        Ok(found)
    }

    /// The lists at the paths and aliases of those entities of a block that may be directories. No
    /// other list has entries of them, so a run is removed without a look at the other lists.
    pub fn lists_of(&self, block: &Block) -> Result<Vec<u32>> {
        let mut paths = BTreeSet::new();
        for member in &block.members {
            let may_be = self.version(member.version, |version| {
                may_be_directory(version.kind, version.ident.as_ref())
            })?;
            let names = iter::once(&member.version).chain(&member.aliases);
            for name in names.filter(|_| may_be) {
                paths.insert(list_at(&self.path_of(*name)?));
            }
        }
        let all = paths.iter().map(Vec::as_slice);
        self.tables.expect_directories(all.clone())?;
        let numbers = all.map(|path| self.tables.directory_id(path));
        numbers.filter_map(Result::transpose).collect()
    }

    /// The entries of the list with this path, ascending.
    fn entries(&self, list: &[u8]) -> Result<Vec<i64>> {
        match self.tables.directory_id(list)? {
            Some(list) => self.tables.partners(PairTable::Touched, i64::from(list)),
            None => Ok(Vec::new()),
        }
    }

    fn listed_runs(&self) -> Result<Rc<ListedRuns>> {
        if let Some(runs) = &self.cache().borrow().listed_runs {
            return Ok(runs.clone());
        }
        let mut runs = ListedRuns::default();
        runs.others.extend(self.tables.run_numbers()?);
        for entry in self.entries(RUNS)? {
            let run = EntityKey(entry as u64).run().0;
            if runs.others.remove(&run) {
                runs.listed.insert(run);
            }
        }
        let runs = Rc::new(runs);
        self.cache().borrow_mut().listed_runs = Some(runs.clone());
        Ok(runs)
    }
}
