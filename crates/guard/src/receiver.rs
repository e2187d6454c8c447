//! One receiver: takes a notification, logs it, answers it.
//!
//! Invariant: the record of a call is appended before the answer, so that a call that went on is in the log, whatever happens to us.

use super::ask::Ask;
use super::caller::{Caller, View};
use super::coming::may_read;
use super::conclude::{Ahead, Context};
use super::decode::Arguments;
use super::hooks::{Effort, Waiting};
use super::late::{Late, real_time};
use super::memory::{Memory, Unreadable};
use super::mounts::Mounts;
use super::over::Going;
use super::preserve::{About, Job, Occasion, not_kept};
use super::receivers::{Common, Reserve, THREADS};
use super::record_writer::RecordWriter;
use super::resolve::Resolver;
use super::shared::Notification;
use super::standby::Standby;
use super::table::{Abi, Guard, Row, Shape};
use super::uring::RingCall;
use super::write::{fingerprint, who, write, write_born};
use backstory_abi::{MAGIC_ANNOUNCE, MAGIC_ARENA, MAGIC_DRAIN, MAGIC_PRESERVE};
use backstory_arena::RecordSink;
use backstory_eventlog::Reason;
use backstory_eventlog::reason::undecoded;
use backstory_sys::kernel as sys;
use std::cell::OnceCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};

/// Opens and look-ups that can wait for the late thread; of more, the outcome stays unknown.
const LATE: usize = 4096;
/// A receive that took fewer ticks than this did not sleep: more calls may be queued.
const BUSY: u64 = 5_000;

/// One receiver.
pub(super) struct Worker<S> {
    pub(super) common: Arc<Common>,
    index: usize,
    pub(super) out: RecordWriter<S>,
    pub(super) resolver: Resolver,
    late: Sender<Box<Late>>,
    reserve: Weak<Reserve>,
}

/// How a call is answered.
pub(super) enum Answer {
    Continue,
    Error(i32),
    Value(i64),
    /// By someone else, later: it has been parked.
    Later,
    /// With a descriptor; has been done.
    Done,
}

impl<S: RecordSink> Worker<S> {
    /// The receiver of place `index`, not running yet.
    pub(super) fn new(
        common: &Arc<Common>,
        reserve: Weak<Reserve>,
        late: &Sender<Box<Late>>,
        index: usize,
        sink: S,
    ) -> Worker<S> {
        Worker {
            common: common.clone(),
            index,
            out: RecordWriter::new(sink),
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

    /// Answers calls until the guard ends or nobody is left who has the filter.
    pub(super) fn run(mut self) {
        let common = self.common.clone();
        common.running[self.index].store(sys::gettid(), Ordering::Release);
        // A caller waits, and until its call has been received a signal makes it fail: on a busy machine that is milliseconds.
        sys::come_first();
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
        common.ends(self.index);
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
        // Where the kernel has no x32, nothing comes of such a call but ENOSYS.
        let abi = Abi::of(call.arch, call.nr).filter(|&abi| abi != Abi::X32 || sys::has_x32());
        let row = abi.and_then(|abi| abi.row(call.nr));
        let mut late = Vec::new();
        let answer = match (abi, row) {
            (
                Some(_),
                Some(Row {
                    guard: Guard::Magic,
                    ..
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
        for job in late {
            self.look_later(Box::new(job));
        }
    }

    fn look_later(&mut self, job: Box<Late>) {
        // It has been counted.
        if self.common.queued.load(Ordering::Acquire) > LATE {
            return self.common.leave_unknown(&mut self.out, &job);
        }
        self.need(|reserve| &reserve.late);
        if let Err(returned) = self.late.send(job) {
            self.common.leave_unknown(&mut self.out, &returned.0);
        }
    }

    /// A watched call: read, conclude, log.
    fn observe(
        &mut self,
        call: &Notification,
        mut time: u64,
        abi: Abi,
        row: &Row,
        late: &mut Vec<Late>,
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
            cwd: OnceCell::new(),
        };
        let ask = Ask::read(shape, abi, &mut arguments);
        if !sys::still_waits(common.listener.as_fd(), call.id) {
            return Answer::Continue;
        }
        if caller.new {
            let at = common.occasion(&caller, call, time);
            common.rings.forget(caller.pid);
            time = common.holders.introduce(&mut self.out, &at);
            let orphan = common.hooks.tells_end(caller.parent);
            write_born(&mut self.out, &caller, call, time, orphan);
            // A child that never calls exec has an end, too.
            if !orphan {
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
        if shape == Shape::Listener {
            let program = common.callers.link(call.tid, format_args!("exe"));
            let program = program.unwrap_or_else(|| format!("process {}", caller.pid).into_bytes());
            let program = String::from_utf8_lossy(&program).into_owned();
            common.hooks.note(Reason::ListenerRefused { program });
            return Answer::Continue;
        }
        if let Shape::RingSetup | Shape::RingEnter | Shape::RingRegister = shape {
            let at = RingCall {
                call,
                caller: &caller,
                memory: &mut memory,
                time,
            };
            return self.ring(shape, at, late);
        }
        if let Some(answer) = self.ours(call, &caller, time, &ask) {
            return answer;
        }
        self.note_view(&ask, row, time);
        let gated = !common.watch.strict && common.watch.gate == Some(call.ip);
        if gated || ask.names().into_iter().flatten().any(|name| name.empty) {
            return Answer::Continue;
        }
        let coming = self.about_to_lose(&caller, &ask, time);
        let reads = may_read(&ask);
        self.log(call, caller, time, (ask, coming.looked), late);
        self.count(reads, !late.is_empty());
        match coming.lost {
            Some(seen) => self.preserve(call, time, About::Seen(vec![seen])),
            None => Answer::Continue,
        }
    }

    /// What is still to be looked at is counted before its caller goes on, and so is told to be read more than is known.
    pub(super) fn count(&self, reads: bool, late: bool) {
        let common = &self.common;
        if late {
            common.queued.fetch_add(1, Ordering::AcqRel);
        }
        common.tell_read(reads);
    }

    /// Nobody needs what a call changes, or it could be kept with so little effort that nobody else has to be woken for that.
    fn preserve_at_once(&mut self, at: &Occasion<'_>) -> bool {
        let common = self.common.clone();
        // Else a look at what was read might wait for somebody.
        let local = self.resolver.all_local(at.time);
        common.hooks.keep().is_some_and(|keep| {
            let (resolver, out) = (&mut self.resolver, &mut self.out);
            local
                && common
                    .preserve(keep, Effort::Little, at, resolver, out)
                    .is_ok()
        })
    }

    /// Keeps what a call changes, or lets it wait until that has been done.
    pub(super) fn preserve(&mut self, call: &Notification, time: u64, about: About) -> Answer {
        if self.common.hooks.keep().is_none() {
            return Answer::Continue;
        }
        let at = Occasion {
            call,
            time,
            about: &about,
        };
        if self.preserve_at_once(&at) {
            return Answer::Continue;
        }
        let common = &self.common;
        if !common.shared.park(call.id) {
            // More calls wait than can be remembered for the keeper.
            not_kept(&mut self.out, call, time, &about, libc::EAGAIN);
            return Answer::Continue;
        }
        let waiting = Waiting::new(call.id, common.listener.clone(), common.shared.clone());
        common.preservers.give(Job {
            waiting: waiting.going_on(),
            call: *call,
            time,
            about,
        });
        Answer::Later
    }

    pub(super) fn log(
        &mut self,
        call: &Notification,
        caller: Caller,
        time: u64,
        (ask, ahead): (Ask, Option<Ahead>),
        late: &mut Vec<Late>,
    ) {
        let common = &self.common;
        let stamp = (time, who(&caller, call));
        let repeated = common.callers.repeats(caller.tid, fingerprint(call, &ask));
        if let Ask::Opaque(what) = ask
            && !common.rings.first_mark(caller.pid, what)
        {
            return;
        }
        let mut cx = Context {
            resolver: &mut self.resolver,
            callers: &common.callers,
            caller: &caller,
            now: time,
            since: None,
            ahead,
            asked: None,
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
                write(
                    &mut self.out,
                    stamp,
                    &ask,
                    &conclusion,
                    &common.environments,
                );
            }
            Err(_) if repeated => {}
            Err(_) => {
                late.push(Late {
                    going: Going::new(call),
                    call: *call,
                    caller,
                    time,
                    real: real_time(),
                    ask,
                });
            }
        }
    }

    /// What concerns only the recorder and us: opens of the arena and of our own files.
    fn ours(&self, call: &Notification, caller: &Caller, time: u64, ask: &Ask) -> Option<Answer> {
        let Ask::Open { name, .. } = ask else {
            return None;
        };
        let watch = &self.common.watch;
        if name.inside == watch.arena_path && !name.inside.is_empty() {
            let trusted = watch.strict && watch.gate == Some(call.ip);
            if trusted {
                return Some(Answer::Continue);
            }
            self.common.holders.silent(caller.pid);
            return Some(Answer::Error(libc::EOPNOTSUPP));
        }
        let hidden = watch
            .hidden
            .iter()
            .any(|prefix| name.inside.starts_with(prefix));
        // `clone3` is never notified; in a program with a recorder, that has seen it. Numbers matter to recorders alone: this is before the
        // first of them can be in the namespace.
        if hidden
            && !self.common.holders.is_recorded(caller.parent)
            && self.common.callers.has_other_numbers(call.tid)
        {
            self.common.hooks.pid_namespace();
        }
        let found =
            matches!(caller.view, View::Own) && Abi::of(call.arch, call.nr) == Some(Abi::X64);
        if hidden && found {
            self.common.holders.recorded(caller.pid);
            if let Some(keep) = self.common.hooks.keep() {
                let directory = self.common.callers.link(caller.tid, format_args!("cwd"));
                keep.starts(time, caller.pid, directory);
            }
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
            self.common
                .hooks
                .note(Reason::Unreadable { pid: caller.pid });
            let ask = Ask::Opaque(undecoded::PROTECTED);
            let conclusion = ask.unknown();
            let stamp = (time, who(caller, call));
            write(
                &mut self.out,
                stamp,
                &ask,
                &conclusion,
                &self.common.environments,
            );
        }
    }

    /// A recorder's deliberate call.
    fn magic(&mut self, call: &Notification, time: u64) -> Answer {
        let common = &self.common;
        let (request, argument) = (call.args[1] as i32, call.args[2]);
        match request {
            MAGIC_ANNOUNCE => {
                if let Ok(caller) = common.callers.meet(call.tid, time) {
                    common
                        .hooks
                        .announce(argument as u32, caller.pid, caller.tid);
                    common.holders.recorded(caller.pid);
                    if caller.new {
                        let orphan = common.hooks.tells_end(caller.parent);
                        write_born(&mut self.out, &caller, call, time, orphan);
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
            MAGIC_PRESERVE => self.preserve(call, time, About::Asked),
            _ => Answer::Continue,
        }
    }
}
