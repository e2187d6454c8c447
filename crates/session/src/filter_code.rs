//! The instructions of the filter in the arena (`struct bs_filter_code`), for processes that
//! install it later (`--guard=auto`).
//!
//! In: the instructions. Out: their copy in memory that each recorder maps.
//!
//! Invariant: the size is written last, and the copy never changes. A recorder that finds no size
//! requests the instructions by the socket.
//!
//! Absent on purpose: a protection of the copy. Each program of the run can write there, so a
//! recorder checks what it installs.

use backstory_abi as abi;
use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU64, Ordering};

const WORD: usize = size_of::<u64>();
/// Where the size is, in words of the arena's first chunk. The instructions follow.
const PLACE: usize = offset_of!(abi::Programs, filter) / WORD;
const ROOM: usize = abi::FILTER_BYTES as usize;

/// Publishes the instructions in the words of the arena's first chunk. False: they do not fit.
pub(crate) fn publish(words: &[AtomicU64], instructions: &[u8]) -> bool {
    let place = words.get(PLACE..).and_then(|words| words.split_first());
    let Some((size, code)) = place else {
        return false;
    };
    let whole = instructions.chunks_exact(WORD);
    if instructions.len() > ROOM.min(code.len() * WORD) || !whole.remainder().is_empty() {
        return false;
    }
    for (word, bytes) in code.iter().zip(whole) {
        let mut all = [0; WORD];
        all.copy_from_slice(bytes);
        word.store(u64::from_le_bytes(all), Ordering::Relaxed);
    }
    size.store(instructions.len() as u64, Ordering::Release);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_guard::{Filter, FilterSpec};

    /// The memory of a chunk.
    fn chunk() -> Vec<AtomicU64> {
        let words = 0..abi::CHUNK_SIZE as usize / WORD;
        words.map(|_| AtomicU64::new(0)).collect()
    }

    fn size(words: &[AtomicU64]) -> usize {
        words[PLACE].load(Ordering::Acquire) as usize
    }

    #[test]
    fn each_filter_of_a_run_that_starts_without_one_fits() {
        for refuse_io_uring in [false, true] {
            let filter = Filter::build(&FilterSpec {
                gate: Some(backstory_recorder::GATE),
                refuse_io_uring,
                ..FilterSpec::default()
            });
            let (words, instructions) = (chunk(), filter.to_bytes());
            assert!(publish(&words, &instructions), "{}", instructions.len());
            let code = words[PLACE + 1..].iter();
            let code = code.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
            let code: Vec<u8> = code.take(size(&words)).collect();
            assert_eq!(code, instructions);
        }
    }

    #[test]
    fn instructions_that_do_not_fit_are_not_published() {
        let words = chunk();
        for bytes in [vec![1; ROOM + WORD], vec![1; WORD - 1]] {
            assert!(!publish(&words, &bytes));
            assert_eq!(size(&words), 0);
        }
        assert!(!publish(&words[..PLACE + 1], &[1; WORD]), "no memory");
        assert!(publish(&words, &[0xff; ROOM]));
        let sets = offset_of!(abi::Programs, sets) / WORD;
        let ends = [sets - 1, sets].map(|at: usize| words[at].load(Ordering::Relaxed));
        assert_eq!(ends, [u64::MAX, 0], "it ends before the sets of libraries");
    }
}
