//! The snapshot of a started program, and the attempts that begin in copies of it.
//!
//! In: a program that accepts the first connection that is fed. Out: the same program for the first
//! attempt, and a copy of it for each further one. Three kinds of process take part beside it:
//!
//! - The holder is the process that has started the program, the first one of its pid namespace. It
//!   holds the snapshot and the state of the supervisor behind the start.
//! - For each attempt, the holder forks a supervisor. This one goes on with that state, and ends
//!   behind its verdict.
//! - The snapshot is a copy of the program that only makes further copies. Each of these gets the
//!   recorded number, when the copy before it has ended.
//!
//! Invariant: a copy that would differ from a newly started program is not used. In doubt, the
//! attempt begins with a start. `docs/design/start-copies.md` lists the differences.

use super::own_pipes::OwnPipes;
use super::part::Part;
use super::pipes::Pipes;
use super::process_groups::Membership;
use super::{Response, Supervisor, preparing};
use crate::behind_start::state;
use crate::engine::attempts::{AttemptSource, NextAttempt};
use crate::engine::caller::NotifiedCall;
use crate::engine::copy_code::CopyCode;
use crate::engine::filter::COPY;
use crate::engine::proc_texts::{field, open_flags, signals};
use crate::engine::start::next_pid;
use crate::process::RecordedProcess;
use crate::recorded::RecordedRun;
use crate::resource::{Resource, ResourceId};
use crate::shift::ClockShift;
use backstory_sys as sys;
use rustix::fs::{OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, seek};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A program makes its copy within this time.
const COPYING_MS: i32 = 5_000;
/// The processes of an attempt end within this time.
const ENDING: Duration = Duration::from_secs(10);
/// The end of process numbers, if the kernel does not tell it (`pid_max` in proc(5)).
const USUAL_END: u32 = 32_768;
/// The first process of a pid namespace.
const FIRST_PROCESS: u32 = 1;

/// The source of further attempts, and the state of the first one that these need.
pub struct Attempts {
    source: Box<dyn AttemptSource>,
    /// The part of the record that the first one is fed, before anything was taken of it.
    processes: Vec<RecordedProcess>,
    resources: Vec<Resource>,
    shift: ClockShift,
    /// The last call before which a snapshot was considered.
    looked: u64,
}

impl Attempts {
    pub fn new(source: Box<dyn AttemptSource>, run: &RecordedRun, shift: ClockShift) -> Attempts {
        Attempts {
            source,
            processes: run.processes.clone(),
            resources: run.resources.clone(),
            shift,
            looked: 0,
        }
    }
}

/// The beginning of an attempt in a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyStart {
    pub began: Instant,
    /// The calls of the start. 0: this is the first attempt, which made them itself.
    pub calls: u64,
}

/// The copy that makes further ones.
struct Snapshot {
    code: CopyCode,
    /// It waits for the response to this question.
    question: NotifiedCall,
    files: Vec<OpenFile>,
}

/// The state of a descriptor that copies share.
#[derive(Debug, PartialEq, Eq)]
struct OpenFile {
    number: i32,
    flags: u32,
    /// Of a file or directory of the root.
    position: Option<u64>,
}

/// The state of the supervisor that another part of the record decides about.
struct OtherPart {
    records: Vec<RecordedProcess>,
    resources: Vec<Resource>,
    part: Part,
    users: HashMap<ResourceId, usize>,
    made: HashMap<u32, usize>,
    killed_early: HashMap<u32, i32>,
    pipes: Pipes,
    own_pipes: OwnPipes,
}

impl Supervisor {
    /// Takes a snapshot before a call that accepts the first connection which is fed, or waits for
    /// it. True: the program makes the call again. `listener`: that of the connection, if the
    /// program knows it already.
    pub(super) fn takes_snapshot(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        listener: Option<ResourceId>,
    ) -> bool {
        let Some(attempts) = self.attempts.as_mut().filter(|of| of.looked != call.id) else {
            return false;
        };
        attempts.looked = call.id;
        let is_first = self.part.as_ref().is_some_and(|part| part.start.is_none());
        let may_copy = is_first && self.is_alone(call) && self.lacks_obstacles();
        let Some(attempts) = self.attempts.take_if(|_| may_copy) else {
            // A program that only waits has another chance when it accepts.
            if listener.is_some() || !is_first {
                self.attempts = None;
            }
            return false;
        };
        // The obstacles are listed before the snapshot exists, so it is not among them.
        self.end_start();
        let Ok(code) = CopyCode::put(call) else {
            return false;
        };
        self.answer(call, Response::Value(0));
        self.matchers[index].comes_again();
        if let Some((program, snapshot)) = self.first_copy(call, code) {
            let place = (index, listener);
            self.hold_snapshot(attempts, snapshot, (program, place));
        }
        true
    }

    /// True if the caller is the only process, which the supervisor has started.
    fn is_alone(&self, call: &NotifiedCall) -> bool {
        let own = self.child as u32;
        let leads = Membership::of(own).is_some_and(|now| now.group == own && now.session == own);
        let pending = fs::read_to_string(format!("/proc/{own}/status")).map(|status| {
            let of = |name| signals(&status, name);
            of("SigPnd") | of("ShdPnd")
        });
        std::process::id() == FIRST_PROCESS
            && call.tid == own
            && leads
            && !self.has_tool
            && self.parked.is_empty()
            && pending.is_ok_and(|pending| pending == 0)
    }

    /// Lets the program copy itself, and makes it ask whether to go on. `None`: it makes the call
    /// again without a copy.
    fn first_copy(
        &mut self,
        call: &NotifiedCall,
        code: CopyCode,
    ) -> Option<(NotifiedCall, Snapshot)> {
        let question = self.next_question();
        let files = self.open_files(call.tid);
        let number = self.free_number();
        let copies = match question {
            Some(question) if may_copy(&question) => self.copied(&question, number),
            other => Err(other),
        };
        // A program that keeps the jump would ask again, and go on then.
        let _ = code.take_jump_from(call.tid);
        let (program, question) = match copies {
            Ok(copies) => copies,
            Err(last) => {
                self.end_copies();
                // The program goes on, or a handler of a signal has come first.
                if let Some(last) = last {
                    self.receive(&last);
                }
                return None;
            }
        };
        let snapshot = Snapshot {
            code,
            question,
            files,
        };
        Some((program, snapshot))
    }

    /// Lets the caller of a question copy itself. The copy gets this number, if it is free. Returns
    /// the next question of the caller, and that of the copy. The error is another call of the
    /// caller that came, if one did.
    fn copied(
        &self,
        question: &NotifiedCall,
        number: u32,
    ) -> Result<(NotifiedCall, NotifiedCall), Option<NotifiedCall>> {
        next_pid(number);
        self.answer(question, Response::Value(1));
        let (mut old, mut new) = (None, None);
        loop {
            let next = match (old, new) {
                (Some(old), Some(new)) => return Ok((old, new)),
                _ => self.next_question(),
            };
            let Some(next) = next else {
                return Err(old);
            };
            match (next.tid == question.tid, next.number) {
                (true, COPY) => old = Some(next),
                (false, COPY) => new = Some(next),
                (true, libc::SYS_clone) | (false, libc::SYS_setsid) => {
                    self.answer(&next, Response::Continue);
                }
                (true, _) => return Err(Some(next)),
                (false, _) => return Err(old),
            }
        }
    }

    /// Ends all children of this process but the program: copies that are not used.
    fn end_copies(&self) {
        let own = std::process::id();
        let children = sys::process_tree::descendants_of(own);
        let is_copy =
            |pid: &u32| *pid != self.child as u32 && sys::process_tree::parent(*pid) == Some(own);
        for pid in children.into_iter().filter(is_copy) {
            let _ = sys::kill(pid as sys::Pid, libc::SIGKILL);
        }
    }

    /// The next call of a program that copies itself. `None`: none came, or it is gone.
    fn next_question(&self) -> Option<NotifiedCall> {
        let listener = self.listener.as_fd();
        let ready = sys::poll(listener, libc::POLLIN, COPYING_MS);
        let next = (ready & libc::POLLIN != 0).then(|| sys::next_notification(listener));
        next?.ok().map(NotifiedCall::from)
    }

    /// A number that the record does not have, for processes beside the program. It is a high one:
    /// another part of the record may have children that are not in this one.
    fn free_number(&self) -> u32 {
        let recorded = self.matchers.iter().flat_map(|matcher| {
            let rest = &matcher.rest;
            let own = [rest.pid, rest.own_pid];
            own.into_iter().chain(rest.threads.iter().copied())
        });
        let recorded: HashSet<u32> = recorded.chain(self.made.keys().copied()).collect();
        let is_free = |number: &u32| {
            !recorded.contains(number) && !Path::new(&format!("/proc/{number}")).exists()
        };
        let end = fs::read_to_string("/proc/sys/kernel/pid_max");
        let end = end.ok().and_then(|end| end.trim().parse().ok());
        let mut all = (FIRST_PROCESS + 1..end.unwrap_or(USUAL_END)).rev();
        all.find(is_free).unwrap_or(FIRST_PROCESS + 1)
    }

    /// The open files of a program, with the state that its copies share.
    fn open_files(&self, pid: u32) -> Vec<OpenFile> {
        let entries = fs::read_dir(format!("/proc/{pid}/fd"));
        let of = |name: &str| {
            let number = name.parse().ok()?;
            let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
            let about = fs::metadata(format!("/proc/{pid}/fd/{number}")).ok()?;
            let is_native = self.stand_ins.of(pid, number).is_none();
            let has_position = is_native && (about.is_file() || about.is_dir());
            let position = field(&info, "pos").filter(|_| has_position);
            Some(OpenFile {
                number,
                flags: open_flags(&info)?,
                position: position.and_then(|position| position.parse().ok()),
            })
        };
        let entries = entries.into_iter().flatten().flatten();
        entries
            .filter_map(|entry| of(entry.file_name().to_str()?))
            .collect()
    }

    /// Forks a supervisor for each attempt, and holds the snapshot. The function returns in each
    /// supervisor. In the calling process it returns only if the first fork fails. `place`: the
    /// program, and the listener of the connection.
    fn hold_snapshot(
        &mut self,
        mut attempts: Attempts,
        mut snapshot: Snapshot,
        (program, place): (NotifiedCall, (usize, Option<ResourceId>)),
    ) {
        attempts.source.begins();
        self.aside = HashSet::from([FIRST_PROCESS, snapshot.question.tid]);
        next_pid(self.free_number());
        let mut supervisor = match sys::fork() {
            Ok(0) | Err(_) => {
                self.in_copy = Some(CopyStart {
                    began: self.began,
                    calls: 0,
                });
                return self.answer(&program, Response::Value(0));
            }
            Ok(supervisor) => supervisor,
        };
        loop {
            let ended = self.has_ended(supervisor, snapshot.question.tid);
            let next = ended.then(|| attempts.source.next()).flatten();
            let other = next.and_then(|next| self.other_part(&attempts, place, next));
            let copy = other.and_then(|other| Some((other, self.next_copy(&mut snapshot)?)));
            let Some((other, program)) = copy else {
                sys::exit_now(0);
            };
            attempts.source.goes_on();
            next_pid(self.free_number());
            match sys::fork() {
                Ok(0) => {
                    self.continue_with(other);
                    return self.answer(&program, Response::Value(0));
                }
                Ok(next) => supervisor = next,
                Err(_) => sys::exit_now(0),
            }
        }
    }

    /// Waits for the end of an attempt, and ends its processes. False: one of them stays.
    fn has_ended(&self, supervisor: sys::Pid, snapshot: u32) -> bool {
        let _ = Pid::from_raw(supervisor).map(|pid| waitpid(Some(pid), WaitOptions::empty()));
        let others = || -> Vec<u32> {
            let all = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            pids.filter(|pid| ![FIRST_PROCESS, snapshot].contains(pid))
                .collect()
        };
        let began = Instant::now();
        loop {
            let left = others();
            if left.is_empty() {
                return true;
            }
            if began.elapsed() > ENDING {
                return false;
            }
            for pid in left {
                let _ = sys::kill(pid as sys::Pid, libc::SIGKILL);
            }
            while let Ok(Some(_)) = sys::child_change(None, libc::WEXITED) {}
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Makes the next copy, which asks whether to go on. `None`: it would differ from the program.
    fn next_copy(&self, snapshot: &mut Snapshot) -> Option<NotifiedCall> {
        let pid = snapshot.question.tid;
        restore_files(pid, &snapshot.files).ok()?;
        if self.open_files(pid) != snapshot.files {
            return None;
        }
        let number = self.child as u32;
        let (question, copy) = self.copied(&snapshot.question, number).ok()?;
        snapshot.question = question;
        let is_right = copy.tid == number && copy.args[0] == 0;
        (is_right && snapshot.code.take_jump_from(copy.tid).is_ok()).then_some(copy)
    }

    /// The state that another part of the record has behind this start. `None`: it needs a start of
    /// its own.
    fn other_part(
        &self,
        attempts: &Attempts,
        (index, listener): (usize, Option<ResourceId>),
        next: NextAttempt,
    ) -> Option<OtherPart> {
        let NextAttempt { run, options } = next;
        let (run, _) = crate::engine::changed(run, &options).ok()?;
        let unit = run.chosen?;
        let fits = run.resources.len() == attempts.resources.len()
            && run.processes.len() == attempts.processes.len()
            && options.shift == attempts.shift;
        // The program may have chosen the listener already.
        let first = run.processes.get(index)?.first_connection();
        let comes_there = first.is_some_and(|(_, own)| listener.is_none_or(|of| of == own));
        if !fits || !comes_there {
            return None;
        }
        let users = preparing::users(&run.processes);
        let fresh = attempts.processes.iter().zip(&run.processes);
        let all = fresh.zip(&self.matchers).zip(&self.started);
        let records = all.map(|(((fresh, other), matcher), started)| match started {
            true => RecordedProcess::behind_start(fresh, &matcher.rest, other),
            false => (matcher.rest == *fresh).then(|| other.clone()),
        });
        let fresh = attempts.resources.iter().zip(&run.resources);
        let resources = fresh.zip(&self.resources);
        let resources = resources.map(|((fresh, other), left)| state(fresh, left, other));
        Some(OtherPart {
            resources: resources.collect::<Option<_>>()?,
            pipes: self.pipes.untouched(&run.processes)?,
            own_pipes: self.own_pipes.untouched(&run.processes, &users)?,
            made: preparing::made(&run.processes),
            killed_early: run.killed_early,
            part: Part::new(unit, run.fed, &options).behind_start(self.part.as_ref()?),
            records: records.collect::<Option<_>>()?,
            users,
        })
    }

    /// Goes on with another part of the record, in a supervisor of its own.
    fn continue_with(&mut self, other: OtherPart) {
        self.in_copy = Some(CopyStart {
            began: Instant::now(),
            calls: self.calls_so_far(),
        });
        for (matcher, record) in self.matchers.iter_mut().zip(other.records) {
            matcher.continue_with(record);
        }
        self.resources = other.resources;
        self.part = Some(other.part);
        self.users = other.users;
        self.made = other.made;
        self.killed_early = other.killed_early;
        self.pipes = other.pipes;
        self.own_pipes = other.own_pipes;
        // These have moments of the start.
        self.progress = None;
        self.still = None;
    }
}

/// True for the question of a program without timers, which a copy would lack.
fn may_copy(question: &NotifiedCall) -> bool {
    question.number == COPY && question.args[0] == 0
}

/// Gives the open files of a program the positions and flags that they had.
fn restore_files(pid: u32, files: &[OpenFile]) -> io::Result<()> {
    let process = sys::pidfd_open(pid, false)?;
    for file in files {
        let own = sys::pidfd_getfd(process.as_fd(), file.number)?;
        let flags = fcntl_getfl(own.as_fd())?;
        let wanted = OFlags::from_bits_retain(file.flags);
        if (flags ^ wanted).contains(OFlags::NONBLOCK) {
            let mut flags = flags;
            flags.set(OFlags::NONBLOCK, wanted.contains(OFlags::NONBLOCK));
            fcntl_setfl(own.as_fd(), flags)?;
        }
        if let Some(position) = file.position {
            seek(own.as_fd(), SeekFrom::Start(position))?;
        }
    }
    Ok(())
}
