//! One pass over one stream, which finds everything that determines the order of events: forks,
//! spawns, execs, starts, environments.

use crate::births::Births;
use crate::causes::{RecorderStart, StartCause, StartCauses};
use crate::decode::{halves, is_last_of_child};
use crate::event::UNNUMBERED;
use crate::index::{LogIndex, SpawnResult};
use crate::noted::{NotedRecord, NotedRecords};
use crate::stored_frames::StoredFrames;
use crate::stream::{RecordPosition, ThreadStream, record_at, streams};
use backstory_abi::{DONE, F_CHILD, RESERVED, Record, op};

/// Reads the fixed part of every record once, but those of pieces that are `known`. `births` and
/// `unnumbered` are what earlier records of the log gave. Returns what is to be known later, too.
pub(crate) fn index(
    log: &StoredFrames,
    known: &NotedRecords,
    births: Births,
    unnumbered: u32,
) -> (LogIndex, NotedRecords) {
    let mut index = LogIndex {
        streams: streams(log),
        births,
        unnumbered,
        ..LogIndex::default()
    };
    index.births.add(log, &index.streams);
    let mut causes = StartCauses::default();
    let mut kept = known.begin();
    // The guard's streams come first: the guard may have seen the child of a thread that died.
    let (guards, threads): (Vec<u32>, Vec<u32>) =
        (0..index.streams.len() as u32).partition(|l| index.streams[*l as usize].guard);
    for stream in guards.into_iter().chain(threads) {
        StreamWalk::new(log, &mut index, &mut causes, stream).run(known, &mut kept);
    }
    // Clocks of cores differ by less. No process starts and executes another program in so short a
    // time.
    let slack = if log.points().len() < 2 {
        0
    } else {
        log.clock().counts(5_000)
    };
    for (gate, stream) in causes.gates(slack) {
        index.gates.entry(gate).or_default().push(stream);
        index.streams[stream as usize].gated = true;
    }
    (index, kept)
}

/// An `EXEC` that may have succeeded: position, time, process.
type Exec = (RecordPosition, u64, u32);

/// A `VFORK` that has not returned.
struct OpenSpawn {
    at: RecordPosition,
    time: u64,
    /// Number of `EXEC`s and records before it.
    execs: usize,
    records: usize,
    /// The child's own id, which it logged when it executed a program.
    child: Option<u32>,
}

/// One pass over a stream.
pub struct StreamWalk<'a> {
    log: &'a StoredFrames,
    index: &'a mut LogIndex,
    causes: &'a mut StartCauses,
    stream: u32,
    /// `VFORK`s that have not returned.
    calls: Vec<OpenSpawn>,
    /// Number of records passed.
    records: usize,
    /// The innermost child has ended or executed another program.
    left: bool,
}

impl<'a> StreamWalk<'a> {
    /// A pass over one stream of `index`. It adds its findings to `index` and `causes`.
    pub fn new(
        log: &'a StoredFrames,
        index: &'a mut LogIndex,
        causes: &'a mut StartCauses,
        stream: u32,
    ) -> StreamWalk<'a> {
        StreamWalk {
            log,
            index,
            causes,
            stream,
            calls: Vec::new(),
            records: 0,
            left: false,
        }
    }

    /// Looks at the records of the stream.
    fn run(mut self, known: &NotedRecords, kept: &mut NotedRecords) {
        let stream = self.index.streams[self.stream as usize].clone();
        let mut first = None;
        let mut last = 0;
        // Causes that this stream's process, or a child in it, makes. The process is known once the
        // VFORKs have returned.
        let mut execs: Vec<Exec> = Vec::new();
        for chunk in &stream.chunks {
            let before = self.records;
            let piece = known.take(self.log, &self.log.chunks()[*chunk as usize], last, kept);
            for noted in &piece.records {
                let at = RecordPosition {
                    chunk: *chunk,
                    offset: noted.offset,
                };
                self.records = before + noted.number;
                self.record(&stream, at, noted, &mut execs);
            }
            self.records = before + piece.count;
            if piece.count > 0 {
                last = piece.last;
            }
            self.index.newest = self.index.newest.max(piece.newest);
            self.index.names_preserved |= piece.names_preserved;
            self.index.skipped.torn += piece.skipped.torn;
            self.index.skipped.unknown += piece.skipped.unknown;
            first = match (first, piece.first) {
                (Some(first), Some(_)) if stream.guard => Some(piece.least.min(first)),
                (None, Some(_)) if stream.guard => Some(piece.least),
                (first, found) => first.or(found),
            };
        }
        self.never_back(&stream, &mut execs);
        for (at, time, pid) in execs {
            self.causes.exec(
                pid,
                StartCause {
                    at,
                    time,
                    epoch: stream.epoch,
                },
            );
        }
        self.index.streams[self.stream as usize].start = first.unwrap_or(u64::MAX);
        self.causes.stream(stream.epoch, self.stream);
    }

    /// Looks at one record.
    fn record(
        &mut self,
        stream: &ThreadStream,
        at: RecordPosition,
        noted: &NotedRecord,
        execs: &mut Vec<Exec>,
    ) {
        let NotedRecord { record, time, .. } = *noted;
        if std::mem::take(&mut self.left) && record.op != op::VFORKED {
            self.return_lost(stream, execs);
        }
        self.left = !self.calls.is_empty() && is_last_of_child(&record);
        match record.op {
            op::VFORK => {
                self.calls.push(OpenSpawn {
                    at,
                    time,
                    execs: execs.len(),
                    records: self.records,
                    child: None,
                });
            }
            op::VFORKED => self.back(stream, time, &record, execs),
            op::EXEC if !(record.state == DONE && record.result < 0) => {
                let pid = self.pid_at(stream, at).unwrap_or(stream.pid);
                self.name_itself(stream, &record);
                execs.push((at, time, pid));
            }
            op::START => self.causes.start(RecorderStart {
                stream: self.stream,
                pid: stream.pid,
                epoch: stream.epoch,
                time,
                forked: record.aux == 1,
                at,
            }),
            op::FORK if record.state == DONE && record.result > 0 => {
                let births = &self.index.births;
                if let Some(child) = births.translate(stream, record.result as u32, time) {
                    self.causes.fork(
                        child,
                        StartCause {
                            at,
                            time,
                            epoch: stream.epoch,
                        },
                    );
                }
            }
            op::ENV if record.fd != 0 || record.arg != 0 => self.environment(at),
            op::BORN => self
                .index
                .births
                .seen(record.fd as u32, record.arg as u32, time),
            _ => {}
        }
    }

    /// The process, where the record names it.
    fn pid_at(&self, stream: &ThreadStream, at: RecordPosition) -> Option<u32> {
        let raw = record_at(self.log, at).filter(|_| stream.guard)?;
        raw.caller.map(|w| w.pid)
    }

    fn environment(&mut self, at: RecordPosition) {
        let Some(raw) = record_at(self.log, at) else {
            return;
        };
        if raw.list().next().is_some() {
            let hash = halves(&raw);
            self.index
                .environments
                .entry(hash)
                .or_insert((self.stream, at));
        }
    }

    /// Handles a child on its parent's memory that executes a program and logs its own id.
    fn name_itself(&mut self, stream: &ThreadStream, exec: &Record) {
        let says = exec.flags & F_CHILD != 0 && exec.state == RESERVED && exec.result > 0;
        if let Some(call) = self.calls.last_mut().filter(|_| says) {
            call.child = self
                .index
                .births
                .translate(stream, exec.result as u32, call.time);
        }
    }

    /// Handles the return of a `VFORK`: the records in between were the child's.
    fn back(&mut self, stream: &ThreadStream, time: u64, record: &Record, execs: &mut [Exec]) {
        let Some(call) = self.calls.pop() else { return };
        let result = match (record.state == DONE).then_some(record.result) {
            Some(error) if error < 0 => Some(error),
            Some(child) if child > 0 => self
                .index
                .births
                .translate(stream, child as u32, time)
                .and_then(number),
            // `system` and `popen` do not return the child's id.
            _ => self.born_since(stream, &call),
        };
        let result = result.or_else(|| self.unnumbered(&call));
        self.spawned(
            &call,
            result,
            execs.get_mut(call.execs..).unwrap_or(&mut []),
        );
    }

    /// Handles the return of a `VFORK` whose record was lost.
    fn return_lost(&mut self, stream: &ThreadStream, execs: &mut [Exec]) {
        let Some(call) = self.calls.pop() else { return };
        let result = self
            .born_since(stream, &call)
            .or_else(|| self.unnumbered(&call));
        self.spawned(
            &call,
            result,
            execs.get_mut(call.execs..).unwrap_or(&mut []),
        );
    }

    /// The first child of this process that was seen after a call. The caller of an inner call is
    /// not known yet.
    fn born_since(&self, stream: &ThreadStream, call: &OpenSpawn) -> Option<i32> {
        let child = self.index.births.child(stream.pid, call.time);
        call.child
            .or(child.filter(|_| self.calls.is_empty()))
            .and_then(number)
    }

    /// An id for a child with operations whose own id was not observed. Its operations must not
    /// become its parent's.
    fn unnumbered(&mut self, call: &OpenSpawn) -> Option<i32> {
        if self.records <= call.records + 1 {
            return None;
        }
        self.index.unnumbered += 1;
        number(UNNUMBERED + self.index.unnumbered)
    }

    /// Handles a thread that died in its `VFORK`s, or is still there: the innermost child has the
    /// rest of the stream.
    fn never_back(&mut self, stream: &ThreadStream, execs: &mut [Exec]) {
        let mut parent = stream.pid;
        let mut calls = std::mem::take(&mut self.calls).into_iter().peekable();
        while let Some(call) = calls.next() {
            let child = call
                .child
                .or_else(|| self.index.births.child(parent, call.time));
            let end = calls.peek().map_or(execs.len(), |next| next.execs);
            self.spawned(
                &call,
                child.and_then(number),
                execs.get_mut(call.execs..end).unwrap_or(&mut []),
            );
            parent = child.unwrap_or(parent);
        }
    }

    fn spawned(&mut self, call: &OpenSpawn, result: Option<i32>, execs: &mut [Exec]) {
        let stream = &self.index.streams[self.stream as usize];
        let (owner, epoch) = (stream.pid, stream.epoch);
        self.index.spawned.insert(call.at, SpawnResult { result });
        if let Some(child) = result.filter(|r| *r > 0) {
            let child = child as u32;
            self.causes.fork(
                child,
                StartCause {
                    at: call.at,
                    time: call.time,
                    epoch,
                },
            );
            // An inner VFORK has named its own already.
            execs
                .iter_mut()
                .filter(|e| e.2 == owner)
                .for_each(|e| e.2 = child);
        }
    }
}

/// A process id, in the type of a result.
fn number(pid: u32) -> Option<i32> {
    i32::try_from(pid).ok()
}
