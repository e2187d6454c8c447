//! The part of the log about one program in one process, arranged by resource.
//!
//! In: nothing; `recorded` fills it. Out: streams and queues that the matcher consumes.

use crate::control::RecordedControl;
use crate::divergence::DivergenceKind;
use crate::input::InputStream;
use crate::omitted::OmittedParts;
use crate::output::ExpectedOutput;
use crate::resource::{Resource, ResourceId, is_address_list};
use crate::temporary_names::TemporaryName;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The object of a recorded result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CallObject {
    /// The process.
    Process,
    /// A path, as the program passed it.
    Path(Vec<u8>),
    /// An open resource.
    Resource(ResourceId),
}

/// Which results answer a call: those with the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResultKey {
    /// The number of the system call.
    pub call: u16,
    /// Its object.
    pub object: CallObject,
    /// A further argument: the request of `ioctl`, the level and option of `getsockopt`, the clock.
    /// Of a status by a path, [`OF_DESCRIPTOR`] if the call asked about an open file.
    pub detail: u64,
}

/// The call got the status of a file by its descriptor (`fstat`). libc makes such calls inside
/// itself (`opendir`), which the record does not have. So they take no results of other calls.
pub const OF_DESCRIPTOR: u64 = 1;

/// A result and the bytes that the kernel wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedResult {
    /// The value, or a negative error number.
    pub value: i64,
    /// The bytes that the kernel wrote, by argument.
    pub entered: Vec<Vec<u8>>,
}

/// A recorded `accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedConnection {
    /// The connection, or the error.
    pub made: Made,
    /// The address of the other end, maybe empty.
    pub address: Vec<u8>,
    /// Time-stamp counter when it returned.
    pub time: u64,
}

impl AcceptedConnection {
    /// False: it failed.
    pub fn is_connection(&self) -> bool {
        matches!(self.made, Made::Resource(_))
    }
}

/// Recorded results in order, each with the time-stamp counter when its call returned.
pub type TimedQueue<T> = VecDeque<(T, u64)>;

/// Goes to the first result after a time, or to the last one. An execution of a part of the record
/// begins in its middle.
pub fn skip_to<T>(queue: &mut TimedQueue<T>, time: u64) {
    let after = queue.iter().position(|(_, returned)| *returned > time);
    queue.drain(..after.unwrap_or(queue.len().saturating_sub(1)));
}

/// A recorded open, or a call like it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Made {
    /// It made this resource.
    Resource(ResourceId),
    /// It failed with this error number.
    Failed(i32),
}

/// The result of a wait for several descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadyTurn {
    /// The events that were ready, in the bits of `poll`. A resource is unknown if no recorded call
    /// made it.
    pub ready: Vec<(Option<ResourceId>, u32)>,
    /// The recorded result.
    pub value: i64,
    /// Time-stamp counter when it returned.
    pub time: u64,
    /// The thread that waited.
    pub thread: u32,
    /// That when a signal told the program that a child had ended: in this wait, or before its next
    /// call.
    pub child_ended: Option<u64>,
}

/// A signal whose handler ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerRun {
    /// The signal.
    pub signal: i32,
    /// Time-stamp counter when the handler began.
    pub time: u64,
    /// The thread that it ran in.
    pub thread: u32,
    /// True if it ran during a recorded call. A sleep counts as none.
    pub in_call: bool,
    /// Time-stamp counter when the thread's next recorded call began that is no sleep. `u64::MAX`:
    /// no call followed.
    pub next_call: u64,
}

/// A recorded child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedChild {
    /// Its process id. Below 0: the error of the call.
    pub pid: i64,
    /// False: its parent gets this number, and no process is made.
    pub is_made: bool,
    /// It was made for no connection, after the child of the last connection.
    pub is_aside: bool,
    /// Time-stamp counter when the parent's call returned.
    pub time: u64,
}

/// The bytes that one process read from and wrote to one resource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResourceStreams {
    /// The bytes that entered.
    pub input: InputStream,
    /// The bytes that left.
    pub output: ExpectedOutput,
    /// The control messages of its input, by the time-stamp counter when their call returned.
    pub control: HashMap<u64, RecordedControl>,
    /// `accept` was called on it.
    pub is_listener: bool,
    /// The connections that a listener handed out.
    pub accepted: VecDeque<AcceptedConnection>,
    /// The results of `connect`, each with the address in words.
    pub connected: VecDeque<(i64, Option<String>)>,
}

impl ResourceStreams {
    /// True if the next input came after output that the new execution has not written yet. A peer
    /// that waits for an answer sends nothing more, and does not close, before it has the answer.
    pub fn is_ahead(&self) -> bool {
        let next = self.input.next_arrival();
        next.is_some_and(|time| self.output.owes(time))
    }

    /// The next input is there from now on. Output that left before it is not waited for any more.
    pub fn declare_arrived(&mut self) {
        if let Some(time) = self.input.next_arrival() {
            self.output.goes_on_behind(time);
        }
        self.input.declare_arrived();
    }

    /// True for a listener whose next `accept` returns a connection.
    pub fn has_connection(&self) -> bool {
        let next = self.accepted.front();
        next.is_some_and(|accepted| accepted.is_connection())
    }

    /// When a listener handed out its next connection. It may have had none at first.
    pub fn next_connection(&self) -> Option<u64> {
        let mut all = self.accepted.iter();
        let next = all.find(|accepted| accepted.is_connection());
        next.map(|accepted| accepted.time)
    }
}

/// How a process began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessStart {
    /// True after `execve`; otherwise it was forked.
    pub by_exec: bool,
    /// The arguments.
    pub arguments: Vec<Vec<u8>>,
    /// The environment.
    pub environment: Vec<Vec<u8>>,
    /// The 16 bytes at `AT_RANDOM`, or nothing.
    pub random: Vec<u8>,
    /// The path of the program.
    pub program: Vec<u8>,
    /// The current directory.
    pub directory: Vec<u8>,
    /// The build id of the program, or nothing.
    pub build: Vec<u8>,
    /// The address at which its stack began. `None`: not known.
    #[serde(default)]
    pub stack: Option<u64>,
}

/// One program in one process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedProcess {
    /// Its epoch in the log.
    pub epoch: u64,
    /// The process id, as the process that made it saw it.
    pub pid: u32,
    /// The process id, as the program saw it. Across pid namespaces, the two differ.
    pub own_pid: u32,
    /// The process id of its parent. 0: it is outside the pid namespace, and no recorded call made
    /// this process.
    pub parent: u32,
    /// Its beginning.
    pub start: ProcessStart,
    /// Descriptors that it had at its start and that no recorded call made, with the position at
    /// the first use.
    pub inherited: Vec<(i32, ResourceId, Option<u64>)>,
    /// Descriptors that it had from another recorded process.
    pub held: Vec<(i32, ResourceId)>,
    /// By resource: what entered and left.
    pub streams: HashMap<ResourceId, ResourceStreams>,
    /// Opens by the path that was passed.
    pub opens: HashMap<Vec<u8>, TimedQueue<Made>>,
    /// Files and directories whose names libc may have chosen, in order.
    pub temporary_names: TimedQueue<TemporaryName>,
    /// Sockets by domain and type.
    pub sockets: HashMap<(i32, i32), TimedQueue<Made>>,
    /// Pipes and pairs of sockets, by the number of the call.
    pub pairs: HashMap<u16, TimedQueue<(ResourceId, ResourceId)>>,
    /// All other results.
    pub results: HashMap<ResultKey, TimedQueue<RecordedResult>>,
    /// Waits for several descriptors, by the number of the call.
    pub turns: VecDeque<ReadyTurn>,
    /// With exact time: the times that each thread took, in ns, by its number and the clock.
    pub times: HashMap<(u32, i32), TimedQueue<i64>>,
    /// With exact time: the processor and node of each thread at its questions.
    pub processors: HashMap<u32, TimedQueue<(u32, u32)>>,
    /// With exact time: what the time-stamp counter told each thread, and the processor (`rdtscp`).
    pub counters: HashMap<u32, TimedQueue<(u64, u32)>>,
    /// With exact time: what `cpuid` told each thread in four registers, by leaf and subleaf.
    pub identities: HashMap<(u32, u32, u32), TimedQueue<[u32; 4]>>,
    /// The threads besides the first one, in the order of their creation.
    pub threads: Vec<u32>,
    /// Random bytes from the kernel.
    pub random: InputStream,
    /// The lengths and flags of the recorded requests for them, in order.
    pub random_requests: TimedQueue<(u64, u64)>,
    /// The children, in order.
    pub children: VecDeque<RecordedChild>,
    /// Time-stamp counter at its beginning.
    pub began: u64,
    /// The connections behind calls that moved bytes, by time-stamp counter and descriptor. Of a
    /// log that was read with its requests, only the first call of each is here.
    pub moves: HashMap<(u64, i32), ResourceId>,
    /// Which threads moved bytes, took random bytes, made a socket or pipe, or accepted a
    /// connection. The key is the time-stamp counter at the return of the call. It is empty in a
    /// process with one thread.
    pub movers: HashMap<u64, u32>,
    /// Time-stamp counters when the calls of each thread began, in order. It is empty in a process
    /// with one thread, and in an execution of a part of the record.
    pub call_times: BTreeMap<u32, Vec<u64>>,
    /// Signals whose handlers ran, each with the time-stamp counter when its handler began.
    pub signals: VecDeque<(i32, u64)>,
    /// The same handlers, each with its place among the calls of its thread.
    pub handlers: Vec<HandlerRun>,
    /// Reads in which, or right behind which, a signal told the program that a child had ended. The
    /// time-stamp counters are those when the read returned, and when the handler began.
    pub child_ends: HashMap<u64, u64>,
    /// Its status. `None`: it was killed, executed another program, the log ends before, or no
    /// recorded process waited for a program whose `main` returned.
    pub exit: Option<i32>,
    /// The signal that killed it, if a recorded process waited for it or it was the command.
    pub killed_by: Option<i32>,
    /// Time-stamp counter when the recorded process that waited for it learned that a signal had
    /// killed it.
    pub killed_at: Option<u64>,
    /// It ended by itself.
    pub has_exited: bool,
    /// Time-stamp counter when it did.
    pub ended: Option<u64>,
    /// Ranges of files that were read by reference, each once: position, length, XXH64.
    pub references: HashMap<ResourceId, BTreeSet<(u64, u64, u64)>>,
    /// Only this connection is compared: the process got a part of its input.
    pub only: Option<ResourceId>,
    /// Requests were left out of its record.
    pub is_part: bool,
    /// Number of recorded calls.
    pub calls: u64,
    /// Times without a call of a thread, in which a second began. Each has two time-stamp counters:
    /// when the call before had returned, and when the next one began.
    pub pauses: Vec<(u64, u64)>,
    /// Why the log of the process is not whole.
    pub gap: Option<String>,
    /// True if calls are missing in it.
    pub lacks_calls: bool,
    /// True if its last records may be missing, because the log is cut or damaged. It may then have
    /// done more before it ended, however it ended.
    pub lacks_end: bool,
    /// Time-stamp counter up to which no call is missing, if some are missing behind it. `None`:
    /// none are, or only its last ones are, and no record says since when.
    pub whole_until: Option<u64>,
    /// Its record ends before it did. It is ended where it waits for more, and what else it does is
    /// not compared.
    pub ends_early: bool,
    /// For such a process: the resources among its streams that the kernel's own objects answer
    /// for.
    pub native: BTreeSet<ResourceId>,
    /// For such a process: when the last recorded call before that end returned that opened
    /// something, or made a process or a connection.
    pub last_made: Option<u64>,
    /// Time-stamp counter up to which the records of all of its threads go without a gap.
    pub recorded_until: u64,
    /// True for a program that the deep log does not have: it is started, and not fed.
    pub is_shallow: bool,
    /// Time-stamp counter when it first accepted a connection, or moved bytes on one.
    pub first_contact: Option<u64>,
    /// The parts of its record that were left out while the log was read.
    pub omitted: OmittedParts,
}

impl RecordedProcess {
    /// Its program, or else its number: the record may lack the start of the program.
    pub fn name(&self) -> String {
        match self.start.program.is_empty() {
            true => format!("process {}", self.pid),
            false => String::from_utf8_lossy(&self.start.program).into_owned(),
        }
    }

    /// True if it read the time-stamp counter or identified the processor.
    pub fn asked_processor(&self) -> bool {
        !self.counters.is_empty() || !self.identities.is_empty()
    }

    /// The recorded output goes on behind the part that is here: more of it is no difference.
    pub fn goes_on(&mut self) {
        for streams in self.streams.values_mut() {
            streams.output.goes_on();
        }
        self.exit = None;
        self.has_exited = false;
    }

    /// Its record ends before it did: what it does behind all of the record is no difference.
    pub fn end_early(&mut self, resources: &[Resource]) {
        let is_native = |id: &ResourceId| {
            let resource = resources.get(*id);
            resource.is_none_or(|one| one.is_native() || is_address_list(&one.name))
        };
        self.native = self.streams.keys().copied().filter(is_native).collect();
        let end = self.whole_until.unwrap_or(u64::MAX);
        self.last_made = self.made_at().filter(|time| *time <= end).max();
        self.ends_early = true;
        self.exit = None;
        self.has_exited = false;
        if !self.threads.is_empty() {
            // One thread may be at the end of the record before another one.
            self.goes_on();
        }
    }

    /// True if the process has come to the end of a record that ends before it did.
    pub fn is_past_record(&self) -> bool {
        let mut followed = self.streams.iter();
        self.ends_early
            && followed.all(|(id, own)| {
                let is_over = own.input.remaining() == 0 && own.output.remaining() == 0;
                is_over || self.native.contains(id)
            })
    }

    /// The same, and it has also opened and made all that it had until then. A program may read all
    /// of its input long before that end.
    pub fn has_come_to_its_end(&self) -> bool {
        let is_left = |last: u64| self.made_at().any(|time| time == last);
        self.is_past_record() && !self.last_made.is_some_and(is_left)
    }

    /// True if a difference of this kind lies behind the end of a record that ends early.
    pub fn excuses(&self, kind: DivergenceKind) -> bool {
        match kind {
            DivergenceKind::MoreOutput => self.is_past_record(),
            DivergenceKind::NewRequest => self.has_come_to_its_end(),
            _ => false,
        }
    }

    /// The bytes and results of the record that no call has taken. Each call that the record
    /// answers takes something, but for a repeated last result.
    pub fn left(&self) -> u64 {
        let streams = self.streams.values();
        let bytes = streams.clone();
        let bytes = bytes.map(|own| own.input.remaining() + own.output.remaining());
        let moves = streams.map(|own| {
            own.input.len() + own.output.len() + own.accepted.len() + own.connected.len()
        });
        let made = queued(&self.opens) + queued(&self.sockets) + queued(&self.pairs);
        let exact = queued(&self.times)
            + queued(&self.processors)
            + queued(&self.counters)
            + queued(&self.identities);
        let others = self.turns.len() + self.children.len() + self.signals.len();
        let results = queued(&self.results) + self.random_requests.len();
        let count = moves.sum::<usize>() + made + exact + others + results;
        bytes.sum::<u64>() + self.random.remaining() + count as u64
    }

    /// When the first recorded act behind this time began that has not come again. It moved bytes,
    /// waited, opened or made something, handled a signal, or ended the process.
    pub fn next_after(&self, time: u64) -> Option<u64> {
        let streams = self.streams.values();
        let moved = streams.flat_map(|own| [own.input.next_input(), own.output.next_time()]);
        // No wait for the kernel's own objects is taken.
        let is_known = |turn: &&ReadyTurn| turn.ready.iter().all(|(id, _)| id.is_some());
        let turns = self.turns.iter().filter(is_known).map(|turn| turn.time);
        let signals = self.signals.iter().map(|(_, began)| *began);
        let ends = [self.ended, self.killed_at].into_iter().flatten();
        let all = self.made_at().chain(moved.flatten()).chain(turns);
        let all = all.chain(signals).chain(ends);
        all.filter(|next| *next > time).min()
    }

    /// When the first connection came that is left, and over which listener.
    pub(crate) fn first_connection(&self) -> Option<(u64, ResourceId)> {
        let all = self.streams.iter();
        let next = all.filter_map(|(id, own)| Some((own.next_connection()?, *id)));
        next.min()
    }

    /// When the recorded calls that the process has not made again opened something, or made a
    /// process or a connection.
    fn made_at(&self) -> impl Iterator<Item = u64> {
        let opens = self.opens.values().flatten().map(|(_, time)| *time);
        let sockets = self.sockets.values().flatten().map(|(_, time)| *time);
        let pairs = self.pairs.values().flatten().map(|(_, time)| *time);
        let children = self.children.iter().map(|child| child.time);
        let accepted = self.streams.values().flat_map(|own| &own.accepted);
        let connections = accepted.filter(|one| one.is_connection());
        let connections = connections.map(|one| one.time);
        let all = opens.chain(sockets).chain(pairs).chain(children);
        all.chain(connections)
    }

    /// The kernel's status of its end is known. A program notes its exit before the handlers of
    /// `exit` run, so a signal may end it there.
    pub(crate) fn ended_with(&mut self, status: i32) {
        if libc::WIFSIGNALED(status) {
            self.killed_by = Some(libc::WTERMSIG(status));
            (self.exit, self.has_exited) = (None, false);
        } else if self.has_exited && libc::WIFEXITED(status) {
            self.exit = self.exit.or(Some(libc::WEXITSTATUS(status)));
        }
    }

    /// Adds a thread besides the first one. Numbers count up from that of the process, and begin
    /// anew below it behind the system's largest one (`/proc/sys/kernel/pid_max`).
    pub(crate) fn add_thread(&mut self, number: u32) {
        let since = |number: u32| number.wrapping_sub(self.own_pid);
        let at = |known: &u32| since(*known).cmp(&since(number));
        if let Err(place) = self.threads.binary_search_by(at) {
            self.threads.insert(place, number);
        }
    }
}

/// The number of elements in all of these queues.
fn queued<K, T>(queues: &HashMap<K, VecDeque<T>>) -> usize {
    queues.values().map(VecDeque::len).sum()
}

#[cfg(test)]
mod tests {
    use super::{ReadyTurn, RecordedProcess};
    use crate::input::InputItem;
    use crate::ready::IN;

    #[test]
    fn what_is_left_of_a_record_becomes_less_with_each_part_that_is_taken() {
        let mut process = RecordedProcess::default();
        assert_eq!((process.left(), process.next_after(0)), (0, None));
        process.ended = Some(90);
        let bytes = InputItem::Bytes(b"abc".to_vec());
        let streams = process.streams.entry(0).or_default();
        streams.input.push_at(bytes, 20);
        // A wait for the kernel's own objects, and one for a resource.
        for (id, time) in [(None, 30), (Some(0), 40)] {
            process.turns.push_back(ReadyTurn {
                ready: vec![(id, IN)],
                time,
                ..ReadyTurn::default()
            });
        }
        for (reached, next) in [(0, Some(20)), (20, Some(40)), (40, Some(90)), (90, None)] {
            assert_eq!(process.next_after(reached), next, "{reached}");
        }
        let before = process.left();
        let streams = process.streams.entry(0).or_default();
        let _ = streams.input.take(2, true, false);
        let within = process.left();
        assert_eq!(within, before - 2);
        process.turns.pop_front();
        assert_eq!(process.left(), within - 1);
    }

    #[test]
    fn threads_are_in_the_order_of_their_creation_when_numbers_begin_anew() {
        let mut process = RecordedProcess {
            own_pid: 32_765,
            ..RecordedProcess::default()
        };
        for number in [32_767, 301, 32_766, 301, 300] {
            process.add_thread(number);
        }
        assert_eq!(process.threads, [32_766, 32_767, 300, 301]);
    }
}
