//! Processes: how they begin and end, and their directories.
//!
//! A process begins as a copy of its parent. The fold learns late that a process has ended. A
//! `wait` is logged when it begins, so the child has ended only by the next event of the waiting
//! thread.

use backstory_eventlog::event::{Bytes, Pid, Spawn, Time};

use super::{CallContext, Fold};
use crate::activity::{Epoch, EpochOrigin};
use crate::model::{EntityKind, Informed, Sink};
use crate::paths::ROOT;
use crate::process::{Descriptor, FsContext, NAMELESS, ProcessState};
use crate::serial::Serial;
use std::rc::Rc;

const CLONE_THREAD: u32 = 0x1_0000;
/// The current directory and the root are shared.
const CLONE_FS: u32 = 0x200;
/// The table of descriptors is shared.
const CLONE_FILES: u32 = 0x400;

impl<S: Sink> Fold<'_, S> {
    /// The epoch that an event belongs to. A process that the fold has not met before begins with
    /// it.
    pub(super) fn process_of(&mut self, call: CallContext) -> Result<Serial, S::Error> {
        let serial = match self.processes.get(&call.pid) {
            Some(process) => process.epoch,
            None => {
                self.appear(call, None)?;
                self.processes[&call.pid].epoch
            }
        };
        if let Some(epoch) = &mut self.epochs[serial as usize] {
            epoch.last = epoch.last.max(call.time);
        }
        Ok(serial)
    }

    /// Begins a process whose fork was not seen: the run's command, or a child of a process that is
    /// not recorded.
    pub(super) fn appear(
        &mut self,
        call: CallContext,
        parent: Option<Pid>,
    ) -> Result<(), S::Error> {
        let first = self.epochs.is_empty();
        let parent = parent.filter(|p| *p != call.pid && self.processes.contains_key(p));
        self.begin_process(call, call.pid, parent, None)?;
        if first {
            self.set_up_command(call)?;
        }
        Ok(())
    }

    /// Sets the facts about the run's command that are known before its first event.
    pub(super) fn set_up_command(&mut self, call: CallContext) -> Result<(), S::Error> {
        let header = self.header;
        let cwd = self.walk(ROOT, ROOT, &header.cwd);
        let cwd_bytes: Bytes = self.paths.bytes(cwd).into();
        if let Some(process) = self.processes.get_mut(&call.pid) {
            process.fs.cwd.set(cwd);
            process.command = true;
            let epoch = process.epoch as usize;
            if let Some(epoch) = &mut self.epochs[epoch] {
                epoch.argv = header.command.iter().map(|a| a.as_slice().into()).collect();
                epoch.env = Some(
                    header
                        .environment
                        .iter()
                        .map(|v| v.as_slice().into())
                        .collect(),
                );
                epoch.cwd = cwd_bytes;
            }
        }
        self.inherit_from_header(call)
    }

    /// Begins a process as a copy of its parent. `flags` are those of its clone, if that was seen.
    pub(super) fn begin_process(
        &mut self,
        call: CallContext,
        pid: Pid,
        parent: Option<Pid>,
        flags: Option<u32>,
    ) -> Result<(), S::Error> {
        let (forked, flags) = (flags.is_some(), flags.unwrap_or(0));
        if self.processes.contains_key(&pid) {
            self.end_process(pid, call.time)?;
            self.bury(pid)?;
        }
        self.functions.inherit(pid, parent);
        let serial = self.epochs.len() as Serial;
        let mut process = ProcessState::new(pid, serial, forked);
        let mut epoch = Epoch::new(pid, call.time, call.via);
        if let Some(from) = parent.and_then(|p| self.processes.get(&p)) {
            process.parent = from.pid;
            process.fs = Rc::clone(from.fs(call.tid));
            if flags & CLONE_FS == 0 {
                process.fs = Rc::new(FsContext::clone(&process.fs));
            }
            if flags & CLONE_FILES != 0 {
                process.table = Rc::clone(&from.table);
            }
            process.binds = Rc::clone(&from.binds);
            process.own_mounts = from.own_mounts;
            let origin = EpochOrigin {
                from: from.epoch,
                why: Informed::Fork,
                time: call.time,
            };
            epoch.origin = Some(origin);
            process.descriptors = self.copies(from, call.time);
            if let Some(old) = &self.epochs[from.epoch as usize] {
                epoch.resemble(old);
                epoch.recorded = forked && old.recorded;
                // The child returns from functions that its parent called.
                let around = from.outer.iter().rev().find(|one| !one.is_function);
                if let Some(program) = around.filter(|_| old.is_function) {
                    epoch.argv = program.argv.clone();
                }
            }
            if self.epochs[origin.from as usize].is_some() {
                self.last(origin.from);
                epoch.parent = Some(self.announce(origin.from)?);
            }
        }
        epoch.cwd = self.paths.bytes(process.fs.cwd.get()).into();
        let held: Vec<Descriptor> = process.descriptors.values().cloned().collect();
        held.iter().for_each(|h| self.retain(h));
        self.epochs.push(Some(Box::new(epoch)));
        self.processes.insert(pid, process);
        Ok(())
    }

    /// A child's descriptors, as copies of its parent's. Files that the parent opened for reading
    /// at unknown numbers are left out, because the parent itself has already read their content.
    pub(super) fn copies(
        &self,
        from: &ProcessState,
        time: Time,
    ) -> std::collections::BTreeMap<i32, Descriptor> {
        let worth = |held: &Descriptor| match &held.what {
            Some(what) => what.writes || !matches!(self.object(what.source).kind, EntityKind::File),
            None => true,
        };
        let held = from
            .descriptors
            .iter()
            .filter(|(fd, held)| **fd > NAMELESS || worth(held));
        held.map(|(&fd, held)| (fd, self.inherited(held, time)))
            .collect()
    }

    pub(super) fn inherited(&self, held: &Descriptor, time: Time) -> Descriptor {
        let version = |object| self.object(object).now().number;
        let (source_from, target_from) = match &held.what {
            Some(what) => (version(what.source), version(what.target)),
            None => (0, 0),
        };
        let (read, written, listed) = (None, None, None);
        Descriptor {
            since: time,
            own: false,
            read,
            written,
            listed,
            source_from,
            target_from,
            carried_nothing: false,
            ..held.clone()
        }
    }

    pub(super) fn born(
        &mut self,
        call: CallContext,
        parent: Pid,
        exe: &[u8],
        cwd: &[u8],
    ) -> Result<(), S::Error> {
        let new = self.processes.get(&call.pid).is_none_or(|p| p.ended);
        if new {
            self.appear(call, Some(parent))?;
            if !cwd.is_empty() {
                let place = self.walk(ROOT, ROOT, cwd);
                self.set_cwd(call, place);
            }
        }
        if exe.is_empty() {
            return Ok(());
        }
        let epoch = self.process_of(call)?;
        self.running(CallContext { epoch, ..call }, exe, new)
    }

    pub(super) fn start(
        &mut self,
        call: CallContext,
        ppid: Pid,
        forked: bool,
    ) -> Result<(), S::Error> {
        if self.processes.get(&call.pid).is_none_or(|p| p.ended) {
            self.appear(call, Some(ppid))?;
        }
        let epoch = self.process_of(call)?;
        let process = &self.processes[&call.pid];
        if !forked && (process.started || process.epoch_number == 0) {
            // The exec was not seen.
            let program = self.program_of_command(call.pid);
            self.become_program(CallContext { epoch, ..call }, program)?;
        }
        let Some(process) = self.processes.get_mut(&call.pid) else {
            return Ok(());
        };
        process.started = true;
        if let Some(epoch) = &mut self.epochs[process.epoch as usize] {
            epoch.recorded = true;
        }
        Ok(())
    }

    pub(super) fn fork(
        &mut self,
        call: CallContext,
        flags: u32,
        spawn: Option<Spawn>,
    ) -> Result<(), S::Error> {
        let Some(child) = call.outcome.value().filter(|&c| c > 0) else {
            return Ok(());
        };
        let child = child as Pid;
        if flags & CLONE_THREAD != 0 || child == call.pid {
            return Ok(());
        }
        let known = self.processes.get(&child);
        if known.is_some_and(|p| !p.forked && !p.ended && p.parent == call.pid) {
            return Ok(());
        }
        self.begin_process(call, child, Some(call.pid), Some(flags))?;
        // In a clone, `CLONE_FS` means that the directory is shared. In `unshare`, it means the
        // opposite.
        self.part_namespace(child, child, flags & !CLONE_FS);
        let hidden = matches!(spawn, Some(Spawn::Posix | Spawn::Popen));
        if let Some(process) = self.processes.get_mut(&child) {
            process.spawned = hidden;
        }
        if spawn == Some(Spawn::Popen) {
            self.hidden_pipe(call, child)?;
        }
        Ok(())
    }

    pub(super) fn kill(
        &mut self,
        call: CallContext,
        pid: i32,
        signal: i32,
    ) -> Result<(), S::Error> {
        let Some(target) = u32::try_from(pid).ok().and_then(|p| self.processes.get(&p)) else {
            return Ok(());
        };
        if signal == 0 || !call.ok() || target.epoch == call.epoch {
            return Ok(());
        }
        let to = target.epoch;
        self.informed(call.epoch, to, Informed::Signal, call.time)
    }
}
