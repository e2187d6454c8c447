//! Writes lists of edges, those of several activities in one row.

use crate::block_tables::{BlockTable, BlockTables};
use crate::codec::edge_lists::{Builder, list_number};
use crate::{Error, Result};

/// The lists of edges of a run that is being appended.
#[derive(Debug, Default)]
pub struct EdgeListWriter {
    open: Builder,
    /// Rows that are written.
    rows: u32,
}

impl EdgeListWriter {
    /// Adds a list and returns its number.
    pub fn push<T: BlockTables>(&mut self, tables: &T, run: u32, list: &[u8]) -> Result<u32> {
        if self.open.is_full() {
            self.write(tables, run)?;
        }
        list_number(self.rows, self.open.push(list))
    }

    /// Writes the lists gathered so far.
    pub fn write<T: BlockTables>(&mut self, tables: &T, run: u32) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let row = std::mem::take(&mut self.open).finish();
        let key = i64::from(run) << 32 | i64::from(self.rows);
        tables.add_row(BlockTable::EdgeLists, key, &row)?;
        let next = self.rows.checked_add(1);
        self.rows = next.ok_or(Error::TooMany("lists of edges in one run"))?;
        Ok(())
    }
}
