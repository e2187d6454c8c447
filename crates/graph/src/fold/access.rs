//! Reads, writes, mappings and copies through descriptors.

use std::rc::Rc;

use backstory_eventlog::event::Via;

use super::{CallContext, Fold};
use crate::model::{Certainty, Derived, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::PathId;
use crate::process::{Descriptor, OpenFile};

/// `AT_SYMLINK_NOFOLLOW`
pub(super) const AT_SYMLINK_NOFOLLOW: i32 = 0x100;
const MAP_SHARED: u32 = 1;
const PROT_WRITE: i32 = 2;

impl<S: Sink> Fold<'_, S> {
    pub(super) fn read(&mut self, call: CallContext, fd: i32) -> Result<(), S::Error> {
        if call.outcome.failed() {
            return Ok(());
        }
        let Some(held) = self.descriptor(call, fd) else {
            return Ok(());
        };
        let path = held.path;
        let Some(what) = held.what.clone().filter(|w| w.reads) else {
            return Ok(());
        };
        held.read.get_or_insert(call.time);
        let number = self.object(what.source).now().number;
        let entity = self.entity_used(call, what.source, number, path)?;
        self.touch(call, entity, Relation::Read);
        Ok(())
    }

    pub(super) fn write(&mut self, call: CallContext, fd: i32) -> Result<(), S::Error> {
        if call.outcome.failed() {
            return Ok(());
        }
        let Some(held) = self.descriptor(call, fd) else {
            return Ok(());
        };
        let path = held.path;
        let Some(what) = held.what.clone().filter(|w| w.writes) else {
            return Ok(());
        };
        held.written.get_or_insert(call.time);
        self.changed_after_all(call, fd, what.target, path)?;
        self.wrote(call, what.target, path)
    }

    /// Begins a version for a write by `fd` to a file that the fold took for unchanged, because of
    /// its times after the run. A program can set times back, and a write through a mapping of a
    /// file in memory (tmpfs) changes none.
    fn changed_after_all(
        &mut self,
        call: CallContext,
        fd: i32,
        target: ObjectId,
        path: PathId,
    ) -> Result<(), S::Error> {
        let object = self.object(target);
        if !object.versioned() || object.now().number > 0 {
            return Ok(());
        }
        let number = self.next_version(call, target, path, false)?;
        if let Some(held) = self.descriptor(call, fd) {
            held.target_from = number;
        }
        Ok(())
    }

    /// Notes that a process wrote to the present version.
    pub(super) fn wrote(
        &mut self,
        call: CallContext,
        target: ObjectId,
        path: PathId,
    ) -> Result<(), S::Error> {
        let entity = self.written(call, target, path)?;
        self.touch(call, entity, Relation::Write);
        let version = self.object_mut(target).now_mut();
        version.written |= call.certainty() == Certainty::Seen;
        if version.number > 0 {
            // The version no longer has the identity that was known.
            version.ident = None;
        }
        Ok(())
    }

    /// A mapping outlives its descriptor, so the fold treats it as a descriptor without a number.
    pub(super) fn map(
        &mut self,
        call: CallContext,
        fd: i32,
        prot: i32,
        flags: u32,
    ) -> Result<(), S::Error> {
        if call.outcome.failed() {
            return Ok(());
        }
        let Some(held) = self.descriptor(call, fd) else {
            return Ok(());
        };
        let Some(what) = held.what.clone().filter(|w| w.reads) else {
            return Ok(());
        };
        let written = flags & MAP_SHARED != 0 && what.writes && prot & PROT_WRITE != 0;
        held.read.get_or_insert(call.time);
        if written {
            held.written.get_or_insert(call.time);
        }
        let path = held.path;
        if written {
            self.changed_after_all(call, fd, what.target, path)?;
        }
        let Some(held) = self.descriptor(call, fd) else {
            return Ok(());
        };
        let doubtful = held.doubtful;
        let (source_from, target_from) = (held.source_from, held.target_from);
        let description = OpenFile {
            source: what.source,
            target: what.target,
            reads: true,
            writes: written,
            keeps: false,
            path,
            via: Via::Library,
            looked: false,
        };
        let mut mapping = Descriptor::opened(Rc::new(description), call.time, true);
        (mapping.source_from, mapping.target_from) = (source_from, target_from);
        mapping.read = Some(call.time);
        mapping.written = written.then_some(call.time);
        mapping.doubtful = doubtful;
        if written {
            self.wrote(call, what.target, path)?;
        }
        self.install_nameless(call, mapping)
    }

    /// Notes that the kernel copied data from one descriptor to another.
    pub(super) fn copy(&mut self, call: CallContext, from: i32, to: i32) -> Result<(), S::Error> {
        if call.outcome.failed() {
            return Ok(());
        }
        self.read(call, from)?;
        self.write(call, to)?;
        let (Some((source, from)), Some(_)) = (
            self.object_of_descriptor(call, from)?,
            self.object_of_descriptor(call, to)?,
        ) else {
            return Ok(());
        };
        let Some((target, to)) = self
            .descriptor(call, to)
            .and_then(|h| h.what.as_ref().map(|w| (w.target, h.path)))
        else {
            return Ok(());
        };
        let from = self.entity_now(call, source, from)?.id;
        let entity = self.written(call, target, to)?.id;
        if from == entity || !self.object(target).versioned() {
            return Ok(());
        }
        let activity = self.announce(call.epoch)?;
        self.sink.derived(&Derived {
            entity,
            from,
            activity,
            time: call.time,
        })
    }

    pub(super) fn truncate(
        &mut self,
        call: CallContext,
        fd: i32,
        path: &[u8],
    ) -> Result<(), S::Error> {
        if path.is_empty() {
            return self.write(call, fd);
        }
        let Some(named) = self.place(call, backstory_eventlog::event::CWD, path) else {
            return Ok(());
        };
        if call.absent() {
            return self.not_there(call, named);
        }
        let place = self.follow(named, true);
        let object = self.lookup(place, call, call.ident)?;
        if call.outcome.failed() {
            let entity = self.entity_now(call, object, named)?;
            self.touch(call, entity, Relation::Stat);
            return Ok(());
        }
        self.object_mut(object).was(call.ident);
        self.begin_write(call, object, place, false)?;
        self.wrote(call, object, named)?;
        if self.object(object).writers == 0 {
            self.object_mut(object).now_mut().writers.add(call.epoch);
        }
        self.forget(object)
    }
}
