//! Tracks the descriptors of processes that have no recorder. Their `pipe`, `dup` and `fork` calls
//! are not seen, but `/proc` shows what they have open.
//!
//! A process is listed once, at its first call that is not the loader's open of the recorder's
//! library. It is listed again before each `exec` that does not come from a recorder.
//!
//! Invariant: a process whose recorder logs its descriptors is not listed, nor are the children
//! that it forked. A process that a record names has been introduced by a `BORN` record, its
//! ancestors first.

use crate::call_records::caller_ids;
use crate::caller::Caller;
use crate::callers::Callers;
use crate::descriptor_list::DescriptorLister;
use crate::exit_watcher::ExitWatcher;
use crate::notification_buffers::Notification;
use crate::process_map::ProcessMap;
use crate::record_writer::{RecordFields, RecordResult, RecordWriter, born};
use crate::simulator::Simulator;
use backstory_abi::{CallerIds, HOLD_UNKNOWN, op};
use backstory_arena::RecordSink;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Generations of ancestors that are introduced.
const GENERATIONS: usize = 64;

/// How a process's descriptors are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tracking {
    /// A recorder logs what happens to them.
    Recorded,
    /// They were listed.
    Listed,
}

/// How the descriptors of each process are known, and when that was written.
#[derive(Debug)]
pub struct DescriptorTracker {
    /// The first process is the command, whose descriptors the run's header lists.
    begins_with_command: bool,
    known: Mutex<ProcessMap<(Tracking, u64)>>,
    lister: DescriptorLister,
}

/// A call from which the tracker learns of its process.
pub struct TrackedCall<'a> {
    /// The threads met so far.
    pub callers: &'a Callers,
    /// The processes whose exit is awaited.
    pub exits: &'a ExitWatcher,
    /// The thread that makes the call.
    pub caller: &'a Caller,
    /// The call.
    pub notification: &'a Notification,
    /// When the call was received, in ticks.
    pub time: u64,
    /// The byte engine that executes the programs of the run.
    pub simulator: Option<&'a Simulator>,
}

impl TrackedCall<'_> {
    /// The time and the caller of a record about the call.
    fn stamp(&self) -> (u64, CallerIds) {
        (self.time, caller_ids(self.caller, self.notification))
    }

    /// True if two processes run the same file: a child that runs its parent's program was forked.
    fn is_same_program(&self, one: u32, two: u32) -> bool {
        let simulator = self.simulator;
        let program = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        match simulator.and_then(|it| it.is_same_program(self.callers, one, two)) {
            Some(same) => same,
            None => program(one).is_some_and(|path| program(two) == Some(path)),
        }
    }
}

impl DescriptorTracker {
    /// A tracker that knows no process yet. With `begins_with_command`, the run's header lists the
    /// descriptors of the first process that it meets.
    ///
    /// # Errors
    /// As [`DescriptorLister::new`].
    pub fn new(begins_with_command: bool) -> io::Result<DescriptorTracker> {
        Ok(DescriptorTracker {
            begins_with_command,
            known: Mutex::default(),
            lister: DescriptorLister::new()?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, ProcessMap<(Tracking, u64)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, pid: u32) -> Option<Tracking> {
        self.lock().get(pid).map(|known| known.0)
    }

    fn set(&self, pid: u32, state: Tracking, time: u64) {
        self.lock().insert(pid, (state, time));
    }

    /// A recorder runs in the process.
    pub fn set_recorded(&self, pid: u32) {
        self.set(pid, Tracking::Recorded, 0);
    }

    /// True if a recorder is known to run in the process.
    pub fn is_recorded(&self, pid: u32) -> bool {
        self.state(pid) == Some(Tracking::Recorded)
    }

    /// The recorder in the process has found that its gate does not pass, and logs nothing.
    pub fn forget_recorder(&self, pid: u32) {
        self.lock().remove(pid);
    }

    /// Introduces the ancestors of a new process that have made no watched call. Nothing is written
    /// for ancestors that a recorder follows.
    ///
    /// Returns the time that the process's own records are to have: another receiver may have
    /// introduced its parent at a later call.
    pub fn introduce<S: RecordSink>(&self, out: &mut RecordWriter<S>, at: &TrackedCall<'_>) -> u64 {
        self.lock().remove(at.caller.pid);
        self.introduce_ancestors(out, at);
        let parent = self.lock().get(at.caller.parent).copied();
        parent.map_or(at.time, |(_, written)| at.time.max(written + 1))
    }

    fn introduce_ancestors<S: RecordSink>(&self, out: &mut RecordWriter<S>, at: &TrackedCall<'_>) {
        let caller = at.caller;
        let mut unmet = Vec::new();
        let mut parent = caller.parent;
        let known = loop {
            if let Some(known) = self.lock().get(parent).copied() {
                break known;
            }
            // The parent of an orphan or of the command itself is no process of the run.
            if parent <= 1 || parent == std::process::id() || unmet.len() == GENERATIONS {
                return;
            }
            let Ok(above) = at.callers.parent(parent) else {
                return;
            };
            unmet.push((parent, above));
            parent = above;
        };
        let (mut state, written) = known;
        let (mut above, time) = (parent, at.time.max(written + 1));
        for (pid, parent) in unmet.into_iter().rev() {
            if state == Tracking::Recorded && at.is_same_program(above, pid) {
                self.set_recorded(pid);
            } else {
                state = Tracking::Listed;
                at.callers.introduce(pid);
                let ids = CallerIds {
                    pid,
                    tid: pid,
                    ..caller_ids(caller, at.notification)
                };
                out.put(time, ids, &born(pid, parent), &[b"", b""]);
                at.exits.follow(pid);
                self.set(pid, Tracking::Listed, time);
                self.write_list(out, at, (time, ids), false);
            }
            above = pid;
        }
    }

    /// The process is about to make a call other than an `exec`.
    pub fn before_call<S: RecordSink>(&self, out: &mut RecordWriter<S>, at: &TrackedCall<'_>) {
        let pid = at.caller.pid;
        if self.state(pid).is_some() {
            return;
        }
        let state = self.first_state(at);
        if state == Some(Tracking::Listed) {
            self.write_list(out, at, at.stamp(), false);
        }
        self.set(pid, state.unwrap_or(Tracking::Listed), at.time);
    }

    /// The process is about to execute another program.
    pub fn before_exec<S: RecordSink>(&self, out: &mut RecordWriter<S>, at: &TrackedCall<'_>) {
        let pid = at.caller.pid;
        let state = self.state(pid).or_else(|| self.first_state(at));
        match state {
            // The recorder has logged what the process has open. The first call of the next program
            // shows whether it has a recorder.
            Some(Tracking::Recorded) => {
                self.lock().remove(pid);
            }
            Some(Tracking::Listed) => {
                self.write_list(out, at, at.stamp(), true);
                // The children of the process are older than this list.
                let mut known = self.lock();
                if known.get(pid).is_none() {
                    known.insert(pid, (Tracking::Listed, at.time));
                }
            }
            None => {
                self.set(pid, Tracking::Listed, at.time);
            }
        }
    }

    /// How the descriptors of a process are to be known at its first call. `None` if the run's
    /// header lists them.
    fn first_state(&self, at: &TrackedCall<'_>) -> Option<Tracking> {
        let caller = at.caller;
        if self.begins_with_command && self.lock().is_empty() {
            return None;
        }
        let forked = self.state(caller.parent) == Some(Tracking::Recorded)
            && at.is_same_program(caller.parent, caller.pid);
        Some(if forked {
            Tracking::Recorded
        } else {
            Tracking::Listed
        })
    }

    /// Writes all descriptors that a thread's process has open; with `exec`, those that the `exec`
    /// leaves open.
    fn write_list<S: RecordSink>(
        &self,
        out: &mut RecordWriter<S>,
        at: &TrackedCall<'_>,
        (time, ids): (u64, CallerIds),
        exec: bool,
    ) {
        // A process that may not be listed may not be read either, which is reported elsewhere.
        let kept = |flags: u32| {
            !exec || flags & (HOLD_UNKNOWN | libc::O_CLOEXEC as u32) != libc::O_CLOEXEC as u32
        };
        let Ok((mut list, whole)) = self.lister.list(ids.tid, kept) else {
            return;
        };
        if let Some(simulator) = at.simulator
            && simulator.runs(at.callers, ids.tid)
            && let Some(first) = Simulator::first_own_descriptor(ids.tid)
        {
            list.retain(|held| held.number < first);
        }
        let fields = |number, flags, result| RecordFields {
            fd: ids.pid as i32,
            arg: number,
            aux: flags,
            result: RecordResult::Known(result),
            ..RecordFields::of(op::HOLD)
        };
        if !whole {
            let name = b"a process with very many descriptors";
            let known = RecordFields {
                result: RecordResult::Known(0),
                ..RecordFields::of(op::OPAQUE)
            };
            out.put(time, ids, &known, &[name]);
        }
        out.put(
            time,
            ids,
            &fields(-1, u32::from(exec), list.len() as i32),
            &[b""],
        );
        for held in list {
            out.put(
                time,
                ids,
                &fields(held.number, held.flags, 0),
                &[&held.target],
            );
        }
    }
}
