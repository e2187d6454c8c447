//! Nodes and edges: a version becomes an entity when an activity uses it, and a use becomes an
//! edge.

use backstory_eventlog::event::{Time, Via};

use super::{CallContext, Fold, NEAR, SLACK};
use crate::activity::EntityUse;
use crate::model::{Certainty, Derived, Entity, EntityId, EntityKind, Interval, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use crate::serial::Serial;
use crate::version::ContentVersion;

/// A node, and the name and version by which it is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedEntity {
    pub(super) id: EntityId,
    by: Option<(ObjectId, u32, PathId)>,
}

impl From<EntityId> for NamedEntity {
    /// A node with only one name.
    fn from(id: EntityId) -> NamedEntity {
        NamedEntity { id, by: None }
    }
}

impl<S: Sink> Fold<'_, S> {
    /// The node of the present version of `object`, used by the name `path`.
    pub(super) fn entity_now(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
    ) -> Result<NamedEntity, S::Error> {
        let number = self.object(object).now().number;
        self.entity(call, object, number, path)
    }

    /// The node of a version, used by the name `path`. The oldest version in memory stands for one
    /// that has been dropped.
    pub(super) fn entity(
        &mut self,
        call: CallContext,
        object: ObjectId,
        number: u32,
        path: PathId,
    ) -> Result<NamedEntity, S::Error> {
        let primary = self.primary(call.time, object, number)?;
        let named = NamedEntity {
            id: primary,
            by: Some((object, number, path)),
        };
        let kept = self.object_mut(object);
        let link = kept.linked && kept.names.contains(&path);
        let version = kept.kept(number);
        if version.path == path || path == ROOT {
            return Ok(named);
        }
        if link && self.is_other_hard_link(object, number, path) {
            let twin = self.twin(call, object, number, path, primary)?;
            return Ok(if twin == primary { named } else { twin.into() });
        }
        if !self.object_mut(object).kept(number).has_alias(path) {
            let first = self.object_mut(object).kept(number).path;
            let (soft, first_soft) = (self.is_soft(path), self.is_soft(first));
            let version = self.object_mut(object).kept(number);
            version.add_alias(path, soft, first_soft);
            if let Some(news) = &mut self.news {
                news.named(object, number);
            }
        }
        Ok(named)
    }

    /// Whether a symbolic link is in `path` or at its end, be it older than the run or made by it.
    pub(super) fn is_soft(&mut self, path: PathId) -> bool {
        self.follow(path, true) != path || self.passes_older_link(path)
    }

    /// Notes by which name an activity used or changed a node.
    pub(super) fn note(&mut self, named: NamedEntity, relation: Relation, certainty: Certainty) {
        if let Some((object, number, path)) = named.by {
            self.object_mut(object)
                .kept(number)
                .note(path, relation, certainty);
        }
    }

    /// True if `path` is a hard link other than the one by which the version is known. A name
    /// through an older symbolic link may be either, so the fold takes it for the same one.
    pub(super) fn is_other_hard_link(
        &mut self,
        object: ObjectId,
        number: u32,
        path: PathId,
    ) -> bool {
        if self.passes_older_link(path) {
            return false;
        }
        let version = self.object_mut(object).kept(number);
        let names: Vec<PathId> = std::iter::once(version.path)
            .chain(version.aliases.iter().map(|alias| alias.path))
            .collect();
        names.contains(&path) || names.into_iter().any(|name| !self.passes_older_link(name))
    }

    pub(super) fn primary(
        &mut self,
        time: Time,
        object: ObjectId,
        number: u32,
    ) -> Result<EntityId, S::Error> {
        let next = EntityId(self.entities);
        let held = self.object_mut(object);
        let settled = held.settled.filter(|_| held.unchanged_since(time, SLACK));
        let is_last = held.now().number == number;
        let version = held.kept(number);
        if let Some(entity) = version.entity {
            return Ok(entity);
        }
        version.entity = Some(next);
        let (first, by) = (version.number == 0 && version.ident.is_none(), version.path);
        if let Some(ident) = settled.filter(|_| is_last) {
            version.ident.get_or_insert(ident);
            version.reported_last = true;
        } else if first {
            // The content existed before the run, and was preserved before the run changed it.
            let by = self.follow(by, true);
            let began = self.object_mut(object).kept(number).began;
            let kept = self.final_state.preserved(&self.paths, by, began);
            if let Some((at, ident)) = kept.filter(|(_, ident)| ident.mtime < began + NEAR) {
                let version = self.object_mut(object).kept(number);
                (version.ident, version.kept) = (Some(ident), Some(at));
            }
        }
        self.entities += 1;
        self.report(object, number)?;
        Ok(next)
    }

    /// A hard link's own node for a version. While the version is still being written, all names
    /// share one.
    pub(super) fn twin(
        &mut self,
        call: CallContext,
        object: ObjectId,
        number: u32,
        path: PathId,
        from: EntityId,
    ) -> Result<EntityId, S::Error> {
        let id = EntityId(self.entities);
        let held = self.object_mut(object);
        let (kind, open) = (held.kind, held.writers > 0);
        let version = held.kept(number);
        if let Some(&(_, entity)) = version.links.iter().find(|(p, _)| *p == path) {
            return Ok(entity);
        }
        if open {
            version.add_alias(path, false, false);
            return Ok(from);
        }
        version.links.push((path, id));
        // A later write makes another version.
        version.read = true;
        let (ident, last, version) = (version.ident, version.reported_last, version.number);
        self.entities += 1;
        let path = self.paths.bytes(path).into();
        let entity = Entity {
            id,
            kind,
            path,
            aliases: Vec::new(),
            by_name: Vec::new(),
            version,
            previous: Some(from),
            ident,
            last,
        };
        self.sink.entity(&entity)?;
        let activity = self.announce(call.epoch)?;
        self.sink.derived(&Derived {
            entity: id,
            from,
            activity,
            time: call.time,
        })?;
        Ok(id)
    }

    /// The node for a use by the name `path`, as it was resolved when the file was opened.
    pub(super) fn entity_used(
        &mut self,
        call: CallContext,
        object: ObjectId,
        number: u32,
        path: PathId,
    ) -> Result<NamedEntity, S::Error> {
        if !self.object(object).linked {
            return self.entity(call, object, number, path);
        }
        let links = &self.object_mut(object).kept(number).links;
        match links.iter().find(|(p, _)| *p == path) {
            Some(&(_, entity)) => Ok(entity.into()),
            None => self.first_node(call, object, number, path),
        }
    }

    /// The first node of a version, whichever of its names is used.
    pub(super) fn first_node(
        &mut self,
        call: CallContext,
        object: ObjectId,
        number: u32,
        path: PathId,
    ) -> Result<NamedEntity, S::Error> {
        let id = self.primary(call.time, object, number)?;
        let by = Some((object, number, path));
        Ok(NamedEntity { id, by })
    }

    /// Announces a version's node with all facts that are known by now.
    pub(super) fn report(&mut self, object: ObjectId, number: u32) -> Result<(), S::Error> {
        let object = &mut self.objects[object.0 as usize];
        let kind = object.kind;
        let label = object.label.clone();
        let version = object.kept(number);
        let Some(id) = version.entity else {
            return Ok(());
        };
        version.news = false;
        let entity = describe(&self.paths, kind, label, version, id);
        self.sink.entity(&entity)
    }

    /// The node of a path at which no file exists.
    pub(super) fn missing(&mut self, path: PathId) -> Result<EntityId, S::Error> {
        if let Some(&entity) = self.missing.get(&path) {
            return Ok(entity);
        }
        let id = EntityId(self.entities);
        self.entities += 1;
        self.missing.insert(path, id);
        let path = self.paths.bytes(path).into();
        let kind = EntityKind::Missing;
        let entity = Entity {
            id,
            kind,
            path,
            aliases: Vec::new(),
            by_name: Vec::new(),
            version: 0,
            previous: None,
            ident: None,
            last: false,
        };
        self.sink.entity(&entity)?;
        Ok(id)
    }

    /// Adds an edge to an epoch.
    pub(super) fn edge(
        &mut self,
        serial: Serial,
        entity: impl Into<NamedEntity>,
        relation: Relation,
        interval: Interval,
        certainty: Certainty,
        via: Via,
    ) {
        let named = entity.into();
        self.note(named, relation, certainty);
        let entity = named.id;
        if let Some(epoch) = &mut self.epochs[serial as usize] {
            epoch.edges.add(EntityUse {
                entity,
                relation,
                interval,
                certainty,
                via,
                opened: false,
            });
        }
        self.used(serial, entity, relation);
    }

    /// Adds an edge for one moment.
    pub(super) fn touch(
        &mut self,
        call: CallContext,
        entity: impl Into<NamedEntity>,
        relation: Relation,
    ) {
        let interval = Interval {
            start: call.time,
            end: call.time,
        };
        self.edge(
            call.epoch,
            entity,
            relation,
            interval,
            call.certainty(),
            call.via,
        );
    }
}

pub(super) fn describe(
    paths: &crate::paths::PathTable,
    kind: EntityKind,
    label: Option<Box<[u8]>>,
    version: &ContentVersion,
    id: EntityId,
) -> Entity {
    Entity {
        id,
        kind,
        path: label.unwrap_or_else(|| paths.bytes(version.path).into()),
        aliases: version
            .aliases
            .iter()
            .map(|alias| paths.bytes(alias.path).into())
            .collect(),
        by_name: version.by_name(),
        version: version.number,
        previous: version.previous,
        ident: version.ident,
        last: version.reported_last,
    }
}
