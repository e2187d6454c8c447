//! Removes runs, and what runs shared and no run refers to any more.
//!
//! Invariants:
//!
//! - A text or directory that a run refers to keeps its number.
//! - The number of a run or directory is never given again.

use std::collections::BTreeSet;

use super::KeyValueStore;
use super::engine::KeyValueEngine;
use super::fetched_rows::KeyRange;
use super::number_lists;
use super::row_keys::{RowTable, after, last_number, short_number};
use crate::block_tables::directories::forget_paths;
use crate::block_tables::rename_lists::RUNS;
use crate::block_tables::texts::forget_texts;
use crate::block_tables::{BlockTable, BlockTables, GraphReader, PairTable, range, version_key};
use crate::codec::members::Block;
use crate::{Result, RunKey};

/// Tables whose keys begin with the run's number.
const BY_RUN: [RowTable; 5] = [
    RowTable::Members,
    RowTable::Activities,
    RowTable::Segments,
    RowTable::EdgeLists,
    RowTable::Extended,
];

/// Most entries of a run in a list of renames that are fetched ahead.
const ENTRIES_AHEAD: usize = 4;

/// Lists of renames whose entries are fetched at once. More would not fit the rows fetched ahead.
const LISTS_AT_ONCE: usize = 4096;

impl<E: KeyValueEngine> KeyValueStore<E> {
    /// Versions, directories and texts stay: other runs may share them.
    pub(super) fn remove_run(&self, id: &str) -> Result<bool> {
        self.transaction(|| {
            let Some(key) = self.run_number(id)? else {
                return Ok(false);
            };
            let lists = self.remove_from_indexes(key)?;
            self.remove_from_lists(key, &lists)?;
            let (from, to) = range(key.0);
            for table in BY_RUN {
                let keys = (table.number(from as u64), table.number(to as u64));
                self.delete_range((&keys.0, &after(&keys.1)))?;
            }
            self.delete(RowTable::Runs.number(u64::from(key.0)))?;
            self.delete(RowTable::RunIds.bytes(id.as_bytes()))?;
            Ok(true)
        })
    }

    /// Removes the pairs that lead to the entities of a run. Returns the lists of renames that may
    /// have entries of the run.
    fn remove_from_indexes(&self, run: RunKey) -> Result<BTreeSet<u32>> {
        let mut blocks = Vec::new();
        self.rows(BlockTable::Members, range(run.0), |first, block| {
            blocks.push((first as u64, Block::decode(block)?));
            Ok(())
        })?;
        let reader = GraphReader::new(self);
        let mut lists: BTreeSet<u32> = self.directory_id(RUNS)?.into_iter().collect();
        for (first, block) in blocks {
            lists.extend(reader.lists_of(&block)?);
            for dir in block.dirs() {
                self.delete(RowTable::Touched.pair(u64::from(dir), first))?;
            }
            for (entity, member) in (first..).zip(&block.members) {
                let Some(ident) = reader.version(member.version, |version| version.ident)? else {
                    continue;
                };
                self.remove_pair(PairTable::Made, (version_key(&ident), entity as i64))?;
            }
        }
        Ok(lists)
    }

    /// Removes the entries of a run in these lists of renames.
    fn remove_from_lists(&self, run: RunKey, lists: &BTreeSet<u32>) -> Result<()> {
        let (from, to) = range(run.0);
        let entries = |list: u32| {
            let pair = |entry: i64| RowTable::Touched.pair(u64::from(list), entry as u64);
            (pair(from).to_vec(), after(&pair(to)))
        };
        let keys: Vec<KeyRange> = lists.iter().map(|list| entries(*list)).collect();
        for some in keys.chunks(LISTS_AT_ONCE) {
            if E::FAR {
                self.begin_to_fetch();
                self.fetch(some.to_vec(), ENTRIES_AHEAD)?;
            }
            for (from, end) in some {
                self.delete_range((from, end))?;
            }
        }
        Ok(())
    }

    /// Forgets, in one transaction, texts and directories that no run refers to.
    pub(super) fn forget_shared(&self) -> Result<()> {
        self.transaction(|| {
            let runs = self.stored_runs()?.into_iter();
            forget_texts(self, runs.map(|(_, run)| run.environment).collect())?;
            let forgotten = self.untouched_directories()?;
            self.forget_directories(&forgotten)
        })
    }

    /// The directories that no block of entities touches.
    fn untouched_directories(&self) -> Result<BTreeSet<u32>> {
        let mut all = Vec::new();
        self.each_of(RowTable::Paths, |_, row| {
            all.push(short_number(row)?);
            Ok(())
        })?;
        let mut found = BTreeSet::new();
        for id in all {
            if !self.is_touched(id)? {
                found.insert(id);
            }
        }
        Ok(found)
    }

    fn forget_directories(&self, forgotten: &BTreeSet<u32>) -> Result<()> {
        for &dir in forgotten {
            let (from, to) = range(dir);
            let keys = (
                RowTable::Versions.number(from as u64),
                RowTable::Versions.number(to as u64),
            );
            self.delete_range((&keys.0, &after(&keys.1)))?;
            let path = GraphReader::new(self).dir(dir)?;
            self.delete(RowTable::Paths.bytes(&path))?;
        }
        let mut lists = Vec::new();
        self.each_of(RowTable::Inodes, |key, row| {
            lists.push((last_number(key), number_lists::decode(row)?));
            Ok(())
        })?;
        for (bucket, mut dirs) in lists {
            let all = dirs.len();
            dirs.retain(|dir| !forgotten.contains(&(*dir as u32)));
            if dirs.len() < all {
                self.put_list(RowTable::Inodes, bucket, &dirs)?;
            }
        }
        forget_paths(self, forgotten)
    }
}
