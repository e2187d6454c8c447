//! Reads activities, their edges, and the activities that touched an entity.

use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_graph::model::{Activity, ActivityId};

use super::cache::{PAGE, Page};
use super::entity_rows::first_of_block;
use super::{BlockTable, BlockTables, GraphReader, column, range};
use crate::codec::activity::{self, missing_text};
use crate::codec::members::BLOCK;
use crate::codec::reverse::{self, Mention};
use crate::codec::stream;
use crate::{ActivityKey, EntityKey, Error, Result, RunKey, Stream};

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

    fn text(&self, id: u64) -> Result<Rc<[u8]>> {
        if let Some(text) = self.cache().borrow().text(id) {
            return Ok(text);
        }
        let text = self
            .tables
            .row(BlockTable::Texts, column(id), |bytes| bytes.into())?;
        let text: Rc<[u8]> = text.ok_or_else(missing_text)?;
        self.cache().borrow_mut().keep_text(id, text.clone());
        Ok(text)
    }

    pub fn activity(&self, key: ActivityKey) -> Result<Activity> {
        self.recorded(key, |record| activity::decode(record, key.local().0))?
            .resolve(self.start(key.run())?, |id| self.text(id))
    }

    /// Looks at the record of an activity.
    fn recorded<R>(&self, key: ActivityKey, look: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        let missing = || Error::Damaged("process (it is missing)");
        let place = key.0 % u64::from(PAGE);
        let first = column(key.0 - place);
        let known = self.cache().borrow().page(first);
        let page = match known {
            Some(page) => page,
            None if self.cache().borrow_mut().asked_for_page(first) => self.page(first)?,
            None => {
                let looked = self
                    .tables
                    .row(BlockTable::Activities, column(key.0), look)?;
                return looked.ok_or_else(missing)?;
            }
        };
        look(page.record(place as usize).ok_or_else(missing)?)
    }

    fn page(&self, first: i64) -> Result<Rc<Page>> {
        let mut page = Page::default();
        let last = first + i64::from(PAGE) - 1;
        self.tables
            .rows(BlockTable::Activities, (first, last), |key, record| {
                page.push((key - first) as usize, record);
                Ok(())
            })?;
        let page = Rc::new(page);
        self.cache().borrow_mut().keep_page(first, page.clone());
        Ok(page)
    }

    pub fn activities(&self, run: RunKey) -> Result<Vec<Activity>> {
        let start = self.start(run)?;
        let mut coded = Vec::new();
        self.tables
            .rows(BlockTable::Activities, range(run.0), |key, record| {
                coded.push(activity::decode(record, key as u32)?);
                Ok(())
            })?;
        coded
            .into_iter()
            .map(|coded| coded.resolve(start, |id| self.text(id)))
            .collect()
    }

    pub fn stream(&self, key: ActivityKey) -> Result<Stream> {
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

    fn segment<R>(&self, run: RunKey, number: u32, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let key = i64::from(run.0) << 32 | i64::from(number);
        let segment = self.tables.row(BlockTable::Segments, key, read)?;
        segment.ok_or_else(|| Error::Damaged("list of edges (it is missing)"))
    }

    pub fn touching(&self, key: EntityKey) -> Result<Vec<(ActivityId, bool)>> {
        let position = (key.local().0 % BLOCK) as u8;
        let block = first_of_block(key);
        let known = self.cache().borrow().mentions(block);
        let mentions = match known {
            Some(mentions) => mentions,
            None if self.cache().borrow_mut().asked_for_mentions(block) => {
                let mentions: Rc<[Mention]> = self.mentions(key, None)?.into();
                self.cache()
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
