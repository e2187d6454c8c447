//! Programs: what a process becomes by exec.
//!
//! What runs between a fork and the exec that follows (epoch 0) belongs to the program that is about to run: redirections are its
//! redirections, the search through `PATH` was for it. Only if epoch 0 changed or read something that the program does not get a
//! descriptor of, made children or never called exec, it is an activity of its own.

use std::rc::Rc;
use std::sync::Arc;

use backstory_eventlog::event::{Bytes, Pid, Via};
use rustc_hash::FxHashSet;

use super::{CallContext, Fold};
use crate::activity::{EntityUse, Epoch, EpochOrigin, Serial};
use crate::model::{Certainty, EntityId, EntityKind, Informed, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use crate::process::{Descriptor, NAMELESS};

/// Where programs are looked for.
const PATH: &[u8] = b"PATH=";

/// As many interpreters of interpreters as the kernel runs, and a loader.
const MOST_INTERPRETERS: usize = 6;

/// What an exec said of the program that runs from now on.
pub(super) struct NextProgram {
    pub(super) path: Option<Bytes>,
    /// What runs, if it has no path: a file in memory.
    pub(super) nameless: Option<ObjectId>,
    pub(super) argv: Vec<Bytes>,
    pub(super) env: Option<Arc<[Bytes]>>,
}

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// The supervisor saw which file the kernel runs: for a script that is its interpreter.
    pub(super) fn running(
        &mut self,
        call: CallContext,
        exe: &[u8],
        new: bool,
    ) -> Result<(), S::Error> {
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

    /// The run's command as its header gives it, for recordings in which its exec was not seen.
    pub(super) fn program_of_command(&mut self, pid: Pid) -> NextProgram {
        let process = &self.processes[&pid];
        let (command, cwd) = (
            process.command && process.epoch_number == 0,
            process.fs.cwd.get(),
        );
        if !command {
            return NextProgram {
                path: None,
                nameless: None,
                argv: Vec::new(),
                env: None,
            };
        }
        let header = self.header;
        let argv: Vec<Bytes> = header.command.iter().map(|a| a.as_slice().into()).collect();
        let env: Arc<[Bytes]> = header
            .environment
            .iter()
            .map(|v| v.as_slice().into())
            .collect();
        let name = header
            .command
            .first()
            .map(Vec::as_slice)
            .unwrap_or_default();
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
        NextProgram {
            path: found.map(|p| self.paths.bytes(p).into()),
            nameless: None,
            argv,
            env: Some(env),
        }
    }

    pub(super) fn exec(
        &mut self,
        call: CallContext,
        dir: i32,
        path: &[u8],
        argv: Vec<Bytes>,
        env: Option<Arc<[Bytes]>>,
    ) -> Result<(), S::Error> {
        let named = if path.is_empty() {
            self.descriptor(call, dir).map(|h| h.path)
        } else {
            self.place(call, dir, path)
                .map(|named| self.own_program(call, named))
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
        let held = if path.is_empty() {
            self.object_of_descriptor(call, dir)?
        } else {
            None
        };
        let nameless = held.filter(|&(object, _)| self.object(object).label.is_some());
        let path = match nameless {
            Some((object, _)) => self.object(object).label.clone(),
            None => named.map(|p| self.paths.bytes(p).into()),
        };
        let program = NextProgram {
            path,
            nameless: nameless.map(|(object, _)| object),
            argv,
            env,
        };
        self.become_program(call, program)
    }

    /// `/proc/self/exe` is what the process runs already.
    fn own_program(&mut self, call: CallContext, named: PathId) -> PathId {
        let pid = call.pid.to_string();
        let text = self.paths.bytes(named);
        let own = match text
            .strip_prefix(b"/proc/")
            .and_then(|t| t.strip_suffix(b"/exe"))
        {
            Some(whose) => whose == b"self" || whose == b"thread-self" || whose == pid.as_bytes(),
            None => false,
        };
        let epoch = self.epochs[call.epoch as usize].as_ref();
        match epoch.and_then(|e| e.exec_path.clone()).filter(|_| own) {
            Some(program) => self.walk(ROOT, ROOT, &program),
            None => named,
        }
    }

    /// An exec succeeded: the process goes on as another program.
    pub(super) fn become_program(
        &mut self,
        call: CallContext,
        program: NextProgram,
    ) -> Result<(), S::Error> {
        self.drop_cloexec(call)?;
        // Before its first exec the run's command is us.
        let command = self.processes.get(&call.pid).is_some_and(|p| p.command);
        let short = self.epochs[call.epoch as usize]
            .as_ref()
            .is_some_and(|e| e.number == 0 && (command || !e.lasting));
        let (path, nameless) = (program.path.clone(), program.nameless);
        let epoch = if short {
            self.collapse(call, program)?
        } else {
            self.next_epoch(call, program)?
        };
        let call = CallContext { epoch, ..call };
        let outlets = self.outlets(call.pid);
        let mut giver = None;
        if let Some(epoch) = &mut self.epochs[epoch as usize] {
            epoch.began_with = outlets;
            giver = epoch.origin.map(|origin| origin.from);
        }
        self.give(giver, &outlets);
        if let Some(process) = self.processes.get_mut(&call.pid) {
            (process.epoch, process.started, process.spawned) = (epoch, false, false);
            process.epoch_number = self.epochs[epoch as usize].as_ref().map_or(1, |e| e.number);
        }
        if let Some(object) = nameless {
            self.ran(call, object, ROOT, Certainty::Seen)?;
        } else if let Some(path) = path {
            let place = self.walk(ROOT, ROOT, &path);
            self.executed(call, place)?;
            self.run_with(call, place)?;
        }
        self.announce(epoch)?;
        Ok(())
    }

    pub(super) fn executed(&mut self, call: CallContext, named: PathId) -> Result<(), S::Error> {
        let place = self.follow(named, true);
        let object = self.lookup(place, call, None)?;
        self.ran(call, object, named, Certainty::Seen)
    }

    /// What the kernel opened by itself to run `program`: the interpreter of a script, that one's own, and at last the dynamic loader.
    /// The programs said so after the run; of one that was changed since, it is but possible.
    fn run_with(&mut self, call: CallContext, program: PathId) -> Result<(), S::Error> {
        let (mut program, mut certainty) = (program, Certainty::Seen);
        for _ in 0..MOST_INTERPRETERS {
            let place = self.follow(program, true);
            let Some(interpreter) = self.final_state.interpreter(&self.paths, place) else {
                break;
            };
            let Some(process) = self.processes.get(&call.pid) else {
                break;
            };
            let fs = process.fs(call.tid);
            let (root, cwd) = (fs.root.get(), fs.cwd.get());
            let base = if interpreter.starts_with(b"/") {
                root
            } else {
                cwd
            };
            let named = self.walk(base, root, &interpreter);
            let named = self.shown(call.pid, named);
            if self
                .hint(place, true)
                .is_none_or(|now| now.ctime > call.time + super::NEAR)
            {
                certainty = Certainty::Possible;
            }
            let place = self.follow(named, true);
            let object = self.lookup(place, call, None)?;
            self.ran(call, object, named, certainty)?;
            program = named;
        }
        Ok(())
    }

    fn ran(
        &mut self,
        call: CallContext,
        object: ObjectId,
        named: PathId,
        certainty: Certainty,
    ) -> Result<(), S::Error> {
        self.object_mut(object).now_mut().read = true;
        let entity = self.entity_now(call, object, named)?;
        let interval = super::descriptors::at(call.time);
        self.edge(
            call.epoch,
            entity,
            Relation::Execute,
            interval,
            certainty,
            call.via,
        );
        Ok(())
    }

    /// Descriptors that an exec closes. Some may live on under another number.
    pub(super) fn drop_cloexec(&mut self, call: CallContext) -> Result<(), S::Error> {
        let Some(process) = self.processes.get_mut(&call.pid) else {
            return Ok(());
        };
        let numbers: Vec<i32> = process
            .descriptors
            .iter()
            .filter(|(_, h)| h.cloexec)
            .map(|(&fd, _)| fd)
            .collect();
        let keep = process.spawned;
        for fd in numbers {
            let Some(held) = self
                .processes
                .get_mut(&call.pid)
                .and_then(|p| p.descriptors.remove(&fd))
            else {
                continue;
            };
            let what = held.what.as_deref();
            let spawned = keep && fd >= 0 && what.is_some_and(|w| w.reads || w.writes);
            // Where only the guard looks, nobody sees a descriptor duplicated for the program to come.
            let unseen = fd <= NAMELESS && what.is_some_and(|w| w.writes && w.via == Via::Kernel);
            if spawned || unseen {
                let copy = Descriptor {
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
    pub(super) fn collapse(
        &mut self,
        call: CallContext,
        program: NextProgram,
    ) -> Result<Serial, S::Error> {
        let kept = self.passed_on(call.pid);
        let own = |edge: &EntityUse| {
            let look = matches!(
                edge.relation,
                Relation::Missing
                    | Relation::Stat
                    | Relation::Link
                    | Relation::List
                    | Relation::Execute
            );
            // What it merely could have done does not make it a program of its own.
            edge.certainty == Certainty::Seen && !look && !kept.contains(&edge.entity)
        };
        let Some(epoch) = &mut self.epochs[call.epoch as usize] else {
            return Ok(call.epoch);
        };
        let command = self.processes.get(&call.pid).is_some_and(|p| p.command);
        if command || !epoch.edges.iter().any(own) {
            epoch.run(program.path, program.argv, program.env, call);
            return Ok(call.epoch);
        }
        self.next_epoch(call, program)
    }

    /// The versions that the process goes on to hold descriptors of.
    pub(super) fn passed_on(&mut self, pid: Pid) -> FxHashSet<EntityId> {
        let mut found = FxHashSet::default();
        let Some(process) = self.processes.get(&pid) else {
            return found;
        };
        for held in process.descriptors.values() {
            let Some(what) = &held.what else { continue };
            for (object, first) in [
                (what.source, held.source_from),
                (what.target, held.target_from),
            ] {
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
    pub(super) fn next_epoch(
        &mut self,
        call: CallContext,
        program: NextProgram,
    ) -> Result<Serial, S::Error> {
        self.announce(call.epoch)?;
        let serial = self.epochs.len() as Serial;
        let mut epoch = Epoch::new(call.pid, call.time, call.via);
        if let Some(old) = &mut self.epochs[call.epoch as usize] {
            (old.execed, old.last) = (true, old.last.max(call.time));
            epoch.resemble(old);
            epoch.number = old.number;
            epoch.parent = old.id;
            epoch.origin = Some(EpochOrigin {
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
        if let Some(process) = self.processes.get_mut(&call.pid) {
            // Only the thread that executes goes on, where it stands, with a table of its own.
            process.fs = Rc::clone(process.fs(call.tid));
            process.own_fs.clear();
            process.table = Rc::default();
            epoch.cwd = self.paths.bytes(process.fs.cwd.get()).into();
        }
        self.epochs.push(Some(Box::new(epoch)));
        let (held, made) = self
            .processes
            .get_mut(&call.pid)
            .map(|p| {
                (
                    std::mem::take(&mut p.descriptors),
                    std::mem::take(&mut p.made),
                )
            })
            .unwrap_or_default();
        self.own_pipes(made, call.time)?;
        for (fd, old) in held {
            let worth = fd > NAMELESS || old.what.as_ref().is_some_and(|w| w.writes);
            if worth {
                let new = self.inherited(&old, call.time);
                self.retain(&new);
                if let Some(process) = self.processes.get_mut(&call.pid) {
                    process.descriptors.insert(fd, new);
                }
            }
            self.release(call.epoch, fd, old, call.time, None)?;
        }
        self.flush(call.epoch, call.time)?;
        Ok(serial)
    }
}
