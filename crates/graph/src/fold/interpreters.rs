//! Which files the kernel runs: the program of an exec, its interpreters, the dynamic loader.

use super::next_epoch::NextProgram;
use super::{CallContext, Fold};
use crate::model::{Certainty, EntityKind, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use backstory_eventlog::event::{Bytes, Pid};
use std::sync::Arc;

/// The variable with the directories in which programs are looked for.
const PATH: &[u8] = b"PATH=";

/// The most interpreters of interpreters that the kernel runs, and a loader.
const MOST_INTERPRETERS: usize = 6;

impl<S: Sink> Fold<'_, S> {
    /// Notes which file the supervisor saw the kernel run. For a script, that is its interpreter.
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

    /// The program that the process runs already, which `/proc/self/exe` stands for.
    pub(super) fn own_program(&mut self, call: CallContext, named: PathId) -> PathId {
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

    pub(super) fn executed(&mut self, call: CallContext, named: PathId) -> Result<(), S::Error> {
        let place = self.follow(named, true);
        let object = self.lookup(place, call, None)?;
        self.ran(call, object, named, Certainty::Seen)
    }

    /// Notes the files that the kernel opened by itself to run `program`. They are the interpreter
    /// of a script, that interpreter's own interpreter, and finally the dynamic loader. Their names
    /// come from the programs' bytes after the run. So they are only possible for a program that
    /// was changed since.
    pub(super) fn run_with(&mut self, call: CallContext, program: PathId) -> Result<(), S::Error> {
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

    pub(super) fn ran(
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
}
