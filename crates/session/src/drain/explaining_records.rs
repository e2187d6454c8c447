//! The records that explain how a content came to be, or what it came from.
//!
//! A call that makes contents durable waits for these records alone (`--durability`). A log that
//! lacks the others tells the same sources. At most, a process that closed a file counts as one
//! that may still use it.

use backstory_abi::{self as abi, op};
use backstory_eventlog::chunk::{ChunkView, SkippedRecords};

/// Operations that change no content, no name, and no path from one content to another.
const EXPLAIN_NOTHING: &[u16] = &[op::CLOSE, op::CLOSE_RANGE, op::STAT, op::ACCESS];

/// True if one of the records of a chunk, or of a piece of one, may explain a content. A record of
/// an operation that this program does not know may.
pub(super) fn has_explanation(chunk: &[u8]) -> bool {
    let Some((_, view)) = ChunkView::new(chunk) else {
        return true;
    };
    let mut skipped = SkippedRecords::default();
    let mut at = abi::Chunk::SIZE;
    while let Some((found, record)) = view.next(at, &mut skipped) {
        if !EXPLAIN_NOTHING.contains(&record.op) {
            return true;
        }
        at = found + usize::from(record.size);
    }
    skipped != SkippedRecords::default()
}
