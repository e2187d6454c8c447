//! One request of a run: when it has been served, and its verdict.
//!
//! Processes that get no further input are held where they wait: an end of theirs would disturb
//! the others. When the request has been served, all are ended.

use super::{Response, Supervisor};
use crate::engine::Options;
use crate::engine::caller::NotifiedCall;
use crate::resource::ResourceId;
use crate::unit::RecordedUnit;
use crate::verdict::RequestVerdict;
use std::time::Duration;

/// How long one wait for a notification lasts.
pub(super) const SLICE_MS: i32 = 20;
/// A served request is over after so long without a call: no more bytes leave.
const GRACE: Duration = Duration::from_millis(50);
/// A server is ready for a connection after its other processes made no call for so long.
const QUIET: Duration = Duration::from_millis(100);
/// A request that was not served is over after so long without a call and without work.
const STALLED: Duration = Duration::from_secs(2);

/// The chosen request.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub unit: RecordedUnit,
    number: usize,
    fed: Vec<usize>,
    /// Added to the recorded time, in ns.
    pub shift: i64,
    took_time: bool,
    /// The connection was handed out.
    has_begun: bool,
    calls: u64,
    /// A thread of the serving process waits for more.
    waits: bool,
    /// The serving process ended.
    has_ended: bool,
    /// Processor time at the last look.
    used: Option<u64>,
}

impl Part {
    pub fn new(unit: RecordedUnit, options: &Options) -> Part {
        Part {
            unit,
            number: options.request.unwrap_or(0),
            fed: options.fed.clone(),
            shift: options.shift,
            took_time: false,
            has_begun: false,
            calls: 0,
            waits: false,
            has_ended: false,
            used: None,
        }
    }

    /// A call came.
    pub fn came(&mut self) {
        self.calls += u64::from(self.has_begun);
        self.used = None;
    }

    /// The program took the time.
    pub fn takes_time(&mut self) {
        self.took_time |= self.has_begun;
    }

    /// A call concerns this resource.
    pub fn touches(&mut self, id: ResourceId) {
        self.has_begun |= id == self.unit.connection;
    }
}

impl Supervisor {
    /// True while other processes make calls, before the request's connection is handed out.
    pub(super) fn is_early(&self, call: &NotifiedCall) -> bool {
        let has_begun = self.part.as_ref().is_none_or(|part| part.has_begun);
        let own = self.groups.get(&call.tid);
        let others = self
            .last_calls
            .iter()
            .filter(|(group, _)| Some(*group) != own);
        let last = others.map(|(_, time)| *time).max();
        !has_begun && last.is_some_and(|last| last.elapsed() < QUIET)
    }

    /// The call of a program waits, because its record has nothing more.
    pub(super) fn hold(&mut self, index: usize) -> Response {
        if let Some(part) = &mut self.part {
            part.waits |= part.unit.process == index;
        }
        Response::Hold
    }

    /// The call of a program is looked at again, because its record has nothing more.
    pub(super) fn parks(&mut self, index: usize) {
        if let Some(part) = &mut self.part {
            part.waits |= part.unit.process == index;
        }
    }

    /// A program ends.
    pub(super) fn part_exits(&mut self, index: usize) {
        if let Some(part) = &mut self.part {
            part.has_ended |= part.unit.process == index;
        }
    }

    /// True if the request has been served, or never will be. `idle`: since the last call.
    pub(super) fn part_is_over(&mut self, idle: Duration) -> bool {
        let Some(part) = &self.part else { return false };
        let (unit, waits) = (part.unit, part.waits);
        let served = self.matchers[unit.process].has_served(unit.connection);
        if part.has_ended || served && waits && idle > GRACE {
            return true;
        }
        if idle < STALLED {
            return false;
        }
        let now = self.processor_time();
        let part = self.part.as_mut();
        part.is_some_and(|part| part.used.replace(now) == Some(now))
    }

    /// Recorded output of the request that did not come is a difference.
    pub(super) fn finish_part(&mut self) {
        let Some(part) = &self.part else { return };
        let unit = part.unit;
        let matcher = &mut self.matchers[unit.process];
        let is_served = matcher.has_served(unit.connection);
        matcher.end(&self.resources, None);
        let streams = matcher.streams(unit.connection);
        self.result.request = Some(RequestVerdict {
            number: part.number,
            fed: part.fed.clone(),
            calls: part.calls,
            compared: streams.output.position(),
            differs_before: streams.output.differs_before(),
            is_served: is_served && self.started[unit.process],
            took_time: part.took_time,
            shift: part.shift,
            tries: 1,
        });
    }
}
