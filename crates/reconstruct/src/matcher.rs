//! The state of one process that runs again: how far each of its streams was consumed.
//!
//! In: the calls of the new execution, as their meaning. Out: what each call gets, and the first
//! divergence. Invariant: a call that was not recorded moves no stream.

mod complaints;
mod pairs;
mod sockets;
mod taken;
mod temporary_names;
mod threads;

use crate::divergence::{Divergence, DivergenceKind};
use crate::exact::ExactPositions;
use crate::input::Taken;
use crate::output::Interruption;
use crate::process::{
    Made, ReadyTurn, RecordedProcess, RecordedResult, ResourceStreams, ResultKey, TimedQueue,
    skip_to,
};
use crate::ready::IN;
use crate::resource::{Resource, ResourceId};
use crate::volatile::VolatileRules;
use backstory_ordering::SmallSort;
pub use complaints::COMPLAINT_SHOWN;
use pairs::TakenPair;
use sockets::TakenSocket;
pub use sockets::is_of_libc;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
pub use threads::ThreadPosition;
use threads::ThreadPositions;

/// Calls that a report shows before a divergence.
pub(crate) const CALLS_SHOWN: usize = 6;

/// Length and flags (`GRND_NONBLOCK`) of the request that glibc's allocator makes. A recorder in
/// the process does not see it.
pub(crate) const LIBC_RANDOM: (u64, u64) = (8, 1);

/// Recorded waits that the new execution may leave out at once.
const TURNS_SKIPPED: usize = 16;

/// Waits behind the recorded ones whose time is up, before the record counts as over.
const IDLE_WAITS: u32 = 16;

/// Waits that nothing ends, one behind the other, before a process counts as one that repeats them.
const ENDLESS_WAITS: u128 = 1000;

/// A wait that has lasted counts like one for each time of this length, and like so many at most.
const ENDLESS_STEP_MS: u128 = 20;
const MOST_ENDLESS_STEPS: u128 = 100;

/// Waits that nothing ended, without another call between them.
#[derive(Debug, Clone, Copy, Default)]
struct EndlessWaits {
    count: u128,
    /// The last one stays.
    stays: bool,
    /// Its kernel's id, and the number of calls that had come.
    call: u64,
    came: u64,
}

/// One process that runs again.
#[derive(Debug, Clone)]
pub struct ProcessMatcher {
    /// The rest of the record.
    pub rest: RecordedProcess,
    /// The first difference.
    pub divergence: Option<Divergence>,
    /// The names of the volatile parts that differ.
    pub volatile: Vec<String>,
    /// Ns from a date that came to the recorded one: the first such date that differs, and no other
    /// part differs before.
    pub apart: Option<i64>,
    /// The end of what left through standard error, from the first byte on that differs there. Also
    /// of what left through standard descriptors that the recorded program did not use.
    pub complaint: Vec<u8>,
    /// Most bytes of it.
    complaint_room: usize,
    /// Number of calls that the record answered.
    pub matched: u64,
    /// Bytes that came in from the record.
    pub entered: u64,
    /// Bytes that were compared.
    pub left: u64,
    /// Calls that came.
    pub came: u64,
    /// Time-stamp counter of the recorded execution at this point.
    time: u64,
    /// That when the recorded write returned whose bytes left last.
    wrote: u64,
    threads: ThreadPositions,
    endless: EndlessWaits,
    /// The sockets that calls made again.
    taken_sockets: HashMap<ResourceId, TakenSocket>,
    /// The pipes and pairs of sockets that calls made again, by the end that is written.
    taken_pairs: HashMap<ResourceId, TakenPair>,
    recent: VecDeque<String>,
    pub(crate) exact: ExactPositions,
    /// The streams that may have recorded output that has not come, but for those of files of the
    /// root. `None`: no question has asked for them.
    pub(crate) owing: Option<Vec<ResourceId>>,
}

impl ProcessMatcher {
    /// A process at its beginning.
    pub fn new(recorded: RecordedProcess) -> ProcessMatcher {
        ProcessMatcher {
            came: 0,
            time: recorded.began,
            wrote: 0,
            threads: ThreadPositions::default(),
            rest: recorded,
            divergence: None,
            volatile: Vec::new(),
            apart: None,
            complaint: Vec::new(),
            complaint_room: COMPLAINT_SHOWN,
            matched: 0,
            entered: 0,
            left: 0,
            endless: EndlessWaits::default(),
            taken_sockets: HashMap::new(),
            taken_pairs: HashMap::new(),
            recent: VecDeque::new(),
            exact: ExactPositions::default(),
            owing: None,
        }
    }

    /// Remembers a call for reports.
    pub fn came(&mut self, call: String) {
        self.came += 1;
        if self.recent.len() == CALLS_SHOWN {
            self.recent.pop_front();
        }
        self.recent.push_back(call);
    }

    /// The last call comes again: nothing has answered it.
    pub(crate) fn comes_again(&mut self) {
        self.came -= 1;
        self.recent.pop_back();
    }

    /// Goes on with another part of the record, behind the same start.
    pub(crate) fn continue_with(&mut self, record: RecordedProcess) {
        self.rest = record;
        self.owing = None;
    }

    /// Notes a wait that nothing ends, by its kernel's id and how long it has lasted. True if the
    /// process has made many of them, and no other call between. `is_alone`: no other thread of the
    /// process runs. One that runs may end the repetition by a variable. The program looks at that
    /// once more before a wait stays.
    pub(crate) fn repeats_wait(
        &mut self,
        call: u64,
        lasted: Duration,
        is_alone: impl FnOnce() -> bool,
    ) -> bool {
        let mut waits = self.endless;
        if self.came != waits.came {
            let follows = self.came == waits.came + 1 && call != waits.call;
            let before = if follows { waits.count } else { 0 };
            let steps = lasted.as_millis() / ENDLESS_STEP_MS;
            waits = EndlessWaits {
                count: before + steps.clamp(1, MOST_ENDLESS_STEPS),
                stays: before > ENDLESS_WAITS,
                call,
                came: self.came,
            };
        }
        if waits.count > ENDLESS_WAITS && !is_alone() {
            (waits.count, waits.stays) = (0, false);
        }
        self.endless = waits;
        waits.stays
    }

    /// Time-stamp counter of the recorded execution at the point that was reached.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// A recorded call that returned at this time answered the caller. Time never goes back.
    pub fn reached(&mut self, time: u64) {
        self.time = self.time.max(time);
        let mover = self.rest.movers.get(&time).copied();
        self.threads.reach(time, mover);
    }

    /// Bytes leave that left in the recorded write which returned at this time.
    pub fn writes(&mut self, time: u64) {
        self.wrote = self.wrote.max(time);
        let mover = self.rest.movers.get(&time).copied();
        self.threads.write(time, mover);
    }

    /// Time-stamp counter up to which the recorded program has run again. Output moves it, too.
    pub fn passed_until(&self) -> u64 {
        self.time.max(self.wrote)
    }

    /// True if recorded output that left before this time has not come. That to files of the root
    /// is not followed.
    pub fn owes(&self, resources: &[Resource], before: u64) -> bool {
        let mut all = self.virtual_streams(resources);
        all.any(|streams| streams.output.owes(before))
    }

    /// Bytes that left, of which only the number was compared.
    pub fn counted(&self) -> u64 {
        let streams = self.rest.streams.values();
        streams.map(|streams| streams.output.counted()).sum()
    }

    /// True if output differs that only prepares the part which is compared.
    pub fn differs_before(&self) -> bool {
        let mut streams = self.rest.streams.values();
        streams.any(|streams| streams.output.differs_before().is_some())
    }

    /// True for a listener whose next `accept` returns a connection.
    pub fn accepts(&self, id: ResourceId) -> bool {
        let streams = self.rest.streams.get(&id);
        streams.is_some_and(ResourceStreams::has_connection)
    }

    /// True if the next input of a resource came after output that has not come yet.
    pub fn is_ahead(&self, id: ResourceId) -> bool {
        let streams = self.rest.streams.get(&id);
        streams.is_some_and(ResourceStreams::is_ahead)
    }

    /// True if this resource had no further recorded write, failed ones included.
    pub fn has_no_more(&self, id: ResourceId) -> bool {
        let own = self.rest.streams.get(&id);
        own.is_none_or(|own| own.output.is_empty() && !own.output.has_parted())
    }

    /// True if all recorded output of the process has come. That to files of the root is not
    /// followed.
    pub fn wrote_all(&self, resources: &[Resource]) -> bool {
        let mut all = self.virtual_streams(resources);
        all.all(|streams| streams.output.remaining() == 0)
    }

    /// The same for its input.
    pub fn read_all(&self, resources: &[Resource]) -> bool {
        let mut all = self.virtual_streams(resources);
        all.all(|streams| streams.input.remaining() == 0)
    }

    pub(crate) fn virtual_streams(
        &self,
        resources: &[Resource],
    ) -> impl Iterator<Item = &ResourceStreams> {
        let all = self.rest.streams.iter();
        let followed = all.filter(|(id, _)| !resources[**id].is_native());
        followed.map(|(_, streams)| streams)
    }

    /// True if all recorded bytes of a connection went in and out, or the output differs.
    pub fn has_served(&self, id: ResourceId) -> bool {
        let streams = self.rest.streams.get(&id);
        streams.is_some_and(|streams| {
            let out = &streams.output;
            let done = out.remaining() == 0 && streams.input.remaining() == 0;
            done || out.has_parted()
        })
    }

    /// The streams of a resource, which may be empty.
    pub fn streams(&mut self, id: ResourceId) -> &mut ResourceStreams {
        self.rest.streams.entry(id).or_default()
    }

    /// A read of at most `room` bytes. `waits` and `peek`: see [`crate::input::InputStream::take`].
    pub fn read(&mut self, id: ResourceId, room: usize, waits: bool, peek: bool) -> Taken {
        let streams = self.streams(id);
        streams.declare_arrived();
        let taken = streams.input.take(room, waits, peek);
        let time = streams.input.last_time();
        self.reached(time);
        if let Taken::Bytes(bytes, _) = &taken {
            self.entered += bytes.len() as u64;
            // A look at bytes that stay is no progress.
            if !peek {
                self.threads.progress();
            }
        }
        self.matched += u64::from(taken != Taken::Exhausted);
        taken
    }

    /// Bytes from `getrandom`. `None`: the recorded program took no more, or libc made the call
    /// for itself.
    pub fn random(&mut self, room: usize, flags: u64) -> Option<Vec<u8>> {
        let request = (room as u64, flags);
        self.skip(|rest, time| {
            let before = rest.random_requests.len();
            skip_to(&mut rest.random_requests, time);
            rest.random.skip(before - rest.random_requests.len());
        });
        let requests = &mut self.rest.random_requests;
        let next = requests.front().map(|(request, _)| request);
        if next != Some(&request) && request == LIBC_RANDOM {
            return None;
        }
        match self.rest.random.take(room, true, false) {
            Taken::Bytes(bytes, _) => {
                requests.pop_front();
                self.matched += 1;
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Bytes that leave. The result is the recorded error of this write, if it failed.
    pub fn write(
        &mut self,
        (id, resource): (ResourceId, &Resource),
        bytes: &[u8],
        rules: &VolatileRules,
    ) -> Option<i32> {
        let streams = self.streams(id);
        streams.output.answers_until(streams.input.next_unread());
        let output = &mut streams.output;
        if let Some(errno) = output.failure() {
            self.matched += 1;
            return Some(errno);
        }
        let (known, behind) = (output.remaining() > 0, output.behind());
        let difference = output.leave(bytes, rules);
        let behind = output.behind() - behind;
        self.matched += u64::from(known);
        self.left += bytes.len() as u64 - behind;
        if let Some(difference) = difference
            && self.compares(id)
        {
            if !self.has_parted() {
                self.apart = self.apart.or(difference.apart);
            }
            let kind = match &difference.recorded {
                Some(bytes) if bytes.is_empty() => DivergenceKind::MoreOutput,
                _ => DivergenceKind::OtherOutput,
            };
            let mut divergence = self.blank(kind, resource.label());
            divergence.describe(&difference);
            self.diverge(divergence);
        }
        None
    }

    /// True if a difference of the program was found which is not volatile.
    pub fn has_parted(&self) -> bool {
        let difference = self.divergence.as_ref();
        difference.is_some_and(|difference| difference.volatile.is_none())
    }

    /// Signals interrupt a write as in the record. They are not sent again at the end of it.
    pub fn interrupted(&mut self, id: ResourceId, interruption: &Interruption) {
        self.streams(id).output.interrupted();
        self.handled(interruption);
    }

    /// The same for a read.
    pub fn interrupted_read(&mut self, id: ResourceId, interruption: &Interruption) {
        self.streams(id).input.interrupted();
        self.handled(interruption);
    }

    fn handled(&mut self, interruption: &Interruption) {
        let handled = &mut self.rest.signals;
        for signal in &interruption.signals {
            if let Some(at) = handled.iter().position(|one| one.0 == *signal) {
                handled.remove(at);
            }
        }
        // Bytes that left before were matched as such.
        self.matched += u64::from(interruption.after == 0);
        self.reached(interruption.time);
    }

    /// False for a resource whose output depends on input that the process did not get.
    fn compares(&self, id: ResourceId) -> bool {
        self.rest.only.is_none_or(|only| only == id)
    }

    /// The next recorded open of this path. `None`: no open was recorded, or no more.
    pub fn open(&mut self, path: &[u8]) -> Option<Made> {
        self.skip(|rest, time| {
            if let Some(queue) = rest.opens.get_mut(path) {
                skip_to(queue, time);
            }
        });
        let made = self.rest.opens.get_mut(path)?.pop_front();
        self.made(made)
    }

    fn made<T>(&mut self, made: Option<(T, u64)>) -> Option<T> {
        let (made, time) = made?;
        self.matched += 1;
        self.reached(time);
        Some(made)
    }

    /// In an execution of a part of the record, results of other parts are left out.
    pub(crate) fn skip(&mut self, skips: impl FnOnce(&mut RecordedProcess, u64)) {
        if self.rest.is_part {
            skips(&mut self.rest, self.time);
        }
    }

    /// Leaves recorded results with this key out, but not the last one.
    pub fn leave_out(&mut self, key: &ResultKey, is_past: impl Fn(&RecordedResult) -> bool) {
        if let Some(queue) = self.rest.results.get_mut(key) {
            while queue.len() > 1 && queue.front().is_some_and(|(result, _)| is_past(result)) {
                queue.pop_front();
            }
        }
    }

    /// The next recorded result with this key. The last one is repeated.
    ///
    /// In an execution of a part, it does not move the time that has been reached. The program
    /// can ask more often than in the record: libc looks at a file whose stream gets a buffer. One
    /// result too many would leave out connections, files and random numbers before the next.
    pub fn result(&mut self, key: &ResultKey) -> Option<RecordedResult> {
        self.skip(|rest, time| {
            if let Some(queue) = rest.results.get_mut(key) {
                skip_to(queue, time);
            }
        });
        let queue = self.rest.results.get_mut(key)?;
        let result = match queue.len() {
            0 => None,
            1 => queue.front().cloned(),
            _ => queue.pop_front(),
        };
        let (result, time) = result?;
        self.matched += 1;
        if !self.rest.is_part {
            self.reached(time);
        }
        Some(result)
    }

    /// The next recorded wait for descriptors that `fits` accepts.
    pub fn next_turn(&self, fits: impl Fn(&ReadyTurn) -> bool) -> Option<&ReadyTurn> {
        let mut next = self.rest.turns.iter().take(TURNS_SKIPPED);
        next.find(|turn| fits(turn))
    }

    /// The same, if the time of that wait was up.
    pub fn next_time_up(&self, fits: impl Fn(&ReadyTurn) -> bool) -> Option<&ReadyTurn> {
        self.next_turn(fits).filter(|turn| turn.ready.is_empty())
    }

    /// The next recorded wait for descriptors, if `fits` accepts it. With `holds_back`, none whose
    /// input came after output that has not come yet.
    pub fn turn(
        &mut self,
        holds_back: bool,
        fits: impl Fn(&ReadyTurn) -> bool,
    ) -> Option<ReadyTurn> {
        // The new execution may lack waits, as of libc's resolver.
        let found = self.rest.turns.iter().take(TURNS_SKIPPED).position(fits)?;
        let ready = self.rest.turns.get(found).map(|turn| turn.ready.as_slice());
        let ahead = |(id, events): &(Option<ResourceId>, u32)| {
            events & IN != 0 && id.is_some_and(|id| self.is_ahead(id))
        };
        if holds_back && ready.is_some_and(|ready| ready.iter().any(ahead)) {
            return None;
        }
        self.matched += 1;
        self.threads.progress();
        self.rest.turns.drain(..found);
        let turn = self.rest.turns.pop_front()?;
        self.reached(turn.time);
        self.threads.reach(turn.time, Some(turn.thread));
        Some(turn)
    }

    /// The time of a wait that was not recorded is up. True if the record is over: a program that
    /// looks around now and then would do so for ever.
    pub fn idles(&mut self) -> bool {
        let idle = self.threads.idle();
        let over = self.rest.turns.is_empty() && !self.rest.signals.is_empty();
        over || idle > IDLE_WAITS
    }

    /// A divergence of which only the kind and the object are known.
    pub fn blank(&self, kind: DivergenceKind, object: String) -> Divergence {
        let program = String::from_utf8_lossy(&self.rest.start.program);
        Divergence {
            kind,
            epoch: self.rest.epoch,
            pid: self.rest.pid,
            program: program.into_owned(),
            object,
            position: 0,
            within: 1,
            recorded: String::new(),
            came: String::new(),
            calls: Vec::new(),
            log_calls: Vec::new(),
            volatile: None,
            words: (Vec::new(), Vec::new()),
            time: 0,
            reached: 0,
            origins: (None, None),
        }
    }

    /// Notes a divergence, unless there is one already.
    pub fn diverge(&mut self, divergence: Divergence) {
        if self.rest.excuses(divergence.kind) {
            return;
        }
        if let Some(name) = &divergence.volatile
            && !self.volatile.contains(name)
        {
            self.volatile.push(name.clone());
        }
        // One that is not volatile says more.
        let known = self.divergence.as_ref();
        let is_volatile = |one: &Divergence| one.volatile.is_some();
        if known.is_none_or(|known| is_volatile(known) && !is_volatile(&divergence)) {
            let calls = self.recent.iter().cloned().collect();
            self.divergence = Some(Divergence {
                calls,
                reached: self.time,
                ..divergence
            });
        }
    }

    /// The process ended with this status of `exit_group`, or by a signal. Recorded output that did
    /// not come is a divergence.
    pub fn end(&mut self, resources: &[Resource], status: Option<i32>) {
        let mut missing: Vec<ResourceId> = self.rest.streams.keys().copied().collect();
        missing.sort_small();
        for id in missing {
            if !self.compares(id) {
                continue;
            }
            let difference = self.streams(id).output.end();
            let (Some(difference), Some(resource)) = (difference, resources.get(id)) else {
                continue;
            };
            // A native file is compared as a whole.
            if resource.is_native() {
                continue;
            }
            let mut divergence = self.blank(DivergenceKind::LessOutput, resource.label());
            divergence.describe(&difference);
            if difference.recorded.is_none() {
                divergence.recorded = format!("{} more bytes", difference.within);
            }
            divergence.came = "the end of the process".to_owned();
            divergence.volatile = None;
            self.diverge(divergence);
        }
        let (Some(recorded), Some(status)) = (self.rest.exit, status) else {
            return;
        };
        if recorded & 0xff != status & 0xff {
            let mut divergence = self.blank(DivergenceKind::OtherEnd, "the exit status".to_owned());
            divergence.recorded = format!("status {}", recorded & 0xff);
            divergence.came = format!("status {}", status & 0xff);
            self.diverge(divergence);
        }
    }
}

/// The place of the next result that this thread got. In an execution of a part of the record,
/// other threads may serve the requests that are fed, so any result may come.
fn place_of<T>(
    movers: &HashMap<u64, u32>,
    is_part: bool,
    results: &TimedQueue<T>,
    thread: u32,
) -> usize {
    let is_own = |(_, time): &(T, u64)| movers.get(time) == Some(&thread);
    let own = results.iter().position(is_own).filter(|_| !is_part);
    own.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{ENDLESS_WAITS, ProcessMatcher};
    use crate::process::RecordedProcess;
    use std::time::Duration;

    /// Whether the last one of such waits stays, each of which is a new call.
    fn stays(matcher: &mut ProcessMatcher, waits: u128, lasted: Duration, is_alone: bool) -> bool {
        (0..waits).fold(false, |_, _| {
            matcher.came(String::new());
            matcher.repeats_wait(matcher.came, lasted, || is_alone)
        })
    }

    #[test]
    fn a_repeated_wait_stays_until_another_call_comes() {
        let mut matcher = ProcessMatcher::new(RecordedProcess::default());
        let many = ENDLESS_WAITS + 1;
        assert!(!stays(&mut matcher, many, Duration::ZERO, true));
        let same = matcher.came;
        assert!(!matcher.repeats_wait(same, Duration::ZERO, || true));
        assert!(stays(&mut matcher, 1, Duration::ZERO, true));
        let last = matcher.came;
        assert!(matcher.repeats_wait(last, Duration::ZERO, || true));
        // Another thread makes a call while this one is still in its wait.
        matcher.came(String::new());
        assert!(!matcher.repeats_wait(last, Duration::from_secs(60), || true));
        assert!(!stays(&mut matcher, 2, Duration::ZERO, true));
    }

    #[test]
    fn a_repeated_wait_does_not_stay_while_another_thread_runs_and_not_directly_behind_that() {
        let mut matcher = ProcessMatcher::new(RecordedProcess::default());
        let many = 3 * ENDLESS_WAITS + 3;
        assert!(!stays(&mut matcher, many, Duration::ZERO, false));
        assert!(!stays(&mut matcher, 1, Duration::ZERO, true));
        assert!(stays(&mut matcher, many, Duration::ZERO, true));
        let last = matcher.came;
        assert!(!matcher.repeats_wait(last, Duration::from_secs(1), || false));
        assert!(!stays(&mut matcher, 1, Duration::ZERO, true));
    }

    #[test]
    fn a_few_long_waits_count_as_repeated_and_a_single_one_does_not() {
        let mut matcher = ProcessMatcher::new(RecordedProcess::default());
        assert!(!stays(&mut matcher, 1, Duration::from_secs(3600), true));
        assert!(stays(&mut matcher, 12, Duration::from_secs(2), true));
    }
}
