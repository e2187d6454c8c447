//! Calls that make and remove names; `renames` has those that move them.
//!
//! A further hard link has nodes of its own beside those of the first name.

use super::descriptors::FoundObject;
use super::{CallContext, Fold};
use crate::model::{EntityKind, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::PathId;

/// `AT_SYMLINK_FOLLOW`
const AT_SYMLINK_FOLLOW: u32 = 0x400;

impl<S: Sink> Fold<'_, S> {
    /// Notes the look-up by a failed call that was to change names. The call showed that a file
    /// exists at the path, or that none does.
    pub(super) fn looked_in_vain(
        &mut self,
        call: CallContext,
        path: PathId,
    ) -> Result<(), S::Error> {
        if call.absent() {
            return self.not_there(call, path);
        }
        let entity = match self.links.object(path) {
            Some(link) => self.entity_now(call, link, path)?,
            None => self.looked(call, path, path)?,
        };
        self.touch(call, entity, Relation::Stat);
        Ok(())
    }

    pub(super) fn link(
        &mut self,
        call: CallContext,
        from: (i32, &[u8]),
        to: (i32, &[u8]),
        flags: u32,
    ) -> Result<(), S::Error> {
        let Some(new) = self.place(call, to.0, to.1) else {
            return Ok(());
        };
        let new = self.follow(new, false);
        if call.outcome.failed() {
            return match self.place(call, from.0, from.1) {
                Some(old) => self.looked_in_vain(call, old),
                None => Ok(()),
            };
        }
        let Some((object, old)) = self.link_source(call, from, flags)? else {
            return Ok(());
        };
        if self.object(object).names.is_empty() && self.object(object).label.is_some() {
            return self.first_name(call, object, new);
        }
        let entity = self.entity_now(call, object, old)?;
        self.touch(call, entity, Relation::Meta);
        if self.object(object).kind == EntityKind::Symlink {
            self.links.insert(new, object, None);
            return self.made(call, object, new);
        }
        self.status_changes(call, object);
        self.object_mut(object).linked = true;
        self.object_mut(object).linker = Some(call.epoch);
        self.unbind(new);
        self.bind(new, object);
        self.made(call, object, new)
    }

    /// Gives a file opened with `O_TMPFILE` its first name. The file counts as made by that name,
    /// even if it was written before.
    pub(super) fn first_name(
        &mut self,
        call: CallContext,
        object: ObjectId,
        new: PathId,
    ) -> Result<(), S::Error> {
        self.unbind(new);
        self.object_mut(object).name_versions(new);
        self.bind(new, object);
        self.recognise(object, new, call.time);
        self.made(call, object, new)?;
        let number = self.object(object).now().number;
        self.report(object, number)
    }

    /// The object that gets another name, and the name that it has.
    pub(super) fn link_source(
        &mut self,
        call: CallContext,
        from: (i32, &[u8]),
        flags: u32,
    ) -> Result<FoundObject, S::Error> {
        if from.1.is_empty() {
            return self.object_of_descriptor(call, from.0);
        }
        let Some(old) = self.place(call, from.0, from.1) else {
            return Ok(None);
        };
        let follow = flags & AT_SYMLINK_FOLLOW != 0;
        if let (true, Some((pid, fd))) = (follow, self.descriptor_by_place(call, old)) {
            return self.object_of_descriptor(CallContext { pid, ..call }, fd);
        }
        let old = self.follow(old, follow);
        let link = if follow {
            None
        } else {
            self.changed_link(old, call)
        };
        let object = match link {
            Some(link) => link,
            None => self.lookup(old, call, call.ident)?,
        };
        Ok(Some((object, old)))
    }

    pub(super) fn made(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
    ) -> Result<(), S::Error> {
        let entity = self.entity_now(call, object, path)?;
        self.touch(call, entity, Relation::Make);
        Ok(())
    }

    pub(super) fn symlink(
        &mut self,
        call: CallContext,
        target: &[u8],
        dir: i32,
        path: &[u8],
    ) -> Result<(), S::Error> {
        let Some(place) = self.place(call, dir, path) else {
            return Ok(());
        };
        if call.outcome.failed() {
            return self.looked_in_vain(call, place);
        }
        let place = self.follow(place, false);
        self.unbind(place);
        self.names.remove(&place);
        self.missing.remove(&place);
        let object = self.add(EntityKind::Symlink, place, call.time, 1);
        let leads = self.link_target(call, place, target);
        self.links.insert(place, object, Some(leads));
        self.made(call, object, place)
    }

    /// The target of a link at `place` with this text.
    pub(super) fn link_target(&mut self, call: CallContext, place: PathId, text: &[u8]) -> PathId {
        let directory = self.paths.parent(place);
        let root = self.root_of(call);
        let base = if text.starts_with(b"/") {
            root
        } else {
            directory
        };
        self.walk(base, root, text)
    }

    pub(super) fn unlink(
        &mut self,
        call: CallContext,
        dir: i32,
        path: &[u8],
    ) -> Result<(), S::Error> {
        let Some(place) = self.place(call, dir, path) else {
            return Ok(());
        };
        let place = self.follow(place, false);
        if call.outcome.failed() {
            return self.looked_in_vain(call, place);
        }
        let object = match self.link_at(place, call.time) {
            Some(link) => link,
            None => self.lookup(place, call, call.ident)?,
        };
        self.learn_preserved(call, object, place);
        let entity = self.entity_now(call, object, place)?;
        self.touch(call, entity, Relation::Delete);
        if call.ok() {
            self.status_changes(call, object);
            self.not_last(object)?;
            self.unbind(place);
        }
        Ok(())
    }

    /// Notes the identity of a file just before a call that adds or removes a name of it, or
    /// changes its status. The content stays the same.
    pub(super) fn status_changes(&mut self, call: CallContext, object: ObjectId) {
        let Some(ident) = call.ident else { return };
        let made_before = self.made_before(&ident);
        let object = self.object_mut(object);
        let changed = object.ctime_without_names(&ident, super::NEAR);
        let written_out = object.writers == 0;
        let now = object.now_mut();
        now.was_not_kept(call.time, Some(&ident));
        let older = made_before || changed < now.began - super::SLACK;
        // A file from before the run had this identity already when it was first used. A version
        // that the run made has it since its last writer closed it. The close gave no identity if
        // only the guard saw it.
        let since = if now.number == 0 { older } else { written_out };
        if now.ident.is_none() && since {
            now.ident = Some(ident);
            now.news |= now.entity.is_some();
        }
        object.names_change(&ident, call.time, super::NEAR);
    }

    /// Notes that a directory or node was made.
    pub(super) fn make(
        &mut self,
        call: CallContext,
        dir: i32,
        path: &[u8],
        kind: EntityKind,
    ) -> Result<(), S::Error> {
        let Some(place) = self.place(call, dir, path) else {
            return Ok(());
        };
        let place = self.follow(place, false);
        if call.outcome.failed() {
            return self.looked_in_vain(call, place);
        }
        let object = self.create(place, call.time, kind);
        self.made(call, object, place)
    }
}
