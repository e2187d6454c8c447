//! Finds the version of each name of a run, or makes it, directory by directory.

use backstory_files::Ident;
use backstory_graph::model::EntityKind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{AT_ONCE, AppendingRun};
use crate::block_tables::directories::DirectoryWriter;
use crate::block_tables::{BlockTable, BlockTables, PairTable, bucket, column, range};
use crate::codec::members::VersionRef;
use crate::codec::versions::{self, VersionName};
use crate::{Error, Result};

/// A name that needs a version: directory (its number in this run), entity, 0 for the path or 1 …
/// for an alias.
type WantedName = (u32, u32, u32);

impl<T: BlockTables> AppendingRun<'_, T> {
    /// Finds or makes the version of every name, directory by directory. Lists the renames.
    pub(super) fn resolve_versions(&mut self) -> Result<ResolvedVersions> {
        let mut wanted: Vec<WantedName> = Vec::with_capacity(self.entities.len());
        for id in 0..self.entities.len() as u32 {
            let known = self.entity(id)?;
            wanted.push((known.dir, id, 0));
            wanted.extend(
                (1..)
                    .zip(known.aliases())
                    .map(|(alias, (dir, _))| (*dir, id, alias)),
            );
        }
        wanted.sort_unstable();
        let mut found = ResolvedVersions {
            paths: vec![VersionRef::default(); self.entities.len()],
            aliases: FxHashMap::default(),
            inodes: Vec::new(),
        };
        let mut directories = DirectoryWriter::default();
        let groups: Vec<&[WantedName]> = wanted.chunk_by(|a, b| a.0 == b.0).collect();
        for some in groups.chunks(AT_ONCE) {
            let path = |group: &&[WantedName]| self.names.directory(group[0].0);
            self.tables.expect_directories(some.iter().map(path))?;
            for group in some {
                let (dir, is_new) = self.directory(&mut directories, path(group))?;
                self.resolve_in(dir, is_new, group, &mut found)?;
            }
        }
        let renames = self.list_renames(&mut directories)?;
        self.tables.add_pairs(PairTable::Touched, &renames)?;
        directories.write(self.tables)?;
        // In the order of the index, which is faster.
        let mut inodes = std::mem::take(&mut found.inodes);
        inodes.sort_unstable();
        self.tables.add_pairs(PairTable::Inodes, &inodes)?;
        Ok(found)
    }

    /// The id of a directory, and whether it is new.
    pub(super) fn directory(
        &self,
        directories: &mut DirectoryWriter,
        path: &[u8],
    ) -> Result<(u32, bool)> {
        match self.tables.directory_id(path)? {
            Some(id) => Ok((id, false)),
            None => Ok((directories.add(self.tables, path)?, true)),
        }
    }

    fn name(&self, wanted: &WantedName) -> Result<&[u8]> {
        let known = self.entity(wanted.1)?;
        Ok(self.names.text(match wanted.2 {
            0 => known.name,
            alias => known.aliases()[alias as usize - 1].1,
        }))
    }

    fn resolve_in(
        &self,
        dir: u32,
        is_new: bool,
        group: &[WantedName],
        found: &mut ResolvedVersions,
    ) -> Result<()> {
        let mut names: FxHashMap<&[u8], NameVersions> = FxHashMap::default();
        names.reserve(group.len());
        for wanted in group {
            names.entry(self.name(wanted)?).or_default();
        }
        let mut next = 0;
        if !is_new {
            next = self.recall(dir, &mut names)?;
        }
        let mut blocks = VersionWriter {
            tables: self.tables,
            dir,
            first: next,
            count: 0,
            block: Default::default(),
        };
        let mut buckets = FxHashSet::default();
        for wanted in group {
            let known = self.entity(wanted.1)?;
            let name = self.name(wanted)?;
            let slot = names.entry(name).or_default();
            let ident = self.ident(known);
            let state = (known.kind, ident);
            let index = match slot.index_of(&state) {
                Some(index) => index,
                None => {
                    let shown = slot.first.map_or(VersionName::Here(name), VersionName::As);
                    let index = blocks.push(shown, known.kind, ident.as_ref())?;
                    slot.add(state, index);
                    if let Some(ident) = ident.filter(|_| has_inode(known.kind)) {
                        buckets.insert(bucket(&ident));
                    }
                    index
                }
            };
            match wanted.2 {
                0 => found.paths[wanted.1 as usize] = VersionRef { dir, index },
                alias => drop(
                    found
                        .aliases
                        .insert((wanted.1, alias), VersionRef { dir, index }),
                ),
            }
        }
        let dir = i64::from(dir);
        let inodes = buckets.into_iter().map(|bucket| (bucket, dir));
        found.inodes.extend(inodes);
        blocks.write()
    }

    /// Reads the versions of a directory that have one of these names. Returns how many versions
    /// the directory has.
    fn recall(&self, dir: u32, names: &mut FxHashMap<&[u8], NameVersions>) -> Result<u32> {
        let mut count = 0u32;
        // The first version of each wanted name. Later versions of the name refer to it.
        let mut firsts: FxHashMap<u32, &[u8]> = FxHashMap::default();
        self.tables
            .rows(BlockTable::Versions, range(dir), |_, block| {
                let first = count;
                versions::decode(block, |place, record| {
                    let index = first + place;
                    count = index + 1;
                    let asked = match record.name {
                        VersionName::Here(name) => names.get_key_value(name).map(|(key, _)| *key),
                        VersionName::As(at) => firsts.get(&at).copied(),
                    };
                    if let Some(slot) = asked.and_then(|name| names.get_mut(name)) {
                        if slot.first.is_none() {
                            firsts.insert(index, asked.unwrap_or_default());
                        }
                        slot.add((record.kind, record.ident), index);
                    }
                    Ok(())
                })
            })?;
        Ok(count)
    }
}

/// The versions of all names: of each entity's path, and of its aliases (counted from 1).
pub(super) struct ResolvedVersions {
    pub paths: Vec<VersionRef>,
    pub aliases: FxHashMap<(u32, u32), VersionRef>,
    /// Pairs of [`PairTable::Inodes`] that are not added yet.
    inodes: Vec<(i64, i64)>,
}

/// Kind and identity of a version.
type VersionState = (EntityKind, Option<Ident>);

/// The versions of one name in a directory.
#[derive(Debug, Default)]
struct NameVersions {
    /// Index of the first record of the name.
    first: Option<u32>,
    /// One version and its index. Most names have no other.
    one: Option<(VersionState, u32)>,
    others: FxHashMap<VersionState, u32>,
}

impl NameVersions {
    fn index_of(&self, state: &VersionState) -> Option<u32> {
        match &self.one {
            Some((one, index)) if one == state => Some(*index),
            _ => self.others.get(state).copied(),
        }
    }

    fn add(&mut self, state: VersionState, index: u32) {
        self.first.get_or_insert(index);
        match &self.one {
            None => self.one = Some((state, index)),
            Some(_) => drop(self.others.insert(state, index)),
        }
    }
}

/// Writes new versions of one directory.
struct VersionWriter<'r, T: BlockTables> {
    tables: &'r T,
    dir: u32,
    first: u32,
    count: u32,
    block: versions::Builder,
}

impl<T: BlockTables> VersionWriter<'_, T> {
    fn push(
        &mut self,
        name: VersionName<'_>,
        kind: EntityKind,
        ident: Option<&Ident>,
    ) -> Result<u32> {
        if self.count == versions::BLOCK {
            self.write()?;
        }
        let index = self.first + self.count;
        self.block.push(name, kind, ident);
        self.count += 1;
        Ok(index)
    }

    fn write(&mut self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let key = column(u64::from(self.dir) << 32 | u64::from(self.first));
        let block = std::mem::take(&mut self.block).finish();
        self.tables.add_row(BlockTable::Versions, key, &block)?;
        self.first = self
            .first
            .checked_add(self.count)
            .ok_or(Error::TooMany("versions in one directory"))?;
        self.count = 0;
        Ok(())
    }
}

/// Whether an inode number identifies entities of this kind.
pub(super) fn has_inode(kind: EntityKind) -> bool {
    matches!(
        kind,
        EntityKind::File | EntityKind::Directory | EntityKind::Symlink
    )
}
