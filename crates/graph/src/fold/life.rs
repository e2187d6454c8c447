//! Processes: how they begin, where they stand, how they end.
//!
//! A process begins as a copy of its parent. Its end is known late: a `wait` is logged when it begins, so what it waited for has ended
//! only by the next event of the thread that waited.

use backstory_eventlog::event::{Bytes, Pid, Spawn, Time};
use backstory_eventlog::run::RunEnd;

use super::{CallContext, Fold};
use crate::activity::{Epoch, EpochOrigin, Serial};
use crate::model::{EntityKind, Informed, Sink};
use crate::paths::ROOT;
use crate::process::{Descriptor, FsContext, NAMELESS, ProcessState};
use std::rc::Rc;

const CLONE_THREAD: u32 = 0x1_0000;
/// The current directory and the root are shared.
const CLONE_FS: u32 = 0x200;
/// The table of descriptors is shared.
const CLONE_FILES: u32 = 0x400;

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// The epoch that an event belongs to; a process not heard of before begins with it.
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

    /// A process begins that nobody was seen to fork: the run's command, or a child of something that is not recorded.
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

    /// What is known of the run's command before its first event.
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

    /// A process begins as a copy of its parent; with `flags` if its parent was seen to make it.
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

    /// A child's descriptors. Files that the parent opened to read, at numbers nobody knows, are left out: what the child may have
    /// read there, its parent read before it.
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
            // An exec that nobody saw.
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
        // There the flag says that it is shared.
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

    pub(super) fn chdir(
        &mut self,
        call: CallContext,
        fd: i32,
        path: &[u8],
        now: &[u8],
    ) -> Result<(), S::Error> {
        let named = if path.is_empty() {
            self.descriptor(call, fd).map(|h| h.location)
        } else {
            self.place(call, backstory_eventlog::event::CWD, path)
        };
        if call.outcome.failed() {
            return match named {
                Some(named) if call.absent() => self.not_there(call, named),
                _ => Ok(()),
            };
        }
        let root = self.top_of(call);
        let place = if now.starts_with(b"/") {
            let seen = self.walk(root, root, now);
            Some(self.shown(call.pid, seen))
        } else {
            named
        };
        if let Some(place) = place {
            let place = self.follow(place, true);
            self.set_cwd(call, place);
        }
        Ok(())
    }

    /// The root of who made a call.
    pub(super) fn root_of(&self, call: CallContext) -> crate::paths::PathId {
        let process = self.processes.get(&call.pid);
        process.map_or(ROOT, |p| p.fs(call.tid).root.get())
    }

    pub(super) fn set_cwd(&mut self, call: CallContext, place: crate::paths::PathId) {
        if let Some(process) = self.processes.get_mut(&call.pid) {
            process.fs(call.tid).cwd.set(place);
            if let Some(epoch) = self.epochs[process.epoch as usize]
                .as_mut()
                .filter(|e| e.number == 0)
            {
                epoch.cwd = self.paths.bytes(place).into();
            }
        }
    }

    pub(super) fn chroot(&mut self, call: CallContext, path: &[u8]) -> Result<(), S::Error> {
        if call.outcome.failed() {
            return Ok(());
        }
        let place = self.place_of_content(call, backstory_eventlog::event::CWD, path);
        if let (Some(place), Some(process)) = (place, self.processes.get(&call.pid)) {
            process.fs(call.tid).root.set(place);
        }
        Ok(())
    }

    pub(super) fn wait(
        &mut self,
        call: CallContext,
        status: i32,
        looked: bool,
    ) -> Result<(), S::Error> {
        let Some(child) = call.outcome.value().filter(|&c| c > 0) else {
            return Ok(());
        };
        let stopped = status & 0xff == 0x7f || status == 0xffff;
        if stopped {
            return Ok(());
        }
        if let Some(process) = self.processes.get_mut(&(child as Pid)) {
            process.status = Some(status);
        }
        if !looked {
            self.waited
                .entry(call.tid)
                .or_default()
                .push((child as Pid, call.time, call.epoch));
        }
        Ok(())
    }

    /// The thread went on after its waits: the children it waited for had ended before.
    pub(super) fn reap_waited(&mut self, tid: Pid, time: Time) -> Result<(), S::Error> {
        for (child, waited, waiter) in self.waited.remove(&tid).unwrap_or_default() {
            let Some(process) = self.processes.get(&child) else {
                continue;
            };
            let from = process.epoch;
            let ended = self.epochs[from as usize]
                .as_ref()
                .map_or(waited, |e| e.last.max(waited));
            self.informed(from, waiter, Informed::Wait, ended)?;
            self.end_process(child, time)?;
        }
        Ok(())
    }

    pub(super) fn exit(&mut self, call: CallContext, status: i32) -> Result<(), S::Error> {
        if let Some(process) = self.processes.get_mut(&call.pid) {
            process.status.get_or_insert((status & 0xff) << 8);
        }
        Ok(())
    }

    pub(super) fn gone(
        &mut self,
        pid: Pid,
        time: Time,
        status: Option<i32>,
    ) -> Result<(), S::Error> {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.status = status.or(process.status);
            self.end_process(pid, time)?;
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

    /// A process ended: its descriptors are closed. What comes late from it still finds its epoch, for a while.
    pub(super) fn end_process(&mut self, pid: Pid, time: Time) -> Result<(), S::Error> {
        let Some(process) = self.processes.get_mut(&pid).filter(|p| !p.ended) else {
            return Ok(());
        };
        process.ended = true;
        let (serial, status) = (process.epoch, process.status);
        let made = std::mem::take(&mut process.made);
        self.own_pipes(made, time)?;
        let held = self
            .processes
            .get_mut(&pid)
            .map(|p| std::mem::take(&mut p.descriptors))
            .unwrap_or_default();
        for (fd, held) in held {
            self.release(serial, fd, held, time, None)?;
        }
        if let Some(epoch) = &mut self.epochs[serial as usize] {
            epoch.last = epoch.last.max(time);
            if let Some(status) = status {
                let signal = status & 0x7f;
                epoch.exit = (signal == 0).then_some(status >> 8 & 0xff);
                epoch.signal = (signal != 0).then_some(signal);
            }
        }
        self.dead.push_back((pid, serial));
        if self.dead.len() > super::LATE
            && let Some((pid, serial)) = self.dead.pop_front()
            && self.processes.get(&pid).is_some_and(|p| p.epoch == serial)
        {
            self.bury(pid)?;
        }
        Ok(())
    }

    /// Nothing more can come from a process that has ended.
    pub(super) fn bury(&mut self, pid: Pid) -> Result<(), S::Error> {
        let Some(process) = self.processes.remove(&pid) else {
            return Ok(());
        };
        self.announce(process.epoch)?;
        let end = self.epochs[process.epoch as usize]
            .as_ref()
            .map_or(0, |e| e.last);
        self.flush(process.epoch, end)
    }

    /// The run is over: whatever still lives is given as it is.
    pub(super) fn end_all(&mut self, end: Option<&RunEnd>, time: Time) -> Result<(), S::Error> {
        let waiting: Vec<Pid> = self.waited.keys().copied().collect();
        for tid in waiting {
            self.reap_waited(tid, time)?;
        }
        let mut pids: Vec<Pid> = self.processes.keys().copied().collect();
        pids.sort_unstable_by_key(|pid| self.processes[pid].epoch);
        for &pid in &pids {
            let Some(process) = self.processes.get_mut(&pid) else {
                continue;
            };
            let mut ended = time;
            if let (true, Some(end)) = (process.command, end) {
                let status = end.exit.map(|e| e << 8).or(end.signal);
                process.status = status.or(process.status);
                if end.command_ended > 0 {
                    ended = end.command_ended.max(
                        self.epochs[process.epoch as usize]
                            .as_ref()
                            .map_or(0, |e| e.last),
                    );
                }
            }
            self.end_process(pid, ended)?;
        }
        for pid in pids {
            self.bury(pid)?;
        }
        Ok(())
    }
}
