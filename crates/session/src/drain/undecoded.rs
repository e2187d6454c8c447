//! Collects the gaps that the records themselves report: interfaces that cannot be decoded, and
//! records that a thread did not finish.
//!
//! The drainer examines each chunk once, as it appends the chunk to the log. The reasons become
//! part of the run's end, so that the summary of `record` and the store agree. The store's indexer
//! derives the same sentences from the log, for a log without an end.

use backstory_abi::{self as abi, op};
use backstory_eventlog::chunk::{ChunkView, SkippedRecords};
use backstory_eventlog::reason::{opens_memory, undecoded};
use backstory_eventlog::record::RawRecord;
use backstory_eventlog::{Damage, Reason};

/// The gaps found so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Undecoded {
    sentences: Vec<String>,
    skipped: SkippedRecords,
}

impl Undecoded {
    /// Examines the records of a chunk whose owner appends no more.
    pub(crate) fn look(&mut self, chunk: &[u8]) {
        let mut skipped = self.skipped;
        self.walk(chunk, &mut skipped);
        self.skipped = skipped;
    }

    /// Examines a piece of a chunk that may grow. A record that its owner has only begun may be
    /// whole in the next piece, so it counts only in [`Undecoded::look_for_unfinished`].
    pub(crate) fn look_at_piece(&mut self, piece: &[u8]) {
        self.walk(piece, &mut SkippedRecords::default());
    }

    /// Counts the unfinished records of a chunk whose pieces were examined. Its owner appends no
    /// more.
    pub(crate) fn look_for_unfinished(&mut self, chunk: &[u8]) {
        let Some((_, view)) = ChunkView::new(chunk) else {
            return;
        };
        let mut at = abi::Chunk::SIZE;
        while let Some((found, record)) = view.next(at, &mut self.skipped) {
            at = found + usize::from(record.size);
        }
    }

    fn walk(&mut self, chunk: &[u8], skipped: &mut SkippedRecords) {
        let Some((head, view)) = ChunkView::new(chunk) else {
            return;
        };
        let mut at = abi::Chunk::SIZE;
        while let Some((found, record)) = view.next(at, skipped) {
            at = found + usize::from(record.size);
            let failed = record.state == abi::DONE && record.result < 0;
            if !matches!(record.op, op::OPAQUE | op::OPEN) || failed {
                continue;
            }
            let Some(raw) = RawRecord::parse(view.from(found)) else {
                continue;
            };
            let name = match raw.strings()[0] {
                name if record.op == op::OPAQUE => name,
                path if opens_memory(path, record.arg) => undecoded::MEMORY_FILE.as_bytes(),
                _ => continue,
            };
            let pid = raw.caller.map_or(head.pid, |caller| caller.pid);
            let sentence = Reason::undecoded(pid, name).to_string();
            if !self.sentences.contains(&sentence) {
                self.sentences.push(sentence);
            }
        }
    }

    /// Reasons why the run is not complete, one sentence each.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = String> {
        let damage = Damage {
            torn_records: self.skipped.torn,
            unknown_records: self.skipped.unknown,
            ..Damage::default()
        };
        let torn = damage.reason().map(|reason| reason.to_string());
        self.sentences.iter().cloned().chain(torn)
    }
}
