//! Draining a session whose lines have logs of their own.
//!
//! Differences from another recording:
//!
//! - The chunks of the guard, and at a mark those of the shell, are drained while their owners may
//!   still append to them. The router remembers how far.
//! - A chunk is passed to the router, which returns what belongs to the session's log.
//!
//! Invariant: a part of a chunk is taken only if its records do not change any more. The guard's
//! records are complete when they are visible. The shell's main thread waits in its mark.

use super::chunk_owners::owned;
use super::{ChunkSelection, Drainer};
use crate::lines::{LineRouter, done_up_to, part_of};
use backstory_abi::Chunk;
use backstory_eventlog::Reason;
use std::sync::Arc;
use std::time::Duration;

/// Pause while the shell waits for the log of a line.
pub(super) const SOON: Duration = Duration::from_micros(300);

/// The chunks that are drained while their owners may append to them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LiveChunks {
    /// Those of the guard.
    Guards,
    /// Those of the guard, and of the shell, whose main thread waits.
    All,
}

impl Drainer {
    /// The same, with logs of their own for the lines of a shell.
    pub(crate) fn with_lines(self, lines: Option<LineRouter>) -> Drainer {
        Drainer {
            lines: lines.map(Box::new),
            ..self
        }
    }

    /// True if the shell waits for the log of a line.
    pub(super) fn is_waited_for(&self) -> bool {
        self.lines
            .as_ref()
            .is_some_and(|lines| lines.is_waited_for())
    }

    /// Why the log of a line could not be made, if that happened.
    pub(crate) fn lines_failure(&self) -> Option<Reason> {
        self.lines.as_ref()?.failure()
    }

    /// Follows the marks of the shell. Returns the lines that are over.
    pub(super) fn look_at_lines(&mut self) -> Vec<u64> {
        if self.lines.is_none() {
            return Vec::new();
        }
        self.drain_live(LiveChunks::Guards);
        while let Some(mark) = self.lines.as_mut().and_then(|lines| lines.next_mark()) {
            let shells = self.shells_part();
            if let Some(lines) = &mut self.lines {
                lines.turn(&mark, &shells);
            }
            self.drain_live(LiveChunks::All);
            let lost = self.lost();
            if let Some(lines) = &mut self.lines {
                lines.follow(mark, lost);
            }
        }
        self.lines
            .as_mut()
            .map_or(Vec::new(), |lines| lines.ready())
    }

    /// Finalizes the logs of lines whose processes have all been drained.
    pub(super) fn finalize_lines(&mut self, over: Vec<u64>) {
        let lost = self.lost();
        if let Some(lines) = &mut self.lines {
            lines.finalize(over, lost);
        }
    }

    /// Drains the rest, and finalizes the logs of all lines, because the session ends.
    pub(crate) fn end_lines(&mut self, status: Option<i32>, reasons: &[Reason]) {
        if self.lines.is_none() {
            return;
        }
        self.pass(ChunkSelection::All);
        let lost = self.lost();
        if let Some(lines) = &mut self.lines {
            lines.finalize_all(status, lost, reasons);
        }
    }

    /// The part that was not taken yet of the chunk of the shell's main thread.
    fn shells_part(&mut self) -> Vec<u8> {
        let stock = Arc::clone(&self.stock);
        let Some(lines) = &self.lines else {
            return Vec::new();
        };
        let mut chunks = owned(&stock.arena).into_iter();
        let Some((index, header)) = chunks.rfind(|(_, header)| lines.is_main_threads(header))
        else {
            return Vec::new();
        };
        let mut bytes = Vec::new();
        stock.arena.contents(index, &mut bytes);
        part_of(&bytes, lines.taken_up_to(index, &header)..bytes.len())
    }

    fn drain_live(&mut self, which: LiveChunks) {
        let stock = Arc::clone(&self.stock);
        let owned = owned(&stock.arena);
        if let Some(lines) = &mut self.lines {
            lines.meet(&owned);
        }
        for (index, header) in owned {
            let Some(lines) = &self.lines else {
                return;
            };
            let (shells, main) = (lines.is_shells(&header), lines.is_main_threads(&header));
            let wanted = header.tid == 0 || shells && which == LiveChunks::All;
            let from = lines.taken_up_to(index, &header);
            // A position past the end belongs to a record that did not fit.
            if !wanted || header.next as usize <= from {
                continue;
            }
            let mut bytes = Vec::new();
            stock.arena.contents(index, &mut bytes);
            let up_to = if main {
                bytes.len()
            } else {
                done_up_to(&bytes, from)
            };
            self.route(index, &bytes, up_to, false);
        }
    }

    /// Appends what was not taken yet of a chunk, up to an offset, to the logs of its lines.
    pub(super) fn route(&mut self, index: usize, bytes: &[u8], up_to: usize, give_back: bool) {
        let (Some(lines), Some(header)) = (&mut self.lines, Chunk::read(bytes)) else {
            return;
        };
        let from = lines.taken_up_to(index, &header);
        lines.took(index, &header, (!give_back).then_some(up_to.max(from)));
        if up_to <= from {
            return;
        }
        let mut part = part_of(bytes, from..up_to);
        self.look_at(&mut part);
        let Some(lines) = &mut self.lines else {
            return;
        };
        for piece in lines.route(&part) {
            self.write(&piece);
        }
    }
}
