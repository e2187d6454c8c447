//! Reads a log that grows, each record once.
//!
//! In: the same log, again and again. Out: the events that have come since, in one order of time.
//! A look costs as much as what is new: pieces of chunks that were read are forgotten.
//!
//! The order is that of [`crate::merge`], with these differences:
//!
//! - A record that comes late, behind later ones of other threads, is given at once, with its time.
//!   So times can decrease. [`LogTail::is_disordered`] tells it.
//! - A call that has not returned is given when it returns. If that takes long, it is given without
//!   its result, and once more with it. The thread does nothing else meanwhile.
//! - A wait for a child is given when it returns.
//! - Environments that were logged long before are not known.
//!
//! [`Log::events`] of the whole log has none of these differences.
//!
//! [`Log::events`]: crate::Log::events

use crate::births::Births;
use crate::continued::{self, ChunkKey};
use crate::error::Error;
use crate::event::{Event, Time};
use crate::exec::Pending;
use crate::index::LogIndex;
use crate::merge::{Events, Progress};
use crate::noted::NotedRecords;
use crate::read_records::{ReadPart, ReadRecords, in_chunk};
use crate::stored_frames::StoredFrames;
use crate::stream::{RecordPosition, StreamKey, ThreadStream, head, record_at, stream_key};
use crate::walk;
use backstory_abi::{DONE, op};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

/// How long a reader of a growing log waits for records that belong before others.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Records that are younger than this may be followed by others that are older.
    pub late: Duration,
    /// A call that has not returned for so long is given without its result.
    pub lasting: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            late: Duration::from_millis(15),
            lasting: Duration::from_secs(2),
        }
    }
}

/// A log that grows, up to the records that were read.
#[derive(Debug, Default)]
pub struct LogTail {
    patience: Patience,
    frames: StoredFrames,
    noted: NotedRecords,
    births: Births,
    unnumbered: u32,
    /// The counters of the newest record, and of the last one that was given.
    newest: u64,
    now: u64,
    /// The time up to which records were given.
    until: Time,
    /// How far each chunk was read.
    read: FxHashMap<ChunkKey, ReadPart>,
    /// Threads in the middle of something.
    threads: FxHashMap<StreamKey, ThreadState>,
    watched: HashMap<(u32, u32), Pending>,
    /// The calls that have come and wait for their results.
    waiting: FxHashSet<RecordPlace>,
    is_disordered: bool,
}

/// The chunk of a record, and the record's offset there.
type RecordPlace = (ChunkKey, usize);

/// What [`Progress`] has of a thread behind its last record.
#[derive(Debug, Default)]
struct ThreadState {
    children: Vec<u32>,
    left: bool,
    pending: Option<Box<Pending>>,
}

/// The records that one look gave, and those that it kept back.
#[derive(Default)]
struct Given {
    /// By the number of the piece: the places, and whether the result is missing.
    places: BTreeMap<u32, Vec<(usize, bool)>>,
    /// The calls that wait for their results.
    waiting: Vec<RecordPosition>,
    /// The records that are older than the last one of earlier looks.
    late: Vec<RecordPosition>,
}

impl LogTail {
    /// A reader that has read nothing.
    pub fn new(patience: Patience) -> LogTail {
        LogTail {
            patience,
            ..LogTail::default()
        }
    }

    /// Takes note of what was appended to the log at this path.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn grow(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let former = std::mem::take(&mut self.frames);
        self.frames = StoredFrames::later(former, path)?;
        Ok(())
    }

    /// Gives the events that have come and are old enough. The log has not grown for the time
    /// `quiet`. True if younger ones were left for the next time.
    pub fn read(&mut self, quiet: Duration, give: impl FnMut(Event)) -> bool {
        let births = std::mem::take(&mut self.births);
        let (mut index, noted) = walk::index(&self.frames, &self.noted, births, self.unnumbered);
        self.noted = noted;
        self.newest = self.newest.max(index.newest);
        let frames = &self.frames;
        let counts = |time: Duration| frames.clock().counts(time.as_nanos() as u64);
        let by_now = self.newest.saturating_add(counts(quiet));
        let until = by_now.saturating_sub(counts(self.patience.late));
        self.until = frames.clock().time(until);
        let lasting = by_now.saturating_sub(counts(self.patience.lasting));
        let known = ReadRecords::of(frames, &self.read);
        let first = |stream: &ThreadStream| &frames.chunks()[stream.chunks[0] as usize];
        let keys = (index.streams.iter()).map(|stream| stream_key(&head(frames, first(stream))));
        let keys: Vec<StreamKey> = keys.collect();
        let mut events = Events::new(frames, &index, false);
        (events.read, events.now) = (Some(&known), self.now);
        events.watched = std::mem::take(&mut self.watched);
        for (number, key) in keys.iter().enumerate() {
            let progress = &mut events.progress[number];
            if let Some(state) = self.threads.remove(key) {
                (progress.children, progress.left) = (state.children, state.left);
                progress.pending = state.pending;
            }
            let mut chunks = index.streams[number].chunks.iter();
            progress.shut &= !chunks.any(|chunk| known.is_begun(*chunk));
        }
        for (_, streams) in index.gates.iter().filter(|(at, _)| known.was_read(**at)) {
            for stream in streams {
                events.progress[*stream as usize].shut = false;
            }
        }
        let mut given = Given::default();
        let has_more = give_until(&mut events, until, lasting, &mut given, give);
        self.now = events.now;
        self.watched = std::mem::take(&mut events.watched);
        let states: Vec<ThreadState> = events.progress.drain(..).map(ThreadState::of).collect();
        drop(events);
        let open = self.keep_threads(states, &keys, &index);
        self.births = std::mem::take(&mut index.births);
        self.unnumbered = index.unnumbered;
        self.judge_order(&given);
        self.note(&given);
        self.forget(&open);
        has_more
    }

    /// True if a record came behind later ones that were given before. In the order of the whole
    /// log it stands elsewhere. A call that was kept back until its result came does not count.
    pub fn is_disordered(&self) -> bool {
        self.is_disordered
    }

    /// Looks for records that came late.
    fn judge_order(&mut self, given: &Given) {
        let place = |at: &RecordPosition| {
            let piece = &self.frames.chunks()[at.chunk as usize];
            let key = continued::key(&head(&self.frames, piece));
            (key, in_chunk(piece.from, at.offset as usize))
        };
        let mut late = given.late.iter().map(place);
        self.is_disordered |= late.any(|one| !self.waiting.contains(&one));
        self.waiting = given.waiting.iter().map(place).collect();
    }

    /// The time up to which all events were given, apart from late ones.
    pub fn until(&self) -> Time {
        self.until
    }

    /// Keeps what threads are in the middle of. Returns the places of the pieces in which a child
    /// runs on a thread's memory: where its call begins must be seen again.
    fn keep_threads(
        &mut self,
        states: Vec<ThreadState>,
        keys: &[StreamKey],
        index: &LogIndex,
    ) -> FxHashSet<usize> {
        let mut open = FxHashSet::default();
        for (number, state) in states.into_iter().enumerate() {
            if !state.children.is_empty() {
                let chunks = index.streams[number].chunks.iter();
                open.extend(chunks.map(|one| self.frames.chunks()[*one as usize].place.start));
            }
            if !state.children.is_empty() || state.left || state.pending.is_some() {
                self.threads.insert(keys[number], state);
            }
        }
        open
    }

    /// Notes the records that were given.
    fn note(&mut self, given: &Given) {
        for (chunk, places) in &given.places {
            let piece = &self.frames.chunks()[*chunk as usize];
            let key = continued::key(&head(&self.frames, piece));
            let part = self.read.entry(key).or_default();
            for (place, is_open) in places {
                let offset = in_chunk(piece.from, *place);
                if offset >= part.next {
                    part.others.insert(offset);
                }
                match is_open {
                    true => part.told.insert(offset),
                    false => part.told.remove(&offset),
                };
            }
        }
        for piece in self.frames.chunks() {
            let (head, bytes) = (head(&self.frames, piece), self.frames.bytes(&piece.place));
            if let Some(part) = self.read.get_mut(&continued::key(&head)) {
                part.advance(piece, &head, bytes);
            }
        }
    }

    fn forget(&mut self, open: &FxHashSet<usize>) {
        let read = &self.read;
        self.frames.forget(|piece, head| {
            let end = in_chunk(piece.from, piece.place.len());
            let part = read.get(&continued::key(head));
            !open.contains(&piece.place.start) && part.is_some_and(|part| part.next >= end)
        });
    }
}

impl ThreadState {
    fn of(progress: Progress<'_>) -> ThreadState {
        ThreadState {
            children: progress.children,
            left: progress.left,
            pending: progress.pending,
        }
    }
}

/// Gives the events of all records up to a counter, apart from those of calls that go on. True if
/// later ones are there.
fn give_until(
    events: &mut Events<'_>,
    until: u64,
    lasting: u64,
    given: &mut Given,
    mut give: impl FnMut(Event),
) -> bool {
    let before = events.now;
    loop {
        events.admit();
        // Only in a damaged log: the record that a stream waits for is missing.
        while let Some(&(start, stream)) = events.waiting.first()
            && start < lasting
        {
            events.waiting.pop_first();
            events.start(stream);
        }
        let Some(&Reverse((time, stream))) = events.running.peek() else {
            return false;
        };
        if time > until {
            return true;
        }
        let Some(is_open) = is_ready(events, stream, lasting) else {
            let head = events.progress[stream as usize].head;
            given.waiting.extend(head.map(|(_, at)| at));
            events.running.pop();
            continue;
        };
        let Some((stream, at, bytes)) = events.take() else {
            return false;
        };
        let is_again = |read: &ReadRecords<'_>| read.was_read(at);
        // A damaged record has no time.
        if (1..before).contains(&time) && !events.read.is_some_and(is_again) {
            given.late.push(at);
        }
        let places = given.places.entry(at.chunk).or_default();
        places.push((at.offset as usize, is_open));
        if let Some(event) = events.event(stream, at, bytes) {
            give(event);
        }
        events.open_gates(at);
    }
}

/// Whether the next record of a stream lacks its result. `None` if the record is not to be given
/// yet, because the result will come.
fn is_ready(events: &Events<'_>, stream: u32, lasting: u64) -> Option<bool> {
    let (time, at) = events.progress[stream as usize].head?;
    let Some(raw) = record_at(events.log, at) else {
        return Some(false);
    };
    let record = &raw.head;
    let lasts = time <= lasting;
    match record.op {
        op::VFORK => (lasts || events.spawned(at).is_some()).then_some(false),
        // These never return.
        op::EXEC | op::EXIT => Some(false),
        _ if record.state == DONE || is_followed(events, stream) => Some(false),
        op::WAIT => None,
        _ => lasts.then_some(true),
    }
}

/// True if the stream has another record behind its next one.
fn is_followed(events: &Events<'_>, stream: u32) -> bool {
    let stream_of = &events.index.streams[stream as usize];
    let mut cursor = events.progress[stream as usize].cursor;
    stream_of.guard || (events.index.next(events.log, stream_of, &mut cursor)).is_some()
}
