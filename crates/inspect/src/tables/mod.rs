//! Tables with a heading, whatever they are stored in, and their differences.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`cell_comparison`] | compares two tables |
//! | [`delimited_rows`] | reads separated values (CSV, TSV) |
//! | [`parquet_rows`] | reads Parquet files |
//! | [`row_keys`] | finds the rows of two tables that belong together |

pub mod cell_comparison;
pub mod delimited_rows;
pub mod parquet_rows;
pub mod row_keys;

use std::collections::HashSet;

use backstory_inspection::format_answer::LARGEST;

use crate::{Read, UnreadableContent};

/// The most cells, and the most bytes of all cells, of a table that is compared.
const MOST_CELLS: usize = 2_000_000;
const MOST_BYTES: usize = 40 << 20;

/// The most bytes of a cell in a view.
const LONGEST_CELL: usize = 2000;

/// A table in memory. The cells lie one after the other.
#[derive(Debug)]
pub struct Table {
    heading: Vec<Vec<u8>>,
    bytes: Vec<u8>,
    /// The end of each cell in `bytes`.
    ends: Vec<u32>,
}

impl Table {
    /// A table without rows. `None` if the heading is empty, or has a name twice.
    pub fn new(heading: Vec<Vec<u8>>) -> Option<Table> {
        let names: HashSet<&Vec<u8>> = heading.iter().collect();
        let is_table = !heading.is_empty() && names.len() == heading.len();
        is_table.then(|| Table {
            heading,
            bytes: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Adds the next cell of a row.
    ///
    /// # Errors
    /// The table is too large to be compared.
    pub fn push(&mut self, cell: &[u8]) -> Read<()> {
        if self.ends.len() >= MOST_CELLS || self.bytes.len() + cell.len() > MOST_BYTES {
            return Err(UnreadableContent(format!(
                "it has more than {MOST_CELLS} cells, or more than {} MiB of text",
                MOST_BYTES >> 20
            )));
        }
        self.bytes.extend_from_slice(cell);
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }

    /// The names of the columns.
    pub fn heading(&self) -> &[Vec<u8>] {
        &self.heading
    }

    /// The number of rows without the heading.
    pub fn rows(&self) -> usize {
        self.ends.len() / self.heading.len()
    }

    /// A cell.
    pub fn cell(&self, row: usize, column: usize) -> &[u8] {
        let at = row * self.heading.len() + column;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[at] as usize]
    }
}

/// Counts the bytes of a view, so that its answer stays within the limit.
#[derive(Debug, Default)]
pub struct ViewBudget(usize);

impl ViewBudget {
    /// True if so many more bytes fit into the answer. The first ones always fit.
    pub fn takes(&mut self, bytes: usize) -> bool {
        let fits = self.0 == 0 || self.0 + bytes <= LARGEST;
        self.0 += if fits { bytes } else { 0 };
        fits
    }
}

/// The beginning of a cell that is shown.
fn shown(cell: &[u8]) -> &[u8] {
    &cell[..cell.len().min(LONGEST_CELL)]
}
