//! Programs: what a process becomes by exec.
//!
//! The epoch between a fork and the next exec (epoch 0) belongs to the program that is about to
//! run. Its redirections are the program's redirections, and it searched `PATH` for the program.
//! Epoch 0 is an activity of its own in three cases:
//!
//! - It changed or read a file, and the program does not get a descriptor of that file.
//! - It made children.
//! - It never called exec.

use std::sync::Arc;

use backstory_eventlog::event::Bytes;

use super::next_epoch::NextProgram;
use super::{CallContext, Fold};
use crate::model::{Certainty, Relation, Sink};
use crate::paths::ROOT;

impl<S: Sink> Fold<'_, S> {
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
                    let entity = match self.unfollowed_link(place) {
                        Some(link) => self.entity_now(call, link, place)?,
                        None => {
                            let object = self.lookup(place, call, None)?;
                            self.entity_now(call, object, named)?
                        }
                    };
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

    /// Makes the process go on as another program, after a successful exec.
    pub(super) fn become_program(
        &mut self,
        call: CallContext,
        program: NextProgram,
    ) -> Result<(), S::Error> {
        let closed = self.closed_by_exec(call);
        self.functions.forget_memory(call.pid);
        self.drop_cloexec(call)?;
        // Before its first exec, the process of the run's command still runs backstory.
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
            process.outer.clear();
            process.epoch_number = self.epochs[epoch as usize].as_ref().map_or(1, |e| e.number);
        }
        if let Some(object) = nameless {
            self.ran(call, object, ROOT, Certainty::Seen)?;
        } else if let Some(path) = path {
            let place = self.walk(ROOT, ROOT, &path);
            self.executed(call, place)?;
            self.run_with(call, place)?;
        }
        self.begin_ssh(call)?;
        self.announce(epoch)?;
        self.connections_closed(call, closed)
    }
}
