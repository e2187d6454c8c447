//! Stores texts: byte strings that all runs share.

use super::AppendingRun;
use crate::Result;
use crate::block_tables::{BlockTable, BlockTables, column};
use crate::codec::activity;

impl<T: BlockTables> AppendingRun<'_, T> {
    /// Stores a text once, and returns its id. A text whose id is taken by another one gets the
    /// next free id.
    pub(super) fn text(&self, bytes: &[u8]) -> Result<u64> {
        let mut id = activity::text_id(bytes);
        loop {
            match self.is_text(id, bytes)? {
                Some(true) => return Ok(id),
                Some(false) => id += 1,
                None => break,
            }
        }
        self.tables.add_row(BlockTable::Texts, column(id), bytes)?;
        Ok(id)
    }

    /// Whether `id` is the id of this text. `None` if it is free.
    fn is_text(&self, id: u64, bytes: &[u8]) -> Result<Option<bool>> {
        let same = |known: &[u8]| known == bytes;
        self.tables.row(BlockTable::Texts, column(id), same)
    }
}
