//! Draining chunks of deep records: they go to the deep log, and not into the log.
//!
//! Invariant: a chunk that the deep log has no room for stays in the arena.

use super::chunk_owners::{newest_epochs, owned};
use super::{ChunkSelection, Drainer};
use crate::deep_mark::DeepMark;
use crate::deep_sink::{DeepPlan, DeepSink};
use backstory_abi::{CHUNK_DEEP, Chunk};
use backstory_eventlog::Reason;
use backstory_eventlog::run::RunEnd;
use std::collections::HashMap;
use std::sync::Arc;

/// With so many chunks, none are added while the deep log has no room: 64 MB.
pub(super) const MOST_CHUNKS: usize = 1024;

/// The way of deep chunks.
pub(super) struct DeepDrain {
    sink: DeepSink,
    /// When each chunk that was passed on had been taken. It stays in the arena until it is in the
    /// file.
    passed: HashMap<usize, u64>,
    /// Chunks wait in the arena until the deep log has room.
    is_behind: bool,
}

impl Drainer {
    /// The same, with a deep log.
    pub(crate) fn with_deep_log(self, plan: Option<DeepPlan>) -> Drainer {
        let stock = Arc::clone(&self.stock);
        let deep = plan.map(|plan| DeepDrain {
            sink: DeepSink::new(plan, stock),
            passed: HashMap::new(),
            is_behind: false,
        });
        Drainer { deep, ..self }
    }

    /// True if deep chunks in the arena wait for the deep log.
    pub(super) fn deep_log_is_behind(&self) -> bool {
        let deep = self.deep.as_ref();
        deep.is_some_and(|deep| deep.is_behind || deep.sink.is_busy())
    }

    /// Passes a chunk with this header to the deep log. Returns the number of chunks passed.
    pub(super) fn append_deep(
        &mut self,
        index: usize,
        header: &Chunk,
        finished: bool,
        which: ChunkSelection,
    ) -> usize {
        let last = which == ChunkSelection::Last;
        if !finished && !last {
            return 0;
        }
        let Some(deep) = &mut self.deep else {
            return 0; // no recorder of this run makes such chunks
        };
        deep.is_behind = !last && !deep.sink.has_room();
        if deep.is_behind {
            return 0;
        }
        // A chunk that was passed on may have another owner by now. Any other chunk has not: only
        // this code frees it.
        if deep.passed.insert(index, header.taken) == Some(header.taken) {
            return 0;
        }
        let arena = &self.stock.arena;
        arena.contents(index, &mut self.scratch);
        if self.scratch.len() > Chunk::SIZE {
            deep.sink.push(index, &mut self.scratch, finished);
        } else if finished {
            arena.give_back(index, self.scratch.len());
        }
        1
    }

    /// Marks the deep log as one that only has to be finished (see [`DeepSink::mark_ending`]).
    /// `None` without a deep log.
    pub(crate) fn mark_deep_log(&self) -> Option<DeepMark> {
        let deep = self.deep.as_ref()?;
        let owned = owned(&self.stock.arena);
        let left = owned.iter().filter(|(_, header)| is_deep(header)).count();
        deep.sink.mark_ending(left)
    }

    /// Passes all deep chunks that are left, waits until the deep log has them, and ends it.
    pub(crate) fn end_deep_log(&mut self) {
        if self.deep.is_none() {
            return;
        }
        let stock = Arc::clone(&self.stock);
        let owned = owned(&stock.arena);
        let newest = newest_epochs(&stock.arena, &owned);
        for (index, header) in owned.iter().filter(|(_, header)| is_deep(header)) {
            let finished = self.is_finished(*index, header, &newest);
            self.append_deep(*index, header, finished, ChunkSelection::Last);
        }
        if let Some(deep) = &mut self.deep {
            deep.sink.finish();
        }
    }

    /// The same for a run whose programs may have gone on without a recording, for this reason.
    pub(crate) fn end_deep_log_early(&mut self, why: &Reason) {
        if let Some(deep) = &mut self.deep {
            deep.sink.ends_early(why);
        }
        self.end_deep_log();
    }

    /// Why the deep log lacks something, in sentences.
    pub(crate) fn deep_warnings(&self) -> Vec<String> {
        let reasons = self.deep.iter().flat_map(|deep| deep.sink.reasons());
        reasons.map(|reason| reason.to_string()).collect()
    }

    /// Adds what became known about the deep log to the end that the log has. Of several ends in a
    /// log the last one counts. Returns it.
    pub(crate) fn add_deep_warnings(&mut self, mut end: RunEnd) -> RunEnd {
        let mut news = self.deep_warnings();
        news.retain(|warning| !end.warnings.contains(warning));
        if news.is_empty() {
            return end;
        }
        end.warnings.extend(news);
        self.finish(|_| end.clone())
    }
}

/// True for a chunk of deep records.
pub(super) fn is_deep(header: &Chunk) -> bool {
    header.flags & CHUNK_DEEP != 0
}
