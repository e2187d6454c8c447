//! Calls that wait for descriptors.

use super::sleeping::SleepEnd;
use super::thread_states::another_thread_runs;
use super::tool::BEGINS_AGAIN;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::process::{Made, ReadyTurn};
use crate::ready::{IN, OUT, PRI, poll_list, set_members};
use crate::resource::ResourceId;
use backstory_ordering::SmallSort;
use libc::*;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// A wait for the kernel's own objects has this much time at most, if it has a timeout.
const LONGEST_NATIVE: Duration = Duration::from_secs(1);

/// The same without a timeout, if a whole run runs again.
const LONGEST_BLOCKED: Duration = Duration::from_secs(2);

/// Input that came after an answer is held back for so long, until another thread has written the
/// answer.
const LONGEST_AHEAD: Duration = Duration::from_millis(500);

/// The same while all other threads of the process sleep: none of them is about to write it.
const AHEAD_OF_SLEEPERS: Duration = Duration::from_millis(20);

/// A wait for a connection ends in between, while children get ready.
const EARLY_WAIT: Duration = Duration::from_millis(20);

/// A descriptor that a call waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaited {
    pub fd: i32,
    pub events: u32,
    pub resource: Option<ResourceId>,
}

/// The conditions of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitTerms {
    /// Ns until the time is up. `None`: never.
    pub timeout: Option<i64>,
    /// The kernel's own objects are waited for, too.
    pub has_native: bool,
    /// Input of which the record has nothing is waited for, too. It never comes.
    pub has_placeholder: bool,
}

/// Limits of what is ready: no input that one of them names is.
struct StreamLimits {
    /// Input that came behind output which has not left.
    holds_back: bool,
    /// These resources: their next input came behind answers of other programs.
    behind: Vec<ResourceId>,
    /// The input of these: another program has not written it.
    unwritten: Vec<ResourceId>,
    /// Input that came later than this.
    until: Option<u64>,
}

/// The answer to a wait.
pub(super) enum Ready {
    /// These descriptors, by their position in the list, with their events.
    Some(Vec<(usize, u32)>),
    /// The time was up.
    TimeUp,
    /// The record has nothing more for any of them.
    Never,
    /// The kernel's own objects are looked at again.
    Later,
    /// A signal interrupts the wait. The kernel makes it.
    Interrupted,
    /// The wait fails with this error.
    Failed(i32),
    /// The program makes the call again.
    Again,
}

impl Supervisor {
    pub(super) fn awaited(&self, call: &NotifiedCall, fd: i32, events: u32) -> Awaited {
        let ends = self.stand_ins.of(call.tid, fd);
        let resource = ends.map(|ends| {
            if events & IN != 0 {
                ends.read
            } else {
                ends.write
            }
        });
        Awaited {
            fd,
            events,
            resource,
        }
    }

    /// Which of these are ready: as recorded if the recorded wait fits, otherwise as their streams
    /// are. `None`: no resource of the record is among them.
    pub(super) fn ready(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        list: &[Awaited],
        terms: WaitTerms,
    ) -> Option<Ready> {
        if list.iter().all(|one| one.resource.is_none()) && !terms.has_placeholder {
            return None;
        }
        let may_time_out = terms.timeout.is_some();
        let connection = self.next_connection(index, list);
        let thread = self.only_thread(call, index);
        let behind_start = self.connection_behind_start(index);
        let fits = |turn: &ReadyTurn| {
            let mut connections = [connection, behind_start].into_iter().flatten();
            if connections.any(|connection| connection < turn.time) {
                return false;
            }
            let among = |id: &ResourceId| list.iter().any(|one| one.resource == Some(*id));
            let known = turn
                .ready
                .iter()
                .all(|(id, _)| id.as_ref().is_some_and(among));
            let is_own = thread.is_none_or(|thread| thread == turn.thread);
            known && (!turn.ready.is_empty() || turn.value == 0 && may_time_out && is_own)
        };
        let Some(behind) = self.behind_others(index, list, fits) else {
            // Signals come between.
            return Some(match may_time_out && self.parked_for > EARLY_WAIT {
                true => Ready::TimeUp,
                false => Ready::Later,
            });
        };
        if let Some(answer) = self.interruption(call, index) {
            return Some(answer);
        }
        if self.child_ends_first(call, index, fits)
            || self.thread_writes_first(call, index, list, terms.timeout, fits)
            || self.time_is_not_up(call, index, terms.timeout, fits)
        {
            return Some(Ready::Later);
        }
        if self.time_up_comes_later(index, fits) {
            self.parks(index);
            return Some(Ready::Later);
        }
        let unwritten = self.unwritten(index, list, terms.has_native);
        if let Some(answer) = self.peer_writes_first(index, &unwritten, terms, fits) {
            return Some(answer);
        }
        let comes_later = !unwritten.is_empty() && !may_time_out;
        let holds_back = self.holds_back(call, terms.has_native);
        let listens = |one: &Awaited| {
            one.resource
                .is_some_and(|id| self.matchers[index].accepts(id))
        };
        let accepts = list.iter().any(listens);
        let is_recorded = self.matchers[index].next_turn(fits).is_some();
        if accepts && self.waits_in_copies(call, index, connection, is_recorded) {
            return Some(Ready::Again);
        }
        if let Some(turn) = self.matchers[index].turn(holds_back, fits) {
            let ready = self.as_recorded(&turn, list);
            // Streams agree with the wait: what is ready has arrived. Room for output is no input.
            for (id, events) in &turn.ready {
                if let Some(id) = id
                    && events & !OUT != 0
                {
                    let streams = self.matchers[index].streams(*id);
                    streams.declare_arrived();
                    streams.input.arrive();
                }
            }
            return Some(match ready.is_empty() {
                true => Ready::TimeUp,
                false => Ready::Some(ready),
            });
        }
        if accepts && self.comes_early(call, index, connection) {
            // Children of the server are still getting ready. A signal of theirs comes between.
            return Some(match may_time_out && self.parked_for > EARLY_WAIT {
                true => Ready::TimeUp,
                false => Ready::Later,
            });
        }
        let held = self.matchers[index].next_turn(fits).map(|turn| turn.time);
        let limits = StreamLimits {
            holds_back,
            behind,
            unwritten,
            // The program gets its input in the recorded order.
            until: held.filter(|_| holds_back && self.part.is_none()),
        };
        let ready = self.as_streams_come(index, list, &limits);
        let mut all = list.iter().filter_map(|one| one.resource);
        if ready.is_empty() && holds_back && all.any(|id| self.matchers[index].is_ahead(id)) {
            return Some(match terms.timeout {
                Some(0) if !self.matchers[index].idles() => Ready::TimeUp,
                _ => Ready::Later,
            });
        }
        Some(match ready.is_empty() {
            false => Ready::Some(ready),
            true if comes_later => Ready::Later,
            true => self.with_nothing_ready(call, index, terms),
        })
    }

    /// True if other processes get ready for a connection, or end before it.
    fn comes_early(&mut self, call: &NotifiedCall, index: usize, connection: Option<u64>) -> bool {
        self.is_early(call) || self.has_late_child(call, index, connection)
    }

    /// True if a snapshot of the program was taken before this wait for a connection. The answer
    /// may belong to a request that is fed.
    fn waits_in_copies(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        connection: Option<u64>,
        is_recorded: bool,
    ) -> bool {
        self.attempts.is_some()
            && (is_recorded || !self.comes_early(call, index, connection))
            && self.takes_snapshot(call, index, None)
    }

    /// The answer to a wait for which the record has nothing.
    fn with_nothing_ready(&mut self, call: &NotifiedCall, index: usize, terms: WaitTerms) -> Ready {
        let may_time_out = terms.timeout.is_some();
        let timeout = terms.timeout.unwrap_or(i64::MAX).max(0);
        let native = LONGEST_NATIVE.min(Duration::from_nanos(timeout as u64));
        let blocks = !may_time_out && (self.part.is_some() || self.parked_for < LONGEST_BLOCKED);
        if terms.has_native && (self.parked_for < native || blocks) {
            self.parks(index);
            return Ready::Later;
        }
        // A look that does not wait, between other work.
        if terms.has_native && timeout == 0 {
            return Ready::TimeUp;
        }
        match may_time_out {
            true if self.lasts_on(call, index, timeout) => Ready::Later,
            true => self.time_up(call, index, timeout),
            false => Ready::Never,
        }
    }

    /// The recorded number of a caller. Its waits alone are those whose time was up, or that a
    /// signal interrupted. `None`: so are all waits of the process.
    pub(super) fn only_thread(&mut self, call: &NotifiedCall, index: usize) -> Option<u32> {
        let has_threads = !self.matchers[index].rest.threads.is_empty();
        let is_known = has_threads && self.part.is_none();
        is_known.then(|| self.recorded_thread(call.tid, index))
    }

    /// Those of a list whose next input came behind answers of other programs that have not left.
    /// `None`: the next recorded wait that `fits` accepts was for such input, or nothing else has
    /// input. Other input must not wait for this one: those programs may wait for this program.
    fn behind_others(
        &mut self,
        index: usize,
        list: &[Awaited],
        fits: impl Fn(&ReadyTurn) -> bool,
    ) -> Option<Vec<ResourceId>> {
        if self.part.is_none() {
            return Some(Vec::new());
        }
        let next = self.matchers[index].next_turn(fits);
        let next = next.into_iter().flat_map(|turn| &turn.ready);
        let mut looked: Vec<ResourceId> = next.filter_map(|(id, _)| *id).collect();
        let is_recorded = !looked.is_empty();
        if !is_recorded {
            looked.extend(list.iter().filter_map(|one| one.resource));
        }
        looked.retain(|id| self.is_behind(index, *id));
        let behind = looked;
        let streams = &self.matchers[index].rest.streams;
        let has_input = |one: &Awaited| {
            let id = one.resource.filter(|id| !behind.contains(id));
            let own = id.and_then(|id| streams.get(&id));
            one.events & IN != 0
                && own.is_some_and(|own| own.has_connection() || own.input.is_ready())
        };
        let waits = !behind.is_empty() && (is_recorded || !list.iter().any(has_input));
        (!waits).then_some(behind)
    }

    /// When the next connection came of the listeners in this list, if a request of a server runs
    /// again. Its record has no waits for listeners, and later input waits for the connection.
    fn next_connection(&self, index: usize, list: &[Awaited]) -> Option<u64> {
        self.part.as_ref().filter(|part| !part.unit.is_client)?;
        let streams = &self.matchers[index].rest.streams;
        let awaited = list.iter().filter(|one| one.events & IN != 0);
        let listeners = awaited.filter_map(|one| streams.get(&one.resource?));
        listeners.filter_map(|own| own.next_connection()).min()
    }

    /// When the first connection of a program came, as long as it starts. A start takes none of the
    /// waits behind that: requests that are fed have them.
    fn connection_behind_start(&self, index: usize) -> Option<u64> {
        let part = self.part.as_ref().filter(|part| !part.unit.is_client)?;
        let first = || self.matchers[index].rest.first_connection();
        part.start.is_none().then(first)?.map(|(time, _)| time)
    }

    /// True if input waits for the output that was recorded before it: something else than this
    /// call may write the output.
    pub(super) fn holds_back(&self, call: &NotifiedCall, has_native: bool) -> bool {
        let Some(own) = self.groups.get(&call.tid) else {
            return false;
        };
        let threads = self.groups.values().filter(|group| *group == own);
        let another_runs = || another_thread_runs(self.listener.as_fd(), *own, call.tid);
        (has_native || threads.count() > 1)
            && self.parked_for < LONGEST_AHEAD
            && (self.parked_for < AHEAD_OF_SLEEPERS || another_runs())
    }

    /// The descriptors of a list that were ready, in the order of the record. The kernel chooses
    /// that of a set of epoll.
    fn as_recorded(&self, turn: &ReadyTurn, list: &[Awaited]) -> Vec<(usize, u32)> {
        let one = |(at, awaited): (usize, &Awaited)| {
            let found = turn.ready.iter().find(|(id, _)| *id == awaited.resource)?;
            let always = (POLLERR | POLLHUP) as u32;
            let events = found.1 & (awaited.events | always | EPOLLRDHUP as u32);
            (awaited.resource.is_some() && events != 0).then_some((at, events))
        };
        let mut ready: Vec<(usize, u32)> = list.iter().enumerate().filter_map(one).collect();
        let place = |at: usize| {
            turn.ready
                .iter()
                .position(|(id, _)| *id == list[at].resource)
        };
        ready.sort_small_by_key(|(at, _)| place(*at));
        ready
    }

    /// The answer if the next recorded wait that `fits` accepts got bytes that are `unwritten`. The
    /// kernel's own objects come first: the peer may wait for what they bring about.
    fn peer_writes_first(
        &mut self,
        index: usize,
        unwritten: &[ResourceId],
        terms: WaitTerms,
        fits: impl Fn(&ReadyTurn) -> bool,
    ) -> Option<Ready> {
        let turn = self.matchers[index].next_turn(fits)?;
        let mut input = turn.ready.iter().filter(|(_, events)| events & IN != 0);
        if !input.any(|(id, _)| id.is_some_and(|id| unwritten.contains(&id))) {
            return None;
        }
        Some(match terms.timeout {
            Some(0) if !self.matchers[index].idles() => Ready::TimeUp,
            _ => Ready::Later,
        })
    }

    /// The descriptors that are ready without a recorded wait, within these limits. If none is,
    /// time passes.
    fn as_streams_come(
        &mut self,
        index: usize,
        list: &[Awaited],
        limits: &StreamLimits,
    ) -> Vec<(usize, u32)> {
        let ready = self.as_streams_are(index, list, limits);
        if !ready.is_empty() || limits.until.is_some() {
            return ready;
        }
        for id in list.iter().filter_map(|one| one.resource) {
            self.matchers[index].streams(id).input.arrive();
            let accepted = &mut self.matchers[index].streams(id).accepted;
            while matches!(accepted.front(), Some(a) if a.made == Made::Failed(EAGAIN)) {
                accepted.pop_front();
            }
        }
        self.as_streams_are(index, list, limits)
    }

    /// The same at this moment.
    fn as_streams_are(
        &mut self,
        index: usize,
        list: &[Awaited],
        limits: &StreamLimits,
    ) -> Vec<(usize, u32)> {
        let mut ready = Vec::new();
        let connection = self.next_connection(index, list);
        for (at, awaited) in list.iter().enumerate() {
            let Some(id) = awaited.resource.filter(|id| !limits.behind.contains(id)) else {
                continue;
            };
            let is_later = |time: Option<u64>| limits.until.is_some_and(|last| time > Some(last));
            let streams = self.matchers[index].streams(id);
            let connects = streams.has_connection() && !is_later(streams.next_connection());
            let mut events = 0;
            let next = streams.input.next_input();
            let is_late = connection.is_some_and(|connection| next > Some(connection));
            let is_late = is_late || is_later(next) || limits.unwritten.contains(&id);
            let arrived = streams.input.is_ready() && !(limits.holds_back && streams.is_ahead());
            if arrived && !is_late || connects {
                events |= IN;
            }
            if streams.accepted.is_empty() {
                events |= OUT;
            }
            if events & awaited.events & IN != 0 {
                // The program may take the time before it accepts or reads.
                let accepted = streams.accepted.front().filter(|_| connects);
                let next = accepted.map(|accepted| accepted.time);
                let time = next.or_else(|| streams.input.next_arrival());
                streams.declare_arrived();
                self.matchers[index].reached(time.unwrap_or(0));
            }
            if events & awaited.events != 0 {
                ready.push((at, events & awaited.events));
            }
        }
        ready
    }

    /// The same for a list in which the kernel's own objects may be. They come first.
    fn wait_for(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        list: &[Awaited],
        timeout: Option<i64>,
    ) -> Option<Ready> {
        if list.is_empty() {
            let Some(ns) = timeout else {
                self.enters_kernel(call, index);
                return None;
            };
            return Some(self.sleep_in_wait(call, index, ns));
        }
        let (silent, native): (Vec<_>, Vec<_>) = list
            .iter()
            .enumerate()
            .filter(|(_, one)| one.resource.is_none() && one.fd >= 0)
            .map(|(at, one)| (at, one.fd, one.events))
            .partition(|(_, fd, events)| self.is_silent(call, *fd, *events));
        if native.len() < list.len() && !native.is_empty() {
            let ready = self.native_ready(call, &native);
            if !ready.is_empty() {
                return Some(Ready::Some(ready));
            }
        }
        let terms = WaitTerms {
            timeout,
            has_native: !native.is_empty(),
            has_placeholder: native.is_empty() && !silent.is_empty(),
        };
        self.ready(call, index, list, terms)
    }

    /// A wait for no descriptor: a sleep of so many ns.
    fn sleep_in_wait(&mut self, call: &NotifiedCall, index: usize, ns: i64) -> Ready {
        if self.part.is_some() {
            return self.time_up(call, index, ns);
        }
        match self.sleep_end(call, index, ns) {
            SleepEnd::TimeUp => Ready::TimeUp,
            SleepEnd::Later => Ready::Later,
            // The signal may be blocked except in this wait.
            SleepEnd::Interrupted(_) if self.has_signal(call).unwrap_or(false) => {
                Ready::Interrupted
            }
            SleepEnd::Interrupted(_) => Ready::Failed(EINTR),
        }
    }

    /// The response to a wait that nothing ends. Programs repeat a wait that a signal interrupted.
    /// One that does nothing else stays in it, so that the patience can end it.
    pub(super) fn never(&mut self, call: &NotifiedCall, index: usize) -> Response {
        self.waits_in_vain(call);
        let (group, tid) = (self.group_of(call), call.tid);
        let listener = self.listener.as_fd();
        let is_alone = || !another_thread_runs(listener, group, tid);
        let matcher = &mut self.matchers[index];
        if matcher.repeats_wait(call.id, self.parked_for, is_alone)
            && matcher.rest.signals.is_empty()
            && !self.has_signal(call).unwrap_or(true)
        {
            self.staying.insert(tid);
            return Response::Park;
        }
        match self.beyond_the_record(call, index, "a wait for input".to_owned()) {
            // A signal lets no wait begin again (signal(7)).
            Response::Value(_) | Response::Errno(BEGINS_AGAIN) => Response::Errno(EINTR),
            other => other,
        }
    }

    pub(super) fn poll(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let count = call.length(1).min(1 << 16);
        let bytes = call.bytes(call.args[0], count * 8)?;
        let list: Vec<Awaited> = poll_list(&bytes)
            .into_iter()
            .map(|(fd, events, _)| self.awaited(call, fd, u32::from(events)))
            .collect();
        let timeout = match call.number {
            SYS_poll => (call.int(2) >= 0).then(|| i64::from(call.int(2)) * 1_000_000),
            _ if call.args[2] == 0 => None,
            _ => Some(call.duration(call.args[2])?),
        };
        let ready = match self.wait_for(call, index, &list, timeout) {
            None => return Ok(Response::Continue),
            Some(Ready::Later) => return Ok(Response::Park),
            Some(Ready::Never) => return Ok(self.never(call, index)),
            Some(Ready::Failed(errno)) => return Ok(Response::Errno(errno)),
            Some(Ready::Again) => return Ok(Response::Sent),
            Some(Ready::TimeUp) => Vec::new(),
            Some(Ready::Some(ready)) => ready,
            Some(Ready::Interrupted) => {
                // The kernel tells that no descriptor is ready.
                let mut own = bytes;
                own.chunks_exact_mut(8).for_each(|entry| entry[6..].fill(0));
                let mut none = own.clone();
                none.chunks_exact_mut(8)
                    .for_each(|entry| entry[..4].fill(0xff));
                return self.interrupt(call, vec![(call.args[0], own, none)]);
            }
        };
        let mut bytes = bytes;
        for entry in bytes.chunks_exact_mut(8) {
            entry[6..8].fill(0);
        }
        for (at, events) in &ready {
            let events = *events as u16;
            bytes[at * 8 + 6..at * 8 + 8].copy_from_slice(&events.to_le_bytes());
        }
        call.put(call.args[0], &bytes)?;
        Ok(Response::Value(ready.len() as i64))
    }

    pub(super) fn select(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let size = call.length(0).min(1 << 16).div_ceil(64) * 8;
        let mut list: Vec<Awaited> = Vec::new();
        for (arg, events) in [(1, IN), (2, OUT), (3, PRI)] {
            if call.args[arg] == 0 {
                continue;
            }
            for fd in set_members(&call.bytes(call.args[arg], size)?) {
                list.push(self.awaited(call, fd, events));
            }
        }
        let timeout = match (call.number, call.args[4]) {
            (_, 0) => None,
            (SYS_select, at) => {
                let (seconds, us) = (call.word(at)? as i64, call.word(at + 8)? as i64);
                Some(seconds.saturating_mul(1_000_000_000) + us * 1_000)
            }
            (_, at) => Some(call.duration(at)?),
        };
        let ready = match self.wait_for(call, index, &list, timeout) {
            None => return Ok(Response::Continue),
            Some(Ready::Later) => return Ok(Response::Park),
            Some(Ready::Never) => return Ok(self.never(call, index)),
            Some(Ready::Failed(errno)) => return Ok(Response::Errno(errno)),
            Some(Ready::Again) => return Ok(Response::Sent),
            Some(Ready::TimeUp) => Vec::new(),
            Some(Ready::Some(ready)) => ready,
            Some(Ready::Interrupted) => {
                let sets = call.args[1..4].iter().filter(|at| **at != 0);
                let lists = sets.map(|at| Ok((*at, call.bytes(*at, size)?, vec![0; size])));
                let lists: Vec<_> = lists.collect::<io::Result<_>>()?;
                return self.interrupt(call, lists);
            }
        };
        let mut count = 0;
        for (arg, events) in [(1, IN), (2, OUT), (3, PRI)] {
            if call.args[arg] == 0 {
                continue;
            }
            let mut set = vec![0u8; size];
            for (at, found) in &ready {
                let awaited = &list[*at];
                // A closed connection is ready to be read.
                let closed = events == IN && found & POLLHUP as u32 != 0;
                if awaited.events == events && (found & events != 0 || closed) {
                    let fd = awaited.fd as usize;
                    set[fd / 8] |= 1 << (fd % 8);
                    count += 1;
                }
            }
            call.put(call.args[arg], &set)?;
        }
        Ok(Response::Value(count))
    }
}
