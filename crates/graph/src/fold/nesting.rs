//! Activities inside a process, one after another or inside each other, as the program marks them
//! ([`crate::marks`]).
//!
//! The process goes on with its descriptors, its directory and its memory. The memory is an entity:
//! an activity writes the version that the next activity of the process reads. So content that one
//! activity read can have reached all later ones, and none before it.
//!
//! A call of a function that read nothing leaves no version when it ends. Nothing came in with it
//! that a later activity could have used. The next activity reads the version that the call began
//! with. An activity that a program marked always leaves a version: it may have computed something.

use super::descriptors::at;
use super::{CallContext, Fold};
use crate::activity::Epoch;
use crate::model::{ActivityId, Certainty, Entity, EntityId, EntityKind, Interval, Relation, Sink};
use crate::nested::{DEEPEST, FUNCTION, KIND, NESTED, RESUMED};
use crate::process::{Descriptor, NAMELESS, OuterActivity};
use crate::serial::Serial;
use backstory_eventlog::event::Bytes;
use backstory_vocabulary::SuppressMode;

/// The activity that a process goes on as.
struct NextActivity {
    /// The activity that it is inside of.
    outer: Option<ActivityId>,
    argv: Vec<Bytes>,
    is_nested: bool,
    is_function: bool,
}

/// The effect of a change of the activity on the activities around it.
enum Nesting {
    /// The next activity is inside of the present one, which this is.
    Begins(OuterActivity),
    /// The next activity takes the place of the present one.
    Follows,
    /// The present activity ends. It was inside of this one, which goes on.
    Ends(OuterActivity),
}

impl<S: Sink> Fold<'_, S> {
    /// Begins an activity inside the present one of the calling process. Does nothing deeper than
    /// [`DEEPEST`].
    pub(super) fn begin_nested(
        &mut self,
        call: CallContext,
        argv: Vec<Bytes>,
    ) -> Result<(), S::Error> {
        self.begin_inside(call, argv, false)
    }

    /// The same. With `is_function`, the activity is a call of a function.
    pub(super) fn begin_inside(
        &mut self,
        call: CallContext,
        argv: Vec<Bytes>,
        is_function: bool,
    ) -> Result<(), S::Error> {
        let depth = self.processes.get(&call.pid).map(|one| one.outer.len());
        if depth.is_none_or(|depth| depth >= DEEPEST) {
            return Ok(());
        }
        let around = self.outer(call.epoch)?;
        let next = NextActivity {
            outer: Some(around.id),
            argv,
            is_nested: true,
            is_function,
        };
        self.go_on(call, next, Nesting::Begins(around))?;
        Ok(())
    }

    /// Ends the activity that the last mark of the process began, and begins another. Without one,
    /// it only begins one.
    pub(super) fn next_nested(
        &mut self,
        call: CallContext,
        argv: Vec<Bytes>,
    ) -> Result<(), S::Error> {
        let process = self.processes.get(&call.pid);
        let Some(outer) = process.and_then(|process| process.outer.last()) else {
            return self.begin_nested(call, argv);
        };
        let next = NextActivity {
            outer: Some(outer.id),
            argv,
            is_nested: true,
            is_function: false,
        };
        self.go_on(call, next, Nesting::Follows)?;
        Ok(())
    }

    /// Ends the activity that the last mark of the process began, if there is one. True if
    /// something came in with it.
    pub(super) fn end_nested(&mut self, call: CallContext) -> Result<bool, S::Error> {
        let process = self.processes.get_mut(&call.pid);
        let Some(outer) = process.and_then(|process| process.outer.pop()) else {
            return Ok(false);
        };
        let next = NextActivity {
            outer: Some(outer.id),
            argv: outer.argv.clone(),
            is_nested: outer.is_nested,
            is_function: outer.is_function,
        };
        self.go_on(call, next, Nesting::Ends(outer))
    }

    /// The present activity, as the one around those that follow.
    fn outer(&mut self, serial: Serial) -> Result<OuterActivity, S::Error> {
        let id = self.announce(serial)?;
        let epoch = self.epochs[serial as usize].as_ref();
        Ok(OuterActivity {
            id,
            argv: epoch.map(|epoch| epoch.argv.clone()).unwrap_or_default(),
            is_nested: epoch.is_some_and(|epoch| epoch.is_nested),
            is_function: epoch.is_some_and(|epoch| epoch.is_function),
            memory: None,
            brought_in: false,
        })
    }

    /// Begins the next activity of a process, which keeps everything that it has. True if something
    /// came in with the present one.
    fn go_on(
        &mut self,
        call: CallContext,
        next: NextActivity,
        nesting: Nesting,
    ) -> Result<bool, S::Error> {
        self.announce(call.epoch)?;
        let serial = self.epochs.len() as Serial;
        let mut epoch = Epoch::new(call.pid, call.time, call.via);
        let mut began = call.time;
        if let Some(old) = &mut self.epochs[call.epoch as usize] {
            (old.execed, old.last) = (true, old.last.max(call.time));
            began = old.start;
            epoch.resemble(old);
            (epoch.number, epoch.recorded, epoch.via) = (old.number + 1, old.recorded, old.via);
        }
        (epoch.parent, epoch.argv) = (next.outer, next.argv);
        (epoch.lasting, epoch.is_nested) = (true, next.is_nested);
        epoch.is_function = next.is_function;
        if let Some(process) = self.processes.get_mut(&call.pid) {
            epoch.cwd = self.paths.bytes(process.fs(call.tid).cwd.get()).into();
            (process.epoch, process.epoch_number) = (serial, epoch.number);
        }
        self.epochs.push(Some(Box::new(epoch)));
        self.pass_descriptors(call)?;
        let brought_in = self.leave_memory(call, serial, began, nesting)?;
        self.flush(call.epoch, call.time)?;
        let id = self.announce(serial)?;
        let payload = match (next.is_function, next.is_nested) {
            (true, _) => FUNCTION,
            (false, true) => NESTED,
            (false, false) => RESUMED,
        };
        self.sink.extended(id, call.time, KIND, payload)?;
        Ok(brought_in)
    }

    /// Decides which version of the memory the next activity reads. True if something came in with
    /// the present one.
    fn leave_memory(
        &mut self,
        call: CallContext,
        next: Serial,
        began: i64,
        nesting: Nesting,
    ) -> Result<bool, S::Error> {
        let epoch = self.epochs[call.epoch as usize].as_ref();
        let is_function = epoch.is_some_and(|epoch| epoch.is_function);
        let brought_in = !is_function || epoch.is_some_and(|epoch| epoch.brought_in());
        let (brought_in, base) = match &nesting {
            Nesting::Ends(outer) => (brought_in || outer.brought_in, outer.memory),
            Nesting::Begins(_) | Nesting::Follows => (brought_in, None),
        };
        if let Some(process) = self.processes.get_mut(&call.pid) {
            if let Some(around) = process.outer.last_mut() {
                around.brought_in |= brought_in;
            }
            if let Some(base) = base.filter(|_| !brought_in) {
                process.memory = Some(base);
                self.recall(call, next, base)?;
                return Ok(brought_in);
            }
        }
        self.pass_memory(call, next, began)?;
        if let Nesting::Begins(mut outer) = nesting
            && let Some(process) = self.processes.get_mut(&call.pid)
        {
            outer.memory = process.memory;
            process.outer.push(outer);
        }
        Ok(brought_in)
    }

    /// The next activity reads a version of the memory.
    fn recall(
        &mut self,
        call: CallContext,
        next: Serial,
        memory: EntityId,
    ) -> Result<(), S::Error> {
        self.edge(
            next,
            memory,
            Relation::Read,
            at(call.time),
            Certainty::Seen,
            call.via,
        );
        if let Some(epoch) = &mut self.epochs[next as usize] {
            epoch.memory.get_or_insert(memory);
        }
        Ok(())
    }

    /// The memory of the process, which one activity in it wrote and another reads.
    pub(super) fn pass_memory(
        &mut self,
        call: CallContext,
        next: Serial,
        began: i64,
    ) -> Result<(), S::Error> {
        let Some(process) = self.processes.get_mut(&call.pid) else {
            return Ok(());
        };
        let id = EntityId(self.entities);
        process.memory = Some(id);
        let previous = process.last_memory.replace(id);
        process.memories += 1;
        let version = process.memories;
        self.entities += 1;
        self.sink.entity(&Entity {
            id,
            kind: EntityKind::Memory,
            path: format!("memory:{}", call.pid).into_bytes().into(),
            aliases: Vec::new(),
            by_name: Vec::new(),
            version,
            previous,
            ident: None,
            last: false,
        })?;
        let written = Interval {
            start: began,
            end: call.time,
        };
        let (seen, via) = (Certainty::Seen, call.via);
        self.edge(call.epoch, id, Relation::Write, written, seen, via);
        self.recall(call, next, id)
    }

    /// Gives the next activity all descriptors. Read-only mappings are part of the memory.
    fn pass_descriptors(&mut self, call: CallContext) -> Result<(), S::Error> {
        let made = match self.processes.get_mut(&call.pid) {
            Some(process) => std::mem::take(&mut process.made),
            None => return Ok(()),
        };
        self.own_pipes(made, call.time)?;
        let held = match self.processes.get_mut(&call.pid) {
            Some(process) => std::mem::take(&mut process.descriptors),
            None => return Ok(()),
        };
        let suppressed = self.header.modes.suppress != Some(SuppressMode::Off);
        for (fd, old) in held {
            let writes = old.what.as_ref().is_some_and(|what| what.writes);
            if fd > NAMELESS || writes {
                // The log may have only the first use of an open file.
                let used = old.read.is_some() || old.written.is_some();
                let new = Descriptor {
                    doubtful: old.doubtful || suppressed && used,
                    ..self.inherited(&old, call.time)
                };
                self.retain(&new);
                if let Some(process) = self.processes.get_mut(&call.pid) {
                    process.descriptors.insert(fd, new);
                }
            }
            self.release(call.epoch, fd, old, call.time, None)?;
        }
        Ok(())
    }
}
