//! Reads a growing log on from where it was read before.
//!
//! In: a log, and the records that an earlier state of the same file had. Out: the later events,
//! if the earlier ones are still the same.
//!
//! The order of all records is only known once all of them are. A record may come late, or get its
//! result after others were read. So the records are put in order again, without decoding those of
//! the prefix. A digest over all that their events are made of shows whether these changed.
//!
//! One change is expected: a `wait` that returns. A shell may wait as long as everything else
//! takes, so the results of waits are no part of the digest until they are known. They are given
//! as events of their own.

use crate::decode;
use crate::event::Event;
use crate::merge::Events;
use crate::prefix::{Mark, Patience, Prefix, Tracking};
use crate::record::RawRecord;
use crate::stream::{RecordPosition, record_at};
use backstory_abi::{DONE, op};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

impl Hash for RawRecord<'_> {
    fn hash<H: Hasher>(&self, to: &mut H) {
        let head = &self.head;
        (head.state, head.op, head.size, head.flags, head.time).hash(to);
        (head.fd, head.arg, head.result, head.aux).hash(to);
        self.caller.map(|ids| (ids.pid, ids.tid)).hash(to);
        self.ident.map(|ident| ident.to_bytes()).hash(to);
        self.body.hash(to);
    }
}

impl<'a> Events<'a> {
    /// Goes behind the records of `prefix`. Returns the results of waits that have come since.
    /// `None`: the events of the prefix are others now.
    pub(crate) fn go_behind(&mut self, prefix: &Prefix, patience: Patience) -> Option<Vec<Event>> {
        let counts = |time: Duration| self.log.clock().counts(time.as_nanos() as u64);
        let mut tracking = Box::new(Tracking {
            mark: Mark {
                records: 0,
                digest: u64::from(self.whole),
            },
            waits: prefix.waits.clone(),
            newest: self.index.newest,
            late: counts(patience.late),
            lasting: counts(patience.lasting),
            is_settled: false,
        });
        let mut returned = Vec::new();
        while tracking.mark.records < prefix.mark.records {
            let (stream, at, bytes) = self.take()?;
            let number = tracking.mark.records;
            let raw = match bytes {
                Some(bytes) => RawRecord::parse(bytes),
                None => record_at(self.log, at),
            };
            // The record of a torn chunk gives no event.
            let Some(raw) = raw else {
                tracking.mark.records += 1;
                self.open_gates(at);
                continue;
            };
            self.track(&mut tracking, stream, at, &raw);
            if raw.head.op == op::WAIT && raw.head.state == DONE && tracking.waits.remove(&number) {
                returned.extend(self.event(stream, at, bytes));
            } else {
                self.pass(stream, at, &raw);
            }
            self.open_gates(at);
        }
        if prefix.mark.records > 0 && tracking.mark != prefix.mark {
            return None;
        }
        self.tracking = Some(tracking);
        Some(returned)
    }

    /// The place behind the last event. Zero if nothing is tracked.
    pub fn mark(&self) -> Mark {
        self.tracking
            .as_ref()
            .map(|one| one.mark)
            .unwrap_or_default()
    }

    /// True if the last event probably stays as it is, and no earlier one comes.
    pub fn is_settled(&self) -> bool {
        self.tracking.as_ref().is_some_and(|one| one.is_settled)
    }

    /// The records up to a mark of these events, to read on behind them in a later state of the
    /// log.
    pub fn prefix(&self, mark: Mark) -> Prefix {
        let waits = self.tracking.as_ref().map(|one| &one.waits);
        let waits = waits.into_iter().flatten().copied();
        Prefix {
            mark,
            waits: waits.filter(|number| *number < mark.records).collect(),
        }
    }

    /// Notes a record that was taken, if these events are tracked.
    pub(crate) fn note(&mut self, stream: u32, at: RecordPosition, raw: Option<&RawRecord<'_>>) {
        let Some(mut tracking) = self.tracking.take() else {
            return;
        };
        match raw {
            Some(raw) => self.track(&mut tracking, stream, at, raw),
            None => tracking.mark.records += 1,
        }
        self.tracking = Some(tracking);
    }

    /// Adds all that an event is made of to the digest.
    fn track(&self, tracking: &mut Tracking, stream: u32, at: RecordPosition, raw: &RawRecord<'_>) {
        let mut digest = FxHasher::default();
        tracking.mark.digest.hash(&mut digest);
        self.log.clock().time(self.now).hash(&mut digest);
        let is_done = raw.head.state == DONE;
        let number = tracking.mark.records;
        let is_open_wait =
            raw.head.op == op::WAIT && (!is_done || tracking.waits.contains(&number));
        if is_open_wait {
            let waiter = &self.index.streams[stream as usize];
            (waiter.epoch, waiter.pid, waiter.tid).hash(&mut digest);
            (raw.head.op, raw.head.size, raw.head.time).hash(&mut digest);
            tracking.waits.insert(number);
        } else {
            raw.hash(&mut digest);
            self.hash_caller(stream, at, raw, &mut digest);
        }
        tracking.mark.digest = digest.finish();
        tracking.mark.records += 1;
        let age = tracking.newest.saturating_sub(self.now);
        // These never return, or have their results later.
        let is_final = is_done || matches!(raw.head.op, op::WAIT | op::EXEC | op::EXIT);
        let is_returned =
            is_final || self.progress[stream as usize].head.is_some() || age > tracking.lasting;
        tracking.is_settled = is_returned && age >= tracking.late;
    }

    /// Adds what the index says about a record: its process, its child, its environment.
    fn hash_caller(
        &self,
        stream: u32,
        at: RecordPosition,
        raw: &RawRecord<'_>,
        digest: &mut FxHasher,
    ) {
        let stream = &self.index.streams[stream as usize];
        (stream.epoch, stream.pid, stream.tid, stream.guard).hash(digest);
        match raw.head.op {
            op::VFORK => self.spawned(at).hash(digest),
            op::FORK | op::VFORKED | op::WAIT | op::KILL if stream.inner.is_some() => {
                let births = &self.index.births;
                let id = |id: i32| births.translate(stream, id as u32, raw.head.time);
                (id(raw.head.result), id(raw.head.fd)).hash(digest);
            }
            op::ENV => {
                let first = self.index.environments.get(&decode::halves(raw));
                let start = |chunk: u32| self.log.chunks()[chunk as usize].place.start;
                let place = first.map(|(_, at)| start(at.chunk) + at.offset as usize);
                place.hash(digest);
            }
            _ => {}
        }
    }
}
