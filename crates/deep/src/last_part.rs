//! The part of a chunk that a deep log still gets when it has ended for want of room.
//!
//! In: a chunk as it lay in the arena. Out: all of a small one, and of another one the start of its
//! program. Invariant: the part has whole records only, and is a chunk.

use backstory_abi::{Chunk, DONE, DeepRecord, deep};

/// A chunk with at most so many bytes is small.
const SMALL: usize = 8 << 10;

/// The part of a chunk that is still written. `None`: nothing of it is.
pub fn last_part(chunk: &[u8]) -> Option<Vec<u8>> {
    let head = Chunk::read(chunk)?;
    if chunk.len() <= SMALL {
        return Some(chunk.to_vec());
    }
    let length = Chunk::SIZE + start_length(chunk.get(Chunk::SIZE..)?)?;
    let head = Chunk {
        next: length as u64,
        ..head
    };
    let mut part = chunk.get(..length)?.to_vec();
    part[..Chunk::SIZE].copy_from_slice(&head.to_bytes());
    Some(part)
}

/// Bytes of the BEGIN with which these records begin, and of the records that continue it. `None`:
/// they begin otherwise, or with a thread.
fn start_length(records: &[u8]) -> Option<usize> {
    let mut length = 0;
    loop {
        let rest = records.get(length..)?;
        let Some(record) = DeepRecord::read(rest) else {
            break;
        };
        let size = record.size as usize;
        let is_whole = u16::from(record.state) == DONE && size >= DeepRecord::SIZE;
        let is_start = record.call == deep::BEGIN && record.a != deep::BY_THREAD;
        if !is_whole || !is_start || size > rest.len() {
            break;
        }
        length += size;
        if record.flags & deep::MORE == 0 {
            break;
        }
    }
    (length > 0).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::{SMALL, last_part};
    use backstory_abi::{Chunk, deep};
    use backstory_testkit::deep_records::{short_call, thread_chunk};

    const READ: u16 = 0;

    fn large(first: Vec<u8>) -> Vec<u8> {
        let read = short_call(READ, 0, (2, 3), 9000, (deep::ENTERED, &[7; 9000]));
        thread_chunk(10, 0, &[first, read])
    }

    #[test]
    fn a_small_chunk_is_kept_whole_and_a_large_one_up_to_the_start_of_its_program() {
        let begin = short_call(deep::BEGIN, 0, (1, -1), 0, (deep::PATH, b"/bin/sh"));
        let small = thread_chunk(10, 0, std::slice::from_ref(&begin));
        assert_eq!(last_part(&small), Some(small.clone()));
        let chunk = large(begin);
        assert!(chunk.len() > SMALL);
        assert_eq!(last_part(&chunk), Some(small));
        let other = short_call(READ, 0, (1, 3), 0, (deep::ENTERED, b""));
        assert_eq!(last_part(&large(other)), None);
        assert_eq!(last_part(&chunk[..Chunk::SIZE - 1]), None);
    }

    #[test]
    fn a_start_in_several_records_is_kept_with_all_of_them() {
        let record = |flags| short_call(deep::BEGIN, flags, (1, -1), 0, (deep::WORDS, b"sh"));
        let chunk = large([record(deep::MORE), record(0)].concat());
        let both = thread_chunk(10, 0, &[record(deep::MORE), record(0)]);
        assert_eq!(last_part(&chunk), Some(both));
    }
}
