//! The descriptors that the run's command inherits.

use super::descriptors::O_CLOEXEC;
use super::opening::{O_ACCMODE, O_PATH, O_RDONLY, O_WRONLY};
use super::ssh_channels::is_of_ssh;
use super::{CallContext, Fold};
use crate::model::{EntityKind, Sink};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use crate::process::{Descriptor, OpenFile};
use backstory_eventlog::event::Via;
use backstory_files::Ident;
use std::rc::Rc;

/// The access that a descriptor gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenMode {
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// It is only a location: no data goes through it.
    pub(super) place: bool,
    pub(super) cloexec: bool,
}

impl OpenMode {
    pub(super) fn of(flags: Option<i32>) -> OpenMode {
        let access = flags.map(|f| f & O_ACCMODE);
        OpenMode {
            reads: access != Some(O_WRONLY),
            writes: access != Some(O_RDONLY),
            place: flags.is_some_and(|f| f & O_PATH != 0),
            cloexec: flags.is_some_and(|f| f & O_CLOEXEC != 0),
        }
    }
}

impl<S: Sink> Fold<'_, S> {
    /// Opens the descriptors that the command inherits.
    pub(super) fn inherit_from_header(&mut self, call: CallContext) -> Result<(), S::Error> {
        let header = self.header;
        let ssh = self.ssh_of_command(call);
        let call = CallContext {
            via: Via::Library,
            ..call
        };
        for (index, (fd, text)) in header.descriptors.iter().enumerate() {
            let mode = self.inherited_mode(index, *fd);
            if let Some(ssh) = ssh.filter(|_| *fd <= 2 && is_of_ssh(text)) {
                self.is_called(if *fd == 0 { ssh.0 } else { ssh.1 }, text);
                let held = self.ssh_end(call, ssh, *fd, (mode.reads, mode.writes));
                self.install(call, *fd, held)?;
                continue;
            }
            let (object, path) = if text.starts_with(b"/") {
                let path = self.walk(ROOT, ROOT, text);
                (self.lookup(path, call, None)?, path)
            } else {
                (self.channel_outside(text, call.time), ROOT)
            };
            self.object_mut(object).inherited = self.inherited_file(index);
            let held = self.inherited_open(call, object, path, mode)?;
            self.install(call, *fd, held)?;
        }
        Ok(())
    }

    fn inherited_mode(&self, index: usize, fd: i32) -> OpenMode {
        let flags = self.header.descriptor_flags.get(index).copied();
        let flags = flags.filter(|&flags| flags >= 0);
        let mut mode = OpenMode::of(flags);
        if flags.is_none() {
            // The flags of the open are not known. But the use mostly is: 0 for reading, 1 and 2
            // for writing.
            (mode.reads, mode.writes) = (fd != 1 && fd != 2, fd != 0);
        }
        mode
    }

    /// The file behind an inherited descriptor, before the command and at the end, if its name
    /// still leads to it.
    pub(super) fn inherited_file(&self, index: usize) -> Option<(Ident, Ident)> {
        let at = |files: &[Option<Ident>]| files.get(index).copied().flatten();
        let before = at(&self.header.descriptor_files)?;
        let after = at(&self.end?.descriptor_files)?;
        (crate::version::key(&before) == crate::version::key(&after)).then_some((before, after))
    }

    /// A descriptor that another process opened some time before.
    pub(super) fn inherited_open(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
        mode: OpenMode,
    ) -> Result<Descriptor, S::Error> {
        let held = self.object(object);
        let looked = mode.place || held.kind == EntityKind::Directory;
        let before = held.now().number;
        let writes = mode.writes && !looked;
        if writes && !held.untouched() && !held.unchanged_since(call.time, super::SLACK) {
            self.begin_write(call, object, path, false)?;
        }
        let description = OpenFile {
            source: object,
            target: object,
            reads: mode.reads && !looked,
            writes,
            keeps: false,
            path,
            via: call.via,
            looked,
        };
        let mut held = Descriptor::opened(Rc::new(description), call.time, mode.cloexec);
        held.own = false;
        (held.source_from, held.target_from) = (before, self.object(object).now().number);
        Ok(held)
    }
}
