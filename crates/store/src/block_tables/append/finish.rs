//! The end of an append: writes entities and activities in blocks, and commits.

use rustc_hash::FxHashSet;

use backstory_graph::model::EntityKind;

use super::versions::{ResolvedVersions, has_inode};
use super::{AT_ONCE, AnnouncedEntity, AppendingRun};
use crate::block_tables::{BlockTable, BlockTables, PairTable, column, version_key};
use crate::codec::activities;
use crate::codec::members::{BLOCK, Block, Member};
use crate::{Counts, Error, Result, RunKey};

impl<T: BlockTables> AppendingRun<'_, T> {
    /// Writes all that is left and commits.
    pub(super) fn finish(mut self) -> Result<RunKey> {
        self.spill()?;
        let versions = self.resolve_versions()?;
        self.write_members(&versions)?;
        self.write_extended()?;
        self.write_activities()?;
        self.texts.finish(self.tables)?;
        let counts = self.counts();
        self.commit(&counts)
    }

    pub(super) fn entity(&self, id: u32) -> Result<&AnnouncedEntity> {
        match self.entities.get(id as usize) {
            Some(Some(known)) => Ok(known),
            _ => Err(Error::Unannounced {
                run: self.header.id.clone(),
                what: "entity",
                id: u64::from(id),
            }),
        }
    }

    /// Writes the entities in blocks, and where to find them by directory and by inode.
    fn write_members(&mut self, versions: &ResolvedVersions) -> Result<()> {
        let number = u64::from(self.number()?);
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
            self.tables
                .add_row(BlockTable::Members, key, &block.encode(first))?;
        }
        // In the order of the index they go to, which is faster.
        touched.sort_unstable();
        made.sort_unstable();
        self.tables.add_pairs(PairTable::Touched, &touched)?;
        self.tables.add_pairs(PairTable::Made, &made)
    }

    fn write_activities(&mut self) -> Result<()> {
        let number = u64::from(self.number()?);
        let base = self.header.started;
        let mut block = activities::Builder::new(base);
        let mut left = std::mem::take(&mut self.activities).into_iter();
        while !left.as_slice().is_empty() {
            let next = left.as_slice().iter().take(AT_ONCE).flatten();
            self.texts
                .expect(self.tables, next.flat_map(activities::long_texts))?;
            for activity in left.by_ref().take(AT_ONCE) {
                let id = self.written;
                let unannounced = || Error::Unannounced {
                    run: self.header.id.clone(),
                    what: "activity",
                    id,
                };
                let activity = activity.ok_or_else(unannounced)?;
                let (tail, texts) = (self.stream_tail(id as usize), &self.texts);
                block.push(&activity, tail, |text| texts.text(self.tables, text))?;
                self.written += 1;
                if block.count() == activities::BLOCK {
                    let full = std::mem::replace(&mut block, activities::Builder::new(base));
                    self.write_block(number, full)?;
                }
            }
        }
        self.write_block(number, block)
    }

    /// Writes a block of activities: the last ones of those written so far.
    fn write_block(&self, run: u64, block: activities::Builder) -> Result<()> {
        let count = u64::from(block.count());
        if count == 0 {
            return Ok(());
        }
        let key = column(run << 32 | (self.written - count));
        self.tables
            .add_row(BlockTable::Activities, key, &block.finish())
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

fn member(id: u32, known: &AnnouncedEntity, versions: &ResolvedVersions) -> Result<Member> {
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
