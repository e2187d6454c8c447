//! Texts: byte strings that runs share, in blocks.
//!
//! ```text
//! id of a text := number of its block << 7 | position in the block
//! ```
//!
//! The table of [`PairTable::TextKeys`] finds a text by its content: [`text_key`] and id.
//!
//! Invariant: an id never gets another text. A text that no run names becomes empty, and the last
//! block stays, so that no number is given twice. Therefore other processes may keep decoded texts.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::{BlockTable, BlockTables, Cache, GraphReader, PairTable, column};
use crate::codec::activities::ActivityBlock;
use crate::codec::texts::{BLOCK, Builder, TextBlock};
use crate::{Error, Result};

/// The first key and the last one of a table.
const ALL: (i64, i64) = (0, i64::MAX);

/// A text, within its block.
#[derive(Debug, Clone)]
pub struct StoredText {
    block: Rc<TextBlock>,
    position: u32,
}

impl AsRef<[u8]> for StoredText {
    fn as_ref(&self) -> &[u8] {
        self.block.text(self.position).unwrap_or_default()
    }
}

/// The key of a text's block, and its position there.
pub fn block_of(id: u64) -> (i64, u32) {
    let block = u64::from(BLOCK);
    (column(id / block), (id % block) as u32)
}

/// The id of a text.
pub fn text_id(block: i64, position: u32) -> u64 {
    block as u64 * u64::from(BLOCK) + u64::from(position)
}

/// Key of [`PairTable::TextKeys`], to find candidates: 31 bits of FNV-1a.
pub fn text_key(text: &[u8]) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for &byte in text {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    ((hash ^ hash >> 32) & 0x7fff_ffff) as i64
}

impl<T: BlockTables> GraphReader<'_, T> {
    /// A text by its id.
    pub fn text(&self, id: u64) -> Result<StoredText> {
        let missing = || Error::Damaged("text (it is missing)");
        let (key, position) = block_of(id);
        let known = self.cache().borrow().texts(key);
        let block = match known {
            Some(block) => block,
            None => {
                let block = self.tables.row(BlockTable::Texts, key, TextBlock::decode)?;
                let block = Rc::new(block.ok_or_else(missing)??);
                self.cache().borrow_mut().keep_texts(key, block.clone());
                block
            }
        };
        match position < block.count() {
            true => Ok(StoredText { block, position }),
            false => Err(missing()),
        }
    }
}

/// Removes, in the open transaction, the texts that neither a run nor an activity names. `runs` are
/// the texts that runs name.
pub fn forget_texts<T: BlockTables>(tables: &T, runs: HashSet<u64>) -> Result<()> {
    let mut referred = runs;
    tables.rows(BlockTable::Activities, ALL, |key, block| {
        // The lower half is the activity's number in its run, to which its parent's is relative.
        referred.extend(ActivityBlock::decode(block, key as u32)?.texts());
        Ok(())
    })?;
    let mut blocks = Vec::new();
    tables.rows(BlockTable::Texts, ALL, |key, block| {
        let block = TextBlock::decode(block)?;
        let forgotten = (0..block.count())
            .filter(|position| !referred.contains(&text_id(key, *position)))
            .collect::<BTreeSet<u32>>();
        blocks.push((key, block.count(), forgotten));
        Ok(())
    })?;
    let last = blocks.last().map(|(key, ..)| *key);
    for (key, count, forgotten) in blocks {
        if forgotten.is_empty() {
            continue;
        }
        forget(tables, key, &forgotten)?;
        if forgotten.len() == count as usize && Some(key) != last {
            tables.remove_row(BlockTable::Texts, key)?;
        }
    }
    *tables.cache().borrow_mut() = Cache::default();
    Ok(())
}

/// Empties texts of a block, and removes their keys.
fn forget<T: BlockTables>(tables: &T, key: i64, forgotten: &BTreeSet<u32>) -> Result<()> {
    let block = tables.row(BlockTable::Texts, key, TextBlock::decode)?;
    let block = block.ok_or(Error::Damaged("text (it is missing)"))??;
    let mut builder = Builder::default();
    for position in 0..block.count() {
        let text = block.text(position).unwrap_or_default();
        if forgotten.contains(&position) {
            let pair = (text_key(text), column(text_id(key, position)));
            tables.remove_pair(PairTable::TextKeys, pair)?;
            builder.push(b"");
        } else {
            builder.push(text);
        }
    }
    tables.replace_row(BlockTable::Texts, key, &builder.finish())
}
