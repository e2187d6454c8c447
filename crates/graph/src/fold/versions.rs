//! Starts the versions of a file, and determines when a version is final.

use super::entities::describe;
use super::{CallContext, Fold, NEAR};
use crate::model::{Certainty, Derived, EntityKind, Relation, Sink};
use crate::object::{ObjectId, kind_of};
use crate::paths::PathId;
use crate::version::Writers;
use backstory_eventlog::event::Time;
use backstory_files::Ident;
use backstory_vocabulary::ContentsMode;

impl<S: Sink> Fold<'_, S> {
    /// Prepares a write. The write starts the next version, unless the present version was not read
    /// and only the caller wrote it. If every version is stored, the caller's own version ends as
    /// well. If `fresh`, none of the old content stays. While several processes may write, all of
    /// them write to one version.
    pub(super) fn begin_write(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
        fresh: bool,
    ) -> Result<u32, S::Error> {
        let held = self.object(object);
        let now = held.now();
        let own = now.writers == Writers::One(call.epoch)
            && !now.read
            && (now.fresh || !fresh)
            && !self.stores_every_version();
        let untouched = now.number == 1 && now.entity.is_none() && now.writers == Writers::None;
        if held.versioned() && held.writers == 0 && !own && !untouched {
            return self.next_version(call, object, path, fresh);
        }
        let held = self.object_mut(object);
        // The file has changed since it was moved.
        held.moves = None;
        let now = held.now_mut();
        now.fresh |= fresh;
        Ok(now.number)
    }

    /// Whether the run was recorded with `--contents=all`.
    pub(super) fn stores_every_version(&self) -> bool {
        self.header.modes.contents == Some(ContentsMode::All)
    }

    /// Starts the next version. It derives from the present one, unless it is `fresh`.
    pub(super) fn next_version(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
        fresh: bool,
    ) -> Result<u32, S::Error> {
        self.learn_preserved(call, object, path);
        let old = self.object(object);
        let fresh = fresh && !old.doubtful;
        let old = old.now();
        let (number, before) = (old.number, old.ident);
        let previous = if fresh {
            old.entity
        } else {
            Some(self.primary(call.time, object, number)?)
        };
        self.not_last(object)?;
        let new = self.object_mut(object).begin(call.time, path);
        (new.previous, new.fresh, new.before) = (previous, fresh, before);
        let number = new.number;
        if let (Some(from), false) = (previous, fresh) {
            let entity = self.primary(call.time, object, number)?;
            let activity = self.announce(call.epoch)?;
            self.sink.derived(&Derived {
                entity,
                from,
                activity,
                time: call.time,
            })?;
        }
        Ok(number)
    }

    /// Takes the identity of a version that only the guard saw from the copy that was preserved
    /// before `call` ends the version.
    pub(super) fn learn_preserved(&mut self, call: CallContext, object: ObjectId, path: PathId) {
        let held = self.object(object);
        if !self.stores_every_version() || held.writers > 0 || held.now().ident.is_some() {
            return;
        }
        let ident = self.preserved_by(call, path);
        let now = self.object_mut(object).now_mut();
        now.ident = ident;
        now.news |= ident.is_some() && now.entity.is_some();
    }

    /// The identity of the content at `path` that was preserved before a call changed it. The guard
    /// logs both with the same time.
    pub(super) fn preserved_by(&mut self, call: CallContext, path: PathId) -> Option<Ident> {
        let path = self.follow(path, true);
        let kept = self.final_state.preserved(&self.paths, path, call.time);
        kept.filter(|(at, _)| *at == call.time)
            .map(|(_, ident)| ident)
    }

    /// Makes a node for the content at `path` that a call replaces or empties. Only if every
    /// version is stored, and the file is known to have existed.
    pub(super) fn replaced_version(
        &mut self,
        call: CallContext,
        path: PathId,
    ) -> Result<(), S::Error> {
        if !self.stores_every_version() || call.certainty() != Certainty::Seen {
            return Ok(());
        }
        let ident = call.ident.or_else(|| self.preserved_by(call, path));
        let is_file = |ident: Ident| kind_of(ident.mode) == EntityKind::File;
        if !ident.is_some_and(is_file) || self.link_at(path, call.time).is_some() {
            return Ok(());
        }
        let object = self.lookup(path, call, ident)?;
        self.learn_preserved(call, object, path);
        self.entity_now(call, object, path).map(drop)
    }

    /// Notes that the present version is not what the file system holds at the end.
    pub(super) fn not_last(&mut self, object: ObjectId) -> Result<(), S::Error> {
        let now = self.object_mut(object).now_mut();
        if std::mem::take(&mut now.reported_last) {
            let number = now.number;
            self.report(object, number)?;
        }
        Ok(())
    }

    /// Drops the versions that no descriptor can use any more.
    pub(super) fn forget(&mut self, object: ObjectId) -> Result<(), S::Error> {
        for version in self.object_mut(object).forget() {
            let Some(id) = version.entity else { continue };
            let object = &mut self.objects[object.0 as usize];
            let entity = describe(&self.paths, object.kind, object.label.clone(), &version, id);
            if version.news {
                self.sink.entity(&entity)?;
            }
            if let Some(moves) = object
                .moves
                .as_mut()
                .filter(|moves| moves.number == version.number)
            {
                moves.first = Some(Box::new(entity));
            }
        }
        Ok(())
    }

    /// The last descriptor that may write was closed, so the version is final. Confirms writes that
    /// could not be observed, if only one process can have written the version and the file changed
    /// while it could.
    pub(super) fn close_version(&mut self, object: ObjectId, time: Time, ident: Option<Ident>) {
        let held = self.object_mut(object);
        let settled = held.inherited.map(|(_, after)| after).or(held.settled);
        let untouched = held.untouched();
        let now = held.now_mut();
        let changed = match (now.before, ident) {
            (Some(before), Some(after)) => {
                (before.size, before.mtime, before.ctime) != (after.size, after.mtime, after.ctime)
            }
            (_, after) => {
                !untouched
                    && after
                        .or(settled)
                        .is_some_and(|i| (now.began - NEAR..=time).contains(&i.mtime))
            }
        };
        if now.number > 0 || ident.is_some() {
            now.news |= ident.is_some() && ident != now.ident;
            now.ident = ident;
        }
        if let (true, false, Writers::One(serial), Some(entity)) =
            (changed, now.written, now.writers, now.entity)
        {
            now.written = true;
            now.confirm(Relation::Write);
            if let Some(epoch) = &mut self.epochs[serial as usize] {
                epoch.edges.confirm(entity, Relation::Write);
            }
            self.used(serial, entity, Relation::Write);
        }
    }
}
