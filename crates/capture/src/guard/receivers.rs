//! The threads that answer the guard's notifications.
//!
//! One receiver is hot; the others sleep until calls queue up. A receiver never waits for anything but the next
//! notification: what could make it wait is left to the late thread, after the call has been answered. The slot of a call is
//! appended before the answer, so that a call that went on is in the log, whatever happens to us.

use super::ask::Ask;
use super::caller::{Caller, Callers, View};
use super::conclude::Context;
use super::decode::Arguments;
use super::exits::Exits;
use super::holds::{Holders, Occasion};
use super::hooks::{Hooks, Note, Waiting, Watch};
use super::memory::{Memory, Unreadable};
use super::mounts::Mounts;
use super::resolve::Resolver;
use super::shared::{Notification, RECEIVERS, SharedMap};
use super::slots::SlotWriter;
use super::standby::Standby;
use super::sys;
use super::table::{Abi, Guard, Row};
use super::write::{Environments, fingerprint, who, write, write_born};
use crate::sink::SlotSink;
use backstory_abi::{MAGIC_ANNOUNCE, MAGIC_ARENA, MAGIC_DRAIN};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Receivers, the hot one included.
const THREADS: usize = 4;
const _: () = assert!(THREADS <= RECEIVERS);
/// Opens and look-ups that can wait for the late thread; of more, the outcome stays unknown.
const LATE: usize = 4096;
/// A receive that took fewer ticks than this did not sleep: more calls may be queued.
const BUSY: u64 = 5_000;
const STACK: usize = 256 * 1024;

/// A call that is answered, and looked at later. Kept in boxes: a queue of them as they are would be a megabyte, touched at once.
struct Late {
    call: Notification,
    caller: Caller,
    time: u64,
    /// ns since 1970.
    real: i64,
    ask: Ask,
}

/// What all threads of the guard share.
struct Common {
    listener: Arc<OwnedFd>,
    shared: Arc<SharedMap>,
    watch: Watch,
    hooks: Arc<dyn Hooks>,
    callers: Callers,
    mounts_changed: Arc<AtomicU64>,
    environments: Environments,
    exits: Exits,
    holders: Holders,
    stop: AtomicBool,
    /// Raised when calls queue up; helpers sleep on it.
    wanted: AtomicU32,
    /// Thread ids of receivers, 0 once they have ended.
    running: [AtomicU32; THREADS],
    /// A receiver that ends raises it.
    ends: AtomicU32,
    ended: AtomicBool,
    /// Calls in the late thread's queue.
    queued: AtomicUsize,
}

/// Threads that start when they are needed.
struct Reserve {
    helpers: Standby,
    late: Standby,
    watcher: Standby,
}

/// The running guard.
pub struct Receivers {
    common: Arc<Common>,
    reserve: Arc<Reserve>,
    hot: JoinHandle<()>,
    jobs: Sender<Box<Late>>,
    /// Hangs up when the late thread is done.
    late_done: Receiver<()>,
}

impl Receivers {
    /// Starts to answer. `make_sink` is called once for each thread, before any of them runs.
    pub fn start<S: SlotSink + Send + 'static>(
        listener: OwnedFd,
        shared: Arc<SharedMap>,
        watch: Watch,
        mut make_sink: impl FnMut() -> S,
        hooks: Arc<dyn Hooks>,
    ) -> io::Result<Receivers> {
        if !sys::notification_sizes_fit(256, size_of::<libc::seccomp_notif_resp>()) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        sys::prepare_wake_signal();
        sys::wake_synchronously(listener.as_fd());
        let common = Common::new(listener, shared, watch, hooks)?;
        let (jobs, queue) = channel();
        let (working, late_done) = sync_channel(0);
        let (out, mine) = (SlotWriter::new(make_sink()), common.clone());
        let late = Standby::new(move || {
            let work = move || {
                mine.run_late(out, &queue);
                drop(working);
            };
            Ok(vec![spawn("guard-late", work)?])
        });
        let (mut out, mine) = (SlotWriter::new(make_sink()), common.clone());
        let watcher = Standby::new(move || {
            let work = move || mine.exits.watch(mine.listener.as_fd(), &mut out, || mine.end());
            Ok(vec![spawn("guard-exits", work)?])
        });
        // The helpers' standby is in the reserve, and they have the reserve: a weak reference, or neither would ever be freed.
        let reserve = Arc::new_cyclic(|reserve: &Weak<Reserve>| Reserve {
            helpers: helpers(&common, reserve, &jobs, &mut make_sink),
            late,
            watcher,
        });
        let worker = Worker::new(&common, Arc::downgrade(&reserve), &jobs, 0, make_sink());
        Ok(Receivers {
            hot: spawn("guard", move || worker.run())?,
            common,
            reserve,
            jobs,
            late_done,
        })
    }

    /// True once nobody is left who has the filter.
    pub fn ended(&self) -> bool {
        let hung_up = || sys::poll(self.common.listener.as_fd(), 0, 0) & libc::POLLHUP != 0;
        self.common.ended.load(Ordering::Acquire) || hung_up()
    }

    /// Ends all threads and drops their sinks. After [`Receivers::ended`], all that happened has been logged; before it, whoever
    /// is still there must be served by the keeper from now on. Returns false if the late thread still waits for a file server;
    /// what it was asked is then lost.
    pub fn stop(self) -> bool {
        self.common.end();
        let _ = self.hot.join();
        for thread in self.reserve.helpers.end() {
            let _ = thread.join();
        }
        // Statuses that are still to come are waited for a moment once nobody is left, not at all before.
        if !self.common.ended.load(Ordering::Acquire) {
            self.common.exits.stop();
        }
        for thread in self.reserve.watcher.end() {
            let _ = thread.join();
        }
        let late = self.reserve.late.end();
        drop(self.jobs);
        if late.is_empty() {
            return self.common.queued.load(Ordering::Acquire) == 0;
        }
        // The prompt waits for this: not a tick longer than it takes.
        match self.late_done.recv_timeout(Duration::from_secs(2)) {
            Err(RecvTimeoutError::Timeout) => false,
            _ => late.into_iter().all(|thread| thread.join().is_ok()),
        }
    }
}

/// All receivers but the hot one.
fn helpers<S: SlotSink + Send + 'static>(
    common: &Arc<Common>,
    reserve: &Weak<Reserve>,
    jobs: &Sender<Box<Late>>,
    make_sink: &mut impl FnMut() -> S,
) -> Standby {
    let mut helper = |index| Worker::new(common, reserve.clone(), jobs, index, make_sink());
    let workers: Vec<Worker<S>> = (1..THREADS).map(&mut helper).collect();
    Standby::new(move || {
        // Fewer than there could be do as well.
        let threads = workers.into_iter().map(|w| spawn("guard", move || w.run()));
        Ok(threads.flatten().collect())
    })
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(move || {
            sys::block_signals();
            run();
        })
}

impl Common {
    fn new(
        listener: OwnedFd,
        shared: Arc<SharedMap>,
        watch: Watch,
        hooks: Arc<dyn Hooks>,
    ) -> io::Result<Arc<Common>> {
        Ok(Arc::new(Common {
            exits: Exits::new(listener.as_fd())?,
            listener: Arc::new(listener),
            shared,
            watch,
            hooks,
            callers: Callers::new()?,
            mounts_changed: Arc::default(),
            environments: Environments::default(),
            holders: Holders::default(),
            stop: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            running: std::array::from_fn(|_| AtomicU32::new(0)),
            ends: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            queued: AtomicUsize::new(0),
        }))
    }

    fn occasion<'a>(&'a self, caller: &'a Caller, call: &'a Notification, time: u64) -> Occasion<'a> {
        Occasion {
            callers: &self.callers,
            exits: &self.exits,
            caller,
            call,
            time,
        }
    }

    /// Makes every receiver look up and end.
    fn end(&self) {
        self.stop.store(true, Ordering::Release);
        if sys::poll(self.listener.as_fd(), 0, 0) & libc::POLLHUP != 0 {
            self.ended.store(true, Ordering::Release);
        }
        self.wanted.fetch_add(1, Ordering::Release);
        sys::futex_wake(&self.wanted, THREADS as u32);
        // A signal that arrives just before a receiver blocks is lost, so it is sent until all have ended.
        let me = sys::gettid();
        for tries in 0.. {
            let ends = self.ends.load(Ordering::Acquire);
            let tids = self.running.iter().map(|tid| tid.load(Ordering::Acquire));
            let mut others = tids.filter(|tid| *tid != 0 && *tid != me).peekable();
            if others.peek().is_none() {
                return;
            }
            // Where nobody is left, the kernel itself has woken them.
            if tries > 0 || !self.ended.load(Ordering::Acquire) {
                others.for_each(sys::interrupt);
            }
            sys::futex_wait_for(
                &self.ends,
                ends,
                Duration::from_micros(if tries < 10 { 50 } else { 500 }),
            );
        }
    }

    fn run_late<S: SlotSink>(&self, mut out: SlotWriter<S>, queue: &Receiver<Box<Late>>) {
        let mut resolver = Resolver::new(Mounts::new(self.mounts_changed.clone()), true);
        for job in queue {
            self.queued.fetch_sub(1, Ordering::AcqRel);
            let (callers, caller) = (&self.callers, &job.caller);
            let mut cx = Context {
                resolver: &mut resolver,
                callers,
                caller,
                now: job.time,
                since: Some(job.real),
            };
            if let Ok(conclusion) = job.ask.conclude(&mut cx) {
                let stamp = (job.time, who(caller, &job.call));
                write(&mut out, stamp, &job.ask, &conclusion, &self.environments);
            }
        }
    }
}

fn real_time() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as i64)
}

/// One receiver.
struct Worker<S> {
    common: Arc<Common>,
    index: usize,
    out: SlotWriter<S>,
    resolver: Resolver,
    late: Sender<Box<Late>>,
    reserve: Weak<Reserve>,
}

/// How a call is answered.
enum Answer {
    Continue,
    Error(i32),
    Value(i64),
    /// By someone else, later: it has been parked.
    Later,
    /// With a descriptor; has been done.
    Done,
}

impl<S: SlotSink> Worker<S> {
    fn new(
        common: &Arc<Common>,
        reserve: Weak<Reserve>,
        late: &Sender<Box<Late>>,
        index: usize,
        sink: S,
    ) -> Worker<S> {
        Worker {
            common: common.clone(),
            index,
            out: SlotWriter::new(sink),
            resolver: Resolver::new(Mounts::new(common.mounts_changed.clone()), false),
            late: late.clone(),
            reserve,
        }
    }

    /// Starts threads of the reserve, if there still is one.
    fn need(&self, which: impl FnOnce(&Reserve) -> &Standby) {
        if let Some(reserve) = self.reserve.upgrade() {
            which(&reserve).begin();
        }
    }

    fn run(mut self) {
        let common = self.common.clone();
        common.running[self.index].store(sys::gettid(), Ordering::Release);
        // The first call would wait for it; now the command is still being started.
        self.resolver.prepare(sys::now());
        while !common.stop.load(Ordering::Acquire) {
            if self.index > 0 {
                let wanted = common.wanted.load(Ordering::Acquire);
                if sys::poll(self.listener(), libc::POLLIN, 0) & libc::POLLIN == 0 {
                    if !common.stop.load(Ordering::Acquire) {
                        sys::futex_wait(&common.wanted, wanted);
                    }
                    continue;
                }
            }
            let before = sys::now();
            match common.shared.receive(common.listener.as_fd(), self.index) {
                Ok(call) => {
                    let time = sys::now();
                    if time - before < BUSY && self.index + 1 < THREADS {
                        self.call_help();
                    }
                    self.serve(&call, time);
                }
                // Interrupted, or the caller died before it was received; or nobody is left, and the watcher will say so.
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => {
                    if sys::poll(self.listener(), 0, 0) & libc::POLLHUP != 0 {
                        break;
                    }
                }
            }
        }
        common.running[self.index].store(0, Ordering::Release);
        common.ends.fetch_add(1, Ordering::Release);
        sys::futex_wake(&common.ends, u32::MAX >> 1);
    }

    fn listener(&self) -> BorrowedFd<'_> {
        self.common.listener.as_fd()
    }

    /// Wakes a helper if calls are queued.
    fn call_help(&self) {
        if sys::poll(self.listener(), libc::POLLIN, 0) & libc::POLLIN != 0 {
            self.need(|reserve| &reserve.helpers);
            self.common.wanted.fetch_add(1, Ordering::Release);
            sys::futex_wake(&self.common.wanted, 1);
        }
    }

    /// Handles a call that has been received and answers it.
    fn serve(&mut self, call: &Notification, time: u64) {
        let abi = Abi::of(call.arch, call.nr);
        let row = abi.and_then(|abi| abi.row(call.nr));
        let mut late = None;
        let answer = match (abi, row) {
            (
                Some(_),
                Some(Row {
                    guard: Guard::Magic, ..
                }),
            ) => self.magic(call, time),
            (Some(abi), Some(row)) => self.observe(call, time, abi, row, &mut late),
            _ => Answer::Continue,
        };
        let listener = self.common.listener.as_fd();
        // An error means that the caller has been killed meanwhile: nobody waits for the answer.
        let _ = match answer {
            Answer::Continue => sys::answer_continue(listener, call.id),
            Answer::Error(errno) => sys::answer_errno(listener, call.id, errno),
            Answer::Value(value) => sys::answer_value(listener, call.id, value),
            Answer::Later | Answer::Done => Ok(()),
        };
        self.common.shared.clear(self.index);
        if let Some(job) = late {
            self.look_later(job);
        }
    }

    fn look_later(&mut self, job: Box<Late>) {
        let common = &self.common;
        if common.queued.fetch_add(1, Ordering::AcqRel) < LATE {
            self.need(|reserve| &reserve.late);
            let Err(returned) = self.late.send(job) else {
                return;
            };
            common.queued.fetch_sub(1, Ordering::AcqRel);
            self.leave_unknown(&returned.0);
        } else {
            common.queued.fetch_sub(1, Ordering::AcqRel);
            self.leave_unknown(&job);
        }
    }

    fn leave_unknown(&mut self, job: &Late) {
        let unknown = job.ask.unknown();
        let stamp = (job.time, who(&job.caller, &job.call));
        write(
            &mut self.out,
            stamp,
            &job.ask,
            &unknown,
            &self.common.environments,
        );
    }

    /// A watched call: read, conclude, log.
    fn observe(
        &mut self,
        call: &Notification,
        mut time: u64,
        abi: Abi,
        row: &Row,
        late: &mut Option<Box<Late>>,
    ) -> Answer {
        let common = self.common.clone();
        let Some(shape) = row.guard.shape() else {
            return Answer::Continue;
        };
        let mut memory = Memory::of(call.tid);
        // Who can't be found out about (no descriptor left) is still someone: what it does must not be lost.
        let caller = common
            .callers
            .meet(call.tid, time)
            .unwrap_or_else(|_| Caller::unknown(call.tid));
        let mut arguments = Arguments {
            args: &call.args,
            memory: &mut memory,
            caller: &caller,
            callers: &common.callers,
        };
        let ask = Ask::read(shape, abi, &mut arguments);
        if !sys::still_waits(common.listener.as_fd(), call.id) {
            return Answer::Continue;
        }
        if caller.new {
            let at = common.occasion(&caller, call, time);
            time = common.holders.introduce(&mut self.out, &at);
            write_born(&mut self.out, &caller, call, time);
            // A child that never calls exec has an end, too.
            if !common.hooks.tells_end(caller.parent) {
                match caller.process.clone() {
                    Some(process) => common.exits.follow_held(caller.pid, process),
                    None => common.exits.follow(caller.pid),
                }
            }
            if common.exits.any() {
                self.need(|reserve| &reserve.watcher);
            }
        }
        let ask = match ask {
            Ok(ask) => ask,
            Err(Unreadable::Forbidden) => {
                self.unreadable(&caller, call, time);
                return Answer::Continue;
            }
            // The call will fail with EFAULT, whatever it is.
            Err(Unreadable::Fault | Unreadable::Gone) => return Answer::Continue,
        };
        if let Some(answer) = self.ours(call, &caller, &ask) {
            return answer;
        }
        self.note_view(&ask, row, time);
        let gated = !common.watch.strict && common.watch.gate == Some(call.ip);
        if gated || ask.names().into_iter().flatten().any(|name| name.empty) {
            return Answer::Continue;
        }
        self.log(call, caller, time, ask, late);
        Answer::Continue
    }

    fn log(
        &mut self,
        call: &Notification,
        caller: Caller,
        time: u64,
        ask: Ask,
        late: &mut Option<Box<Late>>,
    ) {
        let common = &self.common;
        let stamp = (time, who(&caller, call));
        let repeated = common.callers.repeats(caller.tid, fingerprint(call, &ask));
        if matches!(ask, Ask::Opaque(_)) && !common.callers.mark(caller.tid, 1 << (call.nr % 31)) {
            return;
        }
        let mut cx = Context {
            resolver: &mut self.resolver,
            callers: &common.callers,
            caller: &caller,
            now: time,
            since: None,
        };
        let at = common.occasion(&caller, call, time);
        if !matches!(ask, Ask::Exec { .. } | Ask::Look { .. }) {
            common.holders.acts(&mut self.out, &at);
        }
        match ask.conclude(&mut cx) {
            Ok(conclusion) => {
                if repeated && conclusion.may_wait {
                    return;
                }
                if matches!(ask, Ask::Exec { .. }) && !conclusion.fields.result_failed() {
                    common.holders.execs(&mut self.out, &at);
                }
                write(&mut self.out, stamp, &ask, &conclusion, &common.environments);
            }
            Err(_) if repeated => {}
            Err(_) => {
                *late = Some(Box::new(Late {
                    call: *call,
                    caller,
                    time,
                    real: real_time(),
                    ask,
                }))
            }
        }
    }

    /// What concerns only the recorder and us: opens of the arena and of our own files.
    fn ours(&self, call: &Notification, caller: &Caller, ask: &Ask) -> Option<Answer> {
        let Ask::Open { name, .. } = ask else { return None };
        let watch = &self.common.watch;
        if name.inside == watch.arena_path && !name.inside.is_empty() {
            let trusted = watch.strict && watch.gate == Some(call.ip);
            if trusted {
                return Some(Answer::Continue);
            }
            self.common.holders.silent(caller.pid);
            return Some(Answer::Error(libc::EOPNOTSUPP));
        }
        let hidden = watch.hidden.iter().any(|prefix| name.inside.starts_with(prefix));
        let found = matches!(caller.view, View::Own) && Abi::of(call.arch, call.nr) == Some(Abi::X64);
        if hidden && found {
            self.common.holders.recorded(caller.pid);
        }
        hidden.then_some(Answer::Continue)
    }

    /// Takes notice of what changes the meaning of paths and pids, before it happens.
    fn note_view(&self, ask: &Ask, row: &Row, time: u64) {
        if !matches!(row.guard, Guard::View(..)) {
            return;
        }
        let mut views = true;
        if let Ask::Namespace { flags } = ask {
            if flags & libc::CLONE_NEWPID as u32 != 0 {
                self.common.hooks.pid_namespace();
            }
            views = flags & libc::CLONE_NEWNS as u32 != 0;
        }
        if let Ask::Mount { .. } = ask {
            // Also the first sign of a namespace that `clone3` made, which is never notified.
            self.common.mounts_changed.store(time, Ordering::Release);
        }
        if views {
            self.common.callers.view_changes(time);
        }
    }

    fn unreadable(&mut self, caller: &Caller, call: &Notification, time: u64) {
        if self.common.callers.mark(caller.tid, 1 << 31) {
            self.common.hooks.note(Note::Unreadable { pid: caller.pid });
            let ask = Ask::Opaque("memory of a protected process");
            let conclusion = ask.unknown();
            let stamp = (time, who(caller, call));
            write(&mut self.out, stamp, &ask, &conclusion, &self.common.environments);
        }
    }

    /// A recorder's deliberate call.
    fn magic(&mut self, call: &Notification, time: u64) -> Answer {
        let common = &self.common;
        let (request, argument) = (call.args[1] as i32, call.args[2]);
        match request {
            MAGIC_ANNOUNCE => {
                if let Ok(caller) = common.callers.meet(call.tid, time) {
                    common.hooks.announce(argument as u32, caller.pid, caller.tid);
                    common.holders.recorded(caller.pid);
                    if caller.new {
                        write_born(&mut self.out, &caller, call, time);
                    }
                }
                Answer::Value(0)
            }
            MAGIC_ARENA => match &common.watch.arena {
                Some(arena) => {
                    match sys::answer_descriptor(common.listener.as_fd(), call.id, arena.as_fd()) {
                        Ok(()) => Answer::Done,
                        Err(e) => Answer::Error(e.raw_os_error().unwrap_or(libc::EIO)),
                    }
                }
                None => Answer::Error(libc::ENOENT),
            },
            MAGIC_DRAIN if common.shared.park(call.id) => {
                common.hooks.drain(Waiting::new(
                    call.id,
                    common.listener.clone(),
                    common.shared.clone(),
                ));
                Answer::Later
            }
            MAGIC_DRAIN => Answer::Value(0),
            _ => Answer::Continue,
        }
    }
}
