//! Processes: how they begin, what they become, how they end.
//!
//! What runs between a fork and the exec that follows (epoch 0) belongs to the program that is about to run: redirections are its
//! redirections, the search through `PATH` was for it. Only if epoch 0 changed or read something that the program does not get a
//! descriptor of, made children or never called exec, it is an activity of its own.

use std::sync::Arc;

use backstory_eventlog::event::{Bytes, Pid, Spawn, Time, Via};
use backstory_eventlog::run::RunEnd;
use rustc_hash::FxHashSet;

use super::{Call, Fold};
use crate::activity::{Edges, Epoch, Origin, Serial, Use};
use crate::model::{
    Activity, ActivityId, Certainty, Edge, EntityId, EntityKind, Inform, Informed, Interval, Relation, Sink,
};
use crate::paths::ROOT;
use crate::process::{Held, NAMELESS, Process};

const CLONE_THREAD: u32 = 0x1_0000;
/// The path of a directory that a process is in.
const PATH: &[u8] = b"PATH=";

/// What an exec said of the program that runs from now on.
struct Program {
    path: Option<Bytes>,
    argv: Vec<Bytes>,
    env: Option<Arc<[Bytes]>>,
}

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// The epoch that an event belongs to; a process not heard of before begins with it.
    pub(super) fn process_of(&mut self, call: Call) -> Result<Serial, S::Error> {
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
    fn appear(&mut self, call: Call, parent: Option<Pid>) -> Result<(), S::Error> {
        let first = self.epochs.is_empty();
        let parent = parent.filter(|p| *p != call.pid && self.processes.contains_key(p));
        self.begin_process(call, call.pid, parent, false)?;
        if first {
            self.set_up_command(call)?;
        }
        Ok(())
    }

    /// What is known of the run's command before its first event.
    fn set_up_command(&mut self, call: Call) -> Result<(), S::Error> {
        let header = self.header;
        let cwd = self.walk(ROOT, ROOT, &header.cwd);
        let cwd_bytes: Bytes = self.paths.bytes(cwd).into();
        if let Some(process) = self.processes.get_mut(&call.pid) {
            (process.cwd, process.command) = (cwd, true);
            let epoch = process.epoch as usize;
            if let Some(epoch) = &mut self.epochs[epoch] {
                epoch.argv = header.command.iter().map(|a| a.as_slice().into()).collect();
                epoch.env = Some(header.environment.iter().map(|v| v.as_slice().into()).collect());
                epoch.cwd = cwd_bytes;
            }
        }
        self.inherit_from_header(call)
    }

    /// A process begins as a copy of its parent.
    fn begin_process(
        &mut self,
        call: Call,
        pid: Pid,
        parent: Option<Pid>,
        forked: bool,
    ) -> Result<(), S::Error> {
        if self.processes.contains_key(&pid) {
            self.end_process(pid, call.time)?;
            self.bury(pid)?;
        }
        let serial = self.epochs.len() as Serial;
        let mut process = Process::new(pid, serial, forked);
        let mut epoch = Epoch::new(pid, call.time, call.via);
        if let Some(from) = parent.and_then(|p| self.processes.get(&p)) {
            (process.parent, process.cwd, process.root) = (from.pid, from.cwd, from.root);
            let origin = Origin {
                from: from.epoch,
                why: Informed::Fork,
                time: call.time,
            };
            epoch.origin = Some(origin);
            process.held = self.copies(from, call.time);
            if let Some(old) = &self.epochs[from.epoch as usize] {
                epoch.resemble(old);
                epoch.recorded = forked && old.recorded;
            }
            if self.epochs[origin.from as usize].is_some() {
                epoch.parent = Some(self.announce(origin.from)?);
            }
        }
        epoch.cwd = self.paths.bytes(process.cwd).into();
        let held: Vec<Held> = process.held.values().cloned().collect();
        held.iter().for_each(|h| self.retain(h));
        self.epochs.push(Some(Box::new(epoch)));
        self.processes.insert(pid, process);
        Ok(())
    }

    /// A child's descriptors. Files that the parent opened to read, at numbers nobody knows, are left out: what the child may have
    /// read there, its parent read before it.
    fn copies(&self, from: &Process, time: Time) -> std::collections::BTreeMap<i32, Held> {
        let worth = |held: &Held| match &held.what {
            Some(what) => what.writes || !matches!(self.object(what.source).kind, EntityKind::File),
            None => true,
        };
        let held = from
            .held
            .iter()
            .filter(|(fd, held)| **fd > NAMELESS || worth(held));
        held.map(|(&fd, held)| (fd, self.inherited(held, time))).collect()
    }

    fn inherited(&self, held: &Held, time: Time) -> Held {
        let version = |object| self.object(object).now().number;
        let (source_from, target_from) = match &held.what {
            Some(what) => (version(what.source), version(what.target)),
            None => (0, 0),
        };
        let (read, written, listed) = (None, None, None);
        Held {
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

    pub(super) fn born(&mut self, call: Call, parent: Pid, exe: &[u8], cwd: &[u8]) -> Result<(), S::Error> {
        let new = self.processes.get(&call.pid).is_none_or(|p| p.ended);
        if new {
            self.appear(call, Some(parent))?;
            if !cwd.is_empty() {
                let place = self.walk(ROOT, ROOT, cwd);
                self.stand_in(call.pid, place);
            }
        }
        if exe.is_empty() {
            return Ok(());
        }
        let epoch = self.process_of(call)?;
        self.running(Call { epoch, ..call }, exe, new)
    }

    /// The supervisor saw which file the kernel runs: for a script that is its interpreter.
    fn running(&mut self, call: Call, exe: &[u8], new: bool) -> Result<(), S::Error> {
        let place = self.walk(ROOT, ROOT, exe);
        let Some(epoch) = &mut self.epochs[call.epoch as usize] else {
            return Ok(());
        };
        if epoch.exec_path.is_none() || new {
            epoch.exec_path = Some(exe.into());
            return Ok(());
        }
        let (number, path) = (epoch.number, epoch.exec_path.clone().unwrap_or_default());
        if number == 0 || *path == *exe {
            return Ok(());
        }
        let program = self.walk(ROOT, ROOT, &path);
        let program = self.follow(program, true);
        if self.lookup(program, call, None)? == self.lookup(place, call, None)? {
            return Ok(());
        }
        let script = self.hint(program, true).is_some();
        if script {
            self.executed(call, place)?;
        }
        Ok(())
    }

    pub(super) fn start(&mut self, call: Call, ppid: Pid, forked: bool) -> Result<(), S::Error> {
        if self.processes.get(&call.pid).is_none_or(|p| p.ended) {
            self.appear(call, Some(ppid))?;
        }
        let epoch = self.process_of(call)?;
        let process = &self.processes[&call.pid];
        if !forked && (process.started || process.epoch_number == 0) {
            // An exec that nobody saw.
            let program = self.program_of_command(call.pid);
            self.become_program(Call { epoch, ..call }, program)?;
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

    /// The run's command as its header gives it, for recordings in which its exec was not seen.
    fn program_of_command(&mut self, pid: Pid) -> Program {
        let process = &self.processes[&pid];
        let (command, cwd) = (process.command && process.epoch_number == 0, process.cwd);
        if !command {
            return Program {
                path: None,
                argv: Vec::new(),
                env: None,
            };
        }
        let header = self.header;
        let argv: Vec<Bytes> = header.command.iter().map(|a| a.as_slice().into()).collect();
        let env: Arc<[Bytes]> = header.environment.iter().map(|v| v.as_slice().into()).collect();
        let name = header.command.first().map(Vec::as_slice).unwrap_or_default();
        let directories: Vec<&[u8]> = if name.contains(&b'/') {
            vec![b""]
        } else {
            let variable = header.environment.iter().find_map(|v| v.strip_prefix(PATH));
            variable
                .unwrap_or(b"/bin:/usr/bin")
                .split(|&b| b == b':')
                .collect()
        };
        let mut found = None;
        for directory in directories {
            let start = self.walk(cwd, ROOT, directory);
            let place = self.walk(start, ROOT, name);
            let executable =
                |mode: u32| mode & 0o111 != 0 && crate::object::kind_of(mode) == EntityKind::File;
            let hint = self.hint(place, true);
            if name.contains(&b'/') || hint.is_some_and(|i| executable(i.mode)) {
                found.get_or_insert(place);
            }
        }
        Program {
            path: found.map(|p| self.paths.bytes(p).into()),
            argv,
            env: Some(env),
        }
    }

    pub(super) fn fork(&mut self, call: Call, flags: u32, spawn: Option<Spawn>) -> Result<(), S::Error> {
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
        self.begin_process(call, child, Some(call.pid), true)?;
        let hidden = matches!(spawn, Some(Spawn::Posix | Spawn::Popen));
        if let Some(process) = self.processes.get_mut(&child) {
            process.spawned = hidden;
        }
        if spawn == Some(Spawn::Popen) {
            self.hidden_pipe(call, child)?;
        }
        Ok(())
    }

    pub(super) fn exec(
        &mut self,
        call: Call,
        dir: i32,
        path: &[u8],
        argv: Vec<Bytes>,
        env: Option<Arc<[Bytes]>>,
    ) -> Result<(), S::Error> {
        let named = if path.is_empty() {
            self.held(call, dir).map(|h| h.path)
        } else {
            self.place(call, dir, path)
        };
        if call.outcome.failed() {
            return match named {
                Some(named) if call.absent() => self.not_there(call, named),
                Some(named) => {
                    let place = self.follow(named, true);
                    let object = self.lookup(place, call, None)?;
                    let entity = self.entity_now(call, object, named)?;
                    self.touch(call, entity, Relation::Stat);
                    Ok(())
                }
                None => Ok(()),
            };
        }
        let path = named.map(|p| self.paths.bytes(p).into());
        self.become_program(call, Program { path, argv, env })
    }

    /// An exec succeeded: the process goes on as another program.
    fn become_program(&mut self, call: Call, program: Program) -> Result<(), S::Error> {
        self.drop_cloexec(call)?;
        let short = self.epochs[call.epoch as usize]
            .as_ref()
            .is_some_and(|e| e.number == 0 && e.id.is_none());
        let path = program.path.clone();
        let epoch = if short {
            self.collapse(call, program)?
        } else {
            self.next_epoch(call, program)?
        };
        let call = Call { epoch, ..call };
        if let Some(process) = self.processes.get_mut(&call.pid) {
            (process.epoch, process.started, process.spawned) = (epoch, false, false);
            process.epoch_number = self.epochs[epoch as usize].as_ref().map_or(1, |e| e.number);
        }
        if let Some(path) = path {
            let place = self.walk(ROOT, ROOT, &path);
            self.executed(call, place)?;
        }
        self.announce(epoch)?;
        Ok(())
    }

    fn executed(&mut self, call: Call, named: crate::paths::PathId) -> Result<(), S::Error> {
        let place = self.follow(named, true);
        let object = self.lookup(place, call, None)?;
        self.object_mut(object).now_mut().read = true;
        let entity = self.entity_now(call, object, named)?;
        let interval = super::descriptors::at(call.time);
        self.edge(
            call.epoch,
            entity,
            Relation::Execute,
            interval,
            Certainty::Seen,
            call.via,
        );
        Ok(())
    }

    /// Descriptors that an exec closes. Some may live on under another number.
    fn drop_cloexec(&mut self, call: Call) -> Result<(), S::Error> {
        let Some(process) = self.processes.get_mut(&call.pid) else {
            return Ok(());
        };
        let numbers: Vec<i32> = process
            .held
            .iter()
            .filter(|(_, h)| h.cloexec)
            .map(|(&fd, _)| fd)
            .collect();
        let keep = process.spawned;
        for fd in numbers {
            let Some(held) = self.processes.get_mut(&call.pid).and_then(|p| p.held.remove(&fd)) else {
                continue;
            };
            let what = held.what.as_deref();
            let spawned = keep && fd >= 0 && what.is_some_and(|w| w.reads || w.writes);
            // Where only the guard looks, nobody sees a descriptor duplicated for the program to come.
            let unseen = fd <= NAMELESS && what.is_some_and(|w| w.writes && w.via == Via::Kernel);
            if spawned || unseen {
                let copy = Held {
                    cloexec: false,
                    own: false,
                    ..held.clone()
                };
                self.install_nameless(call, copy)?;
            }
            self.release(call.epoch, fd, held, call.time, None)?;
        }
        Ok(())
    }

    /// Epoch 0 becomes the program's epoch, unless it did something of its own: then that stays with it.
    fn collapse(&mut self, call: Call, program: Program) -> Result<Serial, S::Error> {
        let kept = self.passed_on(call.pid);
        let own = |edge: &Use| {
            let look = matches!(
                edge.relation,
                Relation::Missing | Relation::Stat | Relation::Link | Relation::List | Relation::Execute
            );
            !look && !kept.contains(&edge.entity)
        };
        let Some(epoch) = &mut self.epochs[call.epoch as usize] else {
            return Ok(call.epoch);
        };
        if !epoch.edges.iter().any(own) {
            epoch.run(program.path, program.argv, program.env, call);
            return Ok(call.epoch);
        }
        self.next_epoch(call, program)
    }

    /// The versions that the process goes on to hold descriptors of.
    fn passed_on(&mut self, pid: Pid) -> FxHashSet<EntityId> {
        let mut found = FxHashSet::default();
        let Some(process) = self.processes.get(&pid) else {
            return found;
        };
        for held in process.held.values() {
            let Some(what) = &held.what else { continue };
            for (object, first) in [(what.source, held.source_from), (what.target, held.target_from)] {
                let object = &mut self.objects[object.0 as usize];
                let last = object.now().number;
                for number in first..=last {
                    let version = object.kept(number);
                    found.extend(version.entity);
                    found.extend(version.links.iter().map(|(_, entity)| *entity));
                }
            }
        }
        found
    }

    /// The epoch after the present one; what stays open is inherited.
    fn next_epoch(&mut self, call: Call, program: Program) -> Result<Serial, S::Error> {
        self.announce(call.epoch)?;
        let serial = self.epochs.len() as Serial;
        let mut epoch = Epoch::new(call.pid, call.time, call.via);
        if let Some(old) = &mut self.epochs[call.epoch as usize] {
            (old.execed, old.last) = (true, old.last.max(call.time));
            epoch.resemble(old);
            epoch.number = old.number;
            epoch.parent = old.id;
            epoch.origin = Some(Origin {
                from: call.epoch,
                why: Informed::Exec,
                time: call.time,
            });
            if old.number == 0 {
                // The short epoch's own environment was its parent's.
                epoch.parent_env = old.env.clone();
            }
        }
        epoch.run(program.path, program.argv, program.env, call);
        if let Some(process) = self.processes.get(&call.pid) {
            epoch.cwd = self.paths.bytes(process.cwd).into();
        }
        self.epochs.push(Some(Box::new(epoch)));
        let held = self
            .processes
            .get_mut(&call.pid)
            .map(|p| std::mem::take(&mut p.held))
            .unwrap_or_default();
        for (fd, old) in held {
            let worth = fd > NAMELESS || old.what.as_ref().is_some_and(|w| w.writes);
            if worth {
                let new = self.inherited(&old, call.time);
                self.retain(&new);
                if let Some(process) = self.processes.get_mut(&call.pid) {
                    process.held.insert(fd, new);
                }
            }
            self.release(call.epoch, fd, old, call.time, None)?;
        }
        self.flush(call.epoch, call.time)?;
        Ok(serial)
    }

    pub(super) fn chdir(&mut self, call: Call, fd: i32, path: &[u8], now: &[u8]) -> Result<(), S::Error> {
        let named = if path.is_empty() {
            self.held(call, fd).map(|h| h.path)
        } else {
            self.place(call, backstory_eventlog::event::CWD, path)
        };
        if call.outcome.failed() {
            return match named {
                Some(named) if call.absent() => self.not_there(call, named),
                _ => Ok(()),
            };
        }
        let root = self.processes.get(&call.pid).map_or(ROOT, |p| p.root);
        let place = if now.starts_with(b"/") {
            Some(self.walk(root, root, now))
        } else {
            named
        };
        if let Some(place) = place {
            let place = self.follow(place, true);
            self.stand_in(call.pid, place);
        }
        Ok(())
    }

    fn stand_in(&mut self, pid: Pid, place: crate::paths::PathId) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.cwd = place;
            if let Some(epoch) = self.epochs[process.epoch as usize]
                .as_mut()
                .filter(|e| e.number == 0)
            {
                epoch.cwd = self.paths.bytes(place).into();
            }
        }
    }

    pub(super) fn chroot(&mut self, call: Call, path: &[u8]) -> Result<(), S::Error> {
        if call.outcome.failed() {
            return Ok(());
        }
        let place = self.place_of_content(call, backstory_eventlog::event::CWD, path);
        if let (Some(place), Some(process)) = (place, self.processes.get_mut(&call.pid)) {
            process.root = place;
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, call: Call, status: i32, looked: bool) -> Result<(), S::Error> {
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

    fn informed(&mut self, from: Serial, to: Serial, why: Informed, time: Time) -> Result<(), S::Error> {
        if self.epochs[from as usize].is_none() || self.epochs[to as usize].is_none() {
            return Ok(());
        }
        let (from, to) = (self.announce(from)?, self.announce(to)?);
        self.sink.inform(&Inform { from, to, why, time })
    }

    pub(super) fn exit(&mut self, call: Call, status: i32) -> Result<(), S::Error> {
        if let Some(process) = self.processes.get_mut(&call.pid) {
            process.status.get_or_insert((status & 0xff) << 8);
        }
        Ok(())
    }

    pub(super) fn gone(&mut self, pid: Pid, time: Time, status: Option<i32>) -> Result<(), S::Error> {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.status = status.or(process.status);
            self.end_process(pid, time)?;
        }
        Ok(())
    }

    pub(super) fn kill(&mut self, call: Call, pid: i32, signal: i32) -> Result<(), S::Error> {
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
    fn end_process(&mut self, pid: Pid, time: Time) -> Result<(), S::Error> {
        let Some(process) = self.processes.get_mut(&pid).filter(|p| !p.ended) else {
            return Ok(());
        };
        process.ended = true;
        let (serial, status) = (process.epoch, process.status);
        for (fd, held) in std::mem::take(&mut process.held) {
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
    fn bury(&mut self, pid: Pid) -> Result<(), S::Error> {
        let Some(process) = self.processes.remove(&pid) else {
            return Ok(());
        };
        self.announce(process.epoch)?;
        let end = self.epochs[process.epoch as usize].as_ref().map_or(0, |e| e.last);
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
                    ended = end
                        .command_ended
                        .max(self.epochs[process.epoch as usize].as_ref().map_or(0, |e| e.last));
                }
            }
            self.end_process(pid, ended)?;
        }
        for pid in pids {
            self.bury(pid)?;
        }
        Ok(())
    }

    /// Gives an epoch its node.
    pub(super) fn announce(&mut self, serial: Serial) -> Result<ActivityId, S::Error> {
        let Some(epoch) = &mut self.epochs[serial as usize] else {
            // Only what lives is announced; an ended epoch has its node already.
            return Ok(self.ended_id(serial));
        };
        if let Some(id) = epoch.id {
            return Ok(id);
        }
        let id = ActivityId(self.activities);
        self.activities += 1;
        epoch.id = Some(id);
        self.ids
            .resize(self.ids.len().max(serial as usize + 1), ActivityId(u32::MAX));
        self.ids[serial as usize] = id;
        let activity = epoch.activity(id, self.header.modes.lookups == "all");
        let origin = epoch.origin;
        self.sink.activity(&activity)?;
        if let (Some(origin), Some(from)) = (origin, activity.parent) {
            self.sink.inform(&Inform {
                from,
                to: id,
                why: origin.why,
                time: origin.time,
            })?;
        }
        Ok(id)
    }

    fn ended_id(&self, serial: Serial) -> ActivityId {
        self.ids.get(serial as usize).copied().unwrap_or(ActivityId(0))
    }

    /// Gives an epoch's final form and its edges, and forgets it.
    fn flush(&mut self, serial: Serial, end: Time) -> Result<(), S::Error> {
        let Some(mut epoch) = self.epochs[serial as usize].take() else {
            return Ok(());
        };
        epoch.last = epoch.last.max(end);
        let Some(id) = epoch.id else { return Ok(()) };
        self.sink
            .activity(&epoch.activity(id, self.header.modes.lookups == "all"))?;
        for edge in epoch.edges.iter() {
            let Use {
                entity,
                relation,
                interval,
                certainty,
                via,
            } = *edge;
            self.sink.edge(&Edge {
                activity: id,
                entity,
                relation,
                interval,
                certainty,
                via,
            })?;
        }
        Ok(())
    }
}

impl Epoch {
    fn new(pid: Pid, start: Time, via: Via) -> Epoch {
        Epoch {
            id: None,
            origin: None,
            parent: None,
            pid,
            number: 0,
            exec_path: None,
            argv: Vec::new(),
            env: None,
            parent_env: None,
            cwd: b"/".as_slice().into(),
            start,
            last: start,
            exit: None,
            signal: None,
            execed: false,
            recorded: false,
            via,
            edges: Edges::default(),
        }
    }

    /// A fork child runs its parent's program.
    fn resemble(&mut self, parent: &Epoch) {
        self.exec_path = parent.exec_path.clone();
        self.argv = parent.argv.clone();
        self.env = parent.env.clone();
        self.parent_env = parent.env.clone();
    }

    /// The next program begins.
    fn run(&mut self, path: Option<Bytes>, argv: Vec<Bytes>, env: Option<Arc<[Bytes]>>, call: Call) {
        self.number += 1;
        self.exec_path = path;
        self.argv = argv;
        self.env = env.or_else(|| self.env.take());
        self.recorded = false;
        self.via = call.via;
    }

    fn activity(&self, id: ActivityId, lookups: bool) -> Activity {
        let (env_set, env_unset) = difference(self.parent_env.as_deref(), self.env.as_deref());
        Activity {
            id,
            parent: self.parent,
            pid: self.pid,
            epoch: self.number,
            exec_path: self.exec_path.clone(),
            argv: self.argv.clone(),
            env_set,
            env_unset,
            cwd: self.cwd.clone(),
            interval: Interval {
                start: self.start,
                end: self.last,
            },
            exit: self.exit,
            signal: self.signal,
            execed: self.execed,
            lookups_known: lookups || self.recorded,
            via: self.via,
        }
    }
}

/// Variables set otherwise than in `old`, and names that are gone from it.
fn difference(old: Option<&[Bytes]>, new: Option<&[Bytes]>) -> (Vec<Bytes>, Vec<Bytes>) {
    let (Some(old), Some(new)) = (old, new) else {
        return (Vec::new(), Vec::new());
    };
    if std::ptr::eq(old, new) {
        return (Vec::new(), Vec::new());
    }
    let had: FxHashSet<&[u8]> = old.iter().map(|v| &**v).collect();
    let set = new.iter().filter(|v| !had.contains(&***v)).cloned().collect();
    let names: FxHashSet<&[u8]> = new.iter().map(|v| name(v)).collect();
    let unset = old
        .iter()
        .map(|v| name(v))
        .filter(|n| !names.contains(n))
        .map(Into::into)
        .collect();
    (set, unset)
}

fn name(variable: &[u8]) -> &[u8] {
    variable.split(|&b| b == b'=').next().unwrap_or(variable)
}
