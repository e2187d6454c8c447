//! The file that a path leads to, by its identity. Identities come with events, or are taken after
//! the run.

use super::{CALL, CallContext, Fold, NEAR, SLACK};
use crate::model::{Derived, EntityKind, Sink};
use crate::object::{ObjectId, kind_of};
use crate::paths::PathId;
use crate::version::key;
use backstory_eventlog::event::Time;
use backstory_files::Ident;

impl<S: Sink> Fold<'_, S> {
    /// Whether `path` already led to `ident` at `time`. It certainly did if the file was not
    /// changed since. Otherwise another file may have been moved to the path. Then the answer is no
    /// if the file was born later, or is known by another name.
    pub(super) fn believable(&mut self, path: PathId, time: Time, ident: &Ident) -> bool {
        if self.became_link(path, time) {
            return false;
        }
        if self.changed_before(ident, time) {
            return true;
        }
        if ident.birth > time {
            return false;
        }
        let Some(other) = self.by_key.get(&key(ident)).copied() else {
            return true;
        };
        if self.passes_older_link(path) {
            return true;
        }
        // Two plain names for one file are hard links. If they are hard links after the run, that
        // does not prove that they were hard links at this time.
        let linked = self.object(other).linked && !self.object(other).guessed;
        let names = self.object(other).names.clone();
        linked || !names.is_empty() && names.into_iter().all(|name| self.passes_older_link(name))
    }

    /// Whether the file's last change was before this run, although its time is too close to that
    /// of a use to tell. Either of two facts shows it:
    ///
    /// - The change is older than the file systems' clock when the command began.
    /// - An earlier run left the file with exactly this identity.
    pub(super) fn made_before(&self, ident: &Ident) -> bool {
        let started = self.header.started;
        let told =
            || (started - SLACK..=started).contains(&ident.ctime) && self.sink.made_before(ident);
        (started - SLACK..self.quiet()).contains(&ident.ctime) || told()
    }

    /// The reading of the file systems' clock when the command began, or 0 if the log lacks it.
    pub(super) fn quiet(&self) -> Time {
        self.end.map_or(0, |end| end.quiet)
    }

    /// Whether a symbolic link was put at `path` after `time`. Its target then says nothing of the
    /// file that was there before.
    pub(super) fn became_link(&self, path: PathId, time: Time) -> bool {
        self.hint(path, false).is_some_and(|link| {
            kind_of(link.mode) == EntityKind::Symlink && !self.changed_before(&link, time)
        })
    }

    /// Whether the last change of a file was certainly before `time`, so that the file was as it is
    /// after the run. A time stamp can be older than the call that made the change. So a stamp
    /// close to `time` proves nothing.
    pub(super) fn changed_before(&self, ident: &Ident, time: Time) -> bool {
        ident.ctime < time - SLACK || self.made_before(ident)
    }

    /// The object with this identity, or a new one.
    pub(super) fn by_identity(
        &mut self,
        path: PathId,
        call: CallContext,
        ident: Ident,
        settled: bool,
    ) -> Result<ObjectId, S::Error> {
        let steady = !settled || self.changed_before(&ident, call.time);
        let known = self.by_key.get(&key(&ident)).copied();
        let Some(found) = known.filter(|&known| !self.guessed_wrong(known, path, &ident, steady))
        else {
            let made = self.add(kind_of(ident.mode), path, call.time, 0);
            self.identify(made, ident, settled);
            let object = self.object_mut(made);
            object.guessed = !steady;
            object.linked = steady && ident.nlink > 1 && object.kind == EntityKind::File;
            return Ok(made);
        };
        let object = self.object_mut(found);
        object.linked |= ident.nlink > 1 && kind_of(ident.mode) == EntityKind::File;
        // The file has not changed since the run first met it, and only this call changes it until
        // the end. So the guess was right.
        let lasting = |end: Ident| (call.time - NEAR..=call.time + NEAR).contains(&end.ctime);
        let proven = !settled
            && ident.ctime < object.now().began - SLACK
            && object.settled.is_some_and(lasting);
        let doubtful = !steady || object.guessed && !proven;
        self.identify(found, ident, settled);
        if doubtful && !self.passes_older_link(path) {
            self.object_mut(found).doubtful = true;
            self.add_source(call, found, path)?;
        }
        Ok(found)
    }

    /// Notes that the file at `path` is taken for `object`, but may have been another file before.
    /// Then the content of that other file counts as well.
    pub(super) fn add_source(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
    ) -> Result<(), S::Error> {
        if !self.object(object).versioned() {
            return Ok(());
        }
        let other = self.add(EntityKind::File, path, call.time, 0);
        let from = self.entity_now(call, other, path)?.id;
        let name = self.object(object).now().path;
        self.next_version(call, object, name, false)?;
        let entity = self.entity_now(call, object, name)?.id;
        let activity = self.announce(call.epoch)?;
        self.sink.derived(&Derived {
            entity,
            from,
            activity,
            time: call.time,
        })
    }

    /// Whether a guess took `object` for the file `ident`, although `object` is another file: the
    /// file has one name, and that is `path`.
    pub(super) fn guessed_wrong(
        &mut self,
        object: ObjectId,
        path: PathId,
        ident: &Ident,
        steady: bool,
    ) -> bool {
        let known = self.object(object);
        if !steady || !known.guessed || ident.nlink > 1 || known.names.contains(&path) {
            return false;
        }
        let names = known.names.clone();
        !self.passes_older_link(path) && !names.into_iter().any(|n| self.passes_older_link(n))
    }

    /// Notes that `object` is the file `ident`. If an older object had this identity by a guess, it
    /// loses the identity.
    pub(super) fn identify(&mut self, object: ObjectId, ident: Ident, settled: bool) {
        let key = key(&ident);
        if let Some(other) = self
            .by_key
            .insert(key, object)
            .filter(|&other| other != object)
        {
            self.object_mut(other).key = None;
            self.object_mut(other).settled = None;
            self.object_mut(other).made_before = false;
        }
        if let Some(old) = self
            .object(object)
            .key
            .filter(|old| *old != key && self.by_key.get(old) == Some(&object))
        {
            self.by_key.remove(&old);
        }
        let made_before = settled && self.made_before(&ident);
        let object = self.object_mut(object);
        if object.key.replace(key) != Some(key) {
            (object.settled, object.made_before) = (None, false);
        }
        if settled {
            (object.settled, object.made_before) = (Some(ident), made_before);
        } else {
            object.guessed = false;
        }
        if object.kind == EntityKind::File && object.now().entity.is_none() {
            object.kind = kind_of(ident.mode);
        }
    }

    /// Decides between two objects: the name leads to `found`, but the file there is `ident`.
    pub(super) fn reconcile(
        &mut self,
        path: PathId,
        found: ObjectId,
        call: CallContext,
        ident: Ident,
    ) -> Result<ObjectId, S::Error> {
        let object = self.object(found);
        let claimed = self
            .by_key
            .get(&key(&ident))
            .copied()
            .filter(|&other| other != found);
        match (object.key, claimed) {
            (Some(have), _) if have == key(&ident) => Ok(found),
            // Either a process outside the run put another file here, or the same file was known by
            // another name.
            (Some(_), _) if !object.guessed && !self.came_later(found, &ident) => {
                self.replace(path, call, ident)
            }
            (None, Some(other)) if !self.object(other).guessed => self.replace(path, call, ident),
            (Some(_), _) if self.is_another(found, &ident) => self.replace(path, call, ident),
            _ => {
                self.identify(found, ident, false);
                Ok(found)
            }
        }
    }

    /// True if another, older file is there by now: the run closed this object's version with
    /// another identity. A time of birth tells more, where there is one.
    fn is_another(&self, object: ObjectId, exact: &Ident) -> bool {
        let now = self.object(object).now();
        let closed = now.ident.filter(|_| now.number > 0 && now.kept.is_none());
        exact.birth == 0
            && closed.is_some_and(|closed| key(&closed) != key(exact) && exact.mtime < closed.mtime)
    }

    /// True if the identity after the run is that of a file that was made later at the same path.
    /// The run made this object, and the file of the exact identity was born since then, and before
    /// the other one. Where files have no time of birth, it was last changed since then: another
    /// process may have moved an older file there.
    fn came_later(&self, object: ObjectId, exact: &Ident) -> bool {
        let object = self.object(object);
        let after = object
            .settled
            .filter(|after| object.key == Some(key(after)));
        match (object.made, after) {
            (Some(made), Some(after)) => {
                let since = made - NEAR;
                match exact.birth {
                    0 => exact.mtime.min(exact.ctime) >= since,
                    birth => (since..=after.birth).contains(&birth),
                }
            }
            _ => false,
        }
    }

    pub(super) fn replace(
        &mut self,
        path: PathId,
        call: CallContext,
        ident: Ident,
    ) -> Result<ObjectId, S::Error> {
        self.unbind(path);
        let other = self.by_identity(path, call, ident, false)?;
        self.bind(path, other);
        Ok(other)
    }

    /// Gives the object its identity, which is that of the file at `path` after the run. That file
    /// must be the one that this run made or moved there at `time`.
    pub(super) fn recognise(&mut self, object: ObjectId, path: PathId, time: Time) {
        let Some(ident) = self.hint(path, true) else {
            return;
        };
        let object_now = self.object(object);
        let claimed = self
            .by_key
            .get(&key(&ident))
            .is_some_and(|&other| other != object && !self.object(other).guessed);
        if claimed || self.became_link(path, time) {
            return;
        }
        let fits = match (object_now.key, object_now.made) {
            (Some(have), _) if !object_now.guessed => have == key(&ident),
            _ if ident.birth == 0 => true,
            (_, Some(made)) => (made - NEAR..=made + CALL).contains(&ident.birth),
            (_, None) => ident.birth <= time,
        };
        if fits {
            self.identify(object, ident, true);
            // A file that was changed later may have been replaced later.
            self.object_mut(object).guessed = ident.ctime > time + NEAR;
        }
    }

    /// Notes the identity after the run of a file that has the identity `now` at a call, if both
    /// are the same. Nothing changed the file in between.
    pub(super) fn settle(&mut self, object: ObjectId, path: PathId, now: Option<Ident>) {
        if now.is_none() || !self.saw_end || self.object(object).settled.is_some() {
            return;
        }
        if let Some(after) = self.hint(path, true).filter(|after| Some(*after) == now) {
            let made_before = self.made_before(&after);
            let object = self.object_mut(object);
            (object.settled, object.made_before) = (Some(after), made_before);
        }
    }

    /// The identity of the file that was at `path` after the run.
    pub(super) fn hint(&self, path: PathId, follow: bool) -> Option<Ident> {
        self.final_state
            .identity(&self.paths, path, follow)
            .flatten()
    }
}
