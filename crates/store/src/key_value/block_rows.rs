//! The tables of blocks as rows of a key-value store.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};

use super::KeyValueStore;
use super::engine::{KeyValueEngine, ScanOrder};
use super::fetched_rows::{KeyRange, only};
use super::number_lists;
use super::row_keys::{Counter, RowTable, after, after_prefix, last_number, short_number};
use super::run_rows::StoredRun;
use crate::block_tables::texts::block_of;
use crate::block_tables::{BlockTable, BlockTables, Cache, PairTable, range};
use crate::{Counts, Error, Result, RunKey};

/// Pairs whose lists are fetched at once.
const PAIRS_AT_ONCE: usize = 4096;

/// Most blocks of versions of a directory that are fetched ahead. A scan reads more of them.
const BLOCKS_AHEAD: usize = 32;

fn of_blocks(table: BlockTable) -> RowTable {
    match table {
        BlockTable::Texts => RowTable::Texts,
        BlockTable::Directories => RowTable::Directories,
        BlockTable::Versions => RowTable::Versions,
        BlockTable::Members => RowTable::Members,
        BlockTable::Activities => RowTable::Activities,
        BlockTable::Segments => RowTable::Segments,
        BlockTable::EdgeLists => RowTable::EdgeLists,
        BlockTable::Extended => RowTable::Extended,
    }
}

/// The keys of the rows from the first number to the last.
fn block_keys(table: BlockTable, (first, last): (i64, i64)) -> KeyRange {
    let table = of_blocks(table);
    let last = table.number(last as u64);
    (table.number(first as u64).to_vec(), after(&last))
}

/// The keys of the rows of the pairs that begin with `first`.
pub fn pair_keys(table: RowTable, first: u64) -> KeyRange {
    let last = table.pair(first, u64::MAX);
    (table.pair(first, 0).to_vec(), after(&last))
}

/// How a table of pairs is stored.
enum PairRows {
    /// A row for each pair.
    Pairs(RowTable),
    /// A row for each first number.
    Lists(RowTable),
}

/// A list is short: a number that may have many partners has a row for each. In a database that
/// users share, no user changes a row of another's run.
fn of_pairs<E: KeyValueEngine>(table: PairTable) -> PairRows {
    match table {
        PairTable::Inodes => PairRows::Lists(RowTable::Inodes),
        PairTable::Touched => PairRows::Pairs(RowTable::Touched),
        PairTable::Made if E::SHARED => PairRows::Pairs(RowTable::Made),
        PairTable::Made => PairRows::Lists(RowTable::Made),
        PairTable::TextKeys => PairRows::Lists(RowTable::TextKeys),
    }
}

impl<E: KeyValueEngine> KeyValueStore<E> {
    /// The second numbers of the pairs that begin with `first`, ascending.
    pub(super) fn pairs(&self, table: RowTable, first: u64) -> Result<Vec<u64>> {
        let (from, end) = pair_keys(table, first);
        let mut found = Vec::new();
        self.each((&from, &end), |key, _| {
            found.push(last_number(key));
            Ok(())
        })?;
        Ok(found)
    }

    /// The numbers that the row of `first` lists, ascending.
    fn list(&self, table: RowTable, first: u64) -> Result<Vec<u64>> {
        let row = self.get(&table.number(first))?;
        row.map_or(Ok(Vec::new()), |row| number_lists::decode(&row))
    }

    /// Adds pairs with the same first number to its list.
    fn add_to_list(&self, table: RowTable, pairs: &[(i64, i64)]) -> Result<()> {
        let Some((first, _)) = pairs.first() else {
            return Ok(());
        };
        let first = *first as u64;
        let mut list = self.list(table, first)?;
        let before = list.len();
        for (_, second) in pairs {
            let second = *second as u64;
            if let Err(at) = list.binary_search(&second) {
                list.insert(at, second);
            }
        }
        match list.len() > before {
            true => self.put(table.number(first), number_lists::encode(&list)),
            false => Ok(()),
        }
    }

    /// Fetches the lists of these numbers, if reads wait for a server. Returns their keys.
    fn expect_lists(
        &self,
        table: RowTable,
        firsts: impl Iterator<Item = i64>,
    ) -> Result<Vec<KeyRange>> {
        if !E::FAR {
            return Ok(Vec::new());
        }
        let firsts: BTreeSet<u64> = firsts.map(|first| first as u64).collect();
        let keys = firsts.into_iter().map(|first| only(&table.number(first)));
        let keys: Vec<KeyRange> = keys.collect();
        self.begin_to_fetch();
        self.fetch(keys.clone(), 1)?;
        Ok(keys)
    }

    /// Replaces the row of `first`. An empty list has no row.
    pub(super) fn put_list(&self, table: RowTable, first: u64, list: &[u64]) -> Result<()> {
        match list.is_empty() {
            true => self.delete(table.number(first)),
            false => self.put(table.number(first), number_lists::encode(list)),
        }
    }

    /// Whether a block of entities touches a directory.
    pub(super) fn is_touched(&self, dir: u32) -> Result<bool> {
        let (from, end) = (u64::from(dir), u64::from(dir) + 1);
        let table = RowTable::Touched;
        self.any((&table.number(from), &table.number(end)))
    }
}

impl<E: KeyValueEngine> BlockTables for KeyValueStore<E> {
    fn cache(&self) -> &RefCell<Cache> {
        &self.cache
    }

    fn data_version(&self) -> Result<i64> {
        self.counter(Counter::Commits).map(|commits| commits as i64)
    }

    fn row<R>(
        &self,
        table: BlockTable,
        key: i64,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let found = self.get(&of_blocks(table).number(key as u64))?;
        Ok(found.map(|row| look(&row)))
    }

    fn row_before(&self, table: BlockTable, key: i64) -> Result<Option<(i64, Vec<u8>)>> {
        let table = of_blocks(table);
        let keys = (table.number(0), after(&table.number(key as u64)));
        let mut found = None;
        self.scan(
            (&keys.0, &keys.1),
            ScanOrder::Descending,
            &mut |key, row| {
                found = Some((last_number(key) as i64, row.to_vec()));
                Ok(ControlFlow::Break(()))
            },
        )?;
        Ok(found)
    }

    fn rows(
        &self,
        table: BlockTable,
        keys: (i64, i64),
        mut look: impl FnMut(i64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (from, end) = block_keys(table, keys);
        self.each((&from, &end), |key, row| look(last_number(key) as i64, row))
    }

    fn add_row(&self, table: BlockTable, key: i64, row: &[u8]) -> Result<()> {
        self.put(of_blocks(table).number(key as u64), row)
    }

    fn replace_row(&self, table: BlockTable, key: i64, row: &[u8]) -> Result<()> {
        self.add_row(table, key, row)
    }

    fn remove_row(&self, table: BlockTable, key: i64) -> Result<()> {
        self.delete(of_blocks(table).number(key as u64))
    }

    fn partners(&self, table: PairTable, first: i64) -> Result<Vec<i64>> {
        let found = match of_pairs::<E>(table) {
            PairRows::Pairs(table) => self.pairs(table, first as u64)?,
            PairRows::Lists(table) => self.list(table, first as u64)?,
        };
        Ok(found.into_iter().map(|second| second as i64).collect())
    }

    fn add_pairs(&self, table: PairTable, pairs: &[(i64, i64)]) -> Result<()> {
        match of_pairs::<E>(table) {
            PairRows::Pairs(table) => {
                for (first, second) in pairs {
                    self.put(table.pair(*first as u64, *second as u64), [])?;
                }
            }
            PairRows::Lists(table) => {
                for some in pairs.chunks(PAIRS_AT_ONCE) {
                    self.expect_lists(table, some.iter().map(|(first, _)| *first))?;
                    for pairs in some.chunk_by(|a, b| a.0 == b.0) {
                        self.add_to_list(table, pairs)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn expect_texts(&self, keys: impl Iterator<Item = i64>) -> Result<()> {
        let mut blocks = BTreeSet::new();
        for (from, end) in self.expect_lists(RowTable::TextKeys, keys)? {
            for (_, list) in self.fetched(&from, &end).into_iter().flatten() {
                let texts = number_lists::decode(&list)?.into_iter();
                blocks.extend(texts.map(|text| block_of(text).0));
            }
        }
        blocks.retain(|block| self.cache.borrow().texts(*block).is_none());
        let blocks = blocks.into_iter();
        let keys = blocks.map(|block| block_keys(BlockTable::Texts, (block, block)));
        self.fetch(keys.collect(), 1)
    }

    fn expect_directories<'p>(&self, paths: impl Iterator<Item = &'p [u8]>) -> Result<()> {
        if !E::FAR {
            return Ok(());
        }
        let keys = paths.map(|path| only(&RowTable::Paths.bytes(path)));
        let mut keys: Vec<KeyRange> = keys.collect();
        keys.sort_unstable();
        self.begin_to_fetch();
        self.fetch(keys.clone(), 1)?;
        let mut versions = Vec::new();
        for (from, end) in &keys {
            for (_, number) in self.fetched(from, end).into_iter().flatten() {
                let numbers = range(short_number(&number)?);
                versions.push(block_keys(BlockTable::Versions, numbers));
            }
        }
        versions.sort_unstable();
        self.fetch(versions, BLOCKS_AHEAD)
    }

    fn remove_pair(&self, table: PairTable, (first, second): (i64, i64)) -> Result<()> {
        let (first, second) = (first as u64, second as u64);
        match of_pairs::<E>(table) {
            PairRows::Pairs(table) => self.delete(table.pair(first, second)),
            PairRows::Lists(table) => {
                let mut list = self.list(table, first)?;
                match list.binary_search(&second) {
                    Ok(at) => list.remove(at),
                    Err(_) => return Ok(()),
                };
                self.put_list(table, first, &list)
            }
        }
    }

    fn members_in(&self, dir: u32, mut look: impl FnMut(i64, &[u8]) -> Result<()>) -> Result<()> {
        let missing = || Error::Damaged("list of entities (it is missing)");
        for key in self
            .pairs(RowTable::Touched, u64::from(dir))?
            .into_iter()
            .rev()
        {
            let block = self.get(&RowTable::Members.number(key))?;
            look(key as i64, &block.ok_or_else(missing)?)?;
        }
        Ok(())
    }

    fn directory_id(&self, path: &[u8]) -> Result<Option<u32>> {
        let found = self.get(&RowTable::Paths.bytes(path))?;
        found.map(|row| short_number(&row)).transpose()
    }

    fn add_directory(&self, path: &[u8], number: u32) -> Result<()> {
        self.put(RowTable::Paths.bytes(path), number.to_be_bytes())
    }

    fn directories(&self, own: &[u8], prefix: &[u8]) -> Result<Vec<(u32, Bytes)>> {
        let mut found = Vec::new();
        if !own.starts_with(prefix)
            && let Some(id) = self.directory_id(own)?
        {
            found.push((id, own.into()));
        }
        let from = RowTable::Paths.bytes(prefix);
        self.each((&from, &after_prefix(&from)), |key, row| {
            found.push((short_number(row)?, key[1..].into()));
            Ok(())
        })?;
        Ok(found)
    }

    fn touched_directories(&self, from: &[u8], end: &[u8]) -> Result<Vec<Bytes>> {
        let keys = (RowTable::Paths.bytes(from), RowTable::Paths.bytes(end));
        let mut all: Vec<(u32, Bytes)> = Vec::new();
        self.each((&keys.0, &keys.1), |key, row| {
            all.push((short_number(row)?, key[1..].into()));
            Ok(())
        })?;
        let mut found = Vec::new();
        for (id, path) in all {
            if self.is_touched(id)? {
                found.push(path);
            }
        }
        Ok(found)
    }

    fn run_start(&self, run: RunKey) -> Result<Option<Time>> {
        Ok(self.stored_run(run)?.map(|run| run.started))
    }

    fn run_numbers(&self) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        self.each_of(RowTable::RunIds, |_, row| {
            found.push(short_number(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn has_run(&self, id: &str) -> Result<bool> {
        Ok(self.run_number(id)?.is_some())
    }

    fn add_run(
        &self,
        header: &RunHeader,
        environment: u64,
        end: &RunEnd,
        log_bytes: u64,
    ) -> Result<u32> {
        let number = u32::try_from(self.count(Counter::Runs)?);
        let number = number.map_err(|_| Error::TooMany("runs"))?;
        let run = StoredRun::new(header, environment, end, log_bytes)?;
        self.put_run(RunKey(number), &run)?;
        self.put(
            RowTable::RunIds.bytes(header.id.as_bytes()),
            number.to_be_bytes(),
        )?;
        Ok(number)
    }

    fn complete_run(&self, number: u32, unknown: &[String], counts: &Counts) -> Result<()> {
        let run = self.stored_run(RunKey(number))?;
        let mut run = run.ok_or(Error::Damaged("run (it is missing)"))?;
        run.complete(unknown, counts)?;
        self.put_run(RunKey(number), &run)
    }

    fn begin(&self) -> Result<()> {
        self.begin_changes()
    }

    fn commit(&self) -> Result<()> {
        self.commit_changes()
    }

    fn roll_back(&self) {
        self.drop_changes();
    }
}
