//! Paths that a program only looked at. They have a node, but no object.

use super::entities::NamedEntity;
use super::names::NameState;
use super::{CallContext, Fold, SLACK};
use crate::model::{Certainty, Entity, EntityId, EntityKind, Relation, Sink};
use crate::object::{ObjectId, has_versions, kind_of};
use crate::paths::PathId;
use crate::version::key;
use backstory_eventlog::event::Time;
use backstory_files::Ident;

impl<S: Sink> Fold<'_, S> {
    /// The node of `place` for a process that only looks at it. No content flows through it, so its
    /// identity is not needed, and it takes no object.
    pub(super) fn looked(
        &mut self,
        call: CallContext,
        place: PathId,
        named: PathId,
    ) -> Result<NamedEntity, S::Error> {
        if let Some(link) = self.unfollowed_link(place) {
            return self.entity_now(call, link, place);
        }
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

    /// The link at a path that was followed as far as the call follows links. The run made it.
    ///
    /// The links lead in a circle, or the call follows none at the end (`O_NOFOLLOW`, `O_EXCL`). It
    /// fails, and the process learned nothing about another file.
    pub(super) fn unfollowed_link(&self, place: PathId) -> Option<ObjectId> {
        self.links.target(place)?;
        self.links.object(place)
    }

    /// Announces the node of a path that was only looked at. A look-up changes nothing, so the file
    /// stays as it is unless another call changes it.
    pub(super) fn report_looked(
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

    /// Marks paths as directories if they were only looked at and have names below them.
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

    /// Determines the object at a path that was only looked at so far. Now content flows through
    /// the path, so its identity matters.
    pub(super) fn look_closer(
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
            // The file has another name already. The facts learned by this name stay with its node.
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

    /// Makes an object of a path that was only looked at.
    pub(super) fn promote(&mut self, path: PathId, time: Time, entity: EntityId) -> ObjectId {
        let object = self.add(EntityKind::File, path, time, 0);
        let versioned = self.object(object).versioned();
        let now = self.object_mut(object).now_mut();
        (now.entity, now.reported_last) = (Some(entity), versioned);
        now.note(path, Relation::Stat, Certainty::Seen);
        self.bind(path, object);
        object
    }
}
