//! Lists of edges of several activities, compressed together: neighbouring processes do much the
//! same.
//!
//! ```text
//! record := [number of lists]  lengths of the lists  the lists, each a segment (`stream`)
//! ```

use super::{RecordReader, RecordWriter, block};
use crate::{Error, Result};

/// Most lists in a row. A list's number is the row's << 4 | its position.
pub const LISTS: u32 = 16;

/// A row with so many bytes of lists is full. To read one list, all of the row are decompressed.
const FULL: usize = 4 << 10;

/// The word for a row in messages about damage.
const WHAT: &str = "list of edges";

/// The number of a list.
///
/// Errors: [`Error::TooMany`] if a run has more lists than numbers.
pub fn list_number(row: u32, position: u32) -> Result<u32> {
    let number = row.checked_mul(LISTS).map(|first| first + position);
    // A pointer to a list is its number + 1.
    let number = number.filter(|number| *number < u32::MAX);
    number.ok_or(Error::TooMany("lists of edges in one run"))
}

/// The row of a list, and its position there.
pub fn row_of(list: u32) -> (u32, u32) {
    (list / LISTS, list % LISTS)
}

/// Builds a row.
#[derive(Debug, Default)]
pub struct Builder {
    lengths: Vec<usize>,
    lists: Vec<u8>,
}

impl Builder {
    /// Adds a list and returns its position.
    pub fn push(&mut self, list: &[u8]) -> u32 {
        self.lengths.push(list.len());
        self.lists.extend_from_slice(list);
        self.lengths.len() as u32 - 1
    }

    /// Whether the next list belongs into another row.
    pub fn is_full(&self) -> bool {
        self.lengths.len() == LISTS as usize || self.lists.len() >= FULL
    }

    /// Whether it has no list.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The row.
    pub fn finish(self) -> Vec<u8> {
        let mut record = Vec::with_capacity(self.lists.len() + 2 * self.lengths.len() + 2);
        record.number(self.lengths.len() as u64);
        let lengths = self.lengths.iter();
        lengths.for_each(|length| record.number(*length as u64));
        record.extend_from_slice(&self.lists);
        let mut out = Vec::with_capacity(record.len() / 2);
        block::put(&mut out, &record);
        out
    }
}

/// The lists of a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EdgeLists {
    record: Vec<u8>,
    /// Where in `record` each list begins, and where the last ends.
    bounds: Vec<usize>,
}

impl EdgeLists {
    /// Decompresses a row.
    pub fn decode(row: &[u8]) -> Result<EdgeLists> {
        let record = block::take(&mut RecordReader::new(row, WHAT))?.into_owned();
        let mut reader = RecordReader::new(&record, WHAT);
        let count = reader.size()?;
        if count > LISTS as usize {
            return Err(reader.damaged());
        }
        let mut lengths = reader.column(count)?;
        let mut at = record.len() - reader.rest().len();
        let mut bounds = vec![at];
        for _ in 0..count {
            at = at.saturating_add(lengths.size()?);
            bounds.push(at);
        }
        match at <= record.len() {
            true => Ok(EdgeLists { record, bounds }),
            false => Err(Error::Damaged(WHAT)),
        }
    }

    /// The list at a position.
    pub fn list(&self, position: u32) -> Option<&[u8]> {
        let position = position as usize;
        let (start, end) = (self.bounds.get(position)?, self.bounds.get(position + 1)?);
        self.record.get(*start..*end)
    }

    /// Bytes of memory, about.
    pub fn size(&self) -> usize {
        self.record.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_come_back_as_they_were(
            lists in proptest::collection::vec(any::<Vec<u8>>(), 0..16),
        ) {
            let mut builder = Builder::default();
            for (position, list) in lists.iter().enumerate() {
                prop_assert_eq!(builder.push(list), position as u32);
            }
            let row = EdgeLists::decode(&builder.finish()).unwrap();
            for (position, list) in lists.iter().enumerate() {
                prop_assert_eq!(row.list(position as u32), Some(&list[..]));
            }
            prop_assert_eq!(row.list(lists.len() as u32), None);
        }

        #[test]
        fn a_number_leads_to_its_row(row in 0..u32::MAX / LISTS, position in 0..LISTS) {
            if let Ok(number) = list_number(row, position) {
                prop_assert_eq!(row_of(number), (row, position));
            }
        }
    }

    #[test]
    fn a_run_has_no_more_lists_than_numbers() {
        assert!(list_number(u32::MAX / LISTS, LISTS - 2).is_ok());
        assert!(list_number(u32::MAX / LISTS, LISTS - 1).is_err());
        assert!(list_number(u32::MAX / LISTS + 1, 0).is_err());
    }
}
