//! Reads activities, entities and the edges between them.

use std::collections::HashMap;
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::model::{Activity, ActivityId, Entity, EntityId, EntityKind};
use rusqlite::{OptionalExtension, Params, Row};

use super::cache::{Inodes, Members, PAGE, Page};
use super::{SqliteStore, bucket, column, names, range, version_key};
use crate::codec::activity::{self, missing_text};
use crate::codec::members::{self, BLOCK, Block, Member, VersionRef};
use crate::codec::reverse::{self, Mention};
use crate::codec::stream;
use crate::same_version;
use crate::{ActivityKey, EntityKey, Error, Result, RunKey, Stream};

/// All blocks of entities that touch a directory, those of the latest run first.
const MEMBERS_IN: &str = "SELECT members.id, block FROM touched JOIN members ON members.id = touched.members \
                          WHERE dir = ?1 ORDER BY touched.members DESC";

impl SqliteStore {
    /// At most one row.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let fail = |e| self.failed("read", e);
        let mut select = self.conn.prepare_cached(sql).map_err(fail)?;
        select.query_row(params, read).optional().map_err(fail)
    }

    /// All rows.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let fail = |e| self.failed("read", e);
        let mut select = self.conn.prepare_cached(sql).map_err(fail)?;
        let rows = select.query_map(params, read).map_err(fail)?;
        rows.collect::<rusqlite::Result<_>>().map_err(fail)
    }

    /// Looks at each row.
    fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut look: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<()> {
        let fail = |e| self.failed("read", e);
        let mut select = self.conn.prepare_cached(sql).map_err(fail)?;
        let mut rows = select.query(params).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            look(row).map_err(fail)?;
        }
        Ok(())
    }

    fn start(&self, run: RunKey) -> Result<Time> {
        if let Some(start) = self.cache.borrow().starts.get(&run.0) {
            return Ok(*start);
        }
        let start = self.one(
            "SELECT started FROM runs WHERE number = ?1",
            [run.0],
            |row| row.get(0),
        )?;
        let start = start.ok_or_else(|| Error::NoRun(format!("number {}", run.0)))?;
        self.cache.borrow_mut().starts.insert(run.0, start);
        Ok(start)
    }

    fn text(&self, id: u64) -> Result<Rc<[u8]>> {
        if let Some(text) = self.cache.borrow().text(id) {
            return Ok(text);
        }
        let text = self.one(
            "SELECT bytes FROM texts WHERE id = ?1",
            [column(id)],
            |row| Ok(row.get_ref(0)?.as_blob()?.into()),
        )?;
        let text: Rc<[u8]> = text.ok_or_else(missing_text)?;
        self.cache.borrow_mut().keep_text(id, text.clone());
        Ok(text)
    }

    pub(super) fn one_activity(&self, key: ActivityKey) -> Result<Activity> {
        self.recorded(key, |record| activity::decode(record, key.local().0))?
            .resolve(self.start(key.run())?, |id| self.text(id))
    }

    /// Looks at the record of an activity.
    fn recorded<T>(&self, key: ActivityKey, look: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let missing = || Error::Damaged("process (it is missing)");
        let place = key.0 % u64::from(PAGE);
        let first = column(key.0 - place);
        let known = self.cache.borrow().page(first);
        let page = match known {
            Some(page) => page,
            None if self.cache.borrow_mut().asked_for_page(first) => self.page(first)?,
            None => {
                let select = "SELECT record FROM activities WHERE id = ?1";
                let looked = self.one(select, [column(key.0)], |row| {
                    Ok(look(row.get_ref(0)?.as_blob()?))
                })?;
                return looked.ok_or_else(missing)?;
            }
        };
        look(page.record(place as usize).ok_or_else(missing)?)
    }

    fn page(&self, first: i64) -> Result<Rc<Page>> {
        let select = "SELECT id, record FROM activities WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
        let mut page = Page::default();
        let last = first + i64::from(PAGE) - 1;
        self.each(select, [first, last], |row| {
            page.push(
                (row.get::<_, i64>(0)? - first) as usize,
                row.get_ref(1)?.as_blob()?,
            );
            Ok(())
        })?;
        let page = Rc::new(page);
        self.cache.borrow_mut().keep_page(first, page.clone());
        Ok(page)
    }

    pub(super) fn run_activities(&self, run: RunKey) -> Result<Vec<Activity>> {
        let start = self.start(run)?;
        let (from, to) = range(run.0);
        let coded = self.all(
            "SELECT id, record FROM activities WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
            [from, to],
            |row| {
                Ok(activity::decode(
                    row.get_ref(1)?.as_blob()?,
                    row.get::<_, i64>(0)? as u32,
                ))
            },
        )?;
        coded
            .into_iter()
            .map(|coded| coded?.resolve(start, |id| self.text(id)))
            .collect()
    }

    pub(super) fn one_stream(&self, key: ActivityKey) -> Result<Stream> {
        let start = self.start(key.run())?;
        let mut stream = Stream::default();
        let mut tail = self.recorded(key, activity::segment)?;
        let mut segments = Vec::new();
        // Each segment begins with the number of the one before; the first is decoded first.
        while let Some(number) = tail {
            tail = self.segment(key.run(), number, |bytes| {
                let tail = earlier(bytes, number)?;
                match tail {
                    Some(_) => segments.push(bytes.to_vec()),
                    None => drop(stream::decode(bytes, key.local(), start, &mut stream)?),
                }
                Ok(tail)
            })??;
        }
        for segment in segments.iter().rev() {
            stream::decode(segment, key.local(), start, &mut stream)?;
        }
        Ok(stream)
    }

    fn segment<T>(&self, run: RunKey, number: u32, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let id = i64::from(run.0) << 32 | i64::from(number);
        let select = "SELECT block FROM segments WHERE id = ?1";
        let segment = self.one(select, [id], |row| Ok(read(row.get_ref(0)?.as_blob()?)))?;
        segment.ok_or_else(|| Error::Damaged("list of edges (it is missing)"))
    }

    pub(super) fn activities_touching(&self, key: EntityKey) -> Result<Vec<(ActivityId, bool)>> {
        let position = (key.local().0 % BLOCK) as u8;
        let block = first_of_block(key);
        let known = self.cache.borrow().mentions(block);
        let mentions = match known {
            Some(mentions) => mentions,
            None if self.cache.borrow_mut().asked_for_mentions(block) => {
                let mentions: Rc<[Mention]> = self.mentions(key, None)?.into();
                self.cache
                    .borrow_mut()
                    .keep_mentions(block, mentions.clone());
                mentions
            }
            None => self.mentions(key, Some(position))?.into(),
        };
        let from = mentions.partition_point(|mention| mention.0 < position);
        let here = mentions[from..]
            .iter()
            .take_while(|mention| mention.0 == position);
        Ok(here
            .map(|&(_, activity, generated)| (ActivityId(activity), generated))
            .collect())
    }

    /// The activities that touched the entities of the block that `key` is in: all entities, or
    /// one. Sorted.
    fn mentions(&self, key: EntityKey, only: Option<u8>) -> Result<Vec<Mention>> {
        let mut found = Vec::new();
        let mut tail = self.block(key)?.reverse;
        while let Some(number) = tail {
            tail = self.segment(key.run(), number, |segment| {
                reverse::scan(segment, only, &mut found)
            })??;
            if tail.is_some_and(|earlier| earlier >= number) {
                return Err(Error::Damaged("list of activities"));
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

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
        let place = (key.local().0 % BLOCK) as usize;
        let member = block
            .members
            .get(place)
            .ok_or(Error::Damaged("entity (it is missing)"))?;
        self.as_entity(key.local(), member)
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
        let mut wanted = std::collections::HashSet::new();
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
            let mut here = std::collections::HashSet::new();
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
        // The byte after the slash: the first path that is not below.
        let end = [top.strip_suffix(b"/").unwrap_or(top), b"0"].concat();
        self.all(
            "SELECT path FROM dirs WHERE path >= ?1 AND path < ?2 ORDER BY path",
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

    pub(super) fn made_as(&self, ident: &Ident) -> Result<Vec<EntityKey>> {
        let keys = self.all(
            "SELECT entity FROM made WHERE version = ?1",
            [version_key(ident)],
            |row| row.get::<_, i64>(0),
        )?;
        let mut found = Vec::new();
        for key in keys.into_iter().map(|key| EntityKey(key as u64)) {
            let block = self.block(key)?;
            let place = (key.local().0 % BLOCK) as usize;
            let member = block
                .members
                .get(place)
                .ok_or(Error::Damaged("entity (it is missing)"))?;
            if self.version(member.version, |version| {
                version
                    .ident
                    .is_some_and(|known| same_version(&known, ident))
            })? {
                found.push(key);
            }
        }
        Ok(found)
    }

    pub(super) fn known_as(&self, ident: &Ident) -> Result<Vec<EntityKey>> {
        let data_version = self
            .one("PRAGMA data_version", [], |row| row.get(0))?
            .unwrap_or_default();
        self.cache.borrow_mut().renew(data_version);
        let dirs = self.all(
            "SELECT dir FROM inodes WHERE bucket = ?1",
            [bucket(ident)],
            |row| row.get::<_, u32>(0),
        )?;
        let mut found = Vec::new();
        for dir in dirs {
            let inodes = self.inodes_of(dir)?;
            let here = inodes.get(&(ident.dev, ident.ino)).into_iter().flatten();
            for (_, index) in here.filter(|(known, _)| same_version(known, ident)) {
                // Most candidates only have a neighbouring inode: their entities are not looked up.
                found.extend(
                    self.members_by_version(dir)?
                        .get(index)
                        .into_iter()
                        .flatten(),
                );
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn inodes_of(&self, dir: u32) -> Result<Rc<Inodes>> {
        if let Some(index) = self.cache.borrow().inodes.get(&dir) {
            return Ok(index.clone());
        }
        let mut index = Inodes::default();
        self.scan(dir, |place, _, _, ident| {
            if let Some(ident) = ident {
                index
                    .entry((ident.dev, ident.ino))
                    .or_default()
                    .push((ident, place));
            }
        })?;
        let index = Rc::new(index);
        self.cache.borrow_mut().keep_inodes(dir, index.clone());
        Ok(index)
    }

    fn members_by_version(&self, dir: u32) -> Result<Rc<Members>> {
        if let Some(index) = self.cache.borrow().of_versions.get(&dir) {
            return Ok(index.clone());
        }
        let mut index = Members::default();
        let mut damaged = Ok(());
        self.each(MEMBERS_IN, [dir], |row| {
            let first = row.get::<_, i64>(0)? as u64;
            let told = members::versions(row.get_ref(1)?.as_blob()?, |place, version| {
                if version.dir == dir {
                    let key = EntityKey(first + place as u64);
                    index.entry(version.index).or_default().push(key);
                }
            });
            damaged = std::mem::replace(&mut damaged, Ok(())).and(told);
            Ok(())
        })?;
        damaged?;
        let index = Rc::new(index);
        self.cache.borrow_mut().keep_members(dir, index.clone());
        Ok(index)
    }

    pub(super) fn extended_records(
        &self,
        run: RunKey,
    ) -> Result<Vec<(ActivityId, Time, Bytes, Bytes)>> {
        let (from, to) = range(run.0);
        let select = "SELECT activity, time, kind, payload FROM extended WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
        self.all(select, [from, to], |row| {
            let blob = |i| Ok::<Bytes, rusqlite::Error>(row.get_ref(i)?.as_blob()?.into());
            Ok((ActivityId(row.get(0)?), row.get(1)?, blob(2)?, blob(3)?))
        })
    }
}

/// The key of the first entity of the block that `key` is in.
fn first_of_block(key: EntityKey) -> i64 {
    column(key.0 - key.0 % u64::from(BLOCK))
}

/// The number of the segment before `number`. It is always smaller.
fn earlier(segment: &[u8], number: u32) -> Result<Option<u32>> {
    let earlier = crate::codec::RecordReader::new(segment, "list of edges")
        .small()?
        .checked_sub(1);
    match earlier {
        Some(earlier) if earlier >= number => Err(Error::Damaged("list of edges")),
        earlier => Ok(earlier),
    }
}
