//! Names made, moved and removed.
//!
//! A rename gives the file a new version under its new name, derived from the one it had: its content is the same, its name is not. A
//! further hard link has nodes of its own beside those of the first name.

use super::descriptors::Found;
use super::names::{CALL, Name};
use super::{Call, Fold, SLACK};
use crate::model::{EntityKind, Relation, Sink};
use crate::object::{Moves, ObjectId, key, kind_of};
use crate::paths::{PathId, ROOT};
use backstory_eventlog::event::{Ident, Time};

/// `AT_SYMLINK_FOLLOW`
const AT_SYMLINK_FOLLOW: u32 = 0x400;
/// `RENAME_EXCHANGE`
const EXCHANGE: u32 = 2;

impl<S: Sink + ?Sized> Fold<'_, S> {
    pub(super) fn rename(
        &mut self,
        call: Call,
        from: (i32, &[u8]),
        to: (i32, &[u8]),
        flags: u32,
    ) -> Result<(), S::Error> {
        let Some(old) = self.place(call, from.0, from.1) else {
            return Ok(());
        };
        let Some(new) = self.place(call, to.0, to.1) else {
            return Ok(());
        };
        if call.outcome.failed() {
            return self.looked_in_vain(call, old);
        }
        let (old, new) = (self.follow(old, false), self.follow(new, false));
        if old == new {
            return Ok(());
        }
        if let Some(ident) = call.ident {
            let target = self.lookup(new, call, Some(ident))?;
            self.status_changes(call, target);
        }
        if flags & EXCHANGE != 0 {
            return self.exchange(call, old, new);
        }
        let (object, link) = self.take(call, old)?;
        self.removed(call, new)?;
        self.put(call, object, link, old, new)
    }

    fn exchange(&mut self, call: Call, a: PathId, b: PathId) -> Result<(), S::Error> {
        let (first, first_link) = self.take(call, a)?;
        let (second, second_link) = self.take(call, b)?;
        self.put(call, first, first_link, a, b)?;
        self.put(call, second, second_link, b, a)
    }

    /// Takes the file away from its name: the name is removed. Says whether it is a link, and where it leads if that is known.
    fn take(&mut self, call: Call, path: PathId) -> Result<(ObjectId, Option<Option<PathId>>), S::Error> {
        let (object, link) = match self.link_at(path, call.time) {
            Some(link) => (link, Some(self.targets.get(&path).copied())),
            None => (self.lookup(path, call, None)?, None),
        };
        let entity = self.entity_now(call, object, path)?;
        self.touch(call, entity, Relation::Delete);
        self.not_last(object)?;
        let linked = std::mem::replace(&mut self.object_mut(object).linked, true);
        self.unbind(path);
        self.object_mut(object).linked = linked;
        Ok((object, link))
    }

    /// Gives the file the name `new`.
    fn put(
        &mut self,
        call: Call,
        object: ObjectId,
        link: Option<Option<PathId>>,
        old: PathId,
        new: PathId,
    ) -> Result<(), S::Error> {
        let itself = link.is_none().then_some(call.time);
        self.moved_version(call, object, new, itself)?;
        let entity = self.entity_now(call, object, new)?;
        self.touch(call, entity, Relation::Rename);
        match link {
            Some(target) => {
                self.links.insert(new, object);
                self.missing.remove(&new);
                if let Some(target) = target {
                    self.targets.insert(new, target);
                }
            }
            None => {
                self.bind(new, object);
                self.recognise(object, new, call.time);
            }
        }
        self.forget(object)?;
        self.move_below(call, old, new)
    }

    /// The version that a file has by its new name: the old one's content, and who may be writing it. `itself`: when it was given that name, if
    /// not only with its directory.
    fn moved_version(
        &mut self,
        call: Call,
        object: ObjectId,
        new: PathId,
        itself: Option<Time>,
    ) -> Result<(), S::Error> {
        self.begins_to_move(object, itself);
        if let Some(ident) = self.hint(new, true) {
            let object_now = self.object(object);
            if object_now.guessed || object_now.key.is_none_or(|known| known == key(&ident)) {
                self.only_moved(object, &ident)?;
            }
        }
        let held = self.object_mut(object);
        let moves = held.moves.take();
        let before = held.now();
        let (writers, written, read) = (before.writers, before.written, before.read);
        self.next_version(call, object, new, false)?;
        let held = self.object_mut(object);
        held.moves = moves;
        let now = held.now_mut();
        (now.writers, now.written, now.read) = (writers, written, read);
        Ok(())
    }

    fn begins_to_move(&mut self, object: ObjectId, itself: Option<Time>) {
        let held = self.object_mut(object);
        let now = held.now();
        if now.number == 0 && now.ident.is_none() && held.kind == EntityKind::File {
            let (began, own, first) = (now.began, None, None);
            held.moves = Some(Moves { began, own, first });
        }
        if let Some(moves) = &mut held.moves {
            moves.own = itself.or(moves.own);
        }
    }

    /// This is what a file is now, or was after the run. If it has only been moved, and nothing else has happened to it since it was first
    /// used, that says what it was then: other runs know it by that. True if so.
    pub(super) fn only_moved(&mut self, object: ObjectId, ident: &Ident) -> Result<bool, S::Error> {
        let held = self.object_mut(object);
        let Some(moves) = &mut held.moves else {
            return Ok(false);
        };
        let own = moves
            .own
            .is_some_and(|at| (at - SLACK..=at + CALL).contains(&ident.ctime));
        let last_changed = if own { ident.mtime } else { ident.ctime };
        let fits = kind_of(ident.mode) == EntityKind::File
            && ident.birth < moves.began
            && last_changed < moves.began - SLACK;
        if !fits {
            return Ok(false);
        }
        let first = moves.first.take();
        held.moves = None;
        if let Some(mut entity) = first {
            entity.ident = Some(*ident);
            self.sink.entity(&entity)?;
        } else {
            let version = held.kept(0);
            version.ident = Some(*ident);
            version.news |= version.entity.is_some();
        }
        Ok(true)
    }

    /// A directory was renamed: what lies below it, who stands in it and who holds it move along.
    fn move_below(&mut self, call: Call, old: PathId, new: PathId) -> Result<(), S::Error> {
        let below = self.paths.below(old);
        // What was not there before is no longer known not to be.
        for path in self.paths.below(new) {
            self.missing.remove(&path);
            if self.names.get(&path) == Some(&Name::Gone) {
                self.names.remove(&path);
            }
        }
        for path in below {
            let moved = self.paths.moved(path, old, new);
            if let Some(target) = self.targets.remove(&path) {
                self.targets.insert(moved, target);
            }
            if let Some(link) = self.links.remove(&path) {
                self.links.insert(moved, link);
            }
            self.missing.remove(&path);
            if let Some(&Name::Looked(entity)) = self.names.get(&path) {
                self.promote(path, call.time, entity);
            }
            let Some(Name::Is(object)) = self.names.remove(&path) else {
                continue;
            };
            let names = &mut self.object_mut(object).names;
            names.retain(|&n| n != path);
            self.bind(moved, object);
            if self.object(object).now().entity.is_some() {
                self.moved_version(call, object, moved, None)?;
            }
            self.recognise(object, moved, call.time);
            self.forget(object)?;
        }
        let mut processes = std::mem::take(&mut self.processes);
        for process in processes.values_mut() {
            let held = process
                .held
                .values_mut()
                .filter(|h| h.what.as_ref().is_some_and(|w| w.directory));
            for place in held.map(|h| &mut h.path) {
                *place = self.after_move(*place, old, new);
            }
            // Who shares one finds it moved already.
            for standing in [&process.standing].into_iter().chain(process.apart.values()) {
                for place in [&standing.cwd, &standing.root] {
                    place.set(self.after_move(place.get(), old, new));
                }
            }
        }
        self.processes = processes;
        Ok(())
    }

    /// Where a place is after `old` was renamed to `new`.
    fn after_move(&mut self, place: PathId, old: PathId, new: PathId) -> PathId {
        if place != ROOT && self.paths.within(place, old) {
            return self.paths.moved(place, old, new);
        }
        place
    }

    /// What was at `path` lost its last name there, unnoticed by whoever used it.
    fn removed(&mut self, call: Call, path: PathId) -> Result<(), S::Error> {
        let _ = call;
        if let Some(&Name::Is(object)) = self.names.get(&path) {
            self.not_last(object)?;
        }
        self.unbind(path);
        Ok(())
    }

    /// A call that changes names failed: it showed what is there, or that nothing is.
    fn looked_in_vain(&mut self, call: Call, path: PathId) -> Result<(), S::Error> {
        if call.absent() {
            return self.not_there(call, path);
        }
        let entity = match self.links.get(&path) {
            Some(&link) => self.entity_now(call, link, path)?,
            None => self.looked(call, path, path)?,
        };
        self.touch(call, entity, Relation::Stat);
        Ok(())
    }

    pub(super) fn link(
        &mut self,
        call: Call,
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
        let entity = self.entity_now(call, object, old)?;
        self.touch(call, entity, Relation::Meta);
        if self.object(object).kind == EntityKind::Symlink {
            self.links.insert(new, object);
            return self.made(call, object, new);
        }
        if self.object(object).names.is_empty() {
            // It had no name (`O_TMPFILE`, or its names are gone): now it has one again.
            self.object_mut(object).label = None;
            return self.put(call, object, None, new, new);
        }
        self.status_changes(call, object);
        self.object_mut(object).linked = true;
        self.object_mut(object).linker = Some(call.epoch);
        self.unbind(new);
        self.bind(new, object);
        self.made(call, object, new)
    }

    /// What is to get another name, and the name it has.
    fn link_source(&mut self, call: Call, from: (i32, &[u8]), flags: u32) -> Result<Found, S::Error> {
        if from.1.is_empty() {
            return self.object_of_descriptor(call, from.0);
        }
        let Some(old) = self.place(call, from.0, from.1) else {
            return Ok(None);
        };
        let follow = flags & AT_SYMLINK_FOLLOW != 0;
        if let (true, Some((_, fd))) = (follow, self.descriptor_by_place(call, old)) {
            return self.object_of_descriptor(call, fd);
        }
        let old = self.follow(old, follow);
        Ok(Some(match self.link_at(old, call.time) {
            Some(link) if !follow => (link, old),
            _ => (self.lookup(old, call, call.ident)?, old),
        }))
    }

    fn made(&mut self, call: Call, object: ObjectId, path: PathId) -> Result<(), S::Error> {
        let entity = self.entity_now(call, object, path)?;
        self.touch(call, entity, Relation::Make);
        Ok(())
    }

    pub(super) fn symlink(
        &mut self,
        call: Call,
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
        self.links.insert(place, object);
        let directory = self.paths.parent(place);
        let root = self.root_of(call);
        let base = if target.starts_with(b"/") { root } else { directory };
        let leads = self.walk(base, root, target);
        self.targets.insert(place, leads);
        self.made(call, object, place)
    }

    pub(super) fn unlink(&mut self, call: Call, dir: i32, path: &[u8]) -> Result<(), S::Error> {
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
        let entity = self.entity_now(call, object, place)?;
        self.touch(call, entity, Relation::Delete);
        if call.ok() {
            self.status_changes(call, object);
            self.not_last(object)?;
            self.unbind(place);
        }
        Ok(())
    }

    /// A file gets or loses a name, or another status, and the call says what it was before: its content stays what it is.
    pub(super) fn status_changes(&mut self, call: Call, object: ObjectId) {
        let Some(ident) = call.ident else { return };
        let object = self.object_mut(object);
        let changed = object.ctime_without_names(&ident, super::SLACK);
        let now = object.now_mut();
        if now.number == 0 && now.ident.is_none() && changed < now.began - super::SLACK {
            // So it has been this since before it was first used.
            now.ident = Some(ident);
            now.news |= now.entity.is_some();
        }
        object.names_change(&ident, call.time, super::SLACK);
    }

    /// A directory or node was made.
    pub(super) fn make(
        &mut self,
        call: Call,
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
