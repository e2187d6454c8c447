//! Rows that a transaction fetches before they are asked for, many with one statement of a server.
//!
//! Invariants:
//!
//! - Below an open transaction there is one state. A row that was fetched ahead is as true as one
//!   that is fetched when it is asked for, however long it is kept.
//! - Nothing depends on a row being here: what was not fetched is read when it is asked for.
//! - The rows are dropped with the transaction, and earlier if they take much memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::row_keys::after;

/// With so many bytes of rows, nothing more is fetched.
const MOST_BYTES: usize = 8 << 20;

/// Bytes that a range takes besides its keys and rows, about.
const RANGE_BYTES: usize = 128;

/// From a key to before another.
pub type KeyRange = (Vec<u8>, Vec<u8>);

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// All rows of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedRange {
    /// The range.
    pub keys: KeyRange,
    /// Its rows, in the order of their keys.
    pub rows: Vec<Row>,
}

/// Ranges whose rows were fetched.
#[derive(Debug, Default)]
pub struct FetchedRows {
    /// By the beginning of the range: its end and its rows.
    ranges: BTreeMap<Vec<u8>, (Vec<u8>, Vec<Row>)>,
    bytes: usize,
}

/// The range of one key.
pub fn only(key: &[u8]) -> KeyRange {
    (key.to_vec(), after(key))
}

impl FetchedRows {
    /// Keeps the rows of a range.
    pub fn keep(&mut self, range: FetchedRange) {
        let (from, end) = range.keys;
        let size = |(key, value): &Row| key.len() + value.len();
        let rows: usize = range.rows.iter().map(size).sum();
        self.bytes += RANGE_BYTES + from.len() + end.len() + rows;
        self.ranges.insert(from, (end, range.rows));
    }

    /// Whether they take so much memory that no more should be fetched.
    pub fn is_full(&self) -> bool {
        self.bytes >= MOST_BYTES
    }

    /// Makes room for the next rows: drops all if they take half of the memory.
    pub fn make_room(&mut self) {
        if self.bytes >= MOST_BYTES / 2 {
            *self = FetchedRows::default();
        }
    }

    /// The rows from one key to before another. `None`: they were not fetched.
    pub fn rows(&self, from: &[u8], end: &[u8]) -> Option<&[Row]> {
        let begun: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Included(from));
        let (_, (last, rows)) = self.ranges.range::<[u8], _>(begun).next_back()?;
        if end > last.as_slice() {
            return None;
        }
        let first = rows.partition_point(|(key, _)| key.as_slice() < from);
        let rest = &rows[first..];
        let count = rest.partition_point(|(key, _)| key.as_slice() < end);
        Some(&rest[..count])
    }

    /// The value of a key. The outer `None`: it was not fetched. The inner one: there is no row.
    pub fn value(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        if self.ranges.is_empty() {
            return None;
        }
        let rows = self.rows(key, &after(key))?;
        Some(rows.first().map(|(_, value)| value.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &[u8], length: usize) -> Row {
        (key.to_vec(), vec![7; length])
    }

    /// The range from 10 to before 20 has two rows, and the key 30 has none.
    fn fetched() -> FetchedRows {
        let mut fetched = FetchedRows::default();
        fetched.keep(FetchedRange {
            keys: (vec![10], vec![20]),
            rows: vec![row(&[12], 1), row(&[15, 0], 2)],
        });
        fetched.keep(FetchedRange {
            keys: only(&[30]),
            rows: Vec::new(),
        });
        fetched
    }

    #[test]
    fn a_key_of_a_fetched_range_has_its_value_or_no_row() {
        let fetched = fetched();
        assert_eq!(fetched.value(&[12]), Some(Some(&[7][..])));
        assert_eq!(fetched.value(&[15, 0]), Some(Some(&[7, 7][..])));
        assert_eq!(fetched.value(&[15]), Some(None));
        assert_eq!(fetched.value(&[30]), Some(None));
    }

    #[test]
    fn a_key_of_no_fetched_range_is_unknown() {
        let unknown: [&[u8]; 6] = [&[], &[9], &[20], &[29], &[30, 0], &[31]];
        for key in unknown {
            assert_eq!(fetched().value(key), None, "{key:?}");
        }
        assert_eq!(FetchedRows::default().value(&[12]), None);
    }

    #[test]
    fn rows_are_known_if_one_range_has_them_all() {
        let fetched = fetched();
        let both = [row(&[12], 1), row(&[15, 0], 2)];
        assert_eq!(fetched.rows(&[10], &[20]), Some(&both[..]));
        assert_eq!(fetched.rows(&[12], &[15, 0]), Some(&both[..1]));
        assert_eq!(fetched.rows(&[12, 0], &[20]), Some(&both[1..]));
        assert_eq!(fetched.rows(&[16], &[17]), Some(&both[..0]));
        assert_eq!(fetched.rows(&[10], &[20, 0]), None);
        assert_eq!(fetched.rows(&[9], &[15]), None);
        assert_eq!(fetched.rows(&[15], &[31]), None);
    }

    #[test]
    fn many_bytes_fill_the_memory_until_there_is_room_again() {
        let mut fetched = fetched();
        fetched.make_room();
        assert_eq!(fetched.value(&[30]), Some(None));
        assert!(!fetched.is_full());
        fetched.keep(FetchedRange {
            keys: only(&[40]),
            rows: vec![row(&[40], MOST_BYTES)],
        });
        assert!(fetched.is_full());
        fetched.make_room();
        assert!(!fetched.is_full());
        assert_eq!(fetched.value(&[30]), None);
    }
}
