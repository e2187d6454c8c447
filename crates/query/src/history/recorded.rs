//! The events that runs recorded at one path, and the versions that they found there.

use backstory_ordering::SmallSort;
use std::collections::BTreeSet;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{ActivityId, Certainty, Derived, Edge, Entity, EntityKind, Relation};
use backstory_store::{ActivityKey, EntityKey, Store, Stream};

use super::directories::{DirectoryMove, directory_moves, moved_with_directory};
use super::{HistorySearch, PathChange, PathEvent};
use crate::Result;

impl HistorySearch<'_> {
    /// The events at exactly this path, in order of time. None if they were returned before.
    pub(super) fn recorded_at(&mut self, path: &[u8]) -> Result<Vec<PathEvent>> {
        match self.seen.insert(path.into()) {
            true => self.events_at(path, Time::MAX),
            false => Ok(Vec::new()),
        }
    }

    /// The events at exactly this path before a time.
    fn events_at(&self, path: &[u8], until: Time) -> Result<Vec<PathEvent>> {
        let mut events = Vec::new();
        for key in self.store.at_path(path)? {
            let entity = self.store.entity(key)?;
            if matches!(entity.kind, EntityKind::File | EntityKind::Symlink) {
                VersionEvents::of(self.store, key, &entity, path)?.write(&mut events);
            }
        }
        events.retain(|event| event.time < until);
        events.sort_small_by_key(|event| (event.time, event.run, event.version));
        let mut moves = directory_moves(self.store, path)?;
        moves.retain(|one| one.time < until);
        moves.sort_small_by_key(|one| one.time);
        for one in moves {
            self.add_move(path, &one, &mut events)?;
        }
        Ok(events)
    }

    /// Adds the rename of a directory above the path by a run that did not use the file.
    fn add_move(
        &self,
        path: &[u8],
        one: &DirectoryMove,
        events: &mut Vec<PathEvent>,
    ) -> Result<()> {
        let run = Some(one.doer.run());
        let is_here = |change: &PathChange| {
            matches!(
                change,
                PathChange::RenamedFrom(_) | PathChange::RenamedTo(_)
            )
        };
        if events
            .iter()
            .any(|event| event.run == run && event.time == one.time && is_here(&event.change))
        {
            return Ok(());
        }
        let (change, before) = match *one.to == *path {
            true => {
                let former = self.events_at(&one.from, one.time)?;
                (PathChange::RenamedFrom(one.from.clone()), former)
            }
            false => {
                let earlier = events.iter().filter(|event| event.time < one.time);
                let earlier = earlier.cloned().collect();
                (PathChange::RenamedTo(one.to.clone()), earlier)
            }
        };
        // No file is known to have been there.
        let Some(last) = before.last().filter(|last| last.change.leaves_file()) else {
            return Ok(());
        };
        let event = PathEvent {
            path: path.into(),
            time: one.time,
            run,
            activity: Some(one.doer),
            change,
            version: last.version,
            ident: last.ident,
        };
        let place = events.partition_point(|other| other.time <= one.time);
        events.insert(place, event);
        Ok(())
    }
}

/// The events of one version of a run.
struct VersionEvents<'v> {
    key: EntityKey,
    entity: &'v Entity,
    path: &'v [u8],
    /// The begin of the run that found it.
    found: Option<Time>,
    /// The program that wrote it, and the time. Of several programs, the last one finished the
    /// version. A write that was seen counts more than a possible one.
    written: Option<(Certainty, Time, ActivityKey)>,
    /// Everything else.
    others: Vec<(Time, ActivityKey, PathChange)>,
}

impl<'v> VersionEvents<'v> {
    fn of(
        store: &dyn Store,
        key: EntityKey,
        entity: &'v Entity,
        path: &'v [u8],
    ) -> Result<VersionEvents<'v>> {
        let mut events = VersionEvents {
            key,
            entity,
            path,
            found: None,
            written: None,
            others: Vec::new(),
        };
        // A header that thousands of compilers read has no event of theirs.
        let doers: BTreeSet<ActivityId> = store.generators(key)?.into_iter().collect();
        for activity in doers {
            let doer = ActivityKey::new(key.run(), activity);
            let stream = store.stream(doer)?;
            let own = stream
                .edges
                .iter()
                .filter(|edge| edge.entity == key.local());
            for edge in own {
                events.add_edge(store, doer, edge, &stream)?;
            }
            events.add_derived(store, doer, &stream)?;
        }
        // Without an identity, nothing tells whether another run knows the version.
        if entity.version == 0 && entity.ident.is_some() {
            events.found = store.run_started(key.run())?;
        }
        Ok(events)
    }

    fn add_edge(
        &mut self,
        store: &dyn Store,
        doer: ActivityKey,
        edge: &Edge,
        stream: &Stream,
    ) -> Result<()> {
        let named = relations_by_name(self.entity, self.path) & edge.relation.bit() != 0;
        let time = edge.interval.end;
        let change = match edge.relation {
            Relation::Write | Relation::Make => {
                let written = (edge.certainty, time, doer);
                self.written = self.written.max(Some(written));
                return Ok(());
            }
            Relation::Rename if named => {
                let is_this = |one: &&Derived| one.entity == self.key.local();
                let from = stream.derived.iter().find(is_this);
                let from = from.map(|one| EntityKey::new(self.key.run(), one.from));
                let from = from.map(|from| store.entity(from)).transpose()?;
                let from = from.map(|from| last_name(&from, self.path));
                PathChange::RenamedFrom(from.unwrap_or_default())
            }
            Relation::Delete if named => {
                let is_this = |one: &&Derived| one.from == self.key.local() && one.time == time;
                let to = stream.derived.iter().find(is_this);
                let to = to.map(|one| EntityKey::new(self.key.run(), one.entity));
                let to = to.map(|to| store.entity(to)).transpose()?;
                match to.filter(|to| *to.path != *self.path) {
                    Some(to) => PathChange::RenamedTo(to.path),
                    None => PathChange::Deleted,
                }
            }
            Relation::Meta if named => PathChange::Metadata,
            _ => return Ok(()),
        };
        self.others.push((time, doer, change));
        Ok(())
    }

    /// Links and copies that the kernel made have no write. Neither has a file that got another
    /// name because a directory above it was renamed.
    fn add_derived(&mut self, store: &dyn Store, doer: ActivityKey, stream: &Stream) -> Result<()> {
        let of_this =
            |one: &&Derived| one.entity == self.key.local() || one.from == self.key.local();
        let mut is_moved = false;
        for derived in stream.derived.iter().filter(of_this) {
            if !moved_with_directory(store, self.key.run(), stream, derived)? {
                continue;
            }
            let is_new = derived.entity == self.key.local();
            is_moved |= is_new;
            let other = if is_new { derived.from } else { derived.entity };
            let other = store.entity(EntityKey::new(self.key.run(), other))?;
            let change = match is_new {
                true => PathChange::RenamedFrom(last_name(&other, self.path)),
                false => PathChange::RenamedTo(other.path),
            };
            self.others.push((derived.time, doer, change));
        }
        let is_this = |one: &&Derived| one.entity == self.key.local();
        let is_renamed =
            |edge: &Edge| edge.entity == self.key.local() && edge.relation == Relation::Rename;
        if let Some(made) = stream.derived.iter().find(is_this)
            && self.entity.version > 0
            && !is_moved
            && !stream.edges.iter().any(is_renamed)
        {
            let made = (Certainty::Seen, made.time, doer);
            self.written = self.written.max(Some(made));
        }
        Ok(())
    }

    fn write(self, events: &mut Vec<PathEvent>) {
        let event = |time, activity, change| PathEvent {
            path: self.path.into(),
            time,
            run: Some(self.key.run()),
            activity,
            change,
            version: Some(self.key),
            ident: self.entity.ident,
        };
        if let (Some(started), Some(ident)) = (self.found, self.entity.ident) {
            let time = ident.mtime.max(ident.ctime).min(started);
            events.push(event(time, None, PathChange::Found));
        }
        if let Some((_, time, doer)) = self.written {
            events.push(event(time, Some(doer), PathChange::Changed));
        }
        for (time, doer, change) in &self.others {
            events.push(event(*time, Some(*doer), change.clone()));
        }
    }
}

/// A name of the file other than `not`, the last one that it got. Empty if it has no other.
pub(super) fn last_name(entity: &Entity, not: &[u8]) -> Bytes {
    let mut names = entity.aliases.iter().rev().chain([&entity.path]);
    names
        .find(|name| ***name != *not)
        .cloned()
        .unwrap_or_default()
}

/// The relations that programs had to the file by this name. All if that is not known.
fn relations_by_name(entity: &Entity, path: &[u8]) -> u16 {
    let names = std::iter::once(&entity.path).chain(&entity.aliases);
    let mut by_name = names.zip(&entity.by_name);
    let found = by_name.find(|(name, _)| ***name == *path);
    found.map_or(u16::MAX, |(_, by)| by.seen | by.possible)
}
