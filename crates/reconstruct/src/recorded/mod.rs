//! Arranges the calls of a deep log by process and resource.
//!
//! In: the calls of each process in order. Out: a [`RecordedRun`]. The descriptors of each process
//! are followed through `dup`, `fork` and `close`, so that each call finds its resource. Invariant:
//! any calls are accepted, because the log may be damaged.

mod descriptors;
mod positions;
mod same;
mod statuses;
mod waits;

use crate::input::InputItem;
use crate::output::OutputItem;
use crate::process::{
    CallObject, ProcessStart, RecordedChild, RecordedProcess, RecordedResult, ResultKey,
};
use crate::ready::{poll_entries, select_entries};
use crate::resource::{Resource, ResourceId};
use crate::time::RecordedClock;
use crate::unit::RecordedUnit;
use backstory_abi::deep;
use backstory_deep::{Call, Content};
use libc::c_long;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// A run, arranged for its reconstruction.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RecordedRun {
    /// The programs, in the order of their beginning.
    pub processes: Vec<RecordedProcess>,
    /// The resources of all of them.
    pub resources: Vec<Resource>,
    /// The requests, as `backstory requests` numbers them. Without a connection that the record
    /// knows: `None`.
    pub units: Vec<Option<RecordedUnit>>,
    /// The time of day of its counters.
    pub clock: RecordedClock,
    /// The forked children without a record that a signal killed: the signal, by process id.
    pub killed_early: HashMap<u32, i32>,
    /// The record goes on behind the part that is here.
    pub is_cut: bool,
    /// The request that the run was reduced to.
    pub chosen: Option<RecordedUnit>,
    /// All units that are fed then, in the order of their answers.
    pub fed: Vec<RecordedUnit>,
}

const RECORDS_MISSING: &str = "records of it are missing";

type Table = HashMap<i32, ResourceId>;

/// The state while the log is read.
#[derive(Default)]
pub(crate) struct Arranging {
    run: RecordedRun,
    /// Resources by device and inode, where a stream has one identity everywhere.
    by_ident: HashMap<(u64, u64), ResourceId>,
    /// The descriptors that a new process starts with, by its process id.
    handed: HashMap<u32, Table>,
    /// When the call returned that made each descriptor.
    made_at: HashMap<i32, u64>,
    /// Vague resources that are known by now.
    same: HashMap<ResourceId, ResourceId>,
    /// The number of processes before the one that had a vague resource first.
    vague_since: HashMap<ResourceId, usize>,
    /// Processes that have executed no program with a record, and are no recorded fork.
    unseen: HashSet<u32>,
    /// The children that `fork` made. A child in its parent's memory (`posix_spawn`) has no record
    /// before it executes a program.
    forked: HashSet<u32>,
    table: Table,
    /// The files of DESCRIPTOR facts.
    numbers: HashMap<u64, ResourceId>,
    /// Registrations with epoll: the data that comes back, by descriptor of the set.
    registered: HashMap<(i32, u64), ResourceId>,
    process: RecordedProcess,
    /// Where each file is read or written next.
    offsets: HashMap<ResourceId, u64>,
}

impl RecordedRun {
    /// The run begins with a program that the deep log does not have, as a static one. It executed
    /// the others.
    pub fn begin_with(&mut self, pid: u32, start: ProcessStart) {
        let first = RecordedProcess {
            pid,
            start,
            is_shallow: true,
            ..RecordedProcess::default()
        };
        self.processes.insert(0, first);
        let units = self.units.iter_mut().flatten();
        let units = units.chain(&mut self.chosen).chain(&mut self.fed);
        units.for_each(|unit| unit.process += 1);
    }

    /// Arranges calls from anywhere: the epoch, the process id, that of the parent, the calls.
    pub fn arrange<C: Iterator<Item = Call>>(
        processes: impl Iterator<Item = (u64, u32, u32, C)>,
    ) -> RecordedRun {
        let mut state = Arranging::default();
        for (epoch, pid, parent, calls) in processes {
            state.enter(epoch, pid, parent);
            for call in calls {
                state.take(&call);
            }
            state.leave();
        }
        state.finish()
    }

    /// The kernel says which of its own objects are ready. A wait that only they ended is no part
    /// of the record.
    fn leave_out_native_events(&mut self) {
        let native: Vec<bool> = self.resources.iter().map(Resource::is_native).collect();
        for process in &mut self.processes {
            process.turns.retain_mut(|turn| {
                let had = !turn.ready.is_empty();
                turn.ready
                    .retain(|(id, _)| id.is_some_and(|id| !native[id]));
                !had || !turn.ready.is_empty()
            });
        }
    }

    /// The run as bytes, for the process that runs it again.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_allocvec(self)
    }

    /// The run of such bytes.
    ///
    /// # Errors
    /// They are no run.
    pub fn of_bytes(bytes: &[u8]) -> Result<RecordedRun, postcard::Error> {
        postcard::from_bytes(bytes)
    }

    /// Number of recorded calls.
    pub fn calls(&self) -> u64 {
        self.processes.iter().map(|process| process.calls).sum()
    }
}

impl Arranging {
    /// The calls of this process follow.
    pub(crate) fn enter(&mut self, epoch: u64, pid: u32, parent: u32) {
        self.table = self.handed.remove(&pid).unwrap_or_default();
        self.resolve_table();
        self.numbers.clear();
        self.made_at.clear();
        self.process = RecordedProcess {
            epoch,
            pid,
            parent,
            held: self.table.iter().map(|(fd, id)| (*fd, *id)).collect(),
            ..RecordedProcess::default()
        };
    }

    /// All calls of the process were taken.
    pub(crate) fn leave(&mut self) {
        self.name_program();
        if self.process.threads.is_empty() {
            self.process.movers = HashMap::new();
        }
        self.unseen.remove(&self.process.pid);
        // A program that the process executes next has these.
        self.handed.insert(self.process.pid, self.table.clone());
        self.run.processes.push(std::mem::take(&mut self.process));
    }

    /// All processes were taken.
    pub(crate) fn finish(mut self) -> RecordedRun {
        positions::share(&mut self.run);
        self.run.leave_out_native_events();
        self.run.find_statuses(&self.forked);
        self.run
    }

    pub(crate) fn take(&mut self, call: &Call) {
        if call.is_fact() {
            self.fact(call);
            return;
        }
        self.process.calls += 1;
        // A stream of libc has no error, and nothing left.
        let wrote_nothing = is_plain_write(call.number) && call.result == 0 && call.a > 0;
        let is_closed = call.result == -i64::from(libc::EBADF) || wrote_nothing;
        if call.fd >= 0 && is_closed && !self.table.contains_key(&call.fd) {
            // The descriptor leads nowhere, and will again.
            return;
        }
        self.note_move(call);
        match c_long::from(call.number) {
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_pread64
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg => self.read(call),
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_pwrite64
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg => self.write(call),
            libc::SYS_sendfile | libc::SYS_splice | libc::SYS_copy_file_range => self.moved(call),
            libc::SYS_tee | libc::SYS_vmsplice => self.spliced(call),
            libc::SYS_getrandom => {
                if let Some(bytes) = call.entered_at(0) {
                    let time = ended(call);
                    let request = ((call.a, call.b), time);
                    self.process.random_requests.push_back(request);
                    let bytes = InputItem::Bytes(bytes.to_vec());
                    self.process.random.push_at(bytes, time);
                }
            }
            libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => {
                self.opened(call)
            }
            libc::SYS_socket => self.socket(call),
            libc::SYS_accept | libc::SYS_accept4 => self.accepted(call),
            libc::SYS_connect => self.connected(call),
            libc::SYS_pipe | libc::SYS_pipe2 | libc::SYS_socketpair => self.pair(call),
            libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => self.duplicated(call),
            libc::SYS_fcntl if matches!(call.a as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
                self.duplicated(call)
            }
            libc::SYS_eventfd
            | libc::SYS_eventfd2
            | libc::SYS_epoll_create
            | libc::SYS_epoll_create1
            | libc::SYS_timerfd_create
            | libc::SYS_inotify_init
            | libc::SYS_inotify_init1
            | libc::SYS_pidfd_open
            | libc::SYS_signalfd4
            | libc::SYS_memfd_create => self.kernel_object(call),
            libc::SYS_close => self.closed(call),
            libc::SYS_poll | libc::SYS_ppoll => self.turn(call, poll_entries(call)),
            libc::SYS_select | libc::SYS_pselect6 => self.turn(call, select_entries(call)),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                self.epoll_turn(call)
            }
            libc::SYS_epoll_ctl => self.register(call),
            libc::SYS_lseek => {
                if let (Some(id), Ok(offset)) = (self.table.get(&call.fd), call.result.try_into()) {
                    self.offsets.insert(*id, offset);
                }
                self.result(call);
            }
            libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 => {
                self.made_child(call)
            }
            libc::SYS_exit_group => {
                self.process.has_exited = true;
                self.process.ended = Some(call.time);
                self.process.exit = (call.result >= 0).then_some(call.a as i32);
            }
            _ => self.result(call),
        }
    }

    /// A call that makes a process.
    fn made_child(&mut self, call: &Call) {
        if let Ok(child) = u32::try_from(call.result)
            && child > 0
        {
            self.handed.insert(child, self.table.clone());
            self.unseen.insert(child);
            if c_long::from(call.number) == libc::SYS_fork {
                self.forked.insert(child);
            }
        }
        // The program jumped out of a call that was interrupted.
        let is_unknown = call.result == -i64::from(libc::EINTR);
        if call.result != 0 && !is_unknown {
            let child = RecordedChild {
                pid: call.result,
                is_made: true,
                is_aside: false,
                time: ended(call),
            };
            self.process.children.push_back(child);
        }
    }

    /// A forked process has the program of its parent.
    fn name_program(&mut self) {
        let parent = self.process.parent;
        let start = &mut self.process.start;
        if start.program.is_empty() {
            let mut earlier = self.run.processes.iter().rev();
            let parent = earlier.find(|process| process.pid == parent);
            start.program = parent.map_or(Vec::new(), |parent| parent.start.program.clone());
        }
    }

    fn fact(&mut self, call: &Call) {
        match call.number {
            deep::BEGIN if call.a != deep::BY_THREAD => self.begin(call),
            deep::BEGIN => self.process.add_thread(call.b as u32),
            deep::CLOCK => {
                let queue = self.process.times.entry((call.tid, call.a as i32));
                queue.or_default().push_back((call.result, call.time));
            }
            deep::PROCESSOR => {
                let queue = self.process.processors.entry(call.tid);
                let told = (call.a as u32, call.b as u32);
                queue.or_default().push_back((told, call.time));
            }
            deep::COUNTER => {
                let queue = self.process.counters.entry(call.tid).or_default();
                let told = (call.result.cast_unsigned(), call.b as u32);
                queue.push_back((told, call.time));
            }
            deep::CPUID => self.identified(call),
            deep::DESCRIPTOR => self.descriptor(call),
            deep::SIGNAL => self.process.signals.push_back(call.result as i32),
            deep::GAP => self.lacks_calls(RECORDS_MISSING),
            deep::UNTIMED => {
                let why = "it tried to limit its own system calls, and its later times are missing";
                self.process.gap.get_or_insert_with(|| why.to_owned());
            }
            deep::UNCOUNTED => {
                let why = "some of its instructions that ask the processor are not recorded";
                self.process.gap.get_or_insert_with(|| why.to_owned());
            }
            deep::SHALLOW => self.lacks_calls(match call.a {
                1 => "it limited its own system calls",
                2 => "the disk had no room",
                _ => "the recording ended before it did",
            }),
            _ => {}
        }
    }

    /// `cpuid`
    fn identified(&mut self, call: &Call) {
        let (words, _) = call.entered_at(0).unwrap_or_default().as_chunks::<4>();
        let words: Vec<u32> = words.iter().map(|one| u32::from_le_bytes(*one)).collect();
        if let Ok(told) = <[u32; 4]>::try_from(words) {
            let key = (call.tid, call.a as u32, call.b as u32);
            let queue = self.process.identities.entry(key).or_default();
            queue.push_back((told, call.time));
        }
    }

    fn lacks_calls(&mut self, why: &str) {
        self.process.gap = Some(why.to_owned());
        self.process.lacks_calls = true;
    }

    /// The log of this process is not whole, whether or not a record says so.
    pub(crate) fn is_not_whole(&mut self) {
        if !self.process.lacks_calls {
            self.lacks_calls(RECORDS_MISSING);
        }
    }

    /// Remembers which thread made a call.
    fn note_mover(&mut self, call: &Call) {
        self.process.movers.insert(ended(call), call.tid);
    }

    /// Remembers which connection a call moved bytes of: requests name it by time and descriptor.
    fn note_move(&mut self, call: &Call) {
        let fd = match c_long::from(call.number) {
            libc::SYS_sendfile => call.a as i32,
            _ => call.fd,
        };
        if call.result > 0
            && let Some(id) = self.table.get(&fd)
            && self.run.resources[*id].is_connection()
        {
            self.process.moves.insert((call.time, fd), *id);
        }
    }

    fn begin(&mut self, call: &Call) {
        let words = |arg| {
            let bytes = call.section(deep::WORDS, arg).unwrap_or_default();
            let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
            match bytes.is_empty() {
                true => Vec::new(),
                false => bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
            }
        };
        let bytes = |kind, arg| call.section(kind, arg).unwrap_or_default().to_vec();
        if call.a == deep::BY_EXEC && self.unseen.contains(&self.process.pid) {
            self.forget_vague();
        }
        self.process.began = call.time;
        let start = &mut self.process.start;
        start.by_exec = call.a == deep::BY_EXEC;
        start.arguments = words(0);
        start.environment = words(1);
        start.random = bytes(deep::LEFT, 3);
        start.program = bytes(deep::PATH, 4);
        start.directory = bytes(deep::PATH, 5);
    }

    fn read(&mut self, call: &Call) {
        self.note_mover(call);
        if call.a == 0 && call.result == 0 {
            return;
        }
        let peeks = !matches!(
            c_long::from(call.number),
            libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 | libc::SYS_preadv
        ) && call.b & libc::MSG_PEEK as u64 != 0;
        let id = self.behind(call.fd, 0);
        let resource = &mut self.run.resources[id];
        let messages = resource.keeps_messages();
        let item = match (call.result, call.content_in()) {
            (result, _) if result == -i64::from(libc::EAGAIN) => InputItem::Absent,
            (result, _) if result < 0 => InputItem::Failed(-result as i32),
            (
                _,
                Some(Content::File {
                    descriptor,
                    position,
                    length,
                    xxh64,
                }),
            ) => {
                resource.is_reference = true;
                self.start(id, call, length);
                let file = self.numbers.get(&descriptor).copied().unwrap_or(id);
                let references = self.process.references.entry(file).or_default();
                references.insert((position, length, xxh64));
                return;
            }
            (_, Some(Content::Bytes(bytes))) if messages => InputItem::Message {
                bytes: bytes.to_vec(),
                address: call.address().unwrap_or_default().to_vec(),
            },
            (1.., Some(Content::Bytes(bytes))) => InputItem::Bytes(bytes.to_vec()),
            _ => InputItem::End,
        };
        let item_has_bytes = matches!(item, InputItem::Bytes(_) | InputItem::Message { .. });
        resource.has_bytes |= item_has_bytes;
        if let Some(bytes) = call.section(deep::CONTROL, 1).filter(|_| !peeks) {
            self.controlled(id, call, bytes);
        }
        if !peeks {
            let start = self.start(id, call, u64::try_from(call.result).unwrap_or(0));
            let input = &mut self.streams(id).input;
            match start {
                Some(start) => input.push_from(item, ended(call), start),
                None => input.push_at(item, ended(call)),
            }
        }
    }

    /// The position in a file at which a call moved so many bytes. `None`: it is no file.
    fn start(&mut self, id: ResourceId, call: &Call, length: u64) -> Option<u64> {
        if self.run.resources[id].kind != libc::S_IFREG {
            return None;
        }
        let own = match c_long::from(call.number) {
            libc::SYS_pread64 | libc::SYS_pwrite64 | libc::SYS_preadv | libc::SYS_pwritev => true,
            libc::SYS_preadv2 | libc::SYS_pwritev2 => call.b != u64::MAX,
            _ => false,
        };
        if own {
            return Some(call.b);
        }
        let next = self.offsets.entry(id).or_default();
        let start = match (c_long::from(call.number), call.b) {
            // The record has the position.
            (libc::SYS_read, 1..) => call.b - 1,
            _ => *next,
        };
        *next = start.saturating_add(length);
        Some(start)
    }

    fn write(&mut self, call: &Call) {
        self.note_mover(call);
        let id = self.behind(call.fd, 0);
        self.run.resources[id].is_written = true;
        let item = match (call.result, call.content_out()) {
            (result, _) if result < 0 => OutputItem::Failed(-result as i32),
            (_, Some(Content::Bytes(bytes))) => OutputItem::Bytes(bytes.to_vec()),
            (_, Some(Content::Digest { length, xxh64 })) => OutputItem::Digest(length, xxh64),
            (result, _) => OutputItem::Unknown(result as u64),
        };
        let start = self.start(id, call, u64::try_from(call.result).unwrap_or(0));
        let output = &mut self.streams(id).output;
        match start {
            Some(start) => output.push_from(item, ended(call), start),
            None => output.push_at(item, ended(call)),
        }
    }

    /// `tee` or `vmsplice`: the pipes that it uses.
    fn spliced(&mut self, call: &Call) {
        let ends = match c_long::from(call.number) {
            libc::SYS_tee => [call.fd, call.a as i32],
            _ => [call.fd, -1],
        };
        for id in ends.iter().filter_map(|fd| self.table.get(fd)) {
            self.run.resources[*id].is_spliced = true;
        }
    }

    /// Bytes that moved in the kernel: their number is known.
    fn moved(&mut self, call: &Call) {
        for fd in [call.fd, call.a as i32] {
            if let Some(id) = self.table.get(&fd) {
                self.run.resources[*id].is_spliced = true;
            }
        }
        if let Ok(length) = u64::try_from(call.result) {
            let target = self.behind(call.a as i32, 0);
            let resource = &mut self.run.resources[target];
            resource.is_written |= !resource.is_own_pipe();
            self.streams(target)
                .output
                .push_at(OutputItem::Unknown(length), ended(call));
        }
    }

    /// Any other call: its result is kept under its object.
    fn result(&mut self, call: &Call) {
        let object = match (call.path(), self.table.get(&call.fd)) {
            (Some(path), _) if !path.is_empty() => CallObject::Path(path.to_vec()),
            // A descriptor of a file of the root has its name only.
            (_, Some(id)) if is_status(call.number) && self.run.resources[*id].is_native() => {
                CallObject::Path(self.run.resources[*id].name.clone())
            }
            (_, Some(id)) => CallObject::Resource(*id),
            _ if call.fd >= 0 && is_about_descriptor(call.number) => {
                CallObject::Resource(self.behind(call.fd, 0))
            }
            _ => CallObject::Process,
        };
        let entered = call.sections.iter();
        let entered = entered.filter(|section| section.kind == deep::ENTERED);
        let mut entered: Vec<_> = entered.map(|section| section.bytes.clone()).collect();
        if let Some(address) = call.address() {
            entered.push(address.to_vec());
        }
        let key = ResultKey {
            call: family(call.number),
            object,
            detail: detail(call.number, call.a, call.b),
        };
        let result = RecordedResult {
            value: call.result,
            entered,
        };
        self.process
            .results
            .entry(key)
            .or_default()
            .push_back((result, ended(call)));
    }
}

/// The time-stamp counter when a call returned.
fn ended(call: &Call) -> u64 {
    call.time.saturating_add(call.took)
}

/// Calls that libc uses in the place of each other have one number here.
pub fn family(call: u16) -> u16 {
    let family = match c_long::from(call) {
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_fstat => libc::SYS_newfstatat,
        libc::SYS_access | libc::SYS_faccessat2 => libc::SYS_faccessat,
        libc::SYS_readlink => libc::SYS_readlinkat,
        other => other,
    };
    family as u16
}

fn is_plain_write(call: u16) -> bool {
    matches!(c_long::from(call), libc::SYS_write | libc::SYS_writev)
}

/// True for calls that return the status of a descriptor.
fn is_status(call: u16) -> bool {
    let call = c_long::from(call);
    call == libc::SYS_fstat || call == libc::SYS_newfstatat || call == libc::SYS_statx
}

/// True for calls whose first argument is a descriptor.
fn is_about_descriptor(call: u16) -> bool {
    matches!(
        c_long::from(call),
        libc::SYS_fstat
            | libc::SYS_newfstatat
            | libc::SYS_statx
            | libc::SYS_getdents64
            | libc::SYS_ioctl
            | libc::SYS_lseek
            | libc::SYS_fcntl
            | libc::SYS_bind
            | libc::SYS_listen
            | libc::SYS_shutdown
            | libc::SYS_getsockname
            | libc::SYS_getpeername
            | libc::SYS_setsockopt
            | libc::SYS_getsockopt
    )
}

/// The argument that tells calls of one number on one object apart.
pub fn detail(call: u16, a: u64, b: u64) -> u64 {
    match c_long::from(call) {
        libc::SYS_ioctl | libc::SYS_clock_gettime | libc::SYS_getrusage | libc::SYS_fcntl => a,
        libc::SYS_access | libc::SYS_faccessat | libc::SYS_faccessat2 => a,
        libc::SYS_getsockopt => a << 32 | b & 0xffff_ffff,
        _ => 0,
    }
}
