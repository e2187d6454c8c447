//! What a path leads to at a time.
//!
//! Within the run names are replayed exactly: who made, moved or removed them is in the log. What a path led to before anything
//! happened to it is taken, in this order, from an identity that came with an event (exact at its time), from the identity taken after
//! the run (a hint: believed unless the file was born later), else the path itself is the identity.

use backstory_eventlog::event::{Ident, Time};

use super::{Fold, SLACK};
use crate::model::{EntityKind, Sink};
use crate::object::{Object, ObjectId, key, kind_of};
use crate::paths::PathId;

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// It leads here.
    Is(ObjectId),
    /// It leads nowhere: removed, moved away, or looked for in vain.
    Gone,
}

/// A file that this run made was born while the call that made it ran: at most this long after the call began.
const CALL: Time = 2_000_000_000;

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// The object that `path` leads to now, made known if need be.
    pub(super) fn lookup(&mut self, path: PathId, time: Time, exact: Option<Ident>) -> ObjectId {
        if let Some(&Name::Is(found)) = self.names.get(&path) {
            return match exact {
                Some(ident) => self.reconcile(path, found, time, ident),
                None => found,
            };
        }
        let found = match exact {
            Some(ident) => self.by_identity(path, time, ident, false),
            None => match self.hint(path, true) {
                // Born after this moment: then something else was here.
                Some(ident) if ident.birth > time => self.add(EntityKind::File, path, time, 0),
                Some(ident) => self.by_identity(path, time, ident, true),
                None => self.add(EntityKind::File, path, time, 0),
            },
        };
        self.bind(path, found);
        found
    }

    /// A new object at `path`, made by this run at `time`.
    pub(super) fn create(&mut self, path: PathId, time: Time, kind: EntityKind) -> ObjectId {
        self.unbind(path);
        let made = self.add(kind, path, time, 1);
        self.bind(path, made);
        self.recognise(made, path, time);
        made
    }

    /// The link at `path` itself, if it is one.
    pub(super) fn link_at(&mut self, path: PathId, time: Time) -> Option<ObjectId> {
        if let Some(&found) = self.links.get(&path) {
            return Some(found);
        }
        if self.names.contains_key(&path) && self.hint_is_not_link(path) {
            return None;
        }
        let ident = self.hint(path, false)?;
        if kind_of(ident.mode) != EntityKind::Symlink || ident.birth > time {
            return None;
        }
        let made = self.add(EntityKind::Symlink, path, time, 0);
        self.object_mut(made).key = Some(key(&ident));
        self.object_mut(made).settled = Some(ident);
        self.links.insert(path, made);
        Some(made)
    }

    fn hint_is_not_link(&self, path: PathId) -> bool {
        self
            .hint(path, false).is_none_or(|i| kind_of(i.mode) != EntityKind::Symlink)
    }

    /// What the file system said of `path` after the run.
    pub(super) fn hint(&self, path: PathId, follow: bool) -> Option<Ident> {
        self.known.of(&self.paths.bytes(path), follow).flatten()
    }

    /// If the file at `path` now, after the run, is the one that this run made or moved there at `time`, gives the object its identity.
    pub(super) fn recognise(&mut self, object: ObjectId, path: PathId, time: Time) {
        let Some(ident) = self.hint(path, true) else {
            return;
        };
        let born = self.object(object).now().began.min(time);
        let made = self.object(object).now().number > 0 && self.object(object).key.is_none();
        let fits = match self.object(object).key {
            Some(have) => have == key(&ident),
            None => ident.birth == 0 || !made || (born - SLACK..=born + CALL).contains(&ident.birth),
        };
        if fits {
            self.identify(object, ident, true);
        }
    }

    /// The name `path` leads to `object` from now on.
    pub(super) fn bind(&mut self, path: PathId, object: ObjectId) {
        self.names.insert(path, Name::Is(object));
        self.missing.remove(&path);
        let names = &mut self.object_mut(object).names;
        if !names.contains(&path) {
            names.push(path);
        }
    }

    /// The name `path` leads nowhere from now on. Gives what it led to.
    pub(super) fn unbind(&mut self, path: PathId) -> Option<ObjectId> {
        self.targets.remove(&path);
        self.links.remove(&path);
        let Some(Name::Is(object)) = self.names.insert(path, Name::Gone) else {
            return None;
        };
        let names = &mut self.object_mut(object).names;
        names.retain(|&n| n != path);
        if names.is_empty() && !self.object(object).linked {
            // The number may be given to another file.
            if let Some(key) = self.object(object).key {
                self.by_key.remove(&key);
            }
        }
        Some(object)
    }

    /// A new object.
    pub(super) fn add(&mut self, kind: EntityKind, path: PathId, time: Time, number: u32) -> ObjectId {
        let kind = match (kind, self.kind_by_place(path)) {
            (EntityKind::File, Some(kind)) => kind,
            _ => kind,
        };
        self.objects.push(Object::new(kind, path, time, number));
        ObjectId(self.objects.len() as u32 - 1)
    }

    /// The object with this identity, or a new one.
    fn by_identity(&mut self, path: PathId, time: Time, ident: Ident, settled: bool) -> ObjectId {
        let found = match self.by_key.get(&key(&ident)) {
            Some(&found) => {
                let second = ident.nlink > 1 && kind_of(ident.mode) == EntityKind::File;
                self.object_mut(found).linked |= second;
                found
            }
            None => self.add(kind_of(ident.mode), path, time, 0),
        };
        self.identify(found, ident, settled);
        found
    }

    /// `object` is the file `ident`. An older object that was only taken for it loses the claim.
    pub(super) fn identify(&mut self, object: ObjectId, ident: Ident, settled: bool) {
        let key = key(&ident);
        if let Some(other) = self.by_key.insert(key, object).filter(|&other| other != object) {
            self.object_mut(other).key = None;
            self.object_mut(other).settled = None;
        }
        let object = self.object_mut(object);
        object.key = Some(key);
        if settled {
            object.settled = Some(ident);
        }
        if object.kind == EntityKind::File && object.now().entity.is_none() {
            object.kind = kind_of(ident.mode);
        }
    }

    /// The name leads to `found`, but the file there is `ident`.
    fn reconcile(&mut self, path: PathId, found: ObjectId, time: Time, ident: Ident) -> ObjectId {
        match self.object(found).key {
            Some(have) if have == key(&ident) => found,
            Some(_) => {
                // Something outside the run put another file here.
                self.unbind(path);
                let other = self.by_identity(path, time, ident, false);
                self.bind(path, other);
                other
            }
            None => match self.by_key.get(&key(&ident)) {
                Some(&other) => {
                    // The same file was known by another name.
                    self.unbind(path);
                    self.bind(path, other);
                    other
                }
                None => {
                    self.identify(found, ident, false);
                    found
                }
            },
        }
    }
}
