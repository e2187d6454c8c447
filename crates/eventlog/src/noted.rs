//! The records of a chunk's piece that determine the order of events, and numbers about the rest.
//!
//! In: the bytes of one piece. Out: what the index needs of it. The bytes of a log never change, so
//! a reader of a log that grows keeps this, and reads each piece once.

use crate::chunk::{ChunkView, SkippedRecords};
use crate::continued::ChunkPiece;
use crate::decode::is_last_of_child;
use crate::stored_frames::StoredFrames;
use backstory_abi::{Chunk, Record, op};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A record that the index looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotedRecord {
    pub offset: u32,
    pub record: Record,
    /// Its counter, or that of an earlier record if no clock can have shown it.
    pub time: u64,
    /// How many records of the piece there are up to this one.
    pub number: usize,
}

/// A piece of a chunk.
#[derive(Debug, Default)]
pub(crate) struct NotedPiece {
    pub records: Vec<NotedRecord>,
    /// How many records the piece has.
    pub count: usize,
    /// The counter of the first record, and the least, the greatest and the last one.
    pub first: Option<u64>,
    pub least: u64,
    pub newest: u64,
    pub last: u64,
    pub skipped: SkippedRecords,
    /// True if a record names a preserved content.
    pub names_preserved: bool,
    /// The greatest counter, also if no clock can have shown it.
    greatest: u64,
    /// True if each time is the counter of its own record. Others depend on the records before, and
    /// on readings of the clock that were still to come.
    is_exact: bool,
}

/// The known pieces by their places in the file. `None` if none is kept.
#[derive(Debug)]
pub(crate) struct NotedRecords(Option<FxHashMap<(usize, usize), Arc<NotedPiece>>>);

impl Default for NotedRecords {
    /// Keeps pieces, and has none yet.
    fn default() -> NotedRecords {
        NotedRecords(Some(FxHashMap::default()))
    }
}

impl NotedRecords {
    /// Keeps no piece.
    pub fn none() -> NotedRecords {
        NotedRecords(None)
    }

    /// An empty one that keeps pieces if this one does.
    pub fn begin(&self) -> NotedRecords {
        NotedRecords(self.0.as_ref().map(|_| FxHashMap::default()))
    }

    /// Reads a piece, or finds it among the known ones. `last` is the counter of the record before.
    pub fn take(
        &self,
        log: &StoredFrames,
        piece: &ChunkPiece,
        last: u64,
        kept: &mut NotedRecords,
    ) -> Arc<NotedPiece> {
        let key = (piece.place.start, piece.place.end);
        let known = self.0.as_ref().and_then(|known| known.get(&key));
        // The first reading of the clock shows that some counters are not possible.
        let is_valid = |one: &&Arc<NotedPiece>| one.is_exact && one.greatest <= log.latest();
        let found = match known.filter(is_valid) {
            Some(known) => Arc::clone(known),
            None => Arc::new(NotedPiece::read(log, piece, last)),
        };
        if let Some(kept) = &mut kept.0 {
            kept.insert(key, Arc::clone(&found));
        }
        found
    }
}

impl NotedPiece {
    fn read(log: &StoredFrames, piece: &ChunkPiece, last: u64) -> NotedPiece {
        let mut found = NotedPiece {
            least: u64::MAX,
            last,
            ..NotedPiece::default()
        };
        let Some((_, view)) = ChunkView::new(log.bytes(&piece.place)) else {
            return found;
        };
        let mut at = Chunk::SIZE;
        let mut is_after_last = false;
        let mut is_exact = true;
        while let Some((offset, record)) = view.next(at, &mut found.skipped) {
            at = offset + usize::from(record.size);
            found.count += 1;
            found.names_preserved |= record.op == op::KEPT;
            found.greatest = found.greatest.max(record.time);
            let plausible = log.plausible(record.time);
            is_exact &= plausible.is_some();
            let time = plausible.unwrap_or(found.last);
            found.last = time;
            found.least = found.least.min(time);
            found.newest = found.newest.max(time);
            // The first record of a piece may follow the last one of a child.
            let is_noted = found.first.is_none() || is_after_last || is_noted(&record);
            found.first = found.first.or(Some(time));
            is_after_last = is_last_of_child(&record);
            if is_noted {
                found.records.push(NotedRecord {
                    offset: offset as u32,
                    record,
                    time,
                    number: found.count,
                });
            }
        }
        found.is_exact = is_exact && found.count > 0;
        found
    }
}

/// True for a record that can change the order of events, or say something about processes.
fn is_noted(record: &Record) -> bool {
    match record.op {
        op::VFORK | op::VFORKED | op::EXEC | op::START | op::FORK | op::BORN => true,
        op::ENV => record.fd != 0 || record.arg != 0,
        _ => is_last_of_child(record),
    }
}
