//! Joins the pieces of chunks that reached the log bit by bit.
//!
//! In: the chunks and MORE frames of a log, in the order of the file. Out: pieces that do not
//! overlap. A MORE frame has the header of its chunk, and the chunk's records from an offset on.
//! They replace what earlier frames of the same chunk had from this offset on.
//!
//! Invariant: a log without MORE frames is left as it is.

use crate::frame::FrameKind;
use backstory_abi::Chunk;
use std::collections::HashMap;
use std::ops::Range;

/// A chunk, or the piece of one that a MORE frame has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkPiece {
    /// Position in the file: a chunk's header, then records.
    pub place: Range<usize>,
    /// The offset in the chunk of the first of these records.
    pub from: usize,
}

impl ChunkPiece {
    /// The piece in a frame of this kind. `content` begins with a chunk's header.
    pub fn new(kind: FrameKind, place: Range<usize>, content: &[u8]) -> ChunkPiece {
        let head = Chunk::read(content).unwrap_or_default();
        let from = match kind {
            FrameKind::More => usize::try_from(head.pad).unwrap_or(usize::MAX),
            _ => Chunk::SIZE,
        };
        ChunkPiece {
            place,
            from: from.max(Chunk::SIZE),
        }
    }

    /// True for a piece of a MORE frame.
    pub fn continues(&self) -> bool {
        self.from > Chunk::SIZE
    }
}

/// The fields that distinguish chunks: epoch, pid, tid, seq, index and time.
pub(crate) type ChunkKey = (u64, u32, u32, u32, u32, u64);

pub(crate) fn key(head: &Chunk) -> ChunkKey {
    (
        head.epoch, head.pid, head.tid, head.seq, head.index, head.taken,
    )
}

/// Removes what later frames replace. `head` reads the header of a piece.
pub(crate) fn join(pieces: &mut Vec<ChunkPiece>, head: impl Fn(&ChunkPiece) -> Chunk) {
    if !pieces.iter().any(ChunkPiece::continues) {
        return;
    }
    let mut removed = vec![false; pieces.len()];
    // The pieces of each chunk that still count, in the order of their offsets.
    let mut chains: HashMap<ChunkKey, Vec<usize>> = HashMap::new();
    for number in 0..pieces.len() {
        let from = pieces[number].from;
        let chain = chains.entry(key(&head(&pieces[number]))).or_default();
        if !pieces[number].continues() {
            // A whole copy replaces the pieces. Other modules compare it with the former copy.
            for old in chain.drain(..) {
                removed[old] |= pieces[old].continues();
            }
        }
        while let Some(&last) = chain.last() {
            if pieces[last].from < from {
                let length = Chunk::SIZE + (from - pieces[last].from);
                let place = &mut pieces[last].place;
                place.end = place.end.min(place.start + length);
                break;
            }
            removed[last] = true;
            chain.pop();
        }
        chain.push(number);
    }
    let mut number = 0;
    pieces.retain(|_| {
        number += 1;
        !removed[number - 1]
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins pieces of one chunk: each is its offset and its number of bytes after the header.
    fn joined(pieces: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let mut at = 0;
        let mut all: Vec<ChunkPiece> = Vec::new();
        for (from, bytes) in pieces {
            let end = at + Chunk::SIZE + bytes;
            all.push(ChunkPiece {
                place: at..end,
                from: *from,
            });
            at = end;
        }
        join(&mut all, |_| Chunk::default());
        all.iter()
            .map(|piece| (piece.from, piece.place.len() - Chunk::SIZE))
            .collect()
    }

    #[test]
    fn a_piece_replaces_what_its_chunk_had_from_its_offset_on() {
        assert_eq!(joined(&[(64, 100), (104, 80)]), [(64, 40), (104, 80)]);
        assert_eq!(
            joined(&[(64, 100), (164, 50), (214, 8), (180, 90)]),
            [(64, 100), (164, 16), (180, 90)]
        );
    }

    #[test]
    fn a_whole_copy_replaces_the_pieces_before_it() {
        assert_eq!(
            joined(&[(64, 100), (164, 50), (64, 150)]),
            [(64, 100), (64, 150)]
        );
    }

    #[test]
    fn a_piece_without_the_ones_before_it_is_kept() {
        assert_eq!(joined(&[(164, 50), (300, 8)]), [(164, 50), (300, 8)]);
    }

    #[test]
    fn without_pieces_nothing_changes() {
        assert_eq!(joined(&[(64, 100), (64, 120)]), [(64, 100), (64, 120)]);
    }
}
