//! Arranges the calls of a deep log by process and resource.
//!
//! In: the calls of each process in order. Out: a [`RecordedRun`]. The descriptors of each process
//! are followed through `dup`, `fork` and `close`, so that each call finds its resource. Invariant:
//! any calls are accepted, because the log may be damaged.

use crate::input::InputItem;
use crate::output::OutputItem;
use crate::process::{
    CallObject, Made, ReadyTurn, RecordedProcess, RecordedResult, ResourceStreams, ResultKey,
};
use crate::ready::{epoll_events, poll_entries, select_entries};
use crate::resource::{Origin, Resource, ResourceId, address_words};
use backstory_abi::deep;
use backstory_deep::{Call, Content, DeepLog};
use libc::{S_IFIFO, S_IFSOCK, c_long};
use std::collections::HashMap;

/// A run, arranged for its reconstruction.
#[derive(Debug, Clone, Default)]
pub struct RecordedRun {
    /// The programs, in the order of their beginning.
    pub processes: Vec<RecordedProcess>,
    /// The resources of all of them.
    pub resources: Vec<Resource>,
}

type Table = HashMap<i32, ResourceId>;

/// The state while the log is read.
#[derive(Default)]
struct Arranging {
    run: RecordedRun,
    /// Resources by device and inode, where a stream has one identity everywhere.
    by_ident: HashMap<(u64, u64), ResourceId>,
    /// The descriptors that a new process starts with, by its process id.
    handed: HashMap<u32, Table>,
    table: Table,
    /// The files of DESCRIPTOR facts.
    numbers: HashMap<u64, ResourceId>,
    /// Registrations with epoll: the data that comes back, by descriptor of the set.
    registered: HashMap<(i32, u64), ResourceId>,
    process: RecordedProcess,
}

impl RecordedRun {
    /// Arranges a deep log.
    pub fn load(log: &DeepLog) -> RecordedRun {
        let processes = log.processes().iter().map(|process| {
            let calls = log.process_calls(process.epoch);
            (process.epoch, process.own_pid, process.parent, calls)
        });
        RecordedRun::arrange(processes)
    }

    /// The same for calls from anywhere: the epoch, the process id, that of the parent, the calls.
    pub fn arrange<C: Iterator<Item = Call>>(
        processes: impl Iterator<Item = (u64, u32, u32, C)>,
    ) -> RecordedRun {
        let mut state = Arranging::default();
        for (epoch, pid, parent, calls) in processes {
            state.table = state.handed.remove(&pid).unwrap_or_default();
            state.numbers.clear();
            state.process = RecordedProcess {
                epoch,
                pid,
                parent,
                held: state.table.iter().map(|(fd, id)| (*fd, *id)).collect(),
                ..RecordedProcess::default()
            };
            for call in calls {
                state.take(&call);
            }
            state.name_program();
            // A program that the process executes next has these.
            state.handed.insert(pid, state.table.clone());
            state.run.processes.push(std::mem::take(&mut state.process));
        }
        state.run
    }
}

impl Arranging {
    fn take(&mut self, call: &Call) {
        if call.is_fact() {
            self.fact(call);
            return;
        }
        self.process.calls += 1;
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
            libc::SYS_getrandom => {
                if let Some(bytes) = call.entered_at(0) {
                    self.process.random_requests.push_back((call.a, call.b));
                    self.process.random.push(InputItem::Bytes(bytes.to_vec()));
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
            libc::SYS_close => drop(self.table.remove(&call.fd)),
            libc::SYS_poll | libc::SYS_ppoll => self.turn(call, poll_entries(call)),
            libc::SYS_select | libc::SYS_pselect6 => self.turn(call, select_entries(call)),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                self.epoll_turn(call)
            }
            libc::SYS_epoll_ctl => self.register(call),
            libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 => {
                if let Ok(child) = u32::try_from(call.result)
                    && child > 0
                {
                    self.handed.insert(child, self.table.clone());
                    self.process.children.push_back(call.result);
                }
            }
            libc::SYS_exit_group => self.process.exit = Some(call.a as i32),
            _ => self.result(call),
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
            deep::DESCRIPTOR => self.descriptor(call),
            deep::SIGNAL => self.process.signals.push_back(call.result as i32),
            deep::GAP => self.process.gap = Some("records of it are missing".to_owned()),
            deep::SHALLOW => {
                self.process.gap = Some(match call.a {
                    1 => "it limited its own system calls".to_owned(),
                    2 => "the disk had no room".to_owned(),
                    _ => "the recording ended before it did".to_owned(),
                });
            }
            _ => {}
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
        let start = &mut self.process.start;
        start.by_exec = call.a == deep::BY_EXEC;
        start.arguments = words(0);
        start.environment = words(1);
        start.random = bytes(deep::LEFT, 3);
        start.program = bytes(deep::PATH, 4);
        start.directory = bytes(deep::PATH, 5);
    }

    /// A fact about a descriptor before its first use.
    fn descriptor(&mut self, call: &Call) {
        let kind = call.result as u32;
        let name = call.path().unwrap_or_default();
        let ident = call.section(deep::IDENT, 0).and_then(|bytes| {
            let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
            Some((word(0)?, word(8)?))
        });
        let known = self.table.get(&call.fd).copied().filter(|id| {
            let resource = &self.run.resources[*id];
            let same = resource.ident.is_none() || ident.is_none() || resource.ident == ident;
            same && (resource.kind == 0 || resource.kind == kind)
        });
        let shared = ident.and_then(|ident| self.by_ident.get(&ident).copied());
        if let (None, Some(id)) = (known, shared) {
            self.process.held.push((call.fd, id));
        }
        let id = known.or(shared).unwrap_or_else(|| {
            let id = self.new_resource(Resource::new(Origin::Inherited, name, kind));
            let position = u64::try_from(call.b as i64).ok();
            self.process.inherited.push((call.fd, id, position));
            id
        });
        let resource = &mut self.run.resources[id];
        resource.kind = kind;
        resource.ident = resource.ident.or(ident);
        if resource.name.is_empty() || resource.name.starts_with(b"descriptor ") {
            resource.name = name.to_vec();
        }
        // A file can be opened twice. Inherited descriptors are one open file.
        let is_stream = matches!(kind, S_IFIFO | S_IFSOCK);
        if let Some(ident) = ident
            && (is_stream || resource.origin == Origin::Inherited)
        {
            self.by_ident.entry(ident).or_insert(id);
        }
        self.table.insert(call.fd, id);
        self.numbers.insert(call.a, id);
    }

    fn new_resource(&mut self, resource: Resource) -> ResourceId {
        self.run.resources.push(resource);
        self.run.resources.len() - 1
    }

    /// The resource behind a descriptor, which the process had from its start if no call made it.
    fn behind(&mut self, fd: i32, kind: u32) -> ResourceId {
        if let Some(id) = self.table.get(&fd) {
            return *id;
        }
        let name = format!("descriptor {fd}");
        let id = self.new_resource(Resource::new(Origin::Inherited, name.as_bytes(), kind));
        self.process.inherited.push((fd, id, None));
        self.table.insert(fd, id);
        id
    }

    fn streams(&mut self, id: ResourceId) -> &mut ResourceStreams {
        self.process.streams.entry(id).or_default()
    }

    fn read(&mut self, call: &Call) {
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
                let file = self.numbers.get(&descriptor).copied().unwrap_or(id);
                let reference = (file, position, length, xxh64);
                self.process.references.push(reference);
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
        if !peeks {
            self.streams(id).input.push(item);
        }
    }

    fn write(&mut self, call: &Call) {
        let id = self.behind(call.fd, 0);
        self.run.resources[id].is_written = true;
        let item = match (call.result, call.content_out()) {
            (result, _) if result < 0 => OutputItem::Failed(-result as i32),
            (_, Some(Content::Bytes(bytes))) => OutputItem::Bytes(bytes.to_vec()),
            (_, Some(Content::Digest { length, xxh64 })) => OutputItem::Digest(length, xxh64),
            (result, _) => OutputItem::Unknown(result as u64),
        };
        self.streams(id).output.push(item);
    }

    /// Bytes that moved in the kernel: their number is known.
    fn moved(&mut self, call: &Call) {
        let target = self.behind(call.a as i32, 0);
        self.run.resources[target].is_written = true;
        if let Ok(length) = u64::try_from(call.result) {
            self.streams(target)
                .output
                .push(OutputItem::Unknown(length));
        }
    }

    fn opened(&mut self, call: &Call) {
        let Some(path) = call.path().map(<[u8]>::to_vec) else {
            return;
        };
        let made = self.made(call.result, || Resource::new(Origin::Opened, &path, 0));
        self.process.opens.entry(path).or_default().push_back(made);
    }

    /// The result of a call that makes a descriptor.
    fn made(&mut self, result: i64, resource: impl FnOnce() -> Resource) -> Made {
        match i32::try_from(result) {
            Ok(fd) if fd >= 0 => {
                let id = self.new_resource(resource());
                self.table.insert(fd, id);
                Made::Resource(id)
            }
            _ => Made::Failed(result.unsigned_abs() as i32),
        }
    }

    fn socket(&mut self, call: &Call) {
        let kind = call.b as i32 & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        let socket = (call.a as i32, kind);
        let made = self.made(call.result, || Resource {
            socket: Some(socket),
            ..Resource::new(Origin::Socket, b"", S_IFSOCK)
        });
        self.process
            .sockets
            .entry(socket)
            .or_default()
            .push_back(made);
    }

    fn accepted(&mut self, call: &Call) {
        let listener = self.behind(call.fd, S_IFSOCK);
        let address = call.address().unwrap_or_default().to_vec();
        let socket = self.run.resources[listener].socket;
        let made = self.made(call.result, || Resource {
            socket,
            peer: address_words(&address),
            ..Resource::new(Origin::Accepted(listener), b"", S_IFSOCK)
        });
        self.streams(listener).accepted.push_back((made, address));
    }

    fn connected(&mut self, call: &Call) {
        let id = self.behind(call.fd, S_IFSOCK);
        self.run.resources[id].peer = call.address().and_then(address_words);
        self.streams(id).connected.push_back(call.result);
    }

    fn pair(&mut self, call: &Call) {
        let socket = c_long::from(call.number) == libc::SYS_socketpair;
        let kind = if socket { S_IFSOCK } else { S_IFIFO };
        let arg = if socket { 3 } else { 0 };
        let Some((one, two)) = call.entered_at(arg).and_then(|bytes| {
            let word = |at: usize| Some(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
            Some((word(0)?, word(4)?))
        }) else {
            return;
        };
        // A pipe is one resource: its two ends have one inode.
        let first = self.new_resource(Resource::new(Origin::Paired, b"", kind));
        let second = match socket {
            true => self.new_resource(Resource::new(Origin::Paired, b"", kind)),
            false => first,
        };
        self.table.extend([(one, first), (two, second)]);
        let ends = (first, second);
        // `pipe` and `pipe2` are one call for libc.
        let call = if socket {
            call.number
        } else {
            libc::SYS_pipe2 as u16
        };
        self.process.pairs.entry(call).or_default().push_back(ends);
    }

    fn duplicated(&mut self, call: &Call) {
        if let Ok(new) = i32::try_from(call.result)
            && new >= 0
        {
            match self.table.get(&call.fd).copied() {
                Some(id) => drop(self.table.insert(new, id)),
                None if new != call.fd => drop(self.table.remove(&new)),
                None => {}
            }
        }
    }

    fn turn(&mut self, call: &Call, ready: Vec<(i32, u32)>) {
        let table = &self.table;
        let ready = ready
            .into_iter()
            .map(|(fd, events)| (table.get(&fd).copied(), events));
        let turn = ReadyTurn {
            ready: ready.collect(),
            value: call.result,
        };
        self.process.turns.push_back(turn);
    }

    fn epoll_turn(&mut self, call: &Call) {
        let events = call.entered_at(1).map(epoll_events).unwrap_or_default();
        let registered = &self.registered;
        let of = |(events, data)| (registered.get(&(call.fd, data)).copied(), events);
        let turn = ReadyTurn {
            ready: events.into_iter().map(of).collect(),
            value: call.result,
        };
        self.process.turns.push_back(turn);
    }

    fn register(&mut self, call: &Call) {
        let event = call.section(deep::LEFT, 3).map(epoll_events);
        if let Some((_, data)) = event.and_then(|events| events.first().copied())
            && let Some(id) = self.table.get(&(call.b as i32))
        {
            self.registered.insert((call.fd, data), *id);
        }
    }

    /// Any other call: its result is kept under its object.
    fn result(&mut self, call: &Call) {
        let object = match (call.path(), self.table.get(&call.fd)) {
            (Some(path), _) if !path.is_empty() => CallObject::Path(path.to_vec()),
            (_, Some(id)) => CallObject::Resource(*id),
            _ if call.fd >= 0 => CallObject::Resource(self.behind(call.fd, 0)),
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
            .push_back(result);
    }
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

/// The argument that tells calls of one number on one object apart.
pub fn detail(call: u16, a: u64, b: u64) -> u64 {
    match c_long::from(call) {
        libc::SYS_ioctl | libc::SYS_clock_gettime | libc::SYS_fcntl => a,
        libc::SYS_getsockopt => a << 32 | b & 0xffff_ffff,
        _ => 0,
    }
}
