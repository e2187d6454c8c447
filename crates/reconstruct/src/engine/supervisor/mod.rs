//! Receives the calls of the program, and responds to each.
//!
//! Invariant: the supervisor never waits for a resource. All recorded input is there from the
//! beginning, and a call that continues waits in the kernel.

mod ahead;
mod allocator;
mod asking;
mod behind_records;
mod child_waits;
mod child_work;
mod clock;
mod content;
mod credentials;
mod data;
mod due_signals;
mod ends;
mod epoll;
mod exact;
mod executing;
mod handlers;
mod instructions;
mod interrupted;
mod killed;
mod listings;
mod lowered_stack;
mod making;
mod named;
mod native;
mod numbers;
mod outside;
mod overtime;
mod own_calls;
mod own_pipes;
mod parked;
mod part;
mod passing;
mod pipes;
mod places;
mod preparing;
mod process_groups;
mod processes;
mod progress;
mod sights;
mod signal_sets;
mod sleeping;
mod snapshot;
mod start_end;
mod suspended;
mod temporary_names;
mod thread_clocks;
mod thread_states;
mod time_up;
mod tool;
mod tool_pipes;
mod turns;
mod unheard;
mod waiting;
mod waits_behind;
mod written;

use super::call_words;
use super::caller::NotifiedCall;
use super::standin::StandIns;
use super::start;
use super::vdso::TimeFunctions;
use crate::divergence::DivergenceKind;
use crate::error::Error;
use crate::matcher::ProcessMatcher;
use crate::resource::{Resource, ResourceId};
use crate::sighting::SightingSearch;
use crate::time::RecordedClock;
use crate::unit::RecordedUnit;
use crate::verdict::{ProcessVerdict, Reconstruction, RecordEnd};
use crate::volatile::VolatileRules;
use backstory_instructions::Redirector;
use backstory_sys as sys;
use child_work::ChildWork;
use due_signals::DueSignals;
use interrupted::{HiddenList, interrupted_by};
use listings::Listings;
use lowered_stack::LongerPath;
use own_calls::OwnCalls;
use own_pipes::OwnPipes;
use parked::{FEW_PARKED, ParkedCall};
use part::Part;
pub use part::STALLED;
use passing::PassedDescriptors;
use pipes::Pipes;
use places::Places;
use processes::LiveProcess;
use progress::RecordProgress;
pub use snapshot::Attempts;
use snapshot::CopyStart;
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use suspended::Stillness;
use thread_clocks::Passed;
use tool::Closing;

/// How long one wait for a notification lasts.
const SLICE_MS: i32 = 200;
/// The same while calls wait for the kernel's own objects.
const PARKED_MS: i32 = 1;
/// Processes that outlive the first one are ended after so long without a call.
const AFTER_END: Duration = Duration::from_secs(2);
/// Most bytes of output that are kept to be shown.
const MOST_SHOWN: usize = 1 << 20;

/// The response to a call.
#[derive(Debug)]
enum Response {
    /// The kernel makes the call.
    Continue,
    /// The call returns this value.
    Value(i64),
    /// The call fails.
    Errno(i32),
    /// A response was sent already.
    Sent,
    /// The call is looked at again later.
    Park,
    /// The call waits until the program is ended.
    Hold,
}

impl From<io::Error> for Response {
    fn from(error: io::Error) -> Response {
        Response::Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// The state of a reconstruction.
pub struct Supervisor {
    listener: OwnedFd,
    resources: Vec<Resource>,
    /// See [`RecordedRun::killed_early`].
    killed_early: HashMap<u32, i32>,
    matchers: Vec<ProcessMatcher>,
    /// The processes that recorded calls made, each with the program that made the call.
    made: HashMap<u32, usize>,
    /// The number of programs that read or wrote each resource.
    users: HashMap<ResourceId, usize>,
    /// Recorded programs that were started again.
    started: Vec<bool>,
    first: usize,
    child: sys::Pid,
    /// When the first program was started.
    began: Instant,
    live: HashMap<u32, LiveProcess>,
    /// The processes that ended by a call, or that the supervisor ended.
    explained_ends: HashSet<u32>,
    /// The process of each thread.
    groups: HashMap<u32, u32>,
    /// Recorded process groups, each with the one that stands for it here.
    foreign_groups: HashMap<u32, u32>,
    /// The recorded numbers of threads, by program and number.
    threads: HashMap<(usize, u32), u32>,
    /// The recorded numbers that new threads got, by program.
    announced: HashSet<(usize, u32)>,
    /// The number of threads that were created, by program.
    created_threads: Vec<usize>,
    /// The thread that creates a process or thread with a recorded number, and that number.
    creating: Option<(u32, u32)>,
    /// Threads that handle a signal before they create, each with the number it is to get. Absent:
    /// a handler that creates a process itself, or that leaves by siglongjmp(3).
    interrupted_creations: HashMap<u32, u32>,
    stand_ins: StandIns,
    /// Device and inode that programs see of a file of the root, by its own ones.
    idents: HashMap<(u64, u64), (u64, u64)>,
    listings: Listings,
    /// Calls that wait for the kernel's own objects, with the time when they came.
    parked: Vec<ParkedCall>,
    /// How long the call that is looked at has waited.
    parked_for: Duration,
    clock: RecordedClock,
    since_boot: i64,
    /// The parts of outputs that may differ.
    rules: VolatileRules,
    time_functions: TimeFunctions,
    /// When each process made its last call.
    last_calls: HashMap<u32, Instant>,
    /// By program.
    passed: Vec<Passed>,
    /// The recorded handlers that have not run again, by program.
    due: Vec<DueSignals>,
    /// The chosen request.
    part: Option<Part>,
    /// Further attempts at the request may begin in copies of the program.
    pub(super) attempts: Option<Attempts>,
    /// Processes beside the programs and this one, if a snapshot was taken.
    aside: HashSet<u32>,
    /// This attempt began in a copy, or another one may.
    in_copy: Option<CopyStart>,
    /// The search for a text, if any.
    sought: Option<SightingSearch>,
    /// The units of work of the run.
    units: Vec<Option<RecordedUnit>>,
    program: PathBuf,
    patience: Duration,
    /// All programs of the run are to run again.
    is_whole: bool,
    shows: Option<ResourceId>,
    /// The programs run under a tool.
    has_tool: bool,
    /// Calls under a tool that nothing answers before the end.
    held: Vec<NotifiedCall>,
    /// The threads with such calls, also without a tool.
    held_threads: HashSet<u32>,
    /// The threads that stay in a wait which they have repeated many times.
    staying: HashSet<u32>,
    /// The threads in a sleep that waits for a signal.
    asleep: HashSet<u32>,
    /// Since when programs end, because their request is over. Their calls continue.
    closing: Option<Closing>,
    /// Since when the programs have taken nothing more of the record.
    progress: Option<RecordProgress>,
    /// For a tool that asks for them.
    places: Places,
    pipes: Pipes,
    own_pipes: OwnPipes,
    passed_descriptors: PassedDescriptors,
    /// The paths in calls that execute programs, by thread.
    longer_paths: HashMap<u32, LongerPath>,
    /// The children that programs wait for, by thread.
    child_work: HashMap<u32, ChildWork>,
    /// The tool is the byte engine.
    follows_bytes: bool,
    redirector: Redirector,
    own_calls: OwnCalls,
    /// Calls that waited for another thread's in vain, by program.
    in_vain: Vec<u32>,
    /// The lists of threads that wait for a signal, by thread.
    hidden: HashMap<u32, Vec<HiddenList>>,
    /// The calls that wait for a signal of a process, by the id of the call.
    suspended: HashMap<u64, Stillness>,
    /// The same without a call, for a signal from outside.
    still: Option<Stillness>,
    result: Reconstruction,
}

impl Supervisor {
    /// Responds to calls until all processes have ended.
    ///
    /// # Errors
    /// The kernel refused a call of the supervisor, or the program was not executed.
    pub fn watch(mut self) -> Result<Reconstruction, Error> {
        let mut last_call = Instant::now();
        let mut looked = Instant::now();
        let mut used = 0;
        loop {
            if let Some(copy) = self.in_copy {
                last_call = last_call.max(copy.began);
            }
            let slice = match (self.parked.is_empty(), &self.part) {
                (false, _) => PARKED_MS,
                (true, Some(_)) => part::SLICE_MS,
                (true, None) => SLICE_MS,
            };
            let ready = sys::poll(self.listener.as_fd(), libc::POLLIN, slice);
            if ready & libc::POLLIN != 0 {
                match sys::next_notification(self.listener.as_fd()) {
                    Ok(notification) => self.receive(&notification.into()),
                    Err(error) if is_harmless(&error) => {}
                    Err(error) => return Err(Error::supervise("receive calls of")(error)),
                }
                last_call = Instant::now();
            } else if ready & libc::POLLHUP != 0 || self.has_ended_beside_snapshot() {
                break;
            }
            let for_ends = looked.elapsed() >= killed::LOOK;
            self.look_again(for_ends);
            if for_ends {
                looked = Instant::now();
                self.close_passed();
                self.let_held_stop();
            }
            self.reap();
            let silent = last_call.elapsed();
            let is_in_hand = self.is_in_hand(silent);
            if is_in_hand {
                self.progress = None;
            }
            if is_in_hand || self.sends_from_outside(silent) {
                last_call = Instant::now();
            }
            let idle = last_call.elapsed();
            let looks = for_ends && self.closing.is_none();
            let still = looks.then(|| self.stands_still()).flatten();
            if self.is_over(idle, still) {
                self.kill_all();
                break;
            }
            if let Some(still) = still.filter(|_| self.closing.is_none()) {
                self.stop_standstill(still);
                last_call = Instant::now();
            }
            if for_ends && idle > self.longest_behind_record() && self.ends_behind_record(idle) {
                last_call = Instant::now();
                continue;
            }
            if idle > self.patience && self.closing.is_none() {
                let now = self.processor_time();
                if now == used {
                    self.stop();
                }
                used = now;
                last_call = Instant::now();
            }
        }
        self.await_first();
        if !self.started[self.first]
            && let Some(status) = self.result.status
            && let Some(source) = start::not_executed(status, self.has_tool)
        {
            return Err(Error::NotStarted {
                program: self.program.display().to_string(),
                source,
            });
        }
        Ok(self.finish())
    }

    /// True if nothing more is awaited: a request is over, a tool has ended, or only processes are
    /// left that outlive the first one. `idle`: since the last call. `still`: since when nothing
    /// more of the record was taken, if that is too long.
    fn is_over(&mut self, idle: Duration, still: Option<Duration>) -> bool {
        if self.closing.is_some() {
            return self.has_closed();
        }
        let part_is_over = self.part_is_over(idle) || self.part.is_some() && still.is_some();
        part_is_over && !self.closes()
            || self.result.status.is_some() && (idle > AFTER_END || still.is_some())
    }

    /// Responds to a new call.
    fn receive(&mut self, call: &NotifiedCall) {
        self.leaves_execution(call);
        if self.closing.is_some() {
            return self.answer(call, self.closing_response(call));
        }
        if self.leaves_suspended(call) {
            return self.answer(call, Response::Continue);
        }
        self.show_lists(call);
        let program = self.process_of(call).flatten();
        if let Some(index) = program {
            self.matchers[index].came(call_words::words(call));
            self.notes_own_call(call, index);
            self.leaves_kernel(call, index);
        }
        if let Some(part) = &mut self.part {
            part.came(program);
            // A tool never gets ready.
            if let Some(group) = self.groups.get(&call.tid).filter(|_| program.is_some()) {
                self.last_calls.insert(*group, Instant::now());
            }
        }
        self.parked_for = Duration::ZERO;
        self.handle(call, Instant::now());
    }

    /// Looks at the parked calls again. `for_ends`: also for signals that end their processes, or
    /// by which a debugger stops their threads.
    fn look_again(&mut self, for_ends: bool) {
        let all = std::mem::take(&mut self.parked);
        let are_many = all.len() > FEW_PARKED;
        for parked in all {
            let call = &parked.call;
            if for_ends && (self.lets_die(call) || self.lets_stop(call)) {
                continue;
            }
            if are_many && !parked.is_due() {
                self.parked.push(parked);
                continue;
            }
            self.parked_for = parked.since.elapsed();
            self.handle(call, parked.since);
        }
    }

    /// Responds to one call, which came at that time.
    fn handle(&mut self, call: &NotifiedCall, since: Instant) {
        self.staying.remove(&call.tid);
        self.asleep.remove(&call.tid);
        let (response, since) = match self.still_awaits_bytes(call) {
            Some(true) => (Response::Park, since),
            Some(false) => {
                self.parked_for = Duration::ZERO;
                (self.response(call), Instant::now())
            }
            None => (self.response(call), since),
        };
        if matches!(response, Response::Hold) {
            self.held_threads.insert(call.tid);
        }
        match response {
            Response::Park => self.parked.push(ParkedCall::new(*call, since)),
            Response::Hold if self.has_tool => self.held.push(*call),
            response => self.answer(call, response),
        }
    }

    fn answer(&self, call: &NotifiedCall, response: Response) {
        let (listener, id) = (self.listener.as_fd(), call.id);
        let sent = match response {
            Response::Continue => sys::answer_continue(listener, id),
            Response::Value(value) => sys::answer_value(listener, id, value),
            Response::Errno(errno) => sys::answer_errno(listener, id, errno),
            Response::Sent | Response::Hold | Response::Park => Ok(()),
        };
        // An error means that the caller was killed meanwhile.
        drop(sent);
    }

    fn response(&mut self, call: &NotifiedCall) -> Response {
        let Some(process) = self.process_of(call) else {
            return Response::Continue;
        };
        if let Some(index) = process {
            let thread = self.recorded_thread(call.tid, index);
            self.matchers[index].turns_to(call.tid, thread);
        }
        let response = match process {
            _ if call.number == super::filter::ASKED => self.asked(call),
            // The program goes on without a copy.
            _ if call.number == super::filter::COPY => Ok(Response::Value(0)),
            Some(index) => self.deep_response(call, index),
            None => self.shallow_response(call),
        };
        match response {
            Ok(response) => response,
            Err(error) => error.into(),
        }
    }

    /// The response to a process that has a deep record.
    fn deep_response(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        use crate::engine::filter::PLACE;
        use libc::*;
        if call.number == SYS_exit_group {
            self.notes_end(call);
        }
        if !self.is_programs(call) {
            return Ok(Response::Continue);
        }
        self.places.begin(call);
        match call.number {
            SYS_read | SYS_readv | SYS_pread64 | SYS_preadv | SYS_preadv2 | SYS_recvfrom
            | SYS_recvmsg | SYS_recvmmsg => self.read(call, index),
            SYS_write | SYS_writev | SYS_pwrite64 | SYS_pwritev | SYS_pwritev2 | SYS_sendto
            | SYS_sendmsg | SYS_sendmmsg => self.write(call, index),
            SYS_sendfile | SYS_splice | SYS_copy_file_range => self.transfer(call, index),
            SYS_open | SYS_openat | SYS_openat2 | SYS_creat => self.open(call, index),
            SYS_mkdir | SYS_mkdirat => Ok(self.make_directory(call, index)),
            SYS_socket => self.socket(call, index),
            SYS_accept | SYS_accept4 => self.accept(call, index),
            SYS_connect => self.connect(call, index),
            SYS_pipe | SYS_pipe2 | SYS_socketpair => self.pair(call, index),
            SYS_poll | SYS_ppoll => self.poll(call, index),
            SYS_select | SYS_pselect6 => self.select(call, index),
            SYS_epoll_ctl => self.epoll_change(call, index),
            SYS_epoll_wait | SYS_epoll_pwait | SYS_epoll_pwait2 => self.epoll_wait(call, index),
            SYS_nanosleep | SYS_clock_nanosleep => self.sleep(call, index),
            SYS_clock_gettime | SYS_gettimeofday | SYS_time => {
                match self.wall_clock(call, index)? {
                    Some(response) => Ok(response),
                    None => self.ask(call, index),
                }
            }
            SYS_getcpu => self.processor(call, index),
            SYS_mprotect => Ok(self.protected(call)),
            SYS_setuid | SYS_setgid | SYS_setreuid | SYS_setregid | SYS_setresuid
            | SYS_setresgid | SYS_setgroups | SYS_setfsuid | SYS_setfsgid | SYS_getuid
            | SYS_geteuid | SYS_getresuid | SYS_getgid | SYS_getegid | SYS_getresgid
            | SYS_chown | SYS_lchown | SYS_fchown | SYS_fchownat => self.credentials(call),
            SYS_getpgrp | SYS_getpgid | SYS_getsid | SYS_setpgid | SYS_setsid => {
                self.process_group(call, index)
            }
            SYS_wait4 => self.wait(call, index),
            SYS_kill => Ok(self.send_signal(call)),
            SYS_rt_sigaction => Ok(self.set_handler(call)),
            SYS_rt_sigsuspend | SYS_pause => self.suspend(call, index),
            PLACE => self.place(call),
            SYS_fork | SYS_vfork | SYS_clone | SYS_clone3 => self.fork(call, index),
            SYS_execve | SYS_execveat => self.execute(call, index),
            SYS_exit_group => Ok(self.exit(call, index)),
            _ => self.ask(call, index),
        }
    }

    /// The recorded program waited here, and got nothing more.
    fn beyond_the_record(&mut self, call: &NotifiedCall, index: usize, object: String) -> Response {
        if self.part.is_some() {
            return self.hold(index);
        }
        let Some(group) = self.groups.get(&call.tid).copied() else {
            return Response::Continue;
        };
        if self.threads_go_on(call, index) {
            return Response::Park;
        }
        while let Some(signal) = self.matchers[index].rest.signals.pop_front() {
            if self.signal_as_recorded(group, index, signal) {
                return interrupted_by(call, signal.0);
            }
        }
        let matcher = &mut self.matchers[index];
        if !matcher.rest.has_exited {
            // Its record ends here: it was killed, or the recording ended.
            return self.await_killer(call, index, libc::EINTR);
        }
        let mut divergence = matcher.blank(DivergenceKind::MoreInput, object);
        divergence.recorded = "no further read".to_owned();
        divergence.came = call_words::words(call);
        matcher.diverge(divergence);
        Response::Value(0)
    }

    /// Ends all that have waited for longer than the patience. On a busy machine, they have waited
    /// for much longer.
    fn stop(&mut self) {
        let seconds = self.patience.as_secs();
        self.result.stopped = Some(format!(
            "no process made a call or used the processor for {seconds} s, so all were ended"
        ));
        self.kill_all();
    }

    fn finish(mut self) -> Reconstruction {
        let first = self.first;
        self.finish_part();
        self.compare_killed();
        self.note_shifts();
        let part = self.part.take();
        let threads = self.threads();
        if self.follows_bytes {
            self.note_uncompared();
        }
        let behind = self.behind_records();
        let own_calls = std::mem::take(&mut self.own_calls);
        let all = self.matchers.into_iter().zip(self.started).enumerate();
        for (index, (matcher, started)) in all {
            let program = matcher.rest.name();
            if behind[index] || matcher.rest.ends_early && started {
                let end = RecordEnd::of(&matcher.rest, started);
                self.result.unrecorded.push(end);
            }
            if !started {
                let serves = part.as_ref().is_some_and(|part| part.unit.process == index);
                if behind[index] {
                    self.result.unreached.push(program);
                } else if index == first || self.is_whole || serves {
                    self.result.not_started.push(program);
                }
                continue;
            }
            self.result.processes.push(ProcessVerdict {
                pid: matcher.rest.pid,
                program,
                recorded_calls: matcher.rest.calls,
                matched: matcher.matched,
                entered: matcher.entered,
                left: matcher.left,
                came: matcher.came,
                counted: matcher.counted(),
                differs_before: matcher.differs_before(),
                divergence: matcher.divergence,
                volatile: matcher.volatile,
                gap: matcher.rest.gap,
                lacks_calls: matcher.rest.lacks_calls,
                complaint: matcher.complaint,
                threads: threads[index],
                own_calls: own_calls.of(index),
            });
        }
        self.result
    }
}

/// A signal interrupted the wait, or the caller is gone.
fn is_harmless(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::ENOENT))
}
