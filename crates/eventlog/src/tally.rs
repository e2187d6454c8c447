//! Counts the operations in a log that still grows.
//!
//! In: the frames of a log, in the order of the file. Out: how many records its chunks have. A
//! chunk that reached the log in pieces, or twice, counts once, in its last state.
//!
//! Invariant: memory grows with the chunks of the arena, not with the log. A chunk's place in the
//! arena belongs to one chunk at a time.
//!
//! Absent: what the records mean, and whether they are whole events.

use crate::chunk::{ChunkView, SkippedRecords};
use crate::continued::{self, ChunkKey, ChunkPiece};
use crate::frame::FrameKind;
use backstory_abi::Chunk;
use std::collections::HashMap;

/// The records of a log, as far as it was read.
#[derive(Debug, Default)]
pub struct RecordTally {
    records: u64,
    /// The newest chunk at each place of the arena.
    chunks: HashMap<u32, CountedChunk>,
}

/// The records of one chunk.
#[derive(Debug)]
struct CountedChunk {
    key: ChunkKey,
    /// Where in the chunk each record begins, ascending.
    offsets: Vec<usize>,
}

impl RecordTally {
    /// The number of records in the frames so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Takes in the next frame. Frames without a chunk count nothing.
    pub fn add(&mut self, kind: FrameKind, payload: &[u8]) {
        if !matches!(kind, FrameKind::Chunk | FrameKind::More) {
            return;
        }
        let Some((head, view)) = ChunkView::new(payload) else {
            return;
        };
        let from = ChunkPiece::new(kind, 0..payload.len(), payload).from;
        let key = continued::key(&head);
        let chunk = self.chunks.entry(head.index).or_insert(CountedChunk {
            key,
            offsets: Vec::new(),
        });
        if chunk.key != key {
            (chunk.key, chunk.offsets) = (key, Vec::new());
        }
        let kept = chunk.offsets.partition_point(|offset| *offset < from);
        self.records -= (chunk.offsets.len() - kept) as u64;
        chunk.offsets.truncate(kept);
        let (mut offset, mut skipped) = (0, SkippedRecords::default());
        while let Some((at, record)) = view.next(offset, &mut skipped) {
            chunk.offsets.push(at.saturating_add(from - Chunk::SIZE));
            offset = at + usize::from(record.size).max(1);
        }
        self.records += (chunk.offsets.len() - kept) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordBuilder;
    use backstory_abi::{CHUNK_MAGIC, op};

    /// The number of records after frames of a chunk: the kind, the offset of its records, and how
    /// many it has.
    fn counted(frames: &[(FrameKind, u32, usize, usize)]) -> u64 {
        let mut tally = RecordTally::default();
        for (kind, seq, offset, records) in frames {
            let head = Chunk {
                magic: CHUNK_MAGIC,
                seq: *seq,
                pad: *offset as u64,
                ..Chunk::default()
            };
            let mut bytes = head.to_bytes().to_vec();
            for _ in 0..*records {
                let mut builder = RecordBuilder::new();
                builder.start(op::READ, 1).result(1);
                bytes.extend_from_slice(builder.finish());
            }
            tally.add(*kind, &bytes);
        }
        tally.records()
    }

    /// The offset of a record.
    fn record(number: usize) -> usize {
        let mut builder = RecordBuilder::new();
        builder.start(op::READ, 1).result(1);
        Chunk::SIZE + number * builder.finish().len()
    }

    #[test]
    fn records_that_a_later_piece_replaces_count_once() {
        use FrameKind::{Chunk as Whole, More};
        assert_eq!(counted(&[(Whole, 0, 0, 3), (More, 0, record(3), 2)]), 5);
        assert_eq!(counted(&[(Whole, 0, 0, 3), (More, 0, record(2), 2)]), 4);
        assert_eq!(counted(&[(Whole, 0, 0, 3), (Whole, 0, 0, 4)]), 4);
        assert_eq!(counted(&[(More, 0, record(5), 2)]), 2);
    }

    #[test]
    fn another_chunk_at_the_same_place_counts_beside_the_first() {
        use FrameKind::{Chunk as Whole, More};
        let frames = [(Whole, 0, 0, 3), (Whole, 1, 0, 2), (More, 1, record(2), 1)];
        assert_eq!(counted(&frames), 6);
    }

    #[test]
    fn a_frame_that_is_no_chunk_counts_nothing() {
        let mut tally = RecordTally::default();
        tally.add(FrameKind::Chunk, b"short");
        tally.add(FrameKind::Clock, &[0; 16]);
        assert_eq!(tally.records(), 0);
    }
}
