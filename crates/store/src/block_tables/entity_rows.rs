//! Reads entities, by key, by run and by path.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Entity, EntityId, EntityKind};

use super::{BlockTable, BlockTables, GraphReader, column, names, range};
use crate::codec::members::{self, BLOCK, Block, Member, VersionRef};
use crate::{EntityKey, Error, Result, RunKey};

impl<T: BlockTables> GraphReader<'_, T> {
    /// The block of entities that `key` is in.
    pub(super) fn block(&self, key: EntityKey) -> Result<Rc<Block>> {
        self.block_at(first_of_block(key))
    }

    fn block_at(&self, id: i64) -> Result<Rc<Block>> {
        if let Some(block) = self.cache().borrow().members.get(&id) {
            return Ok(block.clone());
        }
        let decode = |block: &[u8]| self.decoded(id, block);
        let block = self.tables.row(BlockTable::Members, id, decode)?;
        block.ok_or(Error::Damaged("list of entities (it is missing)"))?
    }

    /// The block of a row, decoded once.
    fn decoded(&self, id: i64, block: &[u8]) -> Result<Rc<Block>> {
        if let Some(block) = self.cache().borrow().members.get(&id) {
            return Ok(block.clone());
        }
        let block = Rc::new(Block::decode(block)?);
        let mut cache = self.cache().borrow_mut();
        cache.trim();
        cache.members.insert(id, block.clone());
        Ok(block)
    }

    pub fn entity(&self, key: EntityKey) -> Result<Entity> {
        let block = self.block(key)?;
        self.as_entity(key.local(), member_of(&block, key)?)
    }

    fn as_entity(&self, id: EntityId, member: &Member) -> Result<Entity> {
        let (kind, ident) =
            self.version(member.version, |version| (version.kind, version.ident))?;
        Ok(Entity {
            id,
            kind,
            path: self.path_of(member.version)?,
            aliases: member
                .aliases
                .iter()
                .map(|alias| self.path_of(*alias))
                .collect::<Result<_>>()?,
            by_name: member.by_name.clone(),
            version: member.number,
            previous: member.previous.map(EntityId),
            ident,
            last: member.last,
        })
    }

    pub fn entities(&self, run: RunKey) -> Result<Vec<Entity>> {
        let mut blocks = Vec::new();
        self.tables
            .rows(BlockTable::Members, range(run.0), |id, block| {
                blocks.push((id, self.decoded(id, block)?));
                Ok(())
            })?;
        let mut entities = Vec::new();
        for (id, block) in blocks {
            for (local, member) in (id as u32..).zip(&block.members) {
                entities.push(self.as_entity(EntityId(local), member)?);
            }
        }
        Ok(entities)
    }

    /// Reads neither entities nor versions.
    pub fn directories_of(&self, run: RunKey) -> Result<Vec<Bytes>> {
        let mut dirs = BTreeSet::new();
        self.tables
            .rows(BlockTable::Members, range(run.0), |_, block| {
                members::directories(block, |dir| {
                    dirs.insert(dir);
                })
            })?;
        let paths = dirs.into_iter().map(|dir| self.dir(dir));
        let mut paths: Vec<Bytes> = paths.collect::<Result<_>>()?;
        paths.sort_unstable();
        Ok(paths)
    }

    pub fn at_path(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
        let (dir, name) = names::split(path);
        let Some(dir) = self.tables.directory_id(dir)? else {
            return Ok(Vec::new());
        };
        let mut wanted = HashSet::new();
        self.scan(dir, |index, found, _, _| {
            if found == name {
                wanted.insert(VersionRef { dir, index });
            }
        })?;
        let mut found = Vec::new();
        if !wanted.is_empty() {
            self.named(dir, &wanted, &mut found)?;
        }
        Ok(found)
    }

    /// Only directories that can have such a path are examined.
    pub fn below(&self, prefix: &[u8], wanted: &dyn Fn(&[u8]) -> bool) -> Result<Vec<EntityKey>> {
        // The directory of the prefix itself, and all that begin with the prefix.
        let (own, _) = names::split(prefix);
        let mut found = Vec::new();
        for (dir, path) in self.tables.directories(own, prefix)? {
            let mut here = HashSet::new();
            self.scan(dir, |index, name, kind, _| {
                let whole = names::join(&path, name);
                if kind != EntityKind::Missing && whole.starts_with(prefix) && wanted(&whole) {
                    here.insert(VersionRef { dir, index });
                }
            })?;
            if here.is_empty() {
                continue;
            }
            self.named(dir, &here, &mut found)?;
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    pub fn made_in(&self, directory: &[u8]) -> Result<Vec<(Bytes, EntityKey)>> {
        let Some(dir) = self.tables.directory_id(directory)? else {
            return Ok(Vec::new());
        };
        let mut names: HashMap<u32, Bytes> = HashMap::new();
        self.scan(dir, |index, name, _, _| {
            names.insert(index, name.into());
        })?;
        let mut found = Vec::new();
        self.members_of(dir, |key, member| {
            let all = std::iter::once(&member.version).chain(&member.aliases);
            let here = all.filter(|version| member.number > 0 && version.dir == dir);
            for version in here {
                found.extend(names.get(&version.index).map(|name| (name.clone(), key)));
            }
        })?;
        Ok(found)
    }

    pub fn directories_below(&self, top: &[u8]) -> Result<Vec<Bytes>> {
        // The byte after the slash: the first path that is not below. The directories of removed
        // runs stay in the table.
        let end = [top.strip_suffix(b"/").unwrap_or(top), b"0"].concat();
        self.tables.touched_directories(top, &end)
    }

    /// Adds the entities with one of these versions of a directory as their path or alias, those of
    /// the latest run first.
    fn named(
        &self,
        dir: u32,
        wanted: &HashSet<VersionRef>,
        found: &mut Vec<EntityKey>,
    ) -> Result<()> {
        self.tables.members_in(dir, |first, block| {
            members::named(
                block,
                |version| version.dir == dir && wanted.contains(&version),
                |position| found.push(EntityKey(first as u64 + position as u64)),
            )
        })
    }

    /// Passes all entities of blocks that touch `dir` to `each`, those of the latest run first.
    fn members_of(&self, dir: u32, mut each: impl FnMut(EntityKey, &Member)) -> Result<()> {
        let mut blocks = Vec::new();
        self.tables.members_in(dir, |id, block| {
            blocks.push((id, Block::decode(block)?));
            Ok(())
        })?;
        for (id, block) in blocks {
            for (key, member) in (id as u64..).zip(&block.members) {
                each(EntityKey(key), member);
            }
        }
        Ok(())
    }
}

/// The entity in its block.
pub(super) fn member_of(block: &Block, key: EntityKey) -> Result<&Member> {
    let position = (key.local().0 % BLOCK) as usize;
    let member = block.members.get(position);
    member.ok_or(Error::Damaged("entity (it is missing)"))
}

/// The key of the first entity of the block that `key` is in.
pub(super) fn first_of_block(key: EntityKey) -> i64 {
    column(key.0 - key.0 % u64::from(BLOCK))
}
