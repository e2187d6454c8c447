//! The interface between a key-value store and its engine: an ordered map of byte strings in files.
//!
//! Invariants that an engine keeps:
//!
//! - A snapshot shows one state, however long it lives.
//! - All changes of a [`commit`](KeyValueEngine::commit) become visible at once, or none.
//! - Damaged files are an error, never a panic: see `caught` in `damage.rs`.

use std::ops::ControlFlow;
use std::path::Path;

use super::changes::Changes;
use super::fetched_rows::{FetchedRange, KeyRange};
use crate::{EngineOptions, Result};

/// Bytes of memory that an engine takes, unless the options say otherwise.
#[cfg(any(feature = "rust-engine", feature = "c-library"))]
pub const USUAL_MEMORY: usize = 32 << 20;

/// The order of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    /// From the least key to the greatest.
    Ascending,
    /// From the greatest key to the least.
    Descending,
}

/// Looks at a key and its value, and says whether the scan goes on.
pub type Look<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>> + 'a;

/// An ordered map of byte strings in files.
pub trait KeyValueEngine: Sized {
    /// One state of the map.
    type Snapshot: KeyValueSnapshot;
    /// The right to write: no other process has it meanwhile. Dropped, it changes nothing.
    type Writer;

    /// True if other processes wait while this process has the map open.
    const EXCLUSIVE: bool;

    /// True if stores of other directories append to the same map. Rows about contents and
    /// annotations are of one directory even then.
    const SHARED: bool = false;

    /// True if each read waits for a server. Then a transaction fetches rows before they are asked
    /// for, many with one statement.
    const FAR: bool = false;

    /// Opens the map whose file or directory is at a path, making it if it is not there.
    fn open(path: &Path, options: &EngineOptions) -> Result<Self>;

    /// Its file or directory, for messages.
    fn path(&self) -> &Path;

    /// The state now.
    fn snapshot(&self) -> Result<Self::Snapshot>;

    /// The value that a key has now.
    fn get_now(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.snapshot()?.get(key)
    }

    /// Looks at the keys from `from` to before `end` in the state now.
    fn scan_now(
        &self,
        from: &[u8],
        end: &[u8],
        order: ScanOrder,
        look: &mut Look<'_>,
    ) -> Result<()> {
        self.snapshot()?.scan(from, end, order, look)
    }

    /// The keys from `from` to before `end` whose rows this user may remove, in order. `None`: all
    /// that there are.
    fn own_keys(&self, from: &[u8], end: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let _ = (from, end);
        Ok(None)
    }

    /// Waits until no other process writes.
    fn begin(&self) -> Result<Self::Writer>;

    /// Applies all changes at once.
    fn commit(&self, writer: Self::Writer, changes: Changes) -> Result<()>;

    /// Bytes of its files.
    fn bytes(&self) -> Result<u64>;

    /// Gives the room of removed rows back to the file system.
    fn compact(&mut self) -> Result<()>;
}

/// One state of a map.
pub trait KeyValueSnapshot {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Looks at the keys from `from` to before `end`, in order.
    fn scan(&self, from: &[u8], end: &[u8], order: ScanOrder, look: &mut Look<'_>) -> Result<()>;

    /// The rows of those of the ranges that have at most `most` rows. All keys are of one table.
    fn fetch(&self, ranges: &[KeyRange], most: usize) -> Result<Vec<FetchedRange>> {
        let mut found = Vec::new();
        for (from, end) in ranges {
            let mut rows = Vec::new();
            self.scan(from, end, ScanOrder::Ascending, &mut |key, value| {
                rows.push((key.to_vec(), value.to_vec()));
                Ok(match rows.len() > most {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
            })?;
            if rows.len() <= most {
                let keys = (from.clone(), end.clone());
                found.push(FetchedRange { keys, rows });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A state in memory.
    struct Rows(BTreeMap<Vec<u8>, Vec<u8>>);

    impl KeyValueSnapshot for Rows {
        fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
            Ok(self.0.get(key).cloned())
        }

        fn scan(&self, from: &[u8], end: &[u8], _: ScanOrder, look: &mut Look<'_>) -> Result<()> {
            for (key, value) in self.0.range(from.to_vec()..end.to_vec()) {
                if look(key, value)?.is_break() {
                    break;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn ranges_with_few_rows_are_fetched() {
        let rows = (1..6u8).map(|key| (vec![key], vec![key, key]));
        let rows = Rows(rows.collect());
        let range = |from: u8, end: u8| (vec![from], vec![end]);
        let ranges = [range(0, 3), range(2, 5), range(6, 9)];
        let found = rows.fetch(&ranges, 2).unwrap();
        let wanted = [
            FetchedRange {
                keys: range(0, 3),
                rows: vec![(vec![1], vec![1, 1]), (vec![2], vec![2, 2])],
            },
            FetchedRange {
                keys: range(6, 9),
                rows: Vec::new(),
            },
        ];
        assert_eq!(found, wanted);
    }
}
