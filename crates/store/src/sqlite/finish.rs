//! The end of an append: versions are found or made known, and entities and activities are written in blocks.

use backstory_files::Ident;
use backstory_graph::model::EntityKind;
use rusqlite::{OptionalExtension, params};
use rustc_hash::{FxHashMap, FxHashSet};

use super::append::{Known, Run};
use super::{bucket, column, range, version_key};
use crate::codec::activity;
use crate::codec::members::{BLOCK, Block, Member, VersionRef};
use crate::codec::versions::{self, VersionName};
use crate::{Counts, Error, Result, RunKey};

/// Where a name of an entity is wanted: directory (this run's number of it), entity, 0 for its path and 1 … for its aliases.
type Wanted = (u32, u32, u32);

impl Run<'_> {
    /// Writes all that is left and commits.
    pub fn finish(mut self) -> Result<RunKey> {
        self.spill()?;
        let versions = self.resolve_versions()?;
        self.write_members(&versions)?;
        self.write_activities()?;
        let counts = self.counts();
        self.commit(&counts)
    }

    fn entity(&self, id: u32) -> Result<&Known> {
        match self.entities.get(id as usize) {
            Some(Some(known)) => Ok(known),
            _ => Err(Error::Unannounced {
                run: self.header.id.clone(),
                what: "entity",
                id: u64::from(id),
            }),
        }
    }

    /// Finds or makes the version of every name, directory by directory.
    fn resolve_versions(&mut self) -> Result<Found> {
        let mut wanted: Vec<Wanted> = Vec::with_capacity(self.entities.len());
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
        let mut found = Found {
            paths: vec![VersionRef::default(); self.entities.len()],
            aliases: FxHashMap::default(),
        };
        for group in wanted.chunk_by(|a, b| a.0 == b.0) {
            let (dir, is_new) = self.directory(self.names.directory(group[0].0))?;
            self.resolve_in(dir, is_new, group, &mut found)?;
        }
        Ok(found)
    }

    /// The id of a directory, and whether it was not known before.
    fn directory(&self, path: &[u8]) -> Result<(u32, bool)> {
        let fail = |e| self.failed("look for a directory", e);
        let mut select = self
            .conn
            .prepare_cached("SELECT id FROM dirs WHERE path = ?1")
            .map_err(fail)?;
        if let Some(id) = select
            .query_row([path], |row| row.get(0))
            .optional()
            .map_err(fail)?
        {
            return Ok((id, false));
        }
        let mut insert = self
            .conn
            .prepare_cached("INSERT INTO dirs (path) VALUES (?)")
            .map_err(fail)?;
        let id = insert
            .insert([path])
            .map_err(|e| self.failed("add a directory", e))?;
        let id = i32::try_from(id).map_err(|_| Error::TooMany("directories"))?;
        Ok((id as u32, true))
    }

    fn name(&self, wanted: &Wanted) -> Result<&[u8]> {
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
        group: &[Wanted],
        found: &mut Found,
    ) -> Result<()> {
        let mut names: FxHashMap<&[u8], Slot> = FxHashMap::default();
        names.reserve(group.len());
        for wanted in group {
            names.entry(self.name(wanted)?).or_default();
        }
        let mut next = 0;
        if !is_new {
            next = self.recall(dir, &mut names)?;
        }
        let mut blocks = Blocks {
            run: self,
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
        blocks.write()?;
        self.write_buckets(dir, buckets)
    }

    /// Reads what is known of a directory into the slots of the names asked for; returns how many versions it has.
    fn recall(&self, dir: u32, names: &mut FxHashMap<&[u8], Slot>) -> Result<u32> {
        let fail = |e| self.failed("read versions", e);
        let (from, to) = range(dir);
        let select = "SELECT block FROM versions WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
        let mut select = self.conn.prepare_cached(select).map_err(fail)?;
        let rows = select
            .query_map([from, to], |row| row.get::<_, Vec<u8>>(0))
            .map_err(fail)?;
        let blocks = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(fail)?;
        let mut count = 0u32;
        // Where the first record of each asked name is; only those are ever referred to by what we look for.
        let mut firsts: FxHashMap<u32, &[u8]> = FxHashMap::default();
        for block in &blocks {
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
            })?;
        }
        Ok(count)
    }

    fn write_buckets(&self, dir: u32, buckets: FxHashSet<i64>) -> Result<()> {
        let mut buckets: Vec<_> = buckets.into_iter().collect();
        buckets.sort_unstable();
        let fail = |e| self.failed("index inodes", e);
        let insert = "INSERT OR IGNORE INTO inodes (bucket, dir) VALUES (?, ?)";
        let mut insert = self.conn.prepare_cached(insert).map_err(fail)?;
        for bucket in buckets {
            insert.execute(params![bucket, dir]).map_err(fail)?;
        }
        Ok(())
    }

    /// Writes the entities in blocks, and where to find them by directory and by inode.
    fn write_members(&mut self, versions: &Found) -> Result<()> {
        let number = u64::from(self.number()?);
        let fail = |e| self.failed("add entities", e);
        let mut insert = self
            .conn
            .prepare_cached("INSERT INTO members (id, block) VALUES (?, ?)")
            .map_err(fail)?;
        let (mut touched, mut made) = (Vec::new(), Vec::new());
        for first in (0..self.entities.len() as u32).step_by(BLOCK as usize) {
            let reverse = self.reverse_tail((first / BLOCK) as usize);
            let mut block = Block {
                reverse,
                members: Vec::new(),
            };
            for id in first..(first + BLOCK).min(self.entities.len() as u32) {
                let known = self.entity(id)?;
                block.members.push(member(id, known, versions)?);
                if known.part.made
                    && has_inode(known.kind)
                    && let Some(ident) = self.ident(known)
                {
                    made.push((version_key(&ident), column(number << 32 | u64::from(id))));
                }
            }
            let key = column(number << 32 | u64::from(first));
            touched.extend(block.dirs().into_iter().map(|dir| (i64::from(dir), key)));
            insert
                .execute(params![key, block.encode(first)])
                .map_err(fail)?;
        }
        self.write_pairs("INSERT INTO touched (dir, members) VALUES (?, ?)", touched)?;
        self.write_pairs("INSERT INTO made (version, entity) VALUES (?, ?)", made)
    }

    /// In the order of the index they go to, which is faster.
    fn write_pairs(&self, insert: &str, mut pairs: Vec<(i64, i64)>) -> Result<()> {
        pairs.sort_unstable();
        let fail = |e| self.failed("index entities", e);
        let mut insert = self.conn.prepare_cached(insert).map_err(fail)?;
        for pair in pairs {
            insert.execute([pair.0, pair.1]).map_err(fail)?;
        }
        Ok(())
    }

    fn write_activities(&mut self) -> Result<()> {
        let number = u64::from(self.number()?);
        let base = self.header.started;
        for (id, activity) in std::mem::take(&mut self.activities).into_iter().enumerate() {
            let unannounced = || Error::Unannounced {
                run: self.header.id.clone(),
                what: "activity",
                id: id as u64,
            };
            let activity = activity.ok_or_else(unannounced)?;
            let tail = self.stream_tail(id);
            let record = activity::encode(&activity, tail, base, |text| self.text(text))?;
            let fail = |e| self.failed("add a process", e);
            let insert = "INSERT INTO activities (id, record) VALUES (?, ?)";
            let mut insert = self.conn.prepare_cached(insert).map_err(fail)?;
            insert
                .execute(params![column(number << 32 | id as u64), record])
                .map_err(fail)?;
            self.written += 1;
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        let (mut read, mut written) = (FxHashSet::default(), FxHashSet::default());
        for known in self
            .entities
            .iter()
            .flatten()
            .filter(|k| k.kind == EntityKind::File)
        {
            if known.part.read {
                read.insert((known.dir, self.names.text(known.name)));
            }
            if known.part.written {
                written.insert((known.dir, self.names.text(known.name)));
            }
        }
        Counts {
            activities: self.written,
            entities: self.entities.len() as u64,
            edges: self.edges,
            files_read: read.len() as u64,
            files_written: written.len() as u64,
        }
    }
}

/// The versions of all names: of each entity's path, and of its aliases (counted from 1).
struct Found {
    paths: Vec<VersionRef>,
    aliases: FxHashMap<(u32, u32), VersionRef>,
}

/// What a name can be: kind and identity.
type State = (EntityKind, Option<Ident>);

/// What is known of a name in a directory.
#[derive(Debug, Default)]
struct Slot {
    /// Index of the first record of the name.
    first: Option<u32>,
    /// What it was, and the index of that: the only one in most slots.
    one: Option<(State, u32)>,
    others: FxHashMap<State, u32>,
}

impl Slot {
    fn index_of(&self, state: &State) -> Option<u32> {
        match &self.one {
            Some((one, index)) if one == state => Some(*index),
            _ => self.others.get(state).copied(),
        }
    }

    fn add(&mut self, state: State, index: u32) {
        self.first.get_or_insert(index);
        match &self.one {
            None => self.one = Some((state, index)),
            Some(_) => drop(self.others.insert(state, index)),
        }
    }
}

/// Writes new versions of one directory.
struct Blocks<'r, 'c> {
    run: &'r Run<'c>,
    dir: u32,
    first: u32,
    count: u32,
    block: versions::Builder,
}

impl Blocks<'_, '_> {
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
        let fail = |e| self.run.failed("add versions", e);
        let key = column(u64::from(self.dir) << 32 | u64::from(self.first));
        let mut insert = self
            .run
            .conn
            .prepare_cached("INSERT INTO versions (id, block) VALUES (?, ?)")
            .map_err(fail)?;
        let block = std::mem::take(&mut self.block).finish();
        insert.execute(params![key, block]).map_err(fail)?;
        self.first = self
            .first
            .checked_add(self.count)
            .ok_or(Error::TooMany("versions in one directory"))?;
        self.count = 0;
        Ok(())
    }
}

/// Whether inode numbers say which thing it is.
fn has_inode(kind: EntityKind) -> bool {
    matches!(
        kind,
        EntityKind::File | EntityKind::Directory | EntityKind::Symlink
    )
}

fn member(id: u32, known: &Known, versions: &Found) -> Result<Member> {
    let find = |name: u32| {
        versions
            .aliases
            .get(&(id, name))
            .copied()
            .ok_or(Error::Damaged("entity"))
    };
    Ok(Member {
        version: versions.paths[id as usize],
        number: known.number,
        previous: known.previous,
        last: known.last,
        aliases: (1..=known.aliases().len() as u32)
            .map(find)
            .collect::<Result<_>>()?,
        by_name: known.by_name.as_deref().unwrap_or_default().to_vec(),
    })
}
