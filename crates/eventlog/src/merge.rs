//! Merges all threads' records into one sequence of events, in order of time.
//!
//! Invariants, whatever the clocks of different cores say:
//!
//! - Times never decrease.
//! - Events of a thread keep their order.
//! - A child's events come after its fork, a program's after its exec, a thread's after its
//!   process's start.
//! - In a tie, the stream that the log mentions first comes first.
//!
//! The memory holds a few words for each stream, and the arguments of a thread's next `exec`.

use crate::decode;
use crate::event::{Bytes, Event, Op, Outcome, Via};
use crate::exec::{Pending, Strings};
use crate::index::LogIndex;
use crate::read_records::ReadRecords;
use crate::record::RawRecord;
use crate::stored_frames::StoredFrames;
use crate::stream::{Cursor, RecordPosition, ThreadStream, record_at};
use backstory_abi::{Record, op};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

/// Environments that stay decoded. Others are decoded again when they are named again.
const KEPT_ENVIRONMENTS: usize = 64;
/// Most chunks of the guard over which one environment may spread, among other records.
const GUARD_CHUNKS: usize = 64;

/// The progress of a stream.
#[derive(Debug, Default)]
pub(crate) struct Progress<'a> {
    pub(crate) cursor: Cursor<'a>,
    /// Its next record, and its time. A late record (its stream had to wait, or a clock went back)
    /// comes at once.
    pub(crate) head: Option<(u64, RecordPosition)>,
    /// The bytes from that record on, if its chunk is loaded.
    bytes: Option<&'a [u8]>,
    /// The guard's chunk, sorted, because its records belong to many threads.
    sorted: VecDeque<(u64, RecordPosition)>,
    /// Children running on this thread's memory, the innermost last.
    pub(crate) children: Vec<u32>,
    /// The innermost child has ended or executed another program, so the next record is not its
    /// own.
    pub(crate) left: bool,
    pub(crate) pending: Option<Box<Pending>>,
    pub(crate) shut: bool,
}

impl Progress<'_> {
    /// Removes a child whose `VFORKED` was lost. The index follows the same rule.
    fn leave(&mut self, next: &Record) {
        if std::mem::take(&mut self.left) && next.op != op::VFORKED {
            self.children.pop();
        }
        self.left = !self.children.is_empty() && decode::is_last_of_child(next);
    }
}

/// The events of a log: see [`Log::events`].
#[derive(Debug)]
pub struct Events<'a> {
    pub(crate) log: &'a StoredFrames,
    /// True if no part of the log is known to be missing.
    pub(crate) whole: bool,
    pub(crate) index: &'a LogIndex,
    pub(crate) progress: Vec<Progress<'a>>,
    /// Thread streams that have not started, the first to start last.
    unstarted: Vec<(u64, u32)>,
    pub(crate) running: BinaryHeap<Reverse<(u64, u32)>>,
    /// Thread streams that wait for a record of another stream.
    pub(crate) waiting: BTreeSet<(u64, u32)>,
    /// The guard's records about each thread's next `exec`.
    pub(crate) watched: HashMap<(u32, u32), Pending>,
    environments: HashMap<u64, Arc<[Bytes]>>,
    /// The counter of the last record; it never decreases.
    pub(crate) now: u64,
    /// The counter of the last record itself.
    taken: u64,
    /// The records that were read before, and are passed over.
    pub(crate) read: Option<&'a ReadRecords<'a>>,
}

impl<'a> Events<'a> {
    pub(crate) fn new(log: &'a StoredFrames, index: &'a LogIndex, whole: bool) -> Events<'a> {
        let streams = index.streams.iter().enumerate();
        let mut unstarted: Vec<_> = streams.map(|(n, l)| (l.start, n as u32)).collect();
        unstarted.sort_unstable_by(|a, b| b.cmp(a));
        let progress = index
            .streams
            .iter()
            .map(|l| Progress {
                shut: l.gated,
                ..Progress::default()
            })
            .collect();
        Events {
            log,
            whole,
            index,
            progress,
            unstarted,
            running: BinaryHeap::new(),
            waiting: BTreeSet::new(),
            watched: HashMap::new(),
            environments: HashMap::new(),
            now: 0,
            taken: 0,
            read: None,
        }
    }

    /// Starts every stream whose time has come.
    pub(crate) fn admit(&mut self) {
        while let Some((start, stream)) = self.unstarted.last().copied() {
            if self
                .running
                .peek()
                .is_some_and(|Reverse(top)| *top < (start, stream))
            {
                return;
            }
            self.unstarted.pop();
            if self.progress[stream as usize].shut {
                self.waiting.insert((start, stream));
            } else {
                self.start(stream);
            }
        }
    }

    pub(crate) fn start(&mut self, stream: u32) {
        let progress = &mut self.progress[stream as usize];
        progress.shut = false;
        let stream_of = &self.index.streams[stream as usize];
        if stream_of.guard {
            let mut cursor = Cursor::default();
            let mut last = 0;
            while let Some((at, record)) = self.index.next(self.log, stream_of, &mut cursor) {
                last = self.log.plausible(record.time).unwrap_or(last);
                if !self.read.is_some_and(|read| read.has(at, &record)) {
                    progress.sorted.push_back((last, at));
                }
            }
            self.progress[stream as usize]
                .sorted
                .make_contiguous()
                .sort_by_key(|s| s.0);
        }
        if let Some(time) = self.advance(stream) {
            self.running.push(Reverse((time, stream)));
        }
    }
}

impl<'a> Events<'a> {
    /// Moves a stream on to its next record, and returns its time.
    fn advance(&mut self, stream: u32) -> Option<u64> {
        let stream_of = &self.index.streams[stream as usize];
        let progress = &mut self.progress[stream as usize];
        let (time, at) = if stream_of.guard {
            progress.sorted.pop_front()?
        } else {
            loop {
                let cursor = &mut progress.cursor;
                let (at, record) = self.index.next(self.log, stream_of, cursor)?;
                if !self.read.is_some_and(|read| read.has(at, &record)) {
                    break (self.log.plausible(record.time).unwrap_or(0), at);
                }
            }
        };
        let here = progress.cursor.view.filter(|_| !stream_of.guard);
        progress.bytes = here.map(|view| view.from(at.offset as usize));
        progress.head = Some((time, at));
        Some(time)
    }

    /// Takes the earliest record of all running streams.
    pub(crate) fn take(&mut self) -> Option<(u32, RecordPosition, Option<&'a [u8]>)> {
        self.admit();
        while self.running.is_empty() {
            // Only in a damaged log: the record that a stream waits for is missing.
            let (_, stream) = self.waiting.pop_first()?;
            self.start(stream);
        }
        let Reverse((time, stream)) = *self.running.peek()?;
        let progress = &mut self.progress[stream as usize];
        let (_, at) = progress.head.take()?;
        let bytes = progress.bytes.take();
        (self.now, self.taken) = (self.now.max(time), time);
        let next = self.advance(stream);
        let top = self.running.peek_mut()?;
        match next {
            Some(time) => replace(top, (time, stream)),
            None => drop(PeekMut::pop(top)),
        }
        Some((stream, at, bytes))
    }

    /// Releases the streams that waited for this record.
    pub(crate) fn open_gates(&mut self, at: RecordPosition) {
        let index = self.index;
        for stream in index.gates.get(&at).into_iter().flatten() {
            if !std::mem::take(&mut self.progress[*stream as usize].shut) {
                continue;
            }
            if self
                .waiting
                .remove(&(index.streams[*stream as usize].start, *stream))
            {
                self.start(*stream);
            }
        }
    }
}

fn replace(mut top: PeekMut<'_, Reverse<(u64, u32)>>, with: (u64, u32)) {
    *top = Reverse(with);
}

/// From records to events.
impl<'a> Events<'a> {
    /// The event that a record completes, if it does.
    pub(crate) fn event(
        &mut self,
        number: u32,
        at: RecordPosition,
        bytes: Option<&'a [u8]>,
    ) -> Option<Event> {
        let raw = match bytes {
            Some(bytes) => RawRecord::parse(bytes),
            None => record_at(self.log, at),
        }?;
        let stream = &self.index.streams[number as usize];
        self.progress[number as usize].leave(&raw.head);
        let (pid, tid) = self.thread_of(number, &raw);
        let mut outcome = decode::outcome(&raw);
        let op = match raw.head.op {
            op::ARGS => return self.pending(number, pid, tid, |p| p.args(&raw)),
            op::ENV => return self.pending(number, pid, tid, |p| p.env(&raw)),
            op::EXEC => self.exec(number, pid, tid, &raw),
            op::VFORK => {
                let result = self.spawned(at);
                outcome = result.map_or(Outcome::Unknown, Outcome::Done);
                let child = result.filter(|r| *r > 0).map_or(pid, |r| r as u32);
                self.progress[number as usize].children.push(child);
                Op::Fork {
                    flags: raw.head.aux,
                    spawn: Some(decode::spawn(raw.head.arg)),
                }
            }
            op::VFORKED => {
                // A child whose VFORK was lost was still created.
                if self.progress[number as usize].children.pop().is_some() {
                    return None;
                }
                outcome = self.translated(stream, &raw, outcome);
                Op::Fork {
                    flags: 0,
                    spawn: Some(decode::spawn(0)),
                }
            }
            op::FORK | op::WAIT => {
                outcome = self.translated(stream, &raw, outcome);
                decode::operation(&raw)?
            }
            op::KILL => self.kill(stream, &raw)?,
            _ => decode::operation(&raw)?,
        };
        let via = if stream.guard {
            Via::Kernel
        } else {
            Via::Library
        };
        let counter = match self.read {
            // A call that was long in a growing log keeps its time.
            Some(_) if self.taken > 0 => self.taken,
            _ => self.now,
        };
        let time = self.log.clock().time(counter);
        let resolved = raw.head.flags & backstory_abi::F_RESOLVED != 0;
        Some(Event {
            time,
            pid,
            tid,
            via,
            outcome,
            ident: raw.ident,
            resolved,
            op,
        })
    }

    /// The result of the `VFORK` at a position.
    pub(crate) fn spawned(&self, at: RecordPosition) -> Option<i32> {
        self.index.spawned.get(&at).and_then(|spawn| spawn.result)
    }

    fn thread_of(&self, number: u32, raw: &RawRecord<'_>) -> (u32, u32) {
        let stream = &self.index.streams[number as usize];
        if stream.guard {
            let about = matches!(raw.head.op, op::GONE | op::BORN | op::HOLD)
                .then_some((raw.head.fd as u32, raw.head.fd as u32));
            return about
                .or(raw.caller.map(|w| (w.pid, w.tid)))
                .unwrap_or((0, 0));
        }
        match self.progress[number as usize].children.last() {
            Some(child) if *child != stream.pid => (*child, *child),
            _ => (stream.pid, stream.tid),
        }
    }

    fn pending<T>(
        &mut self,
        number: u32,
        pid: u32,
        tid: u32,
        take: impl FnOnce(&mut Pending),
    ) -> Option<T> {
        if self.index.streams[number as usize].guard {
            take(self.watched.entry((pid, tid)).or_default());
        } else {
            take(
                self.progress[number as usize]
                    .pending
                    .get_or_insert_default(),
            );
        }
        None
    }

    fn exec(&mut self, number: u32, pid: u32, tid: u32, raw: &RawRecord<'_>) -> Op {
        let pending = if self.index.streams[number as usize].guard {
            self.watched.remove(&(pid, tid))
        } else {
            self.progress[number as usize].pending.take().map(|p| *p)
        };
        pending
            .unwrap_or_default()
            .exec(raw, |hash| self.environment(hash))
    }

    /// An outcome that is a process id, converted to the supervisor's namespace.
    fn translated(&self, stream: &ThreadStream, raw: &RawRecord<'_>, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Done(pid) if pid > 0 && stream.inner.is_some() => {
                let outer = self
                    .index
                    .births
                    .translate(stream, pid as u32, raw.head.time);
                outer
                    .and_then(|p| i32::try_from(p).ok())
                    .map_or(Outcome::Unknown, Outcome::Done)
            }
            other => other,
        }
    }

    fn kill(&self, stream: &ThreadStream, raw: &RawRecord<'_>) -> Option<Op> {
        match decode::operation(raw)? {
            Op::Kill { pid, signal } if pid > 0 && stream.inner.is_some() => {
                // A process of which nothing else is known keeps its id.
                let outer = self
                    .index
                    .births
                    .translate(stream, pid as u32, raw.head.time);
                Some(Op::Kill {
                    pid: outer.and_then(|p| i32::try_from(p).ok()).unwrap_or(-1),
                    signal,
                })
            }
            op => Some(op),
        }
    }

    fn environment(&mut self, hash: u64) -> Option<Arc<[Bytes]>> {
        if let Some(known) = self.environments.get(&hash) {
            return Some(known.clone());
        }
        let strings: Arc<[Bytes]> = match self.read_environment(hash) {
            Some(strings) => strings.finish().into(),
            // An empty environment is never logged with strings. In a log without loss, a hash
            // without strings means the empty one.
            None => self.whole.then(Arc::default)?,
        };
        if self.environments.len() >= KEPT_ENVIRONMENTS {
            self.environments.clear();
        }
        self.environments.insert(hash, strings.clone());
        Some(strings)
    }

    /// Collects an environment from its first position up to the `EXEC` that it was logged for.
    fn read_environment(&self, hash: u64) -> Option<Strings> {
        let (number, start) = *self.index.environments.get(&hash)?;
        let stream = self.index.streams.get(number as usize)?;
        let caller = record_at(self.log, start)?.caller;
        let mut strings = Strings::default();
        // The guard may continue in its next chunk, a thread stays in its stream.
        let reach = if stream.guard { GUARD_CHUNKS } else { 1 };
        let streams = self.index.streams[number as usize..]
            .iter()
            .filter(|l| l.guard == stream.guard)
            .take(reach);
        let mut cursor = stream.cursor_at(start);
        for stream in streams {
            while let Some((at, record)) = self.index.next(self.log, stream, &mut cursor) {
                let Some(raw) = record_at(self.log, at).filter(|r| r.caller == caller) else {
                    continue;
                };
                match record.op {
                    op::EXEC => return Some(strings),
                    op::ENV if decode::halves(&raw) == 0 || decode::halves(&raw) == hash => {
                        strings.add(&raw);
                    }
                    _ => {}
                }
            }
            cursor = Cursor::default();
        }
        Some(strings)
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let (stream, at, bytes) = self.take()?;
            let event = self.event(stream, at, bytes);
            self.open_gates(at);
            if event.is_some() {
                return event;
            }
        }
    }
}
