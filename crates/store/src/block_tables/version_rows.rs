//! Reads the versions of files. Each directory has a list of them.
//!
//! A version has its name, or the index of an earlier version that has it. A question that reads
//! one name of a block mostly reads others next, so each block's names are decoded once.

use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_files::Ident;
use backstory_graph::model::EntityKind;

use super::{BlockTable, BlockTables, GraphReader, names, range};
use crate::codec::members::VersionRef;
use crate::codec::versions::{self, Version, VersionName};
use crate::{Error, Result};

impl<T: BlockTables> GraphReader<'_, T> {
    /// Looks at a version without copying it.
    pub fn version<R>(&self, at: VersionRef, look: impl FnOnce(&Version) -> R) -> Result<R> {
        let key = i64::from(at.dir) << 32 | i64::from(at.index);
        let cached = {
            let cache = self.cache().borrow();
            let before = cache.versions.range(..=key).next_back();
            before.and_then(|(first, block)| {
                Some((block.clone(), usize::try_from(key - first).ok()?))
            })
        };
        if let Some(version) = cached.as_ref().and_then(|(block, place)| block.get(*place)) {
            return Ok(look(version));
        }
        let (first, block) = self.version_block(key)?;
        let version = block
            .get((key - first) as usize)
            .ok_or(Error::Damaged("version (it is missing)"))?;
        Ok(look(version))
    }

    fn version_block(&self, key: i64) -> Result<(i64, Rc<Vec<Version>>)> {
        let found = self.tables.row_before(BlockTable::Versions, key)?;
        let (first, bytes) = found.ok_or(Error::Damaged("version (it is missing)"))?;
        let mut block: Vec<Version> = Vec::new();
        versions::decode(&bytes, |place, record| {
            let name = match record.name {
                VersionName::Here(name) => name.into(),
                VersionName::As(index) => self.earlier_name(first, place, index, &block)?,
            };
            block.push(Version {
                name,
                kind: record.kind,
                ident: record.ident,
            });
            Ok(())
        })?;
        let block = Rc::new(block);
        let mut cache = self.cache().borrow_mut();
        cache.trim();
        cache.versions.insert(first, block.clone());
        Ok((first, block))
    }

    /// The name that the record at `index` of the directory introduced; it lies before the one that
    /// asks.
    fn earlier_name(&self, first: i64, place: u32, index: u32, block: &[Version]) -> Result<Bytes> {
        let (start, dir) = (first as u32, (first >> 32) as u32);
        if u64::from(index) >= u64::from(start) + u64::from(place) {
            return Err(Error::Damaged("list of versions"));
        }
        match index.checked_sub(start) {
            Some(here) => Ok(block[here as usize].name.clone()),
            None => self.introduced_name(dir, index),
        }
    }

    /// The name of a version. Decodes only names. Other versions of the block may refer to earlier
    /// blocks, and those to still earlier ones. A hostile directory may have any number of blocks.
    fn introduced_name(&self, dir: u32, mut index: u32) -> Result<Bytes> {
        loop {
            let key = i64::from(dir) << 32 | i64::from(index);
            if let Some(name) = self.cache().borrow().names.get(&key) {
                return Ok(name.clone());
            }
            let found = self.tables.row_before(BlockTable::Versions, key)?;
            let (first, bytes) = found.ok_or(Error::Damaged("version (it is missing)"))?;
            let mut here = None;
            let mut cache = self.cache().borrow_mut();
            cache.trim();
            versions::decode(&bytes, |place, record| {
                let at = first + i64::from(place);
                let name = match record.name {
                    VersionName::Here(name) => Ok(Bytes::from(name)),
                    VersionName::As(earlier) => Err(earlier),
                };
                // A question that reads one name of a block mostly reads others next.
                if let Ok(name) = &name {
                    cache.names.insert(at, name.clone());
                }
                if at == key {
                    here = Some(name);
                }
                Ok(())
            })?;
            drop(cache);
            match here {
                Some(Ok(name)) => return Ok(name),
                Some(Err(earlier)) if earlier < index => index = earlier,
                _ => return Err(Error::Damaged("list of versions")),
            }
        }
    }

    pub(super) fn path_of(&self, at: VersionRef) -> Result<Bytes> {
        let dir = self.dir(at.dir)?;
        self.version(at, |version| names::join(&dir, &version.name))
    }

    /// Passes all versions of a directory to `each`: index, name, kind, identity.
    pub(super) fn scan(
        &self,
        dir: u32,
        mut each: impl FnMut(u32, &[u8], EntityKind, Option<Ident>),
    ) -> Result<()> {
        // All rows first: an engine that is left between two rows takes longer for each.
        let mut blocks: Vec<Vec<u8>> = Vec::new();
        self.tables
            .rows(BlockTable::Versions, range(dir), |_, block| {
                blocks.push(block.to_vec());
                Ok(())
            })?;
        let mut texts: Vec<u8> = Vec::new();
        // Where in `texts` the name of each version is.
        let mut names: Vec<std::ops::Range<usize>> = Vec::new();
        for block in &blocks {
            versions::decode(block, |_, record| {
                let name = match record.name {
                    VersionName::Here(name) => {
                        texts.extend_from_slice(name);
                        texts.len() - name.len()..texts.len()
                    }
                    VersionName::As(index) => names
                        .get(index as usize)
                        .cloned()
                        .ok_or(Error::Damaged("list of versions"))?,
                };
                each(
                    names.len() as u32,
                    &texts[name.clone()],
                    record.kind,
                    record.ident,
                );
                names.push(name);
                Ok(())
            })?;
        }
        Ok(())
    }
}
