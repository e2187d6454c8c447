//! Stores texts: byte strings that all runs share.
//!
//! Invariant: a text of this run is found before its block is written, and after. Only blocks that
//! were there before this transaction go through the cache, because the transaction may be rolled
//! back.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;

use backstory_eventlog::event::Bytes;
use rustc_hash::FxHashMap;

use crate::block_tables::texts::{block_of, text_id, text_key};
use crate::block_tables::{BlockTable, BlockTables, GraphReader, PairTable, column};
use crate::codec::texts::{Builder, TextBlock};
use crate::{Error, Result};

/// Bytes of texts that are kept in memory to find them again.
const KEPT: usize = 4 << 20;

/// The texts of a run that is being appended.
#[derive(Default)]
pub struct TextWriter {
    open: RefCell<OpenTexts>,
}

#[derive(Default)]
struct OpenTexts {
    block: Builder,
    /// The key of `block`. `None` before the first text.
    key: Option<i64>,
    /// Texts by their content, among them all of `block`.
    known: FxHashMap<Bytes, u64>,
    /// Bytes in `known`.
    kept: usize,
    /// The keys and ids of this run's new texts.
    added: BTreeSet<(i64, i64)>,
}

impl TextWriter {
    /// Stores a text once, and returns its id.
    pub fn text<T: BlockTables>(&self, tables: &T, text: &[u8]) -> Result<u64> {
        let mut open = self.open.borrow_mut();
        if let Some(id) = open.known.get(text) {
            return Ok(*id);
        }
        let id = match open.stored(tables, text)? {
            Some(id) => id,
            None => open.add(tables, text)?,
        };
        open.kept += text.len();
        open.known.insert(text.into(), id);
        Ok(id)
    }

    /// Says which texts will be stored next.
    pub fn expect<'t, T: BlockTables>(
        &self,
        tables: &T,
        texts: impl Iterator<Item = Cow<'t, [u8]>>,
    ) -> Result<()> {
        let open = self.open.borrow();
        let new = texts.filter(|text| !open.known.contains_key(&**text));
        tables.expect_texts(new.map(|text| text_key(&text)))
    }

    /// Writes what is left.
    pub fn finish<T: BlockTables>(&self, tables: &T) -> Result<()> {
        let mut open = self.open.borrow_mut();
        open.write(tables)?;
        // In the order of the index, which is faster.
        let added: Vec<_> = std::mem::take(&mut open.added).into_iter().collect();
        tables.add_pairs(PairTable::TextKeys, &added)
    }
}

impl OpenTexts {
    /// The id of a text that an earlier run or this one stored. The open block's texts are known.
    fn stored<T: BlockTables>(&self, tables: &T, text: &[u8]) -> Result<Option<u64>> {
        let key = text_key(text);
        for id in tables.partners(PairTable::TextKeys, key)? {
            if GraphReader::new(tables).text(id as u64)?.as_ref() == text {
                return Ok(Some(id as u64));
            }
        }
        for &(_, id) in self.added.range((key, 0)..=(key, i64::MAX)) {
            let (block, position) = block_of(id as u64);
            if Some(block) == self.key {
                continue;
            }
            let block = tables.row(BlockTable::Texts, block, TextBlock::decode)?;
            if block
                .transpose()?
                .is_some_and(|block| block.text(position) == Some(text))
            {
                return Ok(Some(id as u64));
            }
        }
        Ok(None)
    }

    fn add<T: BlockTables>(&mut self, tables: &T, text: &[u8]) -> Result<u64> {
        if self.block.is_full(text.len()) {
            self.write(tables)?;
        }
        let key = match self.key {
            Some(key) => key,
            None => {
                let last = tables.row_before(BlockTable::Texts, i64::MAX)?;
                last.map_or(0, |(key, _)| key + 1)
            }
        };
        // The id must fit a signed column.
        if key > i64::MAX >> 8 {
            return Err(Error::TooMany("texts"));
        }
        self.key = Some(key);
        let id = text_id(key, self.block.push(text));
        self.added.insert((text_key(text), column(id)));
        Ok(id)
    }

    fn write<T: BlockTables>(&mut self, tables: &T) -> Result<()> {
        let Some(key) = self.key.filter(|_| !self.block.is_empty()) else {
            return Ok(());
        };
        let block = std::mem::take(&mut self.block).finish();
        tables.add_row(BlockTable::Texts, key, &block)?;
        self.key = Some(key + 1);
        if self.kept > KEPT {
            self.known.clear();
            self.kept = 0;
        }
        Ok(())
    }
}
