//! Reads activities, their edges, and the activities that touched an entity.

use std::ops::Range;
use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_graph::model::{Activity, ActivityId};

use super::entity_rows::first_of_block;
use super::{BlockTable, BlockTables, GraphReader, column, range};
use crate::codec::activities::{ActivityBlock, BLOCK as BLOCK_OF_ACTIVITIES};
use crate::codec::edge_lists::{self, EdgeLists};
use crate::codec::extended::{self, ExtendedRecord};
use crate::codec::members::BLOCK;
use crate::codec::reverse::{self, Mention, Mentioned};
use crate::codec::stream;
use crate::{ActivityKey, EntityKey, Error, Result, RunKey, Stream};

/// The error for an activity that its run does not have.
const MISSING: Error = Error::Damaged("process (it is missing)");

impl<T: BlockTables> GraphReader<'_, T> {
    fn start(&self, run: RunKey) -> Result<Time> {
        if let Some(start) = self.cache().borrow().starts.get(&run.0) {
            return Ok(*start);
        }
        let start = self.tables.run_start(run)?;
        let start = start.ok_or_else(|| Error::NoRun(format!("number {}", run.0)))?;
        self.cache().borrow_mut().starts.insert(run.0, start);
        Ok(start)
    }

    pub fn run_started(&self, run: RunKey) -> Result<Option<Time>> {
        match self.start(run) {
            Err(Error::NoRun(_)) => Ok(None),
            start => start.map(Some),
        }
    }

    pub fn activity(&self, key: ActivityKey) -> Result<Activity> {
        let (block, position) = self.activity_block(key)?;
        let start = self.start(key.run())?;
        let activity = block.activity(position, start, |id| self.text(id))?;
        activity.ok_or(MISSING)
    }

    /// The block that an activity is in, and its position there.
    fn activity_block(&self, key: ActivityKey) -> Result<(Rc<ActivityBlock>, u32)> {
        let position = key.local().0 % BLOCK_OF_ACTIVITIES;
        let first = column(key.0 - u64::from(position));
        if let Some(block) = self.cache().borrow().activities(first) {
            return Ok((block, position));
        }
        let decode = |row: &[u8]| ActivityBlock::decode(row, first as u32);
        let block = self.tables.row(BlockTable::Activities, first, decode)?;
        let block = Rc::new(block.ok_or(MISSING)??);
        self.cache()
            .borrow_mut()
            .keep_activities(first, block.clone());
        Ok((block, position))
    }

    pub fn activities(&self, run: RunKey) -> Result<Vec<Activity>> {
        let start = self.start(run)?;
        let mut blocks = Vec::new();
        self.tables
            .rows(BlockTable::Activities, range(run.0), |key, block| {
                blocks.push(ActivityBlock::decode(block, key as u32)?);
                Ok(())
            })?;
        let mut found = Vec::new();
        for block in blocks {
            for position in 0..block.count() {
                found.extend(block.activity(position, start, |id| self.text(id))?);
            }
        }
        Ok(found)
    }

    pub fn extended(&self, run: RunKey) -> Result<Vec<ExtendedRecord>> {
        let start = self.start(run)?;
        let mut found = Vec::new();
        self.tables
            .rows(BlockTable::Extended, range(run.0), |_, block| {
                found.append(&mut extended::decode(block, start)?);
                Ok(())
            })?;
        Ok(found)
    }

    pub fn stream(&self, key: ActivityKey) -> Result<Stream> {
        let start = self.start(key.run())?;
        let mut stream = Stream::default();
        let (block, position) = self.activity_block(key)?;
        let mut tail = block.segment(position).ok_or(MISSING)?;
        let mut segments = Vec::new();
        // Each segment begins with the number of the one before; the first is decoded first.
        while let Some(number) = tail {
            let list = self.edge_list(key.run(), number)?;
            tail = earlier(list.bytes()?, number)?;
            segments.push(list);
        }
        for segment in segments.iter().rev() {
            stream::decode(segment.bytes()?, key.local(), start, &mut stream)?;
        }
        Ok(stream)
    }

    fn edge_list(&self, run: RunKey, number: u32) -> Result<StoredEdgeList> {
        let (row, position) = edge_lists::row_of(number);
        let key = i64::from(run.0) << 32 | i64::from(row);
        if let Some(lists) = self.cache().borrow().edge_lists(key) {
            return Ok(StoredEdgeList { lists, position });
        }
        let lists = self
            .tables
            .row(BlockTable::EdgeLists, key, EdgeLists::decode)?;
        let missing = || Error::Damaged("list of edges (it is missing)");
        let lists = Rc::new(lists.ok_or_else(missing)??);
        self.cache().borrow_mut().keep_edge_lists(key, &lists);
        Ok(StoredEdgeList { lists, position })
    }

    fn segment<R>(&self, run: RunKey, number: u32, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let key = i64::from(run.0) << 32 | i64::from(number);
        let segment = self.tables.row(BlockTable::Segments, key, read)?;
        segment.ok_or_else(|| Error::Damaged("list of activities (it is missing)"))
    }

    pub fn touching(&self, key: EntityKey) -> Result<Vec<(ActivityId, bool)>> {
        let (mentions, here) = self.mentions_of(key, Mentioned::All)?;
        let here = mentions[here].iter();
        Ok(here
            .map(|&(_, activity, generated)| (ActivityId(activity), generated))
            .collect())
    }

    pub fn generators(&self, key: EntityKey) -> Result<Vec<ActivityId>> {
        let (mentions, here) = self.mentions_of(key, Mentioned::Generated)?;
        let here = mentions[here].iter();
        Ok(here.map(|&(_, activity, _)| ActivityId(activity)).collect())
    }

    /// Mentions, and the range of those of one entity.
    fn mentions_of(
        &self,
        key: EntityKey,
        which: Mentioned,
    ) -> Result<(Rc<[Mention]>, Range<usize>)> {
        let position = (key.local().0 % BLOCK) as u8;
        let block = (first_of_block(key), which);
        let known = self.cache().borrow().mentions(block);
        let mentions = match known {
            Some(mentions) => mentions,
            None if self.cache().borrow_mut().asked_for_mentions(block) => {
                let mentions: Rc<[Mention]> = self.mentions(key, None, which)?.into();
                self.cache()
                    .borrow_mut()
                    .keep_mentions(block, mentions.clone());
                mentions
            }
            None => self.mentions(key, Some(position), which)?.into(),
        };
        let from = mentions.partition_point(|mention| mention.0 < position);
        let count = mentions[from..].partition_point(|mention| mention.0 == position);
        Ok((mentions, from..from + count))
    }

    /// The activities that touched the entities of the block that `key` is in: all entities, or
    /// one. Sorted.
    fn mentions(&self, key: EntityKey, only: Option<u8>, which: Mentioned) -> Result<Vec<Mention>> {
        let mut found = Vec::new();
        let mut tail = self.block(key)?.reverse;
        while let Some(number) = tail {
            tail = self.segment(key.run(), number, |segment| {
                reverse::scan(segment, only, which, &mut found)
            })??;
            if tail.is_some_and(|earlier| earlier >= number) {
                return Err(Error::Damaged("list of activities"));
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

/// A list of edges, within its row.
struct StoredEdgeList {
    lists: Rc<EdgeLists>,
    position: u32,
}

impl StoredEdgeList {
    fn bytes(&self) -> Result<&[u8]> {
        let list = self.lists.list(self.position);
        list.ok_or(Error::Damaged("list of edges (it is missing)"))
    }
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
