//! Which recorded program a live process is.

use super::credentials::Credentials;
use super::{Response, Supervisor};
use crate::engine::caller::{NotifiedCall, auxiliary_value};
use crate::engine::proc_texts::{field, pid_namespaces, threads};
use crate::engine::standin::Ends;
use crate::resource::{Origin, ResourceId};
use backstory_sys as sys;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::thread;
use std::time::{Duration, Instant};

/// The part of a live process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// This recorded program.
    Program(usize),
    /// A process that executes this recorded program next.
    Waiting(usize),
    /// A tool that will load this recorded program into its own process.
    Loading(usize),
    /// A tool, or a process of one.
    Tool,
    /// A program without a deep record.
    Shallow,
    /// A forked child that has no record and was killed by this signal: before its first call, or
    /// in a program without a deep record.
    KilledEarly(i32),
    /// A child whose program cannot be executed, as in the record. The call that makes it fails.
    Failing,
}

/// A descriptor that is registered with epoll.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registered {
    pub events: u32,
    pub data: u64,
    pub resource: Option<ResourceId>,
    /// Readiness to write was reported.
    pub reported: bool,
}

/// A live process.
#[derive(Debug, Clone)]
pub(super) struct LiveProcess {
    pub(super) role: Role,
    /// It has just executed a program, or was forked, and has made no call since.
    pub(super) is_new: bool,
    /// Recorded ids of children that have not made a call yet.
    pub(super) children: VecDeque<i64>,
    /// The user that the process had asked for when it made each of them.
    made_as: HashMap<i64, Credentials>,
    /// By descriptor of the set and of the member.
    pub registered: HashMap<(i32, i32), Registered>,
    /// The user that it has asked for.
    pub credentials: Credentials,
    /// The address at which a tool lists the program's calls.
    pub(super) calls: Option<u64>,
    /// The addresses of its dynamic loader, once these have mattered. All are, if it is not known.
    pub(super) loader: Option<Range<u64>>,
    /// No recorded call made it, as a process that a sanitizer adds. It has executed no program,
    /// and written nothing that the record has.
    pub(super) is_added: bool,
    /// It has made a pipe, or its tool has: the lock of Valgrind is the first one.
    pub(super) made_pipe: bool,
}

impl LiveProcess {
    pub(super) fn new(role: Role) -> LiveProcess {
        LiveProcess {
            role,
            is_new: true,
            children: VecDeque::new(),
            made_as: HashMap::new(),
            registered: HashMap::new(),
            credentials: Credentials::default(),
            calls: None,
            loader: None,
            is_added: false,
            made_pipe: false,
        }
    }

    /// A process that executes a recorded program next.
    pub fn waiting_for(program: usize) -> LiveProcess {
        LiveProcess::new(Role::Waiting(program))
    }

    /// A process of a tool.
    pub fn tool() -> LiveProcess {
        LiveProcess::new(Role::Tool)
    }
}

impl Supervisor {
    /// The recorded program of a caller. `Some(None)`: it has no deep record. `None`: it is gone.
    pub(super) fn process_of(&mut self, call: &NotifiedCall) -> Option<Option<usize>> {
        let group = match self.groups.get(&call.tid) {
            Some(group) => *group,
            None => {
                let status = fs::read_to_string(format!("/proc/{}/status", call.tid)).ok()?;
                let number = |name| field(&status, name)?.parse().ok();
                let group = number("Tgid")?;
                self.groups.insert(call.tid, group);
                if !self.live.contains_key(&group) {
                    let parent = number("PPid").unwrap_or(0);
                    self.born(group, parent);
                }
                group
            }
        };
        let process = self.live.get_mut(&group)?;
        let is_new = std::mem::take(&mut process.is_new);
        match process.role {
            Role::Program(index) => {
                if is_new {
                    self.begin(call, index);
                }
                Some(Some(index))
            }
            Role::Loading(index) => {
                // The tool copies the bytes to the program's stack.
                if is_new {
                    self.put_random(call, index);
                }
                Some(None)
            }
            _ => Some(None),
        }
    }

    /// The process of a caller. One that is not known yet counts as a process of its own.
    pub(super) fn group_of(&self, call: &NotifiedCall) -> u32 {
        self.groups.get(&call.tid).copied().unwrap_or(call.tid)
    }

    /// A new process made its first call.
    fn born(&mut self, group: u32, parent: u32) {
        // A parent that has ended is not its parent any more.
        let made = |process: &LiveProcess| process.children.contains(&i64::from(group));
        let maker = self.live.iter().find(|(_, process)| made(process));
        let parent = maker.map_or(parent, |(pid, _)| *pid);
        let maker = self.live.get(&parent).map(|parent| parent.role);
        let (mut is_added, mut made_as) = (false, None);
        let role = match self.live.get_mut(&parent) {
            Some(process) if process.role == Role::Tool => Role::Tool,
            Some(process) => {
                let same = process
                    .children
                    .iter()
                    .position(|pid| *pid == i64::from(group));
                let recorded = process.children.remove(same.unwrap_or(0));
                made_as = recorded.and_then(|pid| process.made_as.remove(&pid));
                let maker = process.role;
                let fails = recorded.is_some_and(|pid| pid < 0);
                is_added = recorded.is_none();
                let next = match recorded {
                    Some(pid) => self.next_program(pid as u32, None),
                    // No record has the call: the program called the kernel by itself.
                    None => self.unannounced_child(maker, is_within(parent, group)),
                };
                match next {
                    Some(index) if self.matchers[index].rest.start.by_exec => Role::Waiting(index),
                    Some(index) => {
                        self.started[index] = true;
                        Role::Program(index)
                    }
                    None if fails => Role::Failing,
                    None => {
                        let whole = recorded.filter(|_| self.part.is_none());
                        let signal = whole.and_then(|pid| self.killed_early.get(&(pid as u32)));
                        signal.map_or(Role::Shallow, |signal| Role::KilledEarly(*signal))
                    }
                }
            }
            None => Role::Shallow,
        };
        // A child of a program without a record goes on with it.
        if role == Role::Shallow && maker != Some(Role::Shallow) && !is_added {
            self.result.shallow += 1;
        }
        let mut process = LiveProcess::new(role);
        process.is_added = is_added;
        if let Some(parent) = self.live.get(&parent) {
            // The child has copies of its parent's descriptors. The parent may have changed its
            // user since.
            process.registered = parent.registered.clone();
            process.credentials = made_as.unwrap_or(parent.credentials);
            process.calls = parent.calls;
            process.loader = parent.loader.clone();
        }
        self.live.insert(group, process);
    }

    /// The first recorded child of a program that none of its calls made. `is_within`: the child
    /// is in the pid namespace of its maker. A child in another one does not know its parent.
    fn unannounced_child(&self, maker: Role, is_within: bool) -> Option<usize> {
        let Role::Program(maker) = maker else {
            return None;
        };
        let own = self.matchers[maker].rest.pid;
        let parent = if is_within { own } else { 0 };
        let mut all = self.matchers.iter().zip(&self.started);
        all.position(|(matcher, started)| {
            let rest = &matcher.rest;
            !*started
                && rest.parent == parent
                && rest.pid != own
                && !self.made.contains_key(&rest.pid)
        })
    }

    /// The next recorded program of a process id that was not started again.
    pub(super) fn next_program(&self, pid: u32, after: Option<usize>) -> Option<usize> {
        let from = after.map_or(0, |after| after + 1);
        let mut all = self
            .matchers
            .iter()
            .zip(&self.started)
            .enumerate()
            .skip(from);
        let found = all.find(|(_, (matcher, started))| matcher.rest.pid == pid && !**started);
        found.map(|(index, _)| index)
    }

    /// A new process or thread. It gets the recorded number.
    pub(super) fn fork(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        if self.goes_on_creating(call) {
            return Ok(Response::Continue);
        }
        let flags = creation_flags(call)?;
        let is_process = flags & libc::CLONE_THREAD as u64 == 0;
        if is_process && !self.skips_to_child(index) {
            return Ok(Response::Errno(libc::EAGAIN));
        }
        if is_process
            && self.matchers[index].rest.children.is_empty()
            && (self.part.as_ref()).is_some_and(|part| part.unit.process != index)
        {
            // A server that makes up for children which were left out here.
            return Ok(Response::Errno(libc::EAGAIN));
        }
        if is_process && let Some(child) = self.matchers[index].rest.children.pop_front() {
            self.matchers[index].matched += 1;
            if !child.is_made || (child.pid < 0 && !makes_child_first(flags, child.pid)) {
                return Ok(match u64::try_from(child.pid) {
                    Ok(_) => Response::Value(child.pid),
                    Err(_) => Response::Errno(-child.pid as i32),
                });
            }
            if let Ok(pid) = u32::try_from(child.pid) {
                self.announce(call, pid);
            }
            let group = self.groups.get(&call.tid);
            if let Some(process) = group.and_then(|group| self.live.get_mut(group)) {
                process.children.push_back(child.pid);
                process.made_as.insert(child.pid, process.credentials);
            }
        }
        if !is_process {
            self.create_thread(call, index);
        }
        Ok(Response::Continue)
    }

    /// The caller creates a thread. It gets the recorded number.
    fn create_thread(&mut self, call: &NotifiedCall, index: usize) {
        self.created_threads[index] += 1;
        if let Some(thread) = self.next_thread(index)
            && self.announce(call, thread)
        {
            self.announced.insert((index, thread));
            self.matchers[index].makes_thread(thread);
            self.passed[index].makes_thread(call.tid, thread);
        }
    }

    /// The address at which a tool lists the calls of its program.
    pub(super) fn calls_under_way(&self, call: &NotifiedCall) -> Option<u64> {
        let group = self.groups.get(&call.tid)?;
        self.live.get(group)?.calls
    }

    /// Gives a new program the recorded random bytes.
    fn put_random(&self, call: &NotifiedCall, index: usize) {
        let start = &self.matchers[index].rest.start;
        if start.by_exec
            && start.random.len() == 16
            && let Some(at) = auxiliary_value(call.tid, libc::AT_RANDOM)
        {
            let _ = call.put(at, &start.random);
        }
    }

    /// The first call of a program: its memory gets the recorded random bytes, and it gets
    /// stand-ins for what it had open.
    pub(super) fn begin(&mut self, call: &NotifiedCall, index: usize) {
        self.put_random(call, index);
        if self.matchers[index].rest.start.by_exec {
            // Without this, the program takes the time without a call.
            let _ = self.time_functions.replace(call.tid);
        }
        let rest = &self.matchers[index].rest;
        let mut inherited = rest.inherited.clone();
        // The number of a descriptor without a known file may be that of an object which the
        // program makes itself.
        inherited.retain(|(fd, id, _)| {
            *fd <= 2 || self.resources[*id].kind != 0 || rest.streams.contains_key(id)
        });
        if index == self.first {
            // The processes that it had these from do not run.
            let used = rest
                .held
                .iter()
                .filter(|(_, id)| rest.streams.contains_key(id));
            inherited.extend(used.map(|(fd, id)| (*fd, *id, None)));
        }
        let held = rest.held.clone();
        for (fd, id) in held {
            if self.stand_ins.of(call.tid, fd).is_none() {
                self.is_in_use(call, index, fd, id);
            }
        }
        for (fd, id, position) in inherited {
            if self.stands_for(call, fd, id) || self.is_in_use(call, index, fd, id) {
                continue;
            }
            // A file that is missing in the root is reported by the first call that needs it.
            if let Ok(own) = self.inherited(id, position) {
                let listener = self.listener.as_fd();
                let _ = sys::add_descriptor(listener, call.id, own.as_fd(), Some(fd), false, false);
            }
        }
    }

    /// True if a descriptor of a new program has its stand-in from its parent. The records of the
    /// two may have different numbers of one resource. Then the vague one is the other one.
    fn stands_for(&mut self, call: &NotifiedCall, fd: i32, id: ResourceId) -> bool {
        let Some(Ends { read: other, .. }) = self.stand_ins.of(call.tid, fd) else {
            return false;
        };
        let is_vague = |id: ResourceId| self.resources[id].is_vague();
        let (vague, known) = match (is_vague(id), is_vague(other)) {
            _ if id == other => return true,
            (true, _) => (id, other),
            (false, true) => (other, id),
            (false, false) => return true,
        };
        self.stand_ins.rename(vague, known);
        self.pipes.rename(vague, known);
        for matcher in &mut self.matchers {
            matcher.rest.rename(vague, known);
        }
        // A stand-in of the right kind comes in its place.
        known == other
    }

    /// True for the end of a pipe that libc made inside itself (`popen`): no call made it in the
    /// record. The pipe stays, and joins two processes that run again. Its bytes are compared where
    /// they leave these processes.
    ///
    /// The same holds for a file that `posix_spawn`, or a command without a record, opened for the
    /// program. Its content is compared at the end.
    fn is_in_use(&mut self, call: &NotifiedCall, index: usize, fd: i32, id: ResourceId) -> bool {
        let own = format!("/proc/{}/fd/{fd}", call.tid);
        let link = fs::read_link(&own);
        let link = link.map_or(Vec::new(), |link| link.into_os_string().into_vec());
        let resource = &self.resources[id];
        let is_opened = match resource.is_vague() {
            true if !self.matchers[self.first].rest.is_shallow => false,
            true => fs::metadata(&own).is_ok_and(|about| about.is_file()),
            false => resource.kind == libc::S_IFREG && resource.link == link,
        };
        let is_made = resource.origin != Origin::Inherited;
        if index == self.first || !(link.starts_with(b"pipe:") || is_opened) || is_made {
            return false;
        }
        self.matchers[index].rest.streams.remove(&id);
        true
    }

    pub(super) fn inherited(
        &mut self,
        id: ResourceId,
        position: Option<u64>,
    ) -> io::Result<OwnedFd> {
        let resource = &self.resources[id];
        if !resource.is_native() {
            return self.stand_ins.make(id, resource);
        }
        let mut file = File::open(OsStr::from_bytes(&resource.name))?;
        if let Some(position) = position {
            file.seek(SeekFrom::Start(position))?;
        }
        Ok(file.into())
    }

    /// The number of threads of each program. A thread that only computed made no call. But its
    /// creation is one.
    pub(super) fn threads(&self) -> Vec<usize> {
        let mut threads = vec![0; self.created_threads.len()];
        for group in self.groups.values() {
            if let Some(Role::Program(index)) = self.live.get(group).map(|process| process.role) {
                threads[index] += 1;
            }
        }
        for (known, created) in threads.iter_mut().zip(&self.created_threads) {
            if *created > 0 {
                *known = (*known).max(created + 1);
            }
        }
        threads
    }

    /// Takes the ends of children.
    pub(super) fn reap(&mut self) {
        if self.in_copy.is_some() {
            // The holder of the snapshot waits for the program.
            let ended = || status_of_ended(self.child as u32);
            self.result.status = self.result.status.or_else(ended);
        } else if self.result.status.is_none()
            && let Ok(Some(change)) = sys::child_change(Some(self.child), libc::WEXITED)
        {
            self.result.status = Some(change.wait_status());
        }
    }

    /// Waits for the end of the first process, which no longer has a filter.
    pub(super) fn await_first(&mut self) {
        let began = Instant::now();
        self.reap();
        while self.result.status.is_none() && began.elapsed() < self.patience {
            thread::sleep(Duration::from_millis(1));
            self.reap();
        }
    }
}

/// True if a child is in the pid namespace of its parent. One that is gone counts as such.
fn is_within(parent: u32, child: u32) -> bool {
    let depth = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        status.map(|status| pid_namespaces(&status))
    };
    match (depth(parent), depth(child)) {
        (Ok(parent), Ok(child)) => child <= parent,
        _ => true,
    }
}

/// The status of a process that has ended, and that its parent has not waited for yet.
fn status_of_ended(pid: u32) -> Option<i32> {
    /// Counted from the state: `exit_code` in proc(5).
    const STATUS: usize = 49;
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = sys::process_tree::stat_fields(&stat)?;
    let state = fields.next()?;
    // Other threads may outlive the first one.
    (state == "Z" && threads(pid) <= 1).then(|| fields.nth(STATUS - 1)?.parse().ok())?
}

/// The letter of a process's state, and its processor time in ticks.
pub(super) fn state_and_time(pid: u32) -> Option<(char, u64)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = sys::process_tree::stat_fields(&stat)?;
    let state = fields.next()?.chars().next()?;
    let user: u64 = fields.nth(10)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((state, user + system))
}

/// The flags of a call that creates a process or thread.
pub(super) fn creation_flags(call: &NotifiedCall) -> io::Result<u64> {
    Ok(match call.number {
        libc::SYS_clone => call.args[0],
        libc::SYS_clone3 => call.word(call.args[0])?,
        _ => 0,
    })
}

/// True if a recorded call that failed had made a child before: that of `posix_spawn`. The program
/// of the child could not be executed.
fn makes_child_first(flags: u64, failed: i64) -> bool {
    let is_short = matches!(-failed as i32, libc::EAGAIN | libc::ENOMEM);
    flags & libc::CLONE_VFORK as u64 != 0 && !is_short
}
