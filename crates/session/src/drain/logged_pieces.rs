//! The parts of unfinished chunks that the log has already.
//!
//! In a run that wants its log to be durable before its results, a chunk reaches the log many times
//! before it is full. Each time only the records are appended that are new or have changed.
//!
//! In: the bytes of a chunk. Out: the offset from which they are to be appended.
//!
//! Invariant: an entry has the chunk's bytes exactly as they were when the log got them, before
//! secrets were removed. So a record that its owner completes later is found, too.

use crate::redact::ReadingPlaces;
use backstory_abi as abi;
use std::collections::HashMap;

/// The part of one chunk that is in the log.
struct LoggedChunk {
    bytes: Vec<u8>,
    places: ReadingPlaces,
}

/// The logged parts of unfinished chunks, by the chunk's index in the arena.
#[derive(Default)]
pub(super) struct LoggedPieces {
    chunks: HashMap<usize, LoggedChunk>,
}

impl LoggedPieces {
    /// The offset of the first record that the log lacks or has in another state. `None` if the log
    /// has all records. For a chunk of which the log has nothing, it is the first record's offset.
    pub(super) fn first_news(&self, index: usize, bytes: &[u8]) -> Option<usize> {
        let Some(old) = self.of(index, bytes) else {
            return Some(abi::Chunk::SIZE);
        };
        let records = abi::Chunk::SIZE..;
        let (before, now) = (old.bytes.get(records.clone())?, bytes.get(records)?);
        let same = common_start(before, now);
        let owner = |bytes: &[u8]| abi::Chunk::read(bytes).map(|head| head.host_pid);
        if same == now.len() && same == before.len() && owner(&old.bytes) == owner(bytes) {
            return None;
        }
        Some(record_around(bytes, abi::Chunk::SIZE + same))
    }

    /// Where the reader of secrets can begin, if the log has a part of the chunk.
    pub(super) fn places(&self, index: usize, bytes: &[u8]) -> Option<ReadingPlaces> {
        self.of(index, bytes).map(|old| old.places.clone())
    }

    /// Notes that the log has a chunk with this head, and these records from the offset on that
    /// [`LoggedPieces::first_news`] gave.
    pub(super) fn put(
        &mut self,
        index: usize,
        (head, offset): (&[u8], usize),
        records: &[u8],
        places: ReadingPlaces,
    ) {
        let known = self.chunks.get_mut(&index);
        if let Some(known) = known.filter(|_| offset > abi::Chunk::SIZE) {
            known.bytes[..abi::Chunk::SIZE].copy_from_slice(head);
            known.bytes.truncate(offset);
            known.bytes.extend_from_slice(records);
            known.places = places;
        } else {
            let bytes = [head, records].concat();
            self.chunks.insert(index, LoggedChunk { bytes, places });
        }
    }

    /// Forgets a chunk, which its owner has finished.
    pub(super) fn forget(&mut self, index: usize) {
        self.chunks.remove(&index);
    }

    /// The unfinished chunks, each as the log has it.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.values().map(|chunk| &*chunk.bytes)
    }

    fn of(&self, index: usize, bytes: &[u8]) -> Option<&LoggedChunk> {
        let key = |bytes: &[u8]| {
            let head = abi::Chunk::read(bytes)?;
            Some((head.epoch, head.pid, head.tid, head.seq, head.taken))
        };
        let old = self.chunks.get(&index)?;
        (key(&old.bytes) == key(bytes)).then_some(old)
    }
}

/// The number of bytes at the start that are the same. Whole blocks are compared first: nearly all
/// of a chunk is as it was.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 512;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let start = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a[start..].iter().zip(&b[start..]);
    start + rest.take_while(|(a, b)| a == b).count()
}

/// The offset of the record that contains or begins at an offset. All records before it are whole.
fn record_around(chunk: &[u8], offset: usize) -> usize {
    let mut at = abi::Chunk::SIZE;
    while let Some(record) = chunk.get(at..).and_then(abi::Record::read) {
        let size = usize::from(record.size);
        if size < abi::Record::SIZE || !size.is_multiple_of(8) || at + size > offset {
            break;
        }
        at += size;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::op;
    use backstory_eventlog::record::RecordBuilder;

    fn chunk(seq: u32, records: &[(u16, Option<i32>)]) -> Vec<u8> {
        let head = abi::Chunk {
            seq,
            ..abi::Chunk::default()
        };
        let mut bytes = head.to_bytes().to_vec();
        let mut builder = RecordBuilder::new();
        for (op, result) in records {
            let record = builder.start(*op, 1);
            if let Some(result) = result {
                record.result(*result);
            }
            bytes.extend_from_slice(builder.finish());
        }
        bytes
    }

    /// Notes that the log has a whole chunk.
    fn put(logged: &mut LoggedPieces, chunk: &[u8]) {
        let (head, records) = chunk.split_at(abi::Chunk::SIZE);
        let places = ReadingPlaces::default();
        logged.put(3, (head, abi::Chunk::SIZE), records, places);
    }

    #[test]
    fn only_records_that_are_new_or_have_changed_are_news() {
        let mut logged = LoggedPieces::default();
        let first = chunk(0, &[(op::READ, Some(1)), (op::WRITE, None)]);
        assert_eq!(logged.first_news(3, &first), Some(abi::Chunk::SIZE));
        put(&mut logged, &first);
        assert_eq!(logged.first_news(3, &first), None);
        let more = chunk(
            0,
            &[(op::READ, Some(1)), (op::WRITE, None), (op::READ, Some(2))],
        );
        assert_eq!(logged.first_news(3, &more), Some(first.len()));
        let completed = chunk(0, &[(op::READ, Some(1)), (op::WRITE, Some(7))]);
        let write = abi::Chunk::SIZE + abi::Record::SIZE;
        assert_eq!(logged.first_news(3, &completed), Some(write));
    }

    #[test]
    fn a_chunk_is_known_whole_after_its_news() {
        let mut logged = LoggedPieces::default();
        put(
            &mut logged,
            &chunk(0, &[(op::READ, Some(1)), (op::WRITE, None)]),
        );
        let grown = chunk(
            0,
            &[
                (op::READ, Some(1)),
                (op::WRITE, Some(7)),
                (op::CLOSE, Some(0)),
            ],
        );
        let offset = logged.first_news(3, &grown).unwrap();
        assert!(offset > abi::Chunk::SIZE);
        let head = &grown[..abi::Chunk::SIZE];
        logged.put(
            3,
            (head, offset),
            &grown[offset..],
            ReadingPlaces::default(),
        );
        assert_eq!(logged.chunks().collect::<Vec<_>>(), [&grown[..]]);
        assert_eq!(logged.first_news(3, &grown), None);
    }

    #[test]
    fn another_chunk_at_the_same_index_is_news_as_a_whole() {
        let mut logged = LoggedPieces::default();
        put(&mut logged, &chunk(0, &[(op::READ, Some(1))]));
        let next = chunk(1, &[(op::READ, Some(1)), (op::READ, Some(2))]);
        assert_eq!(logged.first_news(3, &next), Some(abi::Chunk::SIZE));
        logged.forget(3);
        let same = chunk(0, &[(op::READ, Some(1))]);
        assert_eq!(logged.first_news(3, &same), Some(abi::Chunk::SIZE));
    }
}
