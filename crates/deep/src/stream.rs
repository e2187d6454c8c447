//! The calls of one thread, one after the other.
//!
//! Memory: one decompressed chunk, and the calls that are not complete yet.

use crate::call::Call;
use crate::clocks::ClockTimes;
use crate::log::{ChunkPlace, DeepLog};
use backstory_abi::{DONE, DeepRecord, deep};
use std::collections::VecDeque;

/// Most bytes of one call. A call that has more is cut there. Linux moves fewer at once into a
/// socket or pipe.
const MOST_BYTES: usize = 256 << 20;

/// Most calls that can be incomplete at once: one for each nested signal handler.
const MOST_PENDING: usize = 64;

/// The calls of one thread. Missing chunks appear as a call with the number `deep::GAP` and the
/// result -1: so many records that their number is unknown.
pub struct ThreadCalls<'a> {
    log: &'a DeepLog,
    tid: u32,
    chunks: VecDeque<&'a ChunkPlace>,
    next_seq: u32,
    records: Vec<u8>,
    at: usize,
    /// Calls whose last record is still to come.
    pending: Vec<Call>,
    clocks: ClockTimes,
    /// Calls to return before the next record is read.
    ready: VecDeque<Call>,
}

impl DeepLog {
    /// The calls of one thread, in the order in which they returned.
    pub fn thread_calls(&self, epoch: u64, tid: u32) -> ThreadCalls<'_> {
        ThreadCalls::new(self, tid, self.chunks(epoch, tid).collect())
    }

    /// The calls in the last chunk of a thread.
    pub(crate) fn last_chunk_calls(&self, epoch: u64, tid: u32) -> ThreadCalls<'_> {
        let last = self.chunks(epoch, tid).next_back();
        ThreadCalls::new(self, tid, last.into_iter().collect())
    }
}

impl<'a> ThreadCalls<'a> {
    fn new(log: &'a DeepLog, tid: u32, chunks: Vec<&'a ChunkPlace>) -> ThreadCalls<'a> {
        ThreadCalls {
            log,
            tid,
            chunks: chunks.into(),
            next_seq: 0,
            records: Vec::new(),
            at: 0,
            pending: Vec::new(),
            clocks: ClockTimes::default(),
            ready: VecDeque::new(),
        }
    }

    /// Goes to the next chunk. False at the end of the stream.
    fn open_chunk(&mut self) -> bool {
        let Some(chunk) = self.chunks.pop_front() else {
            return false;
        };
        let missing = chunk.head.seq != self.next_seq;
        self.next_seq = chunk.head.seq.saturating_add(1);
        let records = self.log.records(chunk);
        if missing || records.is_none() {
            self.give_up_pending();
            self.clocks.forget();
            self.ready.push_back(Call {
                tid: self.tid,
                number: deep::GAP,
                time: chunk.head.taken,
                fd: -1,
                result: -1,
                ..Call::default()
            });
        }
        self.records = records.unwrap_or_default();
        self.at = 0;
        true
    }

    /// The rest of these calls is missing.
    fn give_up_pending(&mut self) {
        for call in self.pending.drain(..) {
            self.ready.push_back(Call {
                is_cut: true,
                ..call
            });
        }
    }

    /// Reads the record at the present position. `None` at the end of the chunk.
    fn record(&mut self) -> Option<(DeepRecord, Option<Call>)> {
        let rest = self.records.get(self.at..)?;
        let record = DeepRecord::read(rest)?;
        let size = record.size as usize;
        if size < DeepRecord::SIZE || !size.is_multiple_of(8) || size > rest.len() {
            self.at = self.records.len();
            return None;
        }
        self.at += size;
        let whole = u16::from(record.state) == DONE;
        let call = whole
            .then(|| Call::of(&record, self.tid, &rest[DeepRecord::SIZE..size]))
            .flatten();
        Some((record, call))
    }

    /// Joins a record with the earlier records of its call.
    fn take(&mut self, record: &DeepRecord, mut call: Call) {
        if !self.clocks.complete(&mut call) {
            return;
        }
        let same = |known: &Call| known.time == record.time && known.number == record.call;
        let known = self.pending.iter().rposition(same);
        let whole = match known {
            Some(index) => {
                let mut whole = self.pending.remove(index);
                match whole.length() + call.length() <= MOST_BYTES {
                    true => whole.extend(call),
                    false => whole.is_cut = true,
                }
                whole
            }
            None => call,
        };
        match record.flags & deep::MORE != 0 {
            true if self.pending.len() < MOST_PENDING => self.pending.push(whole),
            _ => self.ready.push_back(whole),
        }
    }
}

impl Iterator for ThreadCalls<'_> {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        loop {
            if let Some(call) = self.ready.pop_front() {
                return Some(call);
            }
            match self.record() {
                Some((record, Some(call))) => self.take(&record, call),
                Some((_, None)) => {}
                None if self.open_chunk() => {}
                None if self.pending.is_empty() => return None,
                None => self.give_up_pending(),
            }
        }
    }
}
