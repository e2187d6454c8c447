//! Moves chunks from the arena into the log and frees them.
//!
//! Invariant: a chunk is zeroed only after the kernel has its bytes (`Writer::chunk` returned), and
//! only if its owner will append no more. The owner has declared that, or is dead. A drainer that
//! dies between the two steps leaves the chunk in both places. Readers take the later copy.

mod chunk_owners;
mod deep;
mod drain_loop;
mod drainer_findings;
mod executed;
mod explaining_records;
mod interpreted;
mod lined;
mod logged_pieces;
mod other_roots;
pub(crate) mod privileges;
mod shared_chunk;
mod silent_programs;
mod starts;
pub(crate) mod undecoded;
mod unwatched;

use crate::clock;
use crate::lines::LineRouter;
use crate::redact::Secrets;
use backstory_abi as abi;
use backstory_arena::ChunkSupply;
use backstory_eventlog::frame::FrameKind;
use backstory_eventlog::run::RunEnd;
use backstory_eventlog::{Error as LogError, Reason, Writer};
use backstory_functions::FunctionPatterns;
use backstory_sys::Pid;
use chunk_owners::{abandoned, newest_epochs, notice_namespaces, owned};
use deep::DeepDrain;
use explaining_records::has_explanation;
use interpreted::InterpretedFunctions;
use logged_pieces::LoggedPieces;
use privileges::Privileges;
use silent_programs::SilentPrograms;
use starts::{LibrarySets, Start};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use undecoded::Undecoded;
use unwatched::Unwatched;

pub(crate) use drain_loop::{Asking, run};

/// Interval between two readings of the clocks, in nanoseconds.
const CLOCK_EVERY: i64 = 60 * 1_000_000_000;

/// The chunks that a pass takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkSelection {
    /// Chunks whose owner will append no more.
    Finished,
    /// All chunks, because the log is to have them now.
    All,
    /// All chunks, because recording ends now.
    Last,
}

/// The part of a log that is to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DurablePart {
    /// The records that explain contents.
    Explanations,
    /// All of it.
    Whole,
}

/// The only writer of a run's log.
pub(crate) struct Drainer {
    stock: Arc<ChunkSupply>,
    log: Writer,
    scratch: Vec<u8>,
    /// Secrets that must not reach the log.
    secrets: Secrets,
    /// Programs that lost a privilege by being recorded.
    privileges: Privileges,
    /// Programs that neither recorder nor guard observed.
    unwatched: Unwatched,
    /// Programs of which no recorder announced itself (`--guard=auto`).
    silent: SilentPrograms,
    /// The libraries of programs, to which later programs refer (`--guard=auto`).
    libraries: LibrarySets,
    /// The patterns that interpreted functions match (`record --functions`).
    interpreted: Option<InterpretedFunctions>,
    /// Gaps that the records themselves report.
    undecoded: Undecoded,
    /// The logs of a shell's lines. `None` for every other recording.
    lines: Option<Box<LineRouter>>,
    /// Records that could not be appended.
    lost: u64,
    /// Numbers of records in the chunks that can be taken back from the log, the latest chunk last.
    /// The log keeps as many of them as it can.
    recent: VecDeque<u64>,
    /// The first write error, as a message.
    failed: Option<String>,
    clock_due: i64,
    /// The logged parts of unfinished chunks, in a run whose log is to be durable before its
    /// results.
    pieces: Option<LoggedPieces>,
    /// The log has an explanation of a content that may not be durable.
    has_unsynced_explanation: bool,
    /// Another process follows the log, so unfinished chunks are appended in every pass.
    is_followed: bool,
    /// Where chunks of deep records go. `None` if the run has no deep log.
    deep: Option<DeepDrain>,
}

impl Drainer {
    /// A drainer that appends to `log` and removes `secrets`. Appends a reading of the clocks.
    pub(crate) fn new(stock: Arc<ChunkSupply>, log: Writer, secrets: Secrets) -> Drainer {
        let mut drainer = Drainer {
            stock,
            log,
            scratch: Vec::new(),
            secrets,
            privileges: Privileges::default(),
            unwatched: Unwatched::new(),
            silent: SilentPrograms::default(),
            libraries: LibrarySets::default(),
            interpreted: None,
            undecoded: Undecoded::default(),
            lines: None,
            lost: 0,
            recent: VecDeque::new(),
            failed: None,
            clock_due: 0,
            pieces: None,
            has_unsynced_explanation: true,
            is_followed: false,
            deep: None,
        };
        drainer.clock();
        drainer
    }

    /// The same, reporting programs that lost a privilege.
    pub(crate) fn with_privileges(self, privileges: Privileges) -> Drainer {
        Drainer { privileges, ..self }
    }

    /// The same, for a run that records calls of the functions that match.
    pub(crate) fn with_functions(self, patterns: Option<FunctionPatterns>) -> Drainer {
        Drainer {
            interpreted: patterns.map(InterpretedFunctions::new),
            ..self
        }
    }

    /// From now on unfinished chunks are appended piece by piece.
    pub(crate) fn append_pieces(&mut self) {
        self.pieces.get_or_insert_default();
    }

    /// From now on unfinished chunks are appended piece by piece in every pass.
    pub(crate) fn follow(&mut self) {
        self.append_pieces();
        self.is_followed = true;
    }

    /// A second handle of the log, and the log's path.
    pub(crate) fn log_file(&self) -> io::Result<(File, PathBuf)> {
        Ok((self.log.second_handle()?, self.log.path().to_owned()))
    }

    /// Appends everything that is in the arena now. Returns whether the log is to be made durable,
    /// because it has frames of this part that may not be.
    ///
    /// # Errors
    /// The first error of writing the log in this pass, as a message.
    pub(crate) fn drain_all(&mut self, part: DurablePart) -> Result<bool, String> {
        let before = self.failed.take();
        self.pass(ChunkSelection::All);
        let failed = self.failed.clone();
        self.failed = before.or(self.failed.take());
        match failed {
            Some(error) => Err(error),
            None if part == DurablePart::Explanations && !self.has_unsynced_explanation => {
                Ok(false)
            }
            None => {
                self.has_unsynced_explanation = false;
                Ok(self.log.take_unsynced())
            }
        }
    }

    fn note(&mut self, result: Result<(), LogError>) -> bool {
        if let Err(error) = &result {
            self.failed.get_or_insert_with(|| error.to_string());
        }
        result.is_ok()
    }

    fn clock(&mut self) {
        let result = self.log.clock(clock::point());
        self.note(result);
        self.clock_due = backstory_sys::clock::monotonic() + CLOCK_EVERY;
    }

    /// Drains the chunks selected by `which`. Returns their number.
    pub(crate) fn pass(&mut self, which: ChunkSelection) -> usize {
        if backstory_sys::clock::monotonic() > self.clock_due {
            self.clock();
        }
        let over = self.look_at_lines();
        let stock = Arc::clone(&self.stock);
        // A start shows that the former chunk of its process is finished. So it comes first.
        let starts = starts::filled(&stock.arena);
        let owned = owned(&stock.arena);
        notice_namespaces(&stock.arena, &owned);
        if let Some(lines) = &mut self.lines {
            lines.meet(&owned);
        }
        self.libraries.look(&stock.arena, &owned);
        let mut newest = newest_epochs(&stock.arena, &owned);
        for start in &starts {
            let epoch = newest.entry(start.pid()).or_default();
            *epoch = start.epoch.max(*epoch);
        }
        let mut drained = self.append_starts(&starts);
        for (index, header) in &owned {
            let finished = self.is_finished(*index, header, &newest);
            if self.deep.is_some() && deep::is_deep(header) {
                // The last ones may wait for the disk. They follow when the log has its end.
                if which != ChunkSelection::Last {
                    drained += self.append_deep(*index, header, finished, which);
                }
            } else if finished || which != ChunkSelection::Finished {
                self.append(*index, finished);
                drained += 1;
            }
        }
        if which != ChunkSelection::Finished {
            drained += self.append_starts(&starts::filled(&stock.arena));
        }
        self.finalize_lines(over);
        drained
    }

    /// Appends the chunks of programs that announced themselves without one. Returns their number.
    fn append_starts(&mut self, starts: &[Start]) -> usize {
        let stock = Arc::clone(&self.stock);
        for start in starts {
            match start.chunk(&stock.arena) {
                Some(mut chunk) => self.append_whole(&mut chunk),
                None => self.lost += 1,
            }
            start.free(&stock.arena);
        }
        starts.len()
    }

    /// True if no thread is left that will append to this chunk.
    fn is_finished(
        &mut self,
        index: usize,
        header: &abi::Chunk,
        newest: &HashMap<Pid, u64>,
    ) -> bool {
        let stock = Arc::clone(&self.stock);
        let is_deep = self.deep.is_some() && deep::is_deep(header);
        stock.arena.is_set(&stock.arena.header().full, index)
            || (abandoned(&stock.arena, header, newest)
                && (is_deep || !self.has_other_writer(index, newest)))
    }

    /// The reason for a log that is another file than the one that was written.
    pub(crate) fn replaced(&self, part: &Path) -> Option<Reason> {
        let path = part.display().to_string();
        self.log
            .is_replaced(part)
            .then_some(Reason::LogReplaced { path })
    }

    /// True if a child on the dead owner's memory may still append.
    fn has_other_writer(&mut self, index: usize, newest: &HashMap<Pid, u64>) -> bool {
        self.stock.arena.contents(index, &mut self.scratch);
        shared_chunk::has_other_writer(&self.scratch, newest)
    }

    fn append(&mut self, index: usize, give_back: bool) {
        let stock = Arc::clone(&self.stock);
        let mut bytes = std::mem::take(&mut self.scratch);
        stock.arena.contents(index, &mut bytes);
        if give_back {
            stock.leaves(&bytes);
        }
        if self.lines.is_some() {
            self.route(index, &bytes, bytes.len(), give_back);
        } else if bytes.len() > abi::Chunk::SIZE {
            match self.pieces.is_some() {
                true => self.append_news(index, &mut bytes, give_back),
                false => self.append_whole(&mut bytes),
            }
        }
        if give_back {
            stock.arena.give_back(index, bytes.len());
        }
        self.scratch = bytes;
    }

    fn append_whole(&mut self, bytes: &mut [u8]) {
        self.look_at(bytes);
        self.write(bytes);
    }

    /// Removes secrets from a chunk, and notes what it reports about the run.
    fn look_at(&mut self, bytes: &mut [u8]) {
        self.secrets.scrub(bytes);
        self.look_for_programs(bytes);
    }

    /// Appends a chunk to the log.
    fn write(&mut self, bytes: &[u8]) {
        self.undecoded.look(bytes);
        self.has_unsynced_explanation = true;
        let result = self.log.chunk(bytes);
        let count = records(bytes);
        match self.note(result) {
            true => self.remember(count),
            false => self.lost += count,
        }
    }

    /// Notes programs that lost a privilege, or that no component observed.
    fn look_for_programs(&mut self, bytes: &[u8]) {
        self.privileges.look(bytes);
        if let Some(interpreted) = &mut self.interpreted {
            interpreted.look(bytes);
        }
        let flags = self.stock.arena.header().flags.load(Ordering::Relaxed);
        if flags & abi::ARENA_GUARDED == 0 {
            self.unwatched.look(bytes);
        } else if flags & abi::ARENA_AUTO != 0 {
            self.silent.look(bytes);
        }
    }

    /// Appends the records of a chunk that the log lacks. `last`: the chunk is finished.
    fn append_news(&mut self, index: usize, bytes: &mut [u8], last: bool) {
        let Some(pieces) = &mut self.pieces else {
            return;
        };
        let news = pieces.first_news(index, bytes);
        let before = news.and_then(|_| pieces.places(index, bytes));
        if last {
            pieces.forget(index);
            self.undecoded.look_for_unfinished(bytes);
        }
        let Some(offset) = news else {
            return;
        };
        let raw = bytes[offset..].to_vec();
        let before = before.unwrap_or_default();
        let places = self.secrets.scrub_from(bytes, &before, offset);
        let piece = [&bytes[..abi::Chunk::SIZE], &bytes[offset..]].concat();
        self.look_for_programs(&piece);
        self.undecoded.look_at_piece(&piece);
        self.has_unsynced_explanation |= has_explanation(&piece);
        let result = match offset {
            abi::Chunk::SIZE => self.log.chunk(&piece),
            _ => self.log.more(&piece, offset),
        };
        let (done, count) = (self.note(result), records(&piece));
        match (done, last) {
            (true, _) => self.remember(count),
            (false, true) => self.lost += count,
            // The next pass tries again.
            (false, false) => self.secrets.return_before(&places, &before),
        }
        if let (true, false, Some(pieces)) = (done, last, &mut self.pieces) {
            let head = &bytes[..abi::Chunk::SIZE];
            pieces.put(index, (head, offset), &raw, places);
        }
    }

    fn remember(&mut self, records: u64) {
        if self.recent.len() == Writer::RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(records);
    }

    /// Appends the last frames, and returns the `end` that is in the log. The end of a run matters
    /// more than its last operations. On a full disk the last chunks are taken back to make room,
    /// and `end` is computed again, because it must report that loss.
    pub(crate) fn finish(&mut self, end: impl Fn(&Drainer) -> RunEnd) -> RunEnd {
        let clock = clock::point();
        loop {
            let told = end(self);
            let written = self.log.clock(clock).and_then(|()| self.log.end(&told));
            if self.note(written) || !self.take_back_chunk() {
                return told;
            }
        }
    }

    /// Appends another end, if the disk has room. Of several ends in a log the last one counts.
    pub(crate) fn replace_end(&mut self, end: &RunEnd) {
        let written = self.log.end(end);
        self.note(written);
    }

    /// Takes the last chunk back from the log, with the clock readings after it. Returns false if
    /// no chunk is left.
    fn take_back_chunk(&mut self) -> bool {
        loop {
            match self.log.take_back() {
                Ok(Some(FrameKind::Chunk | FrameKind::More)) => break,
                Ok(Some(_)) => (),
                Ok(None) | Err(_) => return false,
            }
        }
        self.lost += self.recent.pop_back().unwrap_or_default();
        true
    }

    /// Makes the log durable (fdatasync(2)).
    pub(crate) fn sync(&mut self) {
        let result = self.log.sync();
        self.note(result);
    }
}

/// Number of records in a chunk.
fn records(bytes: &[u8]) -> u64 {
    let mut count = 0;
    let mut at = abi::Chunk::SIZE;
    while let Some(record) = bytes.get(at..).and_then(abi::Record::read) {
        at += usize::from(record.size).max(8);
        count += u64::from(record.size != 0);
    }
    count
}

#[cfg(test)]
mod tests;
