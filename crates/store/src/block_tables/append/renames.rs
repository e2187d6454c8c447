//! Lists the renames of a run that may be those of directories.
//!
//! In: edges and derivations, as they are emitted. Out: entries of the lists of
//! [`rename_lists`](crate::block_tables::rename_lists). The kind of a path may be announced after its
//! rename, so that kinds are compared at the end.

use std::collections::BTreeSet;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Derived, Edge, EntityId, Relation};
use rustc_hash::FxHashSet;

use super::{AT_ONCE, AppendingRun};
use crate::block_tables::directories::DirectoryWriter;
use crate::block_tables::rename_lists::{RUNS, list_at, run_entry};
use crate::block_tables::{BlockTables, column, names};
use crate::{EntityKey, Result, RunKey, may_be_directory};

/// The edges and derivations that tell the renames of a run.
#[derive(Debug, Default)]
pub(super) struct Renames {
    /// Activities, and the versions to which they gave a name by a rename.
    named: FxHashSet<(u32, u32)>,
    /// Activities, the versions that they derived, and the versions before.
    derived: FxHashSet<(u32, u32, u32)>,
}

impl Renames {
    /// Takes an edge.
    pub fn edge(&mut self, edge: &Edge) {
        if edge.relation == Relation::Rename {
            self.named.insert((edge.activity.0, edge.entity.0));
        }
    }

    /// Takes a derivation.
    pub fn derived(&mut self, one: &Derived) {
        self.derived
            .insert((one.activity.0, one.entity.0, one.from.0));
    }

    /// Each renamed version, with the version before.
    fn all(&self) -> impl Iterator<Item = [u32; 2]> {
        let derived = self.derived.iter();
        derived.filter_map(move |(activity, entity, from)| {
            let is_renamed = self.named.contains(&(*activity, *entity));
            is_renamed.then_some([*entity, *from])
        })
    }
}

impl<T: BlockTables> AppendingRun<'_, T> {
    /// The entries of this run in lists of renames: number of the list, entry. Ascending. Makes the
    /// lists that are not there.
    pub(super) fn list_renames(
        &mut self,
        directories: &mut DirectoryWriter,
    ) -> Result<Vec<(i64, i64)>> {
        let run = RunKey(self.number()?);
        let mut entries = BTreeSet::from([(RUNS.to_vec(), run_entry(run))]);
        for ends in self.renames.all() {
            if self.are_directories(ends)? {
                for id in ends {
                    let entry = column(EntityKey::new(run, EntityId(id)).0);
                    let paths = self.paths_of(id)?.into_iter();
                    entries.extend(paths.map(|path| (list_at(&path), entry)));
                }
            }
        }
        let entries: Vec<(Vec<u8>, i64)> = entries.into_iter().collect();
        let lists: Vec<&[(Vec<u8>, i64)]> = entries.chunk_by(|a, b| a.0 == b.0).collect();
        let mut found = Vec::with_capacity(entries.len());
        for some in lists.chunks(AT_ONCE) {
            let paths = some.iter().map(|list| list[0].0.as_slice());
            self.tables.expect_directories(paths)?;
            for list in some {
                let (number, _) = self.directory(directories, &list[0].0)?;
                let pairs = list.iter().map(|(_, entry)| (i64::from(number), *entry));
                found.extend(pairs);
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Whether a version and the one before may be those of a directory.
    fn are_directories(&self, ends: [u32; 2]) -> Result<bool> {
        for id in ends {
            let known = self.entity(id)?;
            if !may_be_directory(known.kind, self.ident(known).as_ref()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The path of an entity and its aliases.
    fn paths_of(&self, id: u32) -> Result<Vec<Bytes>> {
        let known = self.entity(id)?;
        let all = [(known.dir, known.name)];
        let all = all.iter().chain(known.aliases());
        let path = |(dir, name): &(u32, names::Text)| {
            names::join(self.names.directory(*dir), self.names.text(*name))
        };
        Ok(all.map(path).collect())
    }
}
