//! All threads' records as one sequence of events, in order of time.
//!
//! Invariants: times never decrease. Events of a thread keep its order. A child's events come after its fork, a program's
//! after its exec, a thread's after its process's start, whatever the clocks of different cores say. Ties go to what the log
//! mentions first. Held in memory: a few words per lane, and what the next `exec` of a thread is given.

use crate::decode;
use crate::event::{Bytes, Event, Op, Outcome, Via};
use crate::exec::{Pending, Strings};
use crate::index::{Cursor, Index, Lane, Position, record_at};
use crate::log::Log;
use crate::record::Raw;
use backstory_abi::{Record, op};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

/// Environments that are kept decoded; further ones are decoded again when they are named again.
const KEPT_ENVIRONMENTS: usize = 64;
/// Chunks of the guard over which one environment may spread, among what else happens meanwhile.
const GUARD_CHUNKS: usize = 64;

/// How far a lane is.
#[derive(Debug, Default)]
struct Progress<'a> {
    cursor: Cursor<'a>,
    /// Its next record, and its time. One that is late (its lane had to wait, or a clock went back) comes at once.
    head: Option<(u64, Position)>,
    /// The bytes from that record on, if its chunk is at hand.
    bytes: Option<&'a [u8]>,
    /// The guard's chunk, sorted: its records are of many threads.
    sorted: VecDeque<(u64, Position)>,
    /// Children running on this thread's memory, the innermost last.
    children: Vec<u32>,
    /// The innermost has ended or become another program: the next record is not its own.
    left: bool,
    pending: Option<Box<Pending>>,
    shut: bool,
}

impl Progress<'_> {
    /// Lets a child go whose `VFORKED` was lost. The index goes by the same rule.
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
    log: &'a Log,
    index: &'a Index,
    progress: Vec<Progress<'a>>,
    /// Lanes not started, the first to start last.
    unstarted: Vec<(u64, u32)>,
    running: BinaryHeap<Reverse<(u64, u32)>>,
    /// Lanes that would run if a record of another lane had come.
    waiting: BTreeSet<(u64, u32)>,
    /// What the guard saw of each thread's next `exec`.
    watched: HashMap<(u32, u32), Pending>,
    environments: HashMap<u64, Arc<[Bytes]>>,
    now: u64,
}

impl<'a> Events<'a> {
    pub(crate) fn new(log: &'a Log, index: &'a Index) -> Events<'a> {
        let lanes = index.lanes.iter().enumerate();
        let mut unstarted: Vec<_> = lanes.map(|(n, l)| (l.start, n as u32)).collect();
        unstarted.sort_unstable_by(|a, b| b.cmp(a));
        let progress = index
            .lanes
            .iter()
            .map(|l| Progress {
                shut: l.gated,
                ..Progress::default()
            })
            .collect();
        Events {
            log,
            index,
            progress,
            unstarted,
            running: BinaryHeap::new(),
            waiting: BTreeSet::new(),
            watched: HashMap::new(),
            environments: HashMap::new(),
            now: 0,
        }
    }

    /// Starts every lane whose time has come.
    fn admit(&mut self) {
        while let Some((start, lane)) = self.unstarted.last().copied() {
            if self
                .running
                .peek()
                .is_some_and(|Reverse(top)| *top < (start, lane))
            {
                return;
            }
            self.unstarted.pop();
            if self.progress[lane as usize].shut {
                self.waiting.insert((start, lane));
            } else {
                self.start(lane);
            }
        }
    }

    fn start(&mut self, lane: u32) {
        let progress = &mut self.progress[lane as usize];
        progress.shut = false;
        let lane_of = &self.index.lanes[lane as usize];
        if lane_of.guard {
            let mut cursor = Cursor::default();
            let mut last = 0;
            while let Some((at, record)) = self.index.next(self.log, lane_of, &mut cursor) {
                last = self.log.plausible(record.time).unwrap_or(last);
                progress.sorted.push_back((last, at));
            }
            self.progress[lane as usize]
                .sorted
                .make_contiguous()
                .sort_by_key(|s| s.0);
        }
        if let Some(time) = self.advance(lane) {
            self.running.push(Reverse((time, lane)));
        }
    }
}

impl<'a> Events<'a> {
    /// Moves a lane on to its next record, and says when that is.
    fn advance(&mut self, lane: u32) -> Option<u64> {
        let lane_of = &self.index.lanes[lane as usize];
        let progress = &mut self.progress[lane as usize];
        let next = if lane_of.guard {
            progress.sorted.pop_front()
        } else {
            let found = self.index.next(self.log, lane_of, &mut progress.cursor);
            found.map(|(at, record)| (self.log.plausible(record.time).unwrap_or(0), at))
        };
        let (time, at) = next?;
        let here = progress.cursor.view.filter(|_| !lane_of.guard);
        progress.bytes = here.map(|view| view.from(at.offset as usize));
        progress.head = Some((time, at));
        Some(time)
    }

    /// Takes the earliest record of all running lanes.
    fn take(&mut self) -> Option<(u32, Position, Option<&'a [u8]>)> {
        self.admit();
        while self.running.is_empty() {
            // Only a damaged log gets here: what a lane waited for is missing.
            let (_, lane) = self.waiting.pop_first()?;
            self.start(lane);
        }
        let Reverse((time, lane)) = *self.running.peek()?;
        let progress = &mut self.progress[lane as usize];
        let (_, at) = progress.head.take()?;
        let bytes = progress.bytes.take();
        self.now = self.now.max(time);
        let next = self.advance(lane);
        let top = self.running.peek_mut()?;
        match next {
            Some(time) => replace(top, (time, lane)),
            None => drop(PeekMut::pop(top)),
        }
        Some((lane, at, bytes))
    }

    /// Lets the lanes go on that waited for this record.
    fn open_gates(&mut self, at: Position) {
        let index = self.index;
        for lane in index.gates.get(&at).into_iter().flatten() {
            if !std::mem::take(&mut self.progress[*lane as usize].shut) {
                continue;
            }
            if self.waiting.remove(&(index.lanes[*lane as usize].start, *lane)) {
                self.start(*lane);
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
    fn event(&mut self, number: u32, at: Position, bytes: Option<&'a [u8]>) -> Option<Event> {
        let raw = match bytes {
            Some(bytes) => Raw::parse(bytes)?,
            None => record_at(self.log, at)?,
        };
        let lane = &self.index.lanes[number as usize];
        self.progress[number as usize].leave(&raw.head);
        let (pid, tid) = self.who(number, &raw);
        let mut outcome = decode::outcome(&raw);
        let op = match raw.head.op {
            op::ARGS => return self.pending(number, pid, tid, |p| p.args(&raw)),
            op::ENV => return self.pending(number, pid, tid, |p| p.env(&raw)),
            op::EXEC => self.exec(number, pid, tid, &raw),
            op::VFORK => {
                let result = self.index.spawned.get(&at).and_then(|s| s.result);
                outcome = result.map_or(Outcome::Unknown, Outcome::Done);
                let child = result.filter(|r| *r > 0).map_or(pid, |r| r as u32);
                self.progress[number as usize].children.push(child);
                Op::Fork {
                    flags: raw.head.aux,
                    spawn: Some(decode::spawn(raw.head.arg)),
                }
            }
            op::VFORKED => {
                // One whose VFORK was lost still made a child.
                if self.progress[number as usize].children.pop().is_some() {
                    return None;
                }
                outcome = self.translated(lane, &raw, outcome);
                Op::Fork {
                    flags: 0,
                    spawn: Some(decode::spawn(0)),
                }
            }
            op::FORK | op::WAIT => {
                outcome = self.translated(lane, &raw, outcome);
                decode::operation(&raw)?
            }
            op::KILL => self.kill(lane, &raw)?,
            _ => decode::operation(&raw)?,
        };
        let via = if lane.guard { Via::Kernel } else { Via::Library };
        let time = self.log.clock().time(self.now);
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

    fn who(&self, number: u32, raw: &Raw<'_>) -> (u32, u32) {
        let lane = &self.index.lanes[number as usize];
        if lane.guard {
            let about = matches!(raw.head.op, op::GONE | op::BORN | op::HOLD)
                .then_some((raw.head.fd as u32, raw.head.fd as u32));
            return about.or(raw.who.map(|w| (w.pid, w.tid))).unwrap_or((0, 0));
        }
        match self.progress[number as usize].children.last() {
            Some(child) if *child != lane.pid => (*child, *child),
            _ => (lane.pid, lane.tid),
        }
    }

    fn pending<T>(&mut self, number: u32, pid: u32, tid: u32, take: impl FnOnce(&mut Pending)) -> Option<T> {
        if self.index.lanes[number as usize].guard {
            take(self.watched.entry((pid, tid)).or_default());
        } else {
            take(self.progress[number as usize].pending.get_or_insert_default());
        }
        None
    }

    fn exec(&mut self, number: u32, pid: u32, tid: u32, raw: &Raw<'_>) -> Op {
        let pending = if self.index.lanes[number as usize].guard {
            self.watched.remove(&(pid, tid))
        } else {
            self.progress[number as usize].pending.take().map(|p| *p)
        };
        pending
            .unwrap_or_default()
            .exec(raw, |hash| self.environment(hash))
    }

    /// An outcome that is a process id, as the supervisor sees that process.
    fn translated(&self, lane: &Lane, raw: &Raw<'_>, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Done(pid) if pid > 0 && lane.inner.is_some() => {
                let outer = self.index.births.translate(lane, pid as u32, raw.head.time);
                outer
                    .and_then(|p| i32::try_from(p).ok())
                    .map_or(Outcome::Unknown, Outcome::Done)
            }
            other => other,
        }
    }

    fn kill(&self, lane: &Lane, raw: &Raw<'_>) -> Option<Op> {
        match decode::operation(raw)? {
            Op::Kill { pid, signal } if pid > 0 && lane.inner.is_some() => {
                // Someone whom nothing else is known of: as if it were anyone.
                let outer = self.index.births.translate(lane, pid as u32, raw.head.time);
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
            // An empty one is never logged with strings; a log without loss that has none for this hash means just that.
            None => self.log.is_whole().then(Arc::default)?,
        };
        if self.environments.len() >= KEPT_ENVIRONMENTS {
            self.environments.clear();
        }
        self.environments.insert(hash, strings.clone());
        Some(strings)
    }

    /// Collects an environment from where it was first logged: up to the `EXEC` it was logged for.
    fn read_environment(&self, hash: u64) -> Option<Strings> {
        let (number, start) = *self.index.environments.get(&hash)?;
        let lane = self.index.lanes.get(number as usize)?;
        let who = record_at(self.log, start)?.who;
        let mut strings = Strings::default();
        // The guard may go on in its next chunk, a thread stays in its lane.
        let reach = if lane.guard { GUARD_CHUNKS } else { 1 };
        let lanes = self.index.lanes[number as usize..]
            .iter()
            .filter(|l| l.guard == lane.guard)
            .take(reach);
        let mut cursor = lane.cursor_at(start);
        for lane in lanes {
            while let Some((at, record)) = self.index.next(self.log, lane, &mut cursor) {
                let Some(raw) = record_at(self.log, at).filter(|r| r.who == who) else {
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
            let (lane, at, bytes) = self.take()?;
            let event = self.event(lane, at, bytes);
            self.open_gates(at);
            if event.is_some() {
                return event;
            }
        }
    }
}
