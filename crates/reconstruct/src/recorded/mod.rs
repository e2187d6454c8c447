//! Arranges the calls of a deep log by process and resource.
//!
//! In: the calls of each process in order. Out: a [`RecordedRun`]. The descriptors of each process
//! are followed through `dup`, `fork` and `close`, so that each call finds its resource. Invariant:
//! any calls are accepted, because the log may be damaged.

mod connections;
mod descriptors;
mod facts;
pub(crate) mod listings;
mod positions;
mod results;
mod same;
mod scope;
mod sought;
mod statuses;
mod streams;
mod temporary_names;
mod waits;

pub use results::{detail, family};
pub(crate) use scope::Scope;
pub(crate) use sought::{FoundInput, SoughtWord};

use crate::input::InputItem;
use crate::process::{ProcessStart, RecordedChild, RecordedProcess};
use crate::ready::{poll_entries, select_entries};
use crate::resource::{Resource, ResourceId};
use crate::shift::is_pause;
use crate::time::RecordedClock;
use crate::unit::RecordedUnit;
use backstory_deep::Call;
use backstory_deep::call_numbers::WAITS;
use connections::Connections;
use libc::c_long;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

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
    /// The two ends of connections that were made within the run.
    pub connections: Vec<(ResourceId, ResourceId)>,
    /// The two ends of pipes and pairs of sockets. Of a pipe, they are one resource.
    pub pairs: Vec<(ResourceId, ResourceId)>,
    /// The time of day of its counters.
    pub clock: RecordedClock,
    /// The forked children without a record that a signal killed: the signal, by process id.
    pub killed_early: HashMap<u32, i32>,
    /// The record goes on behind the part that is here.
    pub is_cut: bool,
    /// Why records of any process may be missing without a trace. `None`: none are.
    pub lacks_because: Option<String>,
    /// The request that the run was reduced to.
    pub chosen: Option<RecordedUnit>,
    /// All units that are fed then, in the order of their answers.
    pub fed: Vec<RecordedUnit>,
}

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
    /// When the last whole call of each thread returned.
    returned: HashMap<u32, u64>,
    /// Vague resources that are known by now.
    same: HashMap<ResourceId, ResourceId>,
    /// The signals whose handlers ran since the last read or write of each thread, with the
    /// time-stamp counter when they began.
    handled: HashMap<u32, Vec<(i32, u64)>>,
    /// The last call was a wait for several descriptors.
    last_was_wait: bool,
    /// When the last call of each thread began and returned, if it was a read.
    last_reads: HashMap<u32, (u64, u64)>,
    /// The places in the list of handlers of those that ran in each thread since its last call.
    open_handlers: HashMap<u32, Vec<usize>>,
    /// When the handler of a child's end ran in each thread, since its last call began.
    child_signals: HashMap<u32, Vec<u64>>,
    /// The process that made each process, by a recorded call.
    makers: HashMap<u32, u32>,
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
    /// The descriptors in each set of epoll. False: no call had said where the descriptor leads.
    members: HashMap<ResourceId, HashMap<i32, bool>>,
    process: RecordedProcess,
    /// The listings of open directories of the root.
    listings: HashMap<ResourceId, listings::Listing>,
    /// The length of the next message of each socket, as far as the program looked at it.
    looked_at: HashMap<ResourceId, usize>,
    /// Where each file is read or written next.
    offsets: HashMap<ResourceId, u64>,
    connections: Connections,
    /// The last message that was sent: where, by which thread, and when its call began.
    message_group: Option<(ResourceId, u32, u64)>,
    /// The part of the log that is arranged. Of this process, it may be only the outline.
    scope: Scope,
    in_outline: bool,
    /// The threads of the process that moved their last bytes on a connection which is left out.
    works_for_omitted: HashSet<u32>,
    /// The number of calls at which the process is looked at for what can be left out.
    look_at: u64,
    /// Bytes of it that were added since the last look, and how many lead to the next one.
    added: u64,
    most_added: u64,
    /// Words that are looked for in all input.
    sought: Vec<SoughtWord>,
    /// Random bytes of the kernel that the process got.
    random_bytes: u64,
}

impl RecordedRun {
    /// The run begins with a program that the deep log does not have, as a static one. It executed
    /// the others.
    pub fn begin_with(&mut self, pid: u32, start: ProcessStart) {
        let first = RecordedProcess {
            pid,
            own_pid: pid,
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
    /// Begins with the clock of the log.
    pub(crate) fn with_clock(clock: RecordedClock) -> Arranging {
        let run = RecordedRun {
            clock,
            ..RecordedRun::default()
        };
        Arranging {
            run,
            ..Arranging::default()
        }
    }

    /// Records of any process may be missing without a trace, for this reason.
    pub(crate) fn of_lacking_log(mut self, why: Option<String>) -> Arranging {
        self.run.lacks_because = why;
        self
    }

    /// The calls of this process follow.
    pub(crate) fn enter(&mut self, epoch: u64, pid: u32, parent: u32) {
        self.table = self.handed.remove(&pid).unwrap_or_default();
        self.resolve_table();
        self.numbers.clear();
        self.listings.clear();
        self.looked_at.clear();
        self.made_at.clear();
        self.returned.clear();
        self.handled.clear();
        self.last_was_wait = false;
        self.last_reads.clear();
        self.child_signals.clear();
        self.open_handlers.clear();
        self.enter_scope(pid);
        self.random_bytes = 0;
        // A parent outside the pid namespace has no number there.
        let maker = || self.makers.get(&pid).copied();
        let parent = Some(parent).filter(|parent| *parent != 0).or_else(maker);
        self.process = RecordedProcess {
            epoch,
            pid,
            own_pid: pid,
            parent: parent.unwrap_or(0),
            held: self.table.iter().map(|(fd, id)| (*fd, *id)).collect(),
            ..RecordedProcess::default()
        };
    }

    /// The process id of the process that is taken, as its program saw it.
    pub(crate) fn sees_itself_as(&mut self, own_pid: u32) {
        self.process.own_pid = own_pid;
    }

    /// All calls of the process were taken.
    pub(crate) fn leave(&mut self) {
        self.name_program();
        self.leave_out();
        let least = self.returned.values().min().copied();
        let whole_until = self.process.whole_until.or(least);
        self.process.recorded_until = whole_until.unwrap_or(self.process.began);
        if self.process.threads.is_empty() {
            self.process.movers = HashMap::new();
            self.process.call_times = BTreeMap::new();
            self.process.omitted.work = HashMap::new();
        }
        let calls = self.process.call_times.values_mut();
        calls.for_each(|own| own.sort_unstable());
        self.unseen.remove(&self.process.pid);
        // A program that the process executes next has these.
        self.handed.insert(self.process.pid, self.table.clone());
        self.run.processes.push(std::mem::take(&mut self.process));
    }

    /// All processes were taken. Returns the words with their inputs, too.
    pub(crate) fn finish_search(mut self) -> (RecordedRun, Vec<SoughtWord>) {
        let sought = std::mem::take(&mut self.sought);
        (self.finish(), sought)
    }

    /// All processes were taken.
    pub(crate) fn finish(mut self) -> RecordedRun {
        positions::share(&mut self.run);
        let connections = std::mem::take(&mut self.connections);
        self.run.pair_connections(connections);
        self.run.leave_out_native_events();
        self.run.find_statuses(&self.forked);
        self.run
    }

    pub(crate) fn take(&mut self, call: &Call) {
        self.take_of_request(call, true);
    }

    /// Takes a call. `begins`: it can be the first one of a request, whose connection is then
    /// asked for by its time and descriptor.
    pub(crate) fn take_of_request(&mut self, call: &Call, begins: bool) {
        if call.is_fact() {
            self.fact(call);
            return;
        }
        self.process.calls += 1;
        // Nothing runs by an outline. In a part, those of other requests say nothing.
        if matches!(self.scope, Scope::Whole) {
            let own = self.process.call_times.entry(call.tid).or_default();
            own.push(call.time);
        }
        self.look_again();
        self.note_pause(call);
        self.note_child_end(call);
        self.note_handlers(call);
        if !call.is_cut {
            let returned = self.returned.entry(call.tid).or_default();
            *returned = ended(call).max(*returned);
        }
        self.last_was_wait = WAITS.contains(&call.number);
        // A stream of libc has no error, and nothing left.
        let wrote_nothing = is_plain_write(call.number) && call.result == 0 && call.a > 0;
        let is_closed = call.result == -i64::from(libc::EBADF) || wrote_nothing;
        if call.fd >= 0 && is_closed && !self.table.contains_key(&call.fd) {
            // The descriptor leads nowhere, and will again.
            return;
        }
        self.note_move(call, begins);
        self.arrange_call(call);
    }

    /// Takes a call by its kind.
    fn arrange_call(&mut self, call: &Call) {
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
            libc::SYS_getrandom => self.random(call),
            libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => {
                self.opened(call)
            }
            libc::SYS_mkdir | libc::SYS_mkdirat => self.made_directory(call),
            libc::SYS_getdents64 => self.listed(call),
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

    /// Random bytes of the kernel. A call of which some are missing is not fed: with fewer bytes
    /// than it asked for, a program may fail that did not.
    fn random(&mut self, call: &Call) {
        let Some(bytes) = call.entered_at(0) else {
            return;
        };
        self.note_mover(call);
        let (time, position) = (ended(call), self.random_bytes);
        self.random_bytes = position.saturating_add(bytes.len() as u64);
        self.seek(None, bytes, (time, position));
        if self.in_outline || call.is_cut {
            return;
        }
        let request = ((call.a, call.b), time);
        self.process.random_requests.push_back(request);
        let bytes = InputItem::Bytes(bytes.to_vec());
        self.process.random.push_at(bytes, time);
    }

    /// Notes the time since the thread's call before, if a second began in it.
    fn note_pause(&mut self, call: &Call) {
        let before = self.returned.get(&call.tid).copied();
        let from = before.unwrap_or(self.process.began);
        if is_pause(&self.run.clock, from, call.time) {
            self.process.pauses.push((from, call.time));
        }
    }

    /// A call that makes a process.
    fn made_child(&mut self, call: &Call) {
        if let Ok(child) = u32::try_from(call.result)
            && child > 0
        {
            self.handed.insert(child, self.table.clone());
            self.makers.insert(child, self.process.pid);
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
}

/// The time-stamp counter when a call returned.
fn ended(call: &Call) -> u64 {
    call.time.saturating_add(call.took)
}

fn is_plain_write(call: u16) -> bool {
    matches!(c_long::from(call), libc::SYS_write | libc::SYS_writev)
}
