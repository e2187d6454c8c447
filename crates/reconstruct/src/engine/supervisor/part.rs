//! One request of a run: when it has been served, and its verdict.
//!
//! Processes that get no further input are held where they wait: an end of theirs would disturb
//! the others. When the request has been served, all are ended. A request of a client has been
//! served when the client waits behind it, and none of its threads works.

use super::overtime::Overtime;
use super::waits_behind::{LONGEST_BEHIND, WaitsBehind};
use super::{Response, Supervisor};
use crate::engine::Options;
use crate::engine::caller::NotifiedCall;
use crate::matcher::ProcessMatcher;
use crate::process::RecordedChild;
use crate::resource::ResourceId;
use crate::unit::RecordedUnit;
use crate::verdict::{ExecutedCalls, ProgramStart, RequestVerdict};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long one wait for a notification lasts.
pub(super) const SLICE_MS: i32 = 20;
/// A served request is over after so long without a call: no more bytes leave.
const GRACE: Duration = Duration::from_millis(50);
/// A server is ready for a connection after its other processes made no call for so long.
const QUIET: Duration = Duration::from_millis(100);
/// The same while all threads sleep.
const QUIET_AT_REST: Duration = Duration::from_millis(10);
/// A request that was not served is over after so long without a call and without work.
pub const STALLED: Duration = Duration::from_secs(2);

/// The chosen request.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub unit: RecordedUnit,
    /// All units that are fed, in the order of their answers. Those before `answered` owe nothing.
    all: Vec<RecordedUnit>,
    answered: usize,
    /// Time-stamp counter at the end of the last of them, with all that was done for it.
    end: u64,
    /// When the time of a wait was last up in a program that serves none of them.
    woke: Option<Instant>,
    /// The waits for the units behind these.
    behind: WaitsBehind,
    /// The recorded time of the last connection that each program accepted, and whether it has
    /// made no child since.
    accepted: HashMap<usize, (u64, bool)>,
    /// When each program made its last call.
    progress: HashMap<usize, Instant>,
    number: usize,
    fed: Vec<usize>,
    /// The start of the programs, once it is over.
    pub start: Option<ProgramStart>,
    /// See [`Options::lists_obstacles`].
    pub lists_obstacles: bool,
    /// The connection was handed out.
    has_begun: bool,
    calls: u64,
    /// A thread of the serving process waits for more.
    waits: bool,
    /// The serving process ended.
    has_ended: bool,
    /// Processor time without a call, and since when it is the same.
    used: Option<(u64, Instant)>,
    /// The work behind the last byte, since the last call.
    pub(super) overtime: Option<Overtime>,
    /// The request was over although programs still worked, after so long without a call.
    pub(super) worked_on: Option<Duration>,
}

impl Part {
    pub fn new(unit: RecordedUnit, all: Vec<RecordedUnit>, options: &Options) -> Part {
        let ends = all.iter().chain([&unit]);
        let end = ends.map(|one| one.lasts.max(one.worked_until));
        Part {
            end: end.max().unwrap_or(unit.ended),
            woke: None,
            unit,
            all,
            answered: 0,
            behind: WaitsBehind::default(),
            accepted: HashMap::new(),
            progress: HashMap::new(),
            number: options.request.unwrap_or(0),
            fed: options.fed.clone(),
            start: None,
            lists_obstacles: options.lists_obstacles,
            has_begun: false,
            calls: 0,
            waits: false,
            has_ended: false,
            used: None,
            overtime: None,
            worked_on: None,
        }
    }

    /// The same behind a start that another part fed.
    pub fn behind_start(self, started: &Part) -> Part {
        Part {
            woke: started.woke,
            progress: started.progress.clone(),
            start: started.start.clone(),
            ..self
        }
    }

    /// A call came, of this program.
    pub fn came(&mut self, program: Option<usize>) {
        if let Some(index) = program {
            self.progress.insert(index, Instant::now());
            // A client goes on when it has the last bytes of its request.
            self.waits &= !(self.unit.is_client && self.unit.process == index);
        }
        self.calls += u64::from(self.has_begun);
        self.used = None;
        self.overtime = None;
    }

    /// True if no program used the processor for [`STALLED`]. On a busy machine, a program that
    /// works gets it now and then only. `now`: the time that all have used.
    fn is_stalled(&mut self, now: u64) -> bool {
        match self.used {
            Some((used, since)) if used == now => since.elapsed() >= STALLED,
            _ => {
                self.used = Some((now, Instant::now()));
                false
            }
        }
    }

    /// A program accepted a connection that had come at this time.
    pub fn accepts(&mut self, program: usize, time: u64) {
        self.accepted.insert(program, (time, true));
    }

    /// Time-stamp counter at the end of the last unit that is fed.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The time of a wait is up in a program. It may do something that a unit depends on.
    pub fn wakes(&mut self, program: usize) {
        if self.all.iter().all(|unit| unit.process != program) {
            self.woke = Some(Instant::now());
        }
    }

    /// True if the connection was handed out.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// A call concerns this resource.
    pub fn touches(&mut self, id: ResourceId) {
        self.has_begun |= id == self.unit.connection;
    }

    /// True if a read from this resource ends the start: it is a connection that is fed.
    pub fn starts_until(&self, id: ResourceId) -> bool {
        let is_fed = |unit: &RecordedUnit| unit.connection == id;
        self.start.is_none() && (is_fed(&self.unit) || self.all.iter().any(is_fed))
    }
}

impl Supervisor {
    /// True while other processes make calls, before the request's connection is handed out. Also
    /// for a moment after the time of a wait was up in another program. While all threads sleep,
    /// nothing gets ready, so that moment is shorter. A tool may have stopped them.
    pub(super) fn is_early(&self, call: &NotifiedCall) -> bool {
        let part = self.part.as_ref();
        let has_begun = part.is_none_or(|part| part.has_begun);
        let own = self.groups.get(&call.tid);
        let others = self.last_calls.iter();
        let others = others.filter(|(group, _)| !has_begun && Some(*group) != own);
        let woke = part.and_then(|part| part.woke);
        let last = others.map(|(_, time)| *time).max().max(woke);
        last.is_some_and(|last| {
            let quiet = last.elapsed();
            let works = || self.has_tool || self.a_thread_runs_but(|tid| tid == call.tid);
            quiet < QUIET_AT_REST || quiet < QUIET && works()
        })
    }

    /// True if the next input of a resource came after the answer of a unit in another process, and
    /// that answer has not left yet. For a listener, the input is its next connection. The client
    /// had the answer before it went on. Each process has streams of its own, so nothing else keeps
    /// this order.
    pub(super) fn is_behind(&mut self, index: usize, id: ResourceId) -> bool {
        let Some(part) = &mut self.part else {
            return false;
        };
        let streams = self.matchers[index].rest.streams.get(&id);
        let Some(next) = streams.and_then(|streams| {
            let connection = streams.next_connection();
            connection.or_else(|| streams.input.next_arrival())
        }) else {
            return false;
        };
        let owes = |unit: &RecordedUnit| owes(&self.matchers, unit);
        while part.all.get(part.answered).is_some_and(|unit| !owes(unit)) {
            part.answered += 1;
            part.behind.clear();
        }
        let earlier = part.all.iter().enumerate().skip(part.answered);
        // On a busy machine, the client may go on long before the call that sends the answer
        // returns.
        let mut earlier = earlier.take_while(|(_, unit)| unit.sent < next);
        let Some((at, first)) = earlier.find(|(_, unit)| unit.process != index && owes(unit))
        else {
            return false;
        };
        let awaited = *first;
        let (server, waiter) = (awaited.process, (index, id));
        let progress = part.progress.get(&server).copied();
        let waits = &part.behind;
        if waits.are_young(waiter, &awaited, progress, Instant::now()) {
            return true;
        }
        let used = self.processor_time();
        let Some(part) = &mut self.part else {
            return false;
        };
        // A process that still computes may answer. On a busy machine that takes long.
        if part.behind.goes_on(waiter, awaited, used, Instant::now()) {
            return true;
        }
        // It will not come. Nor will the others of a program that was not started.
        part.all.remove(at);
        if !self.started[server] {
            let (answered, mut number) = (part.answered, 0..);
            part.all
                .retain(|unit| number.next() < Some(answered) || unit.process != server);
        }
        part.behind.leave(&awaited);
        false
    }

    /// True if units of other programs ended before this time in the record, and their answers have
    /// not left. False if no other program has made a call for [`LONGEST_BEHIND`].
    pub(super) fn awaits_earlier_units(&self, index: usize, time: u64) -> bool {
        let Some(part) = self.part.as_ref().filter(|part| !part.unit.is_client) else {
            return false;
        };
        let others = part.progress.iter();
        let mut others = others.filter(|(program, _)| **program != index);
        let mut earlier = part.all.iter().skip(part.answered);
        others.any(|(_, last)| last.elapsed() < LONGEST_BEHIND)
            && earlier.any(|unit| {
                unit.process != index && unit.ended < time && owes(&self.matchers, unit)
            })
    }

    /// A server that makes a child for each connection makes one, which gets its recorded number.
    /// Leaves out children that were made aside before the connection came.
    /// False: the child is for no connection, and the next recorded one is.
    pub(super) fn skips_to_child(&mut self, index: usize) -> bool {
        let part = self.part.as_mut();
        let Some((time, is_new)) = part.and_then(|part| part.accepted.get_mut(&index)) else {
            return true;
        };
        let rest = &mut self.matchers[index].rest;
        if std::mem::take(is_new) {
            let behind = |child: &RecordedChild| !child.is_aside || child.time > *time;
            let first = rest.children.iter().position(behind);
            rest.children.drain(..first.unwrap_or(rest.children.len()));
            return true;
        }
        let streams = rest.streams.values();
        let next = streams.filter_map(|streams| streams.next_connection());
        let next = next.min();
        let child = rest.children.front().map(|child| child.time);
        child < Some(next.unwrap_or(u64::MAX))
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
        if part.has_ended {
            return true;
        }
        // A server has worked before its last bytes leave. A client works behind its last bytes.
        if served && idle > GRACE {
            let works = unit.is_client && self.a_thread_runs();
            if (waits && !works) || self.is_overtime() {
                return true;
            }
        }
        if idle < STALLED || self.is_tool_alone() {
            return false;
        }
        let now = self.processor_time();
        self.part.as_mut().is_some_and(|part| part.is_stalled(now))
    }

    /// Recorded output of the request that did not come is a difference.
    pub(super) fn finish_part(&mut self) {
        let (calls, took) = (self.calls_so_far(), self.took());
        // Only the first attempt has executed the start.
        let copy = self.in_copy.filter(|copy| copy.calls > 0);
        let Some(part) = &self.part else { return };
        let unit = part.unit;
        // Without a connection, the start did not end.
        let start = part.start.clone().unwrap_or_else(|| ProgramStart {
            calls,
            took,
            ..ProgramStart::default()
        });
        let matcher = &mut self.matchers[unit.process];
        let is_served = matcher.has_served(unit.connection);
        matcher.end(&self.resources, None);
        let streams = matcher.streams(unit.connection);
        self.result.request = Some(RequestVerdict {
            number: part.number,
            is_client: unit.is_client,
            fed: part.fed.clone(),
            calls: part.calls,
            compared: streams.output.compared_bytes(),
            differs_before: streams.output.differs_before(),
            is_served: is_served && self.started[unit.process],
            worked_on: part.worked_on.map(|worked| worked.as_secs()),
            executed: match copy {
                Some(copy) => ExecutedCalls {
                    executions: 1,
                    in_copies: 1,
                    calls: calls - copy.calls,
                    took: copy.began.elapsed().as_nanos() as u64,
                    ..ExecutedCalls::default()
                },
                None => ExecutedCalls {
                    executions: 1,
                    in_copies: 0,
                    calls,
                    in_starts: start.calls,
                    took,
                    took_in_starts: start.took,
                },
            },
            start,
        });
    }
}

/// True if recorded bytes of a unit have not left.
fn owes(matchers: &[ProcessMatcher], unit: &RecordedUnit) -> bool {
    let streams = &matchers[unit.process].rest.streams;
    let own = streams.get(&unit.connection);
    own.is_some_and(|own| own.output.owes(unit.ended.saturating_add(1)))
}
