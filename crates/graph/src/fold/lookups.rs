//! Look-ups: of paths, of the text of links, of the entries of directories.

use super::descriptors::at;
use super::{CallContext, Fold};
use crate::model::{Certainty, EntityKind, Relation, Sink};
use crate::process::OpenFile;
use std::rc::Rc;

/// The error of `readlink` for a path that is no link.
const EINVAL: i32 = -22;

impl<S: Sink> Fold<'_, S> {
    /// Notes a `stat` or `access`: the program learned something of the file at the path. For a
    /// call on a descriptor there is nothing to note, because the open looked at the file.
    pub(super) fn look(
        &mut self,
        call: CallContext,
        dir: i32,
        path: &[u8],
        follow: bool,
    ) -> Result<(), S::Error> {
        if path.is_empty() {
            return Ok(());
        }
        let Some(named) = self.place(call, dir, path) else {
            return Ok(());
        };
        if call.absent() {
            return self.not_there(call, named);
        }
        if self.descriptor_by_place(call, named).is_some() {
            return Ok(());
        }
        let place = self.follow(named, follow);
        let link = self.links.object(place).filter(|_| !follow);
        let entity = match link {
            Some(link) => self.entity_now(call, link, named)?,
            None => self.looked(call, place, named)?,
        };
        self.touch(call, entity, Relation::Stat);
        Ok(())
    }

    pub(super) fn readlink(
        &mut self,
        call: CallContext,
        dir: i32,
        path: &[u8],
    ) -> Result<(), S::Error> {
        if call.outcome.value() == Some(EINVAL) || path.is_empty() && call.outcome.failed() {
            return self.look(CallContext { ..call }, dir, path, false);
        }
        let named = match path {
            b"" => self.descriptor(call, dir).map(|held| held.path),
            path => self.place(call, dir, path),
        };
        let Some(named) = named else { return Ok(()) };
        if call.absent() {
            return self.not_there(call, named);
        }
        let place = self.follow(named, false);
        let object = match self.links.object(place) {
            Some(link) => link,
            None => self.link_met(place, call.time),
        };
        let entity = self.entity_now(call, object, named)?;
        self.touch(call, entity, Relation::Link);
        Ok(())
    }

    pub(super) fn list(&mut self, call: CallContext, fd: i32) -> Result<(), S::Error> {
        let Some(held) = self.descriptor(call, fd) else {
            return Ok(());
        };
        held.listed.get_or_insert(call.time);
        let path = held.path;
        let Some(what) = held.what.clone() else {
            return Ok(());
        };
        let object = self.object_mut(what.source);
        if object.kind == EntityKind::File {
            // Only a directory can be listed, so it is one.
            object.kind = EntityKind::Directory;
        }
        let entity = self.entity_now(call, what.source, path)?;
        self.touch(call, entity, Relation::List);
        if !what.looked {
            // When it was opened, the fold did not know that it is a directory. A directory has no
            // content to read.
            let what = OpenFile {
                looked: true,
                reads: false,
                writes: false,
                keeps: false,
                ..copied(&what)
            };
            if let Some(held) = self.descriptor(call, fd) {
                held.what = Some(Rc::new(what));
            }
        }
        Ok(())
    }

    /// Notes that a library was loaded.
    pub(super) fn load(&mut self, call: CallContext, path: &[u8]) -> Result<(), S::Error> {
        let Some(named) = self.place(call, backstory_eventlog::event::CWD, path) else {
            return Ok(());
        };
        let place = self.follow(named, true);
        let object = self.lookup(place, call, None)?;
        let entity = self.entity_now(call, object, named)?;
        self.edge(
            call.epoch,
            entity,
            Relation::Read,
            at(call.time),
            Certainty::Seen,
            call.via,
        );
        Ok(())
    }
}

fn copied(what: &OpenFile) -> OpenFile {
    OpenFile { ..*what }
}
