//! Finds the patterns of `record --functions` that interpreted functions match. The interpreters
//! describe them in records of their own, and no table of the supervisor has them.

use backstory_abi::{self as abi, op};
use backstory_eventlog::chunk::{ChunkView, SkippedRecords};
use backstory_eventlog::record::RawRecord;
use backstory_functions::{FunctionPatterns, UnmatchedPattern};
use std::collections::BTreeSet;

/// The patterns of a run, and those that matched.
#[derive(Debug)]
pub(super) struct InterpretedFunctions {
    patterns: FunctionPatterns,
    matched: BTreeSet<usize>,
}

impl InterpretedFunctions {
    /// For a run with these patterns.
    pub(super) fn new(patterns: FunctionPatterns) -> InterpretedFunctions {
        InterpretedFunctions {
            patterns,
            matched: BTreeSet::new(),
        }
    }

    /// Examines a chunk.
    pub(super) fn look(&mut self, chunk: &[u8]) {
        let Some((_, view)) = ChunkView::new(chunk) else {
            return;
        };
        let mut at = abi::Chunk::SIZE;
        while let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) {
            at = found + usize::from(record.size);
            let interpreted =
                record.op == op::FUNCTION && record.fd as u32 & abi::FUNCTION_INTERPRETED != 0;
            let described = interpreted.then(|| RawRecord::parse(view.from(found)));
            if let Some(raw) = described.flatten() {
                let name = String::from_utf8_lossy(raw.strings()[0]);
                self.matched.extend(self.patterns.of_interpreted(&name));
            }
        }
    }

    /// True if an interpreted function matched this pattern.
    pub(super) fn has(&self, pattern: &UnmatchedPattern) -> bool {
        self.matched.contains(&pattern.index)
    }
}
