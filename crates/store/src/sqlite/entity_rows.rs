//! Reads entities, by key, by run and by path.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Entity, EntityId, EntityKind};

use super::{SqliteStore, column, names, range};
use crate::codec::members::{BLOCK, Block, Member, VersionRef};
use crate::{EntityKey, Error, Result, RunKey};

/// All blocks of entities that touch a directory, those of the latest run first.
pub(super) const MEMBERS_IN: &str = "SELECT members.id, block FROM touched JOIN members ON members.id = touched.members \
                          WHERE dir = ?1 ORDER BY touched.members DESC";

impl SqliteStore {
    /// The block of entities that `key` is in.
    pub(super) fn block(&self, key: EntityKey) -> Result<Rc<Block>> {
        self.block_at(first_of_block(key))
    }

    fn block_at(&self, id: i64) -> Result<Rc<Block>> {
        if let Some(block) = self.cache.borrow().members.get(&id) {
            return Ok(block.clone());
        }
        let select = "SELECT block FROM members WHERE id = ?1";
        let block = self.one(select, [id], |row| {
            Ok(Block::decode(row.get_ref(0)?.as_blob()?))
        })?;
        let block = Rc::new(block.ok_or(Error::Damaged("list of entities (it is missing)"))??);
        let mut cache = self.cache.borrow_mut();
        cache.trim();
        cache.members.insert(id, block.clone());
        Ok(block)
    }

    pub(super) fn one_entity(&self, key: EntityKey) -> Result<Entity> {
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

    pub(super) fn run_entities(&self, run: RunKey) -> Result<Vec<Entity>> {
        let (from, to) = range(run.0);
        let ids = self.all(
            "SELECT id FROM members WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
            [from, to],
            |row| row.get::<_, i64>(0),
        )?;
        let mut entities = Vec::new();
        for id in ids {
            let block = self.block_at(id)?;
            for (local, member) in (id as u32..).zip(&block.members) {
                entities.push(self.as_entity(EntityId(local), member)?);
            }
        }
        Ok(entities)
    }

    pub(super) fn entities_at(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
        let (dir, name) = names::split(path);
        let dir: Option<u32> = self.one("SELECT id FROM dirs WHERE path = ?1", [dir], |row| {
            row.get(0)
        })?;
        let Some(dir) = dir else {
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
            self.members_of(dir, |key, member| {
                if wanted.contains(&member.version)
                    || member.aliases.iter().any(|alias| wanted.contains(alias))
                {
                    found.push(key);
                }
            })?;
        }
        Ok(found)
    }

    /// Only directories that can have such a path are examined.
    pub(super) fn entities_below(
        &self,
        prefix: &[u8],
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<EntityKey>> {
        // The directory of the prefix itself, and all that begin with the prefix.
        let (own, _) = names::split(prefix);
        let dirs = self.all(
            "SELECT id, path FROM dirs WHERE path = ?1 OR path >= ?2 AND substr(path, 1, length(?2)) = ?2",
            [own, prefix],
            |row| Ok((row.get::<_, u32>(0)?, row.get_ref(1)?.as_blob()?.to_vec())),
        )?;
        let mut found = Vec::new();
        for (dir, path) in dirs {
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
            self.members_of(dir, |key, member| {
                let mut names = std::iter::once(&member.version).chain(&member.aliases);
                if names.any(|name| here.contains(name)) {
                    found.push(key);
                }
            })?;
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    pub(super) fn entities_made_in(&self, directory: &[u8]) -> Result<Vec<(Bytes, EntityKey)>> {
        let dir: Option<u32> =
            self.one("SELECT id FROM dirs WHERE path = ?1", [directory], |row| {
                row.get(0)
            })?;
        let Some(dir) = dir else {
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

    pub(super) fn touched_directories(&self, top: &[u8]) -> Result<Vec<Bytes>> {
        // The byte after the slash: the first path that is not below. The directories of removed
        // runs stay in the table.
        let end = [top.strip_suffix(b"/").unwrap_or(top), b"0"].concat();
        self.all(
            "SELECT path FROM dirs WHERE path >= ?1 AND path < ?2 \
             AND EXISTS (SELECT 1 FROM touched WHERE dir = dirs.id) ORDER BY path",
            [top, &end],
            |row| Ok(row.get_ref(0)?.as_blob()?.into()),
        )
    }

    /// Passes all entities of blocks that touch `dir` to `each`, those of the latest run first.
    fn members_of(&self, dir: u32, mut each: impl FnMut(EntityKey, &Member)) -> Result<()> {
        let blocks = self.all(MEMBERS_IN, [dir], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                Block::decode(row.get_ref(1)?.as_blob()?),
            ))
        })?;
        for (id, block) in blocks {
            for (key, member) in (id as u64..).zip(&block?.members) {
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
