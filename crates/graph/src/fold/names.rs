//! What a path leads to at a time.
//!
//! Within the run names are replayed exactly: who made, moved or removed them is in the log. What a path led to before anything
//! happened to it is taken, in this order, from an identity that came with an event (exact at its time), from the identity taken after
//! the run (a hint: believed unless the file was born later), else the path itself is the identity.

use backstory_eventlog::event::Time;
use backstory_files::Ident;

use super::entities::NamedEntity;
use super::{CallContext, Fold, NEAR, SLACK};
use crate::model::{Certainty, Derived, Entity, EntityId, EntityKind, Relation, Sink};
use crate::object::{ObjectId, TrackedObject, has_versions, key, kind_of};
use crate::paths::PathId;

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameState {
    /// It leads here.
    Is(ObjectId),
    /// It leads to something that was only looked at, which has this node and no object.
    Looked(EntityId),
    /// It leads nowhere: removed, moved away, or looked for in vain.
    Gone,
}

/// A file that this run made was born while the call that made it ran: at most this long after the call began.
pub(super) const CALL: Time = 2_000_000_000;

impl<S: Sink + ?Sized> Fold<'_, S> {
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

    /// The node of what `place` leads to, for who only looks at it. Nothing flows through it, so nobody asks which file it is, and it
    /// takes no object.
    pub(super) fn looked(
        &mut self,
        call: CallContext,
        place: PathId,
        named: PathId,
    ) -> Result<NamedEntity, S::Error> {
        match self.names.get(&place) {
            Some(&NameState::Looked(entity)) if named == place => return Ok(entity.into()),
            None | Some(NameState::Gone) if named == place => {}
            _ => {
                let object = self.lookup(place, call, None)?;
                return self.entity_now(call, object, named);
            }
        }
        let id = EntityId(self.entities);
        self.entities += 1;
        let kind = self.kind_by_place(place).unwrap_or(EntityKind::File);
        self.report_looked(id, place, kind)?;
        self.names.insert(place, NameState::Looked(id));
        self.missing.remove(&place);
        Ok(id.into())
    }

    /// Who looks changes nothing: unless somebody else does, it stays as it is.
    fn report_looked(
        &mut self,
        id: EntityId,
        path: PathId,
        kind: EntityKind,
    ) -> Result<(), S::Error> {
        self.sink.entity(&Entity {
            id,
            kind,
            path: self.paths.bytes(path).into(),
            aliases: Vec::new(),
            by_name: Vec::new(),
            version: 0,
            previous: None,
            ident: None,
            last: has_versions(kind),
        })
    }

    /// What was only looked at, and has names below it, is a directory.
    pub(super) fn report_looked_directories(&mut self) -> Result<(), S::Error> {
        for at in 0..self.paths.count() {
            let path = PathId(at as u32);
            if let Some(&NameState::Looked(entity)) = self.names.get(&path)
                && self.paths.has_children(path)
                && self.kind_by_place(path).is_none()
            {
                self.report_looked(entity, path, EntityKind::Directory)?;
            }
        }
        Ok(())
    }

    /// Content flows through what only was looked at so far: now it matters which file it is.
    fn look_closer(
        &mut self,
        path: PathId,
        entity: EntityId,
        call: CallContext,
        exact: Option<Ident>,
    ) -> Result<ObjectId, S::Error> {
        let ident = match exact {
            Some(ident) => Some(ident),
            None => self
                .hint(path, true)
                .filter(|ident| self.believable(path, call.time, ident)),
        };
        let Some(ident) = ident else {
            return Ok(self.promote(path, call.time, entity));
        };
        if self.by_key.contains_key(&key(&ident)) {
            // It has another name; what was learned by this one stays where it is.
            let other = self.by_identity(path, call, ident, exact.is_none())?;
            self.bind(path, other);
            return Ok(other);
        }
        let object = self.promote(path, call.time, entity);
        self.identify(object, ident, exact.is_none());
        let held = self.object_mut(object);
        let made_before = held.made_before;
        held.guessed = exact.is_none() && ident.ctime >= call.time - SLACK && !made_before;
        let same = held.unchanged_since(call.time, SLACK);
        held.turned_out(kind_of(ident.mode));
        if same {
            held.now_mut().ident = Some(ident);
            held.now_mut().news = true;
        }
        Ok(object)
    }

    /// What was only looked at becomes an object of its own.
    pub(super) fn promote(&mut self, path: PathId, time: Time, entity: EntityId) -> ObjectId {
        let object = self.add(EntityKind::File, path, time, 0);
        let versioned = self.object(object).versioned();
        let now = self.object_mut(object).now_mut();
        (now.entity, now.reported_last) = (Some(entity), versioned);
        now.note(path, Relation::Stat, Certainty::Seen);
        self.bind(path, object);
        object
    }

    /// Whether `path` led to `ident` at `time` already. If the file was not changed since: certainly. Otherwise another file
    /// may have been moved there: not believed if the file was born later, or is known by another name.
    fn believable(&mut self, path: PathId, time: Time, ident: &Ident) -> bool {
        if self.became_link(path, time) {
            return false;
        }
        if ident.ctime < time - SLACK || self.made_before(ident) {
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
        // Two plain names for one file are hard links. That they are so after the run does not say that they were so now.
        let linked = self.object(other).linked && !self.object(other).guessed;
        let names = self.object(other).names.clone();
        linked || !names.is_empty() && names.into_iter().all(|name| self.passes_older_link(name))
    }

    /// Whether the file was changed last before this run, though so shortly that its time, held against that of a use, does not tell: by
    /// what file systems' clock said when the command began, or because an earlier run made it just so.
    pub(super) fn made_before(&self, ident: &Ident) -> bool {
        let started = self.header.started;
        let quiet = self.end.map_or(0, |end| end.quiet);
        let told =
            || (started - SLACK..=started).contains(&ident.ctime) && self.sink.made_before(ident);
        (started - SLACK..quiet).contains(&ident.ctime) || told()
    }

    /// Whether a symbolic link was put at `path` after `time`: what it leads to says nothing of what was there.
    fn became_link(&self, path: PathId, time: Time) -> bool {
        self.hint(path, false)
            .is_some_and(|link| kind_of(link.mode) == EntityKind::Symlink && link.ctime > time)
    }

    /// Whether a symbolic link stands in `path`, or is it: then a file may be reached by it that has another name.
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

    /// The link at `path` itself, if it is one.
    pub(super) fn link_at(&mut self, path: PathId, time: Time) -> Option<ObjectId> {
        if let Some(&found) = self.links.get(&path) {
            return Some(found);
        }
        if self.names.contains_key(&path) && self.hint_is_not_link(path) {
            return None;
        }
        let ident = self.hint(path, false)?;
        if kind_of(ident.mode) != EntityKind::Symlink || ident.ctime > time {
            return None;
        }
        let made = self.link_met(path, time);
        self.object_mut(made).key = Some(key(&ident));
        self.object_mut(made).settled = Some(ident);
        Some(made)
    }

    /// The link at `path`, as what only was looked at turns out to be, or as it is met now.
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
        self.links.insert(path, met);
        met
    }

    fn hint_is_not_link(&self, path: PathId) -> bool {
        self.hint(path, false)
            .is_none_or(|i| kind_of(i.mode) != EntityKind::Symlink)
    }

    /// What the file system said of `path` after the run.
    pub(super) fn hint(&self, path: PathId, follow: bool) -> Option<Ident> {
        self.final_state
            .identity(&self.paths, path, follow)
            .flatten()
    }

    /// Whether `at` is a symbolic link that was there before the run.
    pub(super) fn is_older_link(&mut self, at: PathId) -> bool {
        if let Some(&known) = self.older_link.get(&at) {
            return known;
        }
        let Some(found) = self.final_state.identity(&self.paths, at, false) else {
            return false;
        };
        // Links that this run made are followed by name.
        let old = |ident: &Ident| ident.ctime < self.header.started + NEAR;
        let link = found
            .filter(old)
            .is_some_and(|i| kind_of(i.mode) == EntityKind::Symlink);
        self.older_link.insert(at, link);
        link
    }

    /// If the file at `path` now, after the run, is the one that this run made or moved there at `time`, gives the object its identity.
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
            // What was changed later may have been replaced later.
            self.object_mut(object).guessed = ident.ctime > time + NEAR;
        }
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

    /// The name `path` leads nowhere from now on. Gives what it led to.
    pub(super) fn unbind(&mut self, path: PathId) -> Option<ObjectId> {
        self.targets.remove(&path);
        self.links.remove(&path);
        if let Some(&NameState::Looked(entity)) = self.names.get(&path) {
            // In the end it is not what is there.
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
            // The number may be given to another file.
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

    /// The object with this identity, or a new one.
    fn by_identity(
        &mut self,
        path: PathId,
        call: CallContext,
        ident: Ident,
        settled: bool,
    ) -> Result<ObjectId, S::Error> {
        let steady = !settled || ident.ctime < call.time - SLACK || self.made_before(&ident);
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
        // It has not changed since it was first met, and nothing but this call changes it until the end: the guess was right.
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

    /// The file at `path` is taken for `object`, but may have been another before: then its content counts as well.
    fn add_source(
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

    /// Whether the object that was taken for `ident` by a guess is another: the file has one name, and that is `path`.
    fn guessed_wrong(
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

    /// `object` is the file `ident`. An older object that was only taken for it loses the claim.
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

    /// The name leads to `found`, but the file there is `ident`.
    fn reconcile(
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
            // Something outside the run put another file here, or the same file was known by another name.
            (Some(_), _) if !object.guessed => self.replace(path, call, ident),
            (None, Some(other)) if !self.object(other).guessed => self.replace(path, call, ident),
            _ => {
                self.identify(found, ident, false);
                Ok(found)
            }
        }
    }

    fn replace(
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
}
