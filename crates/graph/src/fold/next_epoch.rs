//! The effect of an exec on the process: the same epoch goes on, or the next one begins.

use super::{CallContext, Fold};
use crate::activity::{EntityUse, Epoch, EpochOrigin};
use crate::model::{Certainty, EntityId, Informed, Relation, Sink};
use crate::object::ObjectId;
use crate::process::{Descriptor, NAMELESS};
use crate::serial::Serial;
use backstory_eventlog::event::{Bytes, Pid, Via};
use rustc_hash::FxHashSet;
use std::rc::Rc;
use std::sync::Arc;

/// The facts that an exec gives about the program that runs from now on.
pub(super) struct NextProgram {
    pub(super) path: Option<Bytes>,
    /// The file in memory that runs, if the program has no path.
    pub(super) nameless: Option<ObjectId>,
    pub(super) argv: Vec<Bytes>,
    pub(super) env: Option<Arc<[Bytes]>>,
}

impl<S: Sink> Fold<'_, S> {
    /// Closes the descriptors that an exec closes. Some of them may live on under another number.
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
            // If only the guard sees the process, a descriptor may have been duplicated unseen for
            // the next program.
            let unseen = fd <= NAMELESS && what.is_some_and(|w| w.writes && w.via == Via::Kernel);
            if spawned || unseen {
                let copy = Descriptor {
                    cloexec: false,
                    own: false,
                    carried_nothing: false,
                    ..held.clone()
                };
                self.install_nameless(call, copy)?;
            }
            self.release(call.epoch, fd, held, call.time, None)?;
        }
        Ok(())
    }

    /// Makes epoch 0 the program's epoch. If epoch 0 did something of its own, it stays a separate
    /// epoch.
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
            // An operation that is only possible does not make epoch 0 an activity of its own.
            edge.certainty == Certainty::Seen && !look && !kept.contains(&edge.entity)
        };
        let Some(epoch) = &mut self.epochs[call.epoch as usize] else {
            return Ok(call.epoch);
        };
        let command = self.processes.get(&call.pid).is_some_and(|p| p.command);
        if command || !epoch.edges.iter().any(own) {
            if !epoch.recorded && !command {
                self.used_before_exec(call)?;
            }
            if let Some(epoch) = &mut self.epochs[call.epoch as usize] {
                epoch.run(program.path, program.argv, program.env, call);
            }
            return Ok(call.epoch);
        }
        self.next_epoch(call, program)
    }

    /// Adds the possible uses of the descriptors that stay open over the exec. No recorder ran in
    /// the process so far, but the next program may have one. The last release of a descriptor then
    /// counts only the uses that this recorder saw.
    fn used_before_exec(&mut self, call: CallContext) -> Result<(), S::Error> {
        let Some(process) = self.processes.get(&call.pid) else {
            return Ok(());
        };
        let held: Vec<(i32, Descriptor)> = process
            .descriptors
            .iter()
            .map(|(&fd, held)| (fd, held.clone()))
            .collect();
        for (fd, held) in held {
            if let Some(what) = held.what.clone() {
                let call = CallContext {
                    via: what.via,
                    ..call
                };
                self.can_have_moved_data(call, fd, &held, &what)?;
            }
        }
        Ok(())
    }

    /// The versions to which the process still holds descriptors after the exec.
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

    /// Begins the epoch after the present one, which inherits the descriptors that stay open.
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
                // Epoch 0 had its parent's environment.
                epoch.parent_env = old.env.clone();
            }
        }
        epoch.run(program.path, program.argv, program.env, call);
        if let Some(process) = self.processes.get_mut(&call.pid) {
            // Only the thread that executes goes on. It keeps its directories, and has a descriptor
            // table of its own.
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
