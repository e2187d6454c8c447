//! The object that a path leads to at a time.
//!
//! Within the run the fold replays names exactly, because the log has every call that makes, moves
//! or removes one. For a path before any such call, the fold takes, in this order:
//!
//! - the identity that came with an event, which is exact at its time;
//! - the identity after the run, which is a hint, and not believed if the file was born later;
//! - else the path itself.

use backstory_eventlog::event::Time;
use backstory_files::Ident;

use super::{CallContext, Fold, NEAR};
use crate::model::{EntityId, EntityKind, Sink};
use crate::object::{ObjectId, TrackedObject, kind_of};
use crate::paths::PathId;
use crate::version::key;

/// The state of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameState {
    /// It leads here.
    Is(ObjectId),
    /// It leads to something that was only looked at, which has this node and no object.
    Looked(EntityId),
    /// It leads nowhere: it was removed, moved away, or looked for in vain.
    Gone,
}

impl<S: Sink> Fold<'_, S> {
    /// The object that `path` leads to now, made known if need be.
    pub(super) fn lookup(
        &mut self,
        path: PathId,
        call: CallContext,
        exact: Option<Ident>,
    ) -> Result<ObjectId, S::Error> {
        match (self.names.get(&path), exact) {
            (Some(&NameState::Is(found)), Some(ident)) => {
                let found = self.reconcile(path, found, call, ident)?;
                if self.only_moved(found, &ident, true)? {
                    let now = self.object_mut(found).now_mut();
                    now.news |= now.ident.is_none();
                    now.ident.get_or_insert(ident);
                }
                return Ok(found);
            }
            (Some(&NameState::Is(found)), None) => return Ok(found),
            (Some(&NameState::Looked(entity)), _) => {
                return self.look_closer(path, entity, call, exact);
            }
            (Some(NameState::Gone) | None, _) => {}
        }
        let found = match exact {
            Some(ident) => self.by_identity(path, call, ident, false)?,
            None => match self.hint(path, true) {
                Some(ident) if self.believable(path, call.time, &ident) => {
                    self.by_identity(path, call, ident, true)?
                }
                _ => self.add(EntityKind::File, path, call.time, 0),
            },
        };
        self.bind(path, found);
        Ok(found)
    }

    /// True if a symbolic link is in `path` or at its end. Then the file may have another name.
    pub(super) fn passes_older_link(&mut self, path: PathId) -> bool {
        let mut at = path;
        while at != crate::paths::ROOT {
            if self.is_older_link(at) {
                return true;
            }
            at = self.paths.parent(at);
        }
        false
    }

    /// A new object at `path`, made by this run at `time`.
    pub(super) fn create(&mut self, path: PathId, time: Time, kind: EntityKind) -> ObjectId {
        self.unbind(path);
        let made = self.add(kind, path, time, 1);
        self.bind(path, made);
        self.recognise(made, path, time);
        made
    }

    /// The link at `path` itself, if a link is there.
    pub(super) fn link_at(&mut self, path: PathId, time: Time) -> Option<ObjectId> {
        if let Some(found) = self.links.object(path) {
            return Some(found);
        }
        if self.names.contains_key(&path) && self.hint_is_not_link(path) {
            return None;
        }
        let ident = self.hint(path, false)?;
        if kind_of(ident.mode) != EntityKind::Symlink || !self.changed_before(&ident, time) {
            return None;
        }
        let made = self.link_met(path, time);
        self.object_mut(made).key = Some(key(&ident));
        self.object_mut(made).settled = Some(ident);
        Some(made)
    }

    /// The same for a call that changes the status of what is at `path`. The time stamp of a link
    /// there is then that of the call, and the identity before the call shows the link.
    pub(super) fn changed_link(&mut self, path: PathId, call: CallContext) -> Option<ObjectId> {
        if let Some(found) = self.link_at(path, call.time) {
            return Some(found);
        }
        let is_link = |ident: &Ident| kind_of(ident.mode) == EntityKind::Symlink;
        let before = call.ident.filter(is_link)?;
        let last = self.hint(path, false);
        let met = self.link_met(path, call.time);
        let link = self.object_mut(met);
        link.key = Some(key(&before));
        link.settled = last.filter(|last| key(last) == key(&before));
        Some(met)
    }

    /// The object of the link at `path`. A path that was only looked at so far gets its object, and
    /// turns out to be a link. Otherwise the object is made, as the run meets the link now.
    pub(super) fn link_met(&mut self, path: PathId, time: Time) -> ObjectId {
        let met = match self.names.get(&path) {
            Some(&NameState::Looked(entity)) => {
                let met = self.promote(path, time, entity);
                self.names.remove(&path);
                let object = self.object_mut(met);
                object.names.clear();
                object.turned_out(EntityKind::Symlink);
                met
            }
            _ => {
                let kind = self.kind_by_place(path).unwrap_or(EntityKind::Symlink);
                self.add(kind, path, time, 0)
            }
        };
        self.links.insert(path, met, None);
        met
    }

    pub(super) fn hint_is_not_link(&self, path: PathId) -> bool {
        self.hint(path, false)
            .is_none_or(|i| kind_of(i.mode) != EntityKind::Symlink)
    }

    /// Whether `at` is a symbolic link that existed before the run.
    pub(super) fn is_older_link(&mut self, at: PathId) -> bool {
        if let Some(&known) = self.older_link.get(&at) {
            return known;
        }
        let Some(found) = self.final_state.identity(&self.paths, at, false) else {
            return false;
        };
        // Links that this run made are followed by name.
        let began = match self.quiet() {
            0 => self.header.started + NEAR,
            quiet => quiet,
        };
        let old = |ident: &Ident| ident.ctime < began;
        let link = found
            .filter(old)
            .is_some_and(|i| kind_of(i.mode) == EntityKind::Symlink);
        self.older_link.insert(at, link);
        link
    }

    /// The name `path` leads to `object` from now on.
    pub(super) fn bind(&mut self, path: PathId, object: ObjectId) {
        self.names.insert(path, NameState::Is(object));
        self.missing.remove(&path);
        let names = &mut self.object_mut(object).names;
        if !names.contains(&path) {
            names.push(path);
        }
    }

    /// Notes that the name `path` leads nowhere from now on. Returns the object that it led to.
    pub(super) fn unbind(&mut self, path: PathId) -> Option<ObjectId> {
        self.links.remove(path);
        if let Some(&NameState::Looked(entity)) = self.names.get(&path) {
            // The file that was looked at is not the file at this path in the end.
            self.promote(path, self.now, entity);
        }
        let Some(NameState::Is(object)) = self.names.insert(path, NameState::Gone) else {
            return None;
        };
        self.object_mut(object).names.retain(|&n| n != path);
        // Names that lead there through a link may lead elsewhere now.
        for other in self.object(object).names.clone() {
            if self.passes_older_link(other) {
                self.names.remove(&other);
                self.object_mut(object).names.retain(|&n| n != other);
            }
        }
        if self.object(object).names.is_empty() && !self.object(object).linked {
            // The file system may give the inode's number to another file.
            if let Some(key) = self.object(object).key {
                self.by_key.remove(&key);
            }
        }
        Some(object)
    }

    /// A new object.
    pub(super) fn add(
        &mut self,
        kind: EntityKind,
        path: PathId,
        time: Time,
        number: u32,
    ) -> ObjectId {
        let kind = match (kind, self.kind_by_place(path)) {
            (EntityKind::File, Some(kind)) => kind,
            _ => kind,
        };
        self.objects
            .push(TrackedObject::new(kind, path, time, number));
        ObjectId(self.objects.len() as u32 - 1)
    }
}
