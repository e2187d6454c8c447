//! Splits chunks by line. In: a chunk that has records of several lines. Out: one chunk for each,
//! with the same header.
//!
//! Invariant: every byte of the records is in exactly one piece. Bytes between two records stay
//! with the record before them, so that readers count torn records once.

use super::process_lines::LineNumber;
use backstory_abi::{Chunk, Record};
use backstory_eventlog::chunk::{ChunkView, SkippedRecords};
use backstory_eventlog::record::RawRecord;

/// The chunk's pieces by line, each with its records in their order. `line_of` gets each record in
/// turn, with its strings.
pub(crate) fn split(
    chunk: &[u8],
    mut line_of: impl FnMut(&RawRecord<'_>) -> LineNumber,
) -> Vec<(LineNumber, Vec<u8>)> {
    let mut pieces: Vec<(LineNumber, Vec<u8>)> = Vec::new();
    let mut from = Chunk::SIZE;
    let mut line = None;
    for_each_record(chunk, |at, raw| {
        let its = line_of(raw);
        let current = *line.get_or_insert(its);
        if its != current {
            append(&mut pieces, current, chunk, from..at);
            from = at;
            line = Some(its);
        }
    });
    if let Some(line) = line {
        append(&mut pieces, line, chunk, from..chunk.len());
    }
    for (_, piece) in &mut pieces {
        set_header(piece, |header| header.next = 0);
        let length = piece.len() as u64;
        set_header(piece, |header| header.next = length);
    }
    pieces
}

fn append(
    pieces: &mut Vec<(LineNumber, Vec<u8>)>,
    line: LineNumber,
    chunk: &[u8],
    range: std::ops::Range<usize>,
) {
    let records = &chunk[range];
    match pieces.iter_mut().find(|piece| piece.0 == line) {
        Some((_, piece)) => piece.extend_from_slice(records),
        None => pieces.push((line, [&chunk[..Chunk::SIZE], records].concat())),
    }
}

/// Calls `look` with the offset of each whole record of a chunk.
pub(crate) fn for_each_record(chunk: &[u8], mut look: impl FnMut(usize, &RawRecord<'_>)) {
    let Some((_, view)) = ChunkView::new(chunk) else {
        return;
    };
    let mut at = Chunk::SIZE;
    while let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) {
        at = found + usize::from(record.size);
        if let Some(raw) = RawRecord::parse(view.from(found)) {
            look(found, &raw);
        }
    }
}

/// The number of bytes up to the first record that is not done, from offset `from` on. Its writer
/// may still complete it.
pub(crate) fn done_up_to(chunk: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(record) = chunk.get(at..).and_then(Record::read) {
        let size = usize::from(record.size);
        let whole = record.state == backstory_abi::DONE
            && size >= Record::SIZE
            && size.is_multiple_of(8)
            && at + size <= chunk.len();
        if !whole {
            break;
        }
        at += size;
    }
    at
}

/// The part of a chunk in a range of its bytes, as a chunk.
///
/// The position of a full chunk lies past its end, and the bytes after the last record are zeros.
/// The part lacks these zeros: readers would count them as a torn record.
pub(crate) fn part_of(chunk: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
    let is_full = Chunk::read(chunk).is_some_and(|header| header.next as usize > chunk.len());
    let reaches_end = range.end >= chunk.len();
    let mut records = chunk.get(range).unwrap_or_default();
    if is_full && reaches_end {
        records = without_padding(records);
    }
    let mut part = [&chunk[..Chunk::SIZE.min(chunk.len())], records].concat();
    let length = part.len() as u64;
    set_header(&mut part, |header| header.next = length);
    part
}

/// The records without the zeros after the last of them.
fn without_padding(records: &[u8]) -> &[u8] {
    let view = ChunkView::bare(records);
    let mut end = 0;
    while let Some((found, record)) = view.next(end, &mut SkippedRecords::default()) {
        end = found + usize::from(record.size);
    }
    match records[end..].iter().all(|byte| *byte == 0) {
        true => &records[..end],
        false => records,
    }
}

/// Changes the header of a chunk.
pub(crate) fn set_header(chunk: &mut [u8], change: impl FnOnce(&mut Chunk)) {
    let Some(mut header) = Chunk::read(chunk) else {
        return;
    };
    change(&mut header);
    chunk[..Chunk::SIZE].copy_from_slice(&header.to_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_abi::op;
    use backstory_eventlog::chunk::ChunkBuilder;
    use backstory_eventlog::record::RecordBuilder;

    /// A chunk with a record at each time.
    fn chunk(times: &[u64]) -> Vec<u8> {
        let mut chunk = ChunkBuilder::new(Chunk {
            pid: 4,
            seq: 9,
            ..Chunk::default()
        });
        let mut builder = RecordBuilder::new();
        for time in times {
            chunk.push(
                builder
                    .start(op::OPEN, *time)
                    .string(b"/f")
                    .result(3)
                    .finish(),
            );
        }
        chunk.bytes().to_vec()
    }

    fn times(chunk: &[u8]) -> Vec<u64> {
        let mut times = Vec::new();
        for_each_record(chunk, |_, raw| times.push(raw.head.time));
        times
    }

    #[test]
    fn each_record_is_in_the_piece_of_its_line() {
        let whole = chunk(&[1, 2, 11, 3, 12]);
        let pieces = split(&whole, |raw| raw.head.time / 10);
        let found: Vec<_> = pieces.iter().map(|(line, p)| (*line, times(p))).collect();
        assert_eq!(found, [(0, vec![1, 2, 3]), (1, vec![11, 12])]);
        let bytes: usize = pieces.iter().map(|(_, p)| p.len() - Chunk::SIZE).sum();
        assert_eq!(bytes, whole.len() - Chunk::SIZE);
        let header = Chunk::read(&pieces[1].1).unwrap();
        assert_eq!((header.pid, header.next), (4, pieces[1].1.len() as u64));
    }

    #[test]
    fn torn_bytes_stay_with_the_record_before_them() {
        let mut whole = chunk(&[1]);
        whole.extend_from_slice(&[0xee; 8]);
        whole.extend_from_slice(&chunk(&[11])[Chunk::SIZE..]);
        let length = whole.len() as u64;
        set_header(&mut whole, |header| header.next = length);
        let pieces = split(&whole, |raw| raw.head.time / 10);
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0].1.len(), chunk(&[1]).len() + 8);
    }

    #[test]
    fn the_part_of_a_full_chunk_has_no_torn_record() {
        let mut whole = chunk(&[1, 2]);
        let records = whole.len();
        whole.extend_from_slice(&[0; 64]);
        let past = whole.len() as u64 + 100;
        set_header(&mut whole, |header| header.next = past);
        let part = part_of(&whole, Chunk::SIZE..whole.len());
        assert_eq!(part.len(), records);
        assert_eq!(torn(&part), 0);
        assert_eq!(part_of(&whole, records..whole.len()).len(), Chunk::SIZE);
    }

    #[test]
    fn the_part_of_a_chunk_that_is_not_full_keeps_its_torn_record() {
        let mut whole = chunk(&[1]);
        whole.extend_from_slice(&[0; 64]);
        let length = whole.len() as u64;
        set_header(&mut whole, |header| header.next = length);
        let part = part_of(&whole, Chunk::SIZE..whole.len());
        assert_eq!(torn(&part), 1);
    }

    /// The number of torn records that a reader of the chunk finds.
    fn torn(chunk: &[u8]) -> u64 {
        let (_, view) = ChunkView::new(chunk).unwrap();
        let (mut at, mut skipped) = (Chunk::SIZE, SkippedRecords::default());
        while let Some((found, record)) = view.next(at, &mut skipped) {
            at = found + usize::from(record.size);
        }
        skipped.torn
    }

    #[test]
    fn a_record_that_may_still_change_is_not_taken() {
        let whole = chunk(&[1, 2]);
        assert_eq!(done_up_to(&whole, Chunk::SIZE), whole.len());
        let mut builder = RecordBuilder::new();
        let open = builder.start(op::EXEC, 3).string(b"/bin/true").finish();
        let more = [&whole, open].concat();
        assert_eq!(done_up_to(&more, Chunk::SIZE), whole.len());
    }

    #[test]
    fn a_chunk_without_records_has_no_pieces() {
        assert!(split(&chunk(&[]), |_| 1).is_empty());
    }
}
