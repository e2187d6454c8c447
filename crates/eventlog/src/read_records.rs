//! The records of a growing log that were read before.
//!
//! In: the records that were given, by their chunks and offsets there. Out: whether a record was
//! read. A chunk comes in pieces, and a piece can have records of an earlier one again.

use crate::chunk::{ChunkView, SkippedRecords};
use crate::continued::{self, ChunkKey, ChunkPiece};
use crate::stored_frames::StoredFrames;
use crate::stream::{RecordPosition, head};
use backstory_abi::{CHUNK_SIZE, Chunk, DONE, Record};
use rustc_hash::{FxHashMap, FxHashSet};

/// The part of a chunk that was read.
#[derive(Debug, Default)]
pub(crate) struct ReadPart {
    /// The offset behind the first records, which were all read.
    pub next: usize,
    /// The offsets of others that were read.
    pub others: FxHashSet<usize>,
    /// The offsets of calls that were given without their results.
    pub told: FxHashSet<usize>,
}

impl ReadPart {
    fn has(&self, offset: usize) -> bool {
        offset < self.next || self.others.contains(&offset)
    }
}

/// The records of the present pieces that were read, by the number of the piece.
#[derive(Debug)]
pub(crate) struct ReadRecords<'r>(Vec<(usize, Option<&'r ReadPart>)>);

impl ReadRecords<'_> {
    /// True for a record that is not to be given again.
    pub(crate) fn has(&self, at: RecordPosition, record: &Record) -> bool {
        let (offset, part) = self.find(at);
        part.is_some_and(|part| {
            part.has(offset) && !(record.state == DONE && part.told.contains(&offset))
        })
    }

    pub(crate) fn was_read(&self, at: RecordPosition) -> bool {
        let (offset, part) = self.find(at);
        part.is_some_and(|part| part.has(offset))
    }

    pub(crate) fn is_begun(&self, chunk: u32) -> bool {
        let part = self.0.get(chunk as usize).and_then(|(_, part)| *part);
        part.is_some_and(|part| part.next > 0 || !part.others.is_empty())
    }

    /// The offset in the whole chunk, and what was read of it.
    fn find(&self, at: RecordPosition) -> (usize, Option<&ReadPart>) {
        match self.0.get(at.chunk as usize) {
            Some((from, part)) => (in_chunk(*from, at.offset as usize), *part),
            None => (0, None),
        }
    }
}

/// The offset in the whole chunk of a place in the bytes of a piece that begins at `from`.
pub(crate) fn in_chunk(from: usize, place: usize) -> usize {
    from.saturating_add(place.saturating_sub(Chunk::SIZE))
}

impl<'r> ReadRecords<'r> {
    /// The records of a log's present pieces, as far as `read` has their chunks.
    pub fn of(frames: &StoredFrames, read: &'r FxHashMap<ChunkKey, ReadPart>) -> ReadRecords<'r> {
        let parts = frames.chunks().iter().map(|piece| {
            let key = continued::key(&head(frames, piece));
            (piece.from, read.get(&key))
        });
        ReadRecords(parts.collect())
    }
}

impl ReadPart {
    /// Moves on behind the records of a piece that were all read.
    pub fn advance(&mut self, piece: &ChunkPiece, head: &Chunk, bytes: &[u8]) {
        let Some((_, view)) = ChunkView::new(bytes) else {
            return;
        };
        // Records before the piece may still come, or be lost. A thread's later records are read
        // after them. Those of a chunk of the guard are not read in the order of their offsets.
        let is_behind_gap = self.next.max(Chunk::SIZE) < piece.from;
        if is_behind_gap && (head.tid == 0 || self.others.is_empty()) {
            return;
        }
        let mut at = Chunk::SIZE + self.next.saturating_sub(piece.from);
        let mut skipped = SkippedRecords::default();
        while let Some((place, record)) = view.next(at, &mut skipped) {
            if !self.others.remove(&in_chunk(piece.from, place)) {
                return;
            }
            at = place + usize::from(record.size);
            self.next = in_chunk(piece.from, at);
        }
        // A full chunk ends with room for less than a record.
        let rest = bytes.get(at..).unwrap_or(&[]);
        let reserved = in_chunk(piece.from, usize::try_from(head.next).unwrap_or(usize::MAX));
        if reserved > CHUNK_SIZE as usize && rest.iter().all(|byte| *byte == 0) {
            self.next = self.next.max(in_chunk(piece.from, bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_chunk_is_read_to_its_end_although_its_last_piece_has_no_record() {
        let from = CHUNK_SIZE as usize - 32;
        // A reservation that did not fit. A piece counts it from its own header on.
        let head = |next| Chunk {
            magic: backstory_abi::CHUNK_MAGIC,
            next: Chunk::SIZE as u64 + next,
            ..Chunk::default()
        };
        for (reserved, end) in [(104, CHUNK_SIZE as usize), (32, from)] {
            let head = head(reserved);
            let bytes = [&head.to_bytes()[..], &[0; 32]].concat();
            let piece = ChunkPiece {
                place: 0..bytes.len(),
                from,
            };
            let mut part = ReadPart {
                next: from,
                ..ReadPart::default()
            };
            part.advance(&piece, &head, &bytes);
            assert_eq!(part.next, end, "{reserved}");
        }
    }
}
