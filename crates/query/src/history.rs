//! What happened to the file at a path, over all runs: who made, changed, renamed and deleted it.
//!
//! In: a store and a path. Out: [`PathEvent`]s in order of time. A rename leads on to the file's
//! former path, so a history goes back to the first version. Between two recorded events, the
//! identities of the versions show that the file was changed or moved outside of any recorded run.
//!
//! Invariant: an event is either recorded, or marked as inferred. Absent: the file's content, and
//! renames of directories above it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::model::{Edge, Entity, EntityKind, Relation};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store, VersionMatch, same_version};

use crate::root::Asked;
use crate::{Error, Result, alike, now};

/// What happened to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathChange {
    /// The file was made where none was.
    Made,
    /// The file got another content.
    Changed,
    /// The file got this path; before, it had the other one.
    RenamedFrom(Bytes),
    /// The file was renamed to the other path.
    RenamedTo(Bytes),
    /// The file was deleted.
    Deleted,
    /// Mode, owner or times were changed.
    Metadata,
    /// A run found a version that no recorded run made: the first that is known.
    Found,
    /// Inferred: the file was changed outside of any recorded run.
    ChangedUnseen,
    /// Inferred: the file was moved here from the other path outside of any recorded run. It has
    /// the inode, or else the content, of the file that was there.
    MovedUnseen {
        /// The former path.
        from: Bytes,
        /// True if the inode is the same, false if only the content is.
        same_inode: bool,
    },
    /// Inferred: the file was deleted or moved outside of any recorded run.
    GoneUnseen,
}

impl PathChange {
    /// True if no run recorded the change itself.
    pub fn is_inferred(&self) -> bool {
        use PathChange::*;
        matches!(self, ChangedUnseen | MovedUnseen { .. } | GoneUnseen)
    }

    /// True if a file is at the path afterwards.
    pub fn leaves_file(&self) -> bool {
        use PathChange::*;
        !matches!(self, RenamedTo(_) | Deleted | GoneUnseen)
    }
}

/// Something that happened to a file.
#[derive(Debug, Clone, PartialEq)]
pub struct PathEvent {
    /// The file's path at that time. It is not the requested one before a rename.
    pub path: Bytes,
    /// When. For a change outside of recorded runs, the latest time at which it can have happened,
    /// as far as the file's times say.
    pub time: Time,
    /// The run that recorded it, or that first met its result. `None` if only the present state of
    /// the file shows it.
    pub run: Option<RunKey>,
    /// The activity that did it. `None` for an inferred event.
    pub activity: Option<ActivityKey>,
    /// What happened.
    pub change: PathChange,
    /// The version that the event left, or the last one before a deletion. `None` for the present
    /// version, if no run knows it.
    pub version: Option<EntityKey>,
    /// Its identity.
    pub ident: Option<Ident>,
}

/// The history of a path, oldest event first.
///
/// # Errors
///
/// [`Error::NotFound`] if no run has seen the path, nor the file that is there now.
pub fn history(store: &dyn Store, path: &Path) -> Result<Vec<PathEvent>> {
    let _one_state = store.reading()?;
    let asked = Asked::new(path)?;
    let mut found = HistorySearch {
        store,
        seen: HashSet::new(),
        events: Vec::new(),
    };
    let present = now::ident(&asked.absolute, true);
    let mut names = asked.names();
    names.dedup();
    for name in &names {
        let events = found.at(name)?;
        if !events.is_empty() {
            found.add(name, events, present, Time::MAX)?;
        }
    }
    let own: Bytes = asked.absolute.as_os_str().as_bytes().into();
    if found.events.is_empty()
        && let Some(ident) = &present
    {
        found.moved_unseen(&own, ident, None, None)?;
    }
    if found.events.is_empty() {
        return Err(Error::NotFound(asked.absolute));
    }
    found.events.sort_by_key(|event| (event.time, event.run));
    found.events.dedup();
    Ok(found.events)
}

/// A history in the making.
struct HistorySearch<'s> {
    store: &'s dyn Store,
    seen: HashSet<Bytes>,
    events: Vec<PathEvent>,
}

impl HistorySearch<'_> {
    /// The events that runs recorded at exactly this path, and the versions that they found there,
    /// in order of time.
    fn at(&mut self, path: &[u8]) -> Result<Vec<PathEvent>> {
        let mut events = Vec::new();
        if !self.seen.insert(path.into()) {
            return Ok(events);
        }
        for key in self.store.at_path(path)? {
            let entity = self.store.entity(key)?;
            if matches!(entity.kind, EntityKind::File | EntityKind::Symlink) {
                self.of_version(key, &entity, path, &mut events)?;
            }
        }
        events.sort_by_key(|event| (event.time, event.run, event.version));
        Ok(events)
    }

    /// The events of one version of a run.
    fn of_version(
        &self,
        key: EntityKey,
        entity: &Entity,
        path: &[u8],
        events: &mut Vec<PathEvent>,
    ) -> Result<()> {
        let by_this_name = relations_by_name(entity, path);
        let mut first_use: Option<Time> = None;
        for (activity, _) in self.store.touching(key)? {
            let doer = ActivityKey::new(key.run(), activity);
            let stream = self.store.stream(doer)?;
            let own = |edge: &&Edge| edge.entity == key.local();
            let mut push = |time, change| {
                events.push(PathEvent {
                    path: path.into(),
                    time,
                    run: Some(key.run()),
                    activity: Some(doer),
                    change,
                    version: Some(key),
                    ident: entity.ident,
                });
            };
            for edge in stream.edges.iter().filter(own) {
                first_use = Some(first_use.unwrap_or(Time::MAX).min(edge.interval.start));
                let named = by_this_name & edge.relation.bit() != 0;
                match edge.relation {
                    Relation::Write | Relation::Make => {
                        push(edge.interval.end, PathChange::Changed)
                    }
                    Relation::Rename if named => {
                        let from = stream.derived.iter().find(|one| one.entity == key.local());
                        let from = from.map(|one| EntityKey::new(key.run(), one.from));
                        let from = from.map(|from| self.store.entity(from)).transpose()?;
                        let from = from.map(|from| last_name(&from, path)).unwrap_or_default();
                        push(edge.interval.end, PathChange::RenamedFrom(from));
                    }
                    Relation::Delete if named => {
                        let to = stream
                            .derived
                            .iter()
                            .find(|one| one.from == key.local() && one.time == edge.interval.end);
                        let to = to.map(|one| EntityKey::new(key.run(), one.entity));
                        let to = to.map(|to| self.store.entity(to)).transpose()?;
                        push(
                            edge.interval.end,
                            match to.filter(|to| *to.path != *path) {
                                Some(to) => PathChange::RenamedTo(to.path),
                                None => PathChange::Deleted,
                            },
                        );
                    }
                    Relation::Meta if named => push(edge.interval.end, PathChange::Metadata),
                    _ => {}
                }
            }
            // `ln` and copies in the kernel.
            let made = stream.derived.iter().find(|one| one.entity == key.local());
            let is_renamed = |edge: &Edge| edge.relation == Relation::Rename;
            if let Some(made) = made.filter(|_| entity.version > 0)
                && !stream.edges.iter().filter(own).any(is_renamed)
            {
                push(made.time, PathChange::Changed);
            }
        }
        if entity.version == 0
            && let (Some(first), Some(ident)) = (first_use, entity.ident)
        {
            let started = self.store.run_by_key(key.run())?;
            let started = started.map_or(first, |record| record.header.started);
            events.push(PathEvent {
                path: path.into(),
                time: ident.mtime.max(ident.ctime).min(first.min(started)),
                run: Some(key.run()),
                activity: None,
                change: PathChange::Found,
                version: Some(key),
                ident: Some(ident),
            });
        }
        Ok(())
    }

    /// Adds the events of one path up to a time, with those that follow from them.
    fn add(
        &mut self,
        path: &[u8],
        mut events: Vec<PathEvent>,
        present: Option<Ident>,
        until: Time,
    ) -> Result<()> {
        events.retain(|event| event.time <= until);
        // A version that a run made and a later run found: its times are coarser than those of
        // the first run, so that it could seem to be the earlier one.
        let is_found = |event: &PathEvent| event.change == PathChange::Found;
        let made = events.iter().filter(|event| !is_found(event));
        let made: Vec<Ident> = made.filter_map(|event| event.ident).collect();
        let is_made = |ident: &Ident| made.iter().any(|other| same_version(other, ident));
        events.retain(|event| !(is_found(event) && event.ident.as_ref().is_some_and(is_made)));
        let mut idents: Vec<Ident> = Vec::new();
        let mut exists = false;
        let mut before: Option<Time> = None;
        for mut event in events {
            let known = |ident: &Ident| idents.iter().any(|other| same_version(other, ident));
            match &event.change {
                PathChange::Found => {
                    let Some(ident) = event.ident.filter(|ident| !known(ident)) else {
                        continue;
                    };
                    idents.push(ident);
                    if exists {
                        event.change = PathChange::ChangedUnseen;
                    } else if self.moved_unseen(&event.path, &ident, event.version, before)? {
                        (exists, before) = (true, Some(event.time));
                        continue;
                    }
                    exists = true;
                }
                PathChange::Changed if !exists => {
                    event.change = PathChange::Made;
                    exists = true;
                }
                PathChange::RenamedFrom(from) => {
                    let from = from.clone();
                    if exists || self.is_of_run(&from, event.run)? {
                        // The usual way to replace a file: a new one is written beside it.
                        event.change = match exists {
                            true => PathChange::Changed,
                            false => PathChange::Made,
                        };
                    } else {
                        let former = self.at(&from)?;
                        self.add(&from, former, None, event.time)?;
                    }
                    exists = true;
                }
                change => exists = change.leaves_file(),
            }
            idents.extend(event.ident.filter(|_| event.change.leaves_file()));
            before = Some(event.time);
            self.events.push(event);
        }
        if until == Time::MAX {
            self.compare_with_present(path, present, &idents, exists, before)?;
        }
        Ok(())
    }

    /// True if the run made the file at this path itself.
    fn is_of_run(&self, path: &[u8], run: Option<RunKey>) -> Result<bool> {
        for key in self.store.at_path(path)? {
            if Some(key.run()) == run && self.store.entity(key)?.version == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds an event if the file is not as the last run left it.
    fn compare_with_present(
        &mut self,
        path: &[u8],
        present: Option<Ident>,
        known: &[Ident],
        exists: bool,
        after: Option<Time>,
    ) -> Result<()> {
        let event = |time, change, ident| PathEvent {
            path: path.into(),
            time,
            run: None,
            activity: None,
            change,
            version: None,
            ident,
        };
        match present {
            None if exists => {
                let after = after.unwrap_or_default();
                self.events
                    .push(event(after.saturating_add(1), PathChange::GoneUnseen, None));
            }
            Some(ident) if !known.iter().any(|other| same_version(other, &ident)) => {
                // A version without an identity may be this one.
                let last = self.events.last();
                if exists && last.is_some_and(|last| last.ident.is_none()) {
                    return Ok(());
                }
                let time = ident.mtime.max(after.unwrap_or_default().saturating_add(1));
                if !exists && self.moved_unseen(path, &ident, None, after)? {
                    return Ok(());
                }
                let change = match exists {
                    true => PathChange::ChangedUnseen,
                    false => PathChange::Found,
                };
                self.events.push(event(time, change, Some(ident)));
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks for the path that a file without a maker had before, and adds its history. `after`:
    /// when something was last at the new path. True if such a path was found.
    fn moved_unseen(
        &mut self,
        path: &[u8],
        ident: &Ident,
        version: Option<EntityKey>,
        after: Option<Time>,
    ) -> Result<bool> {
        let Some((from, same_inode, left)) = self.former_path(path, ident, version)? else {
            return Ok(false);
        };
        let time = ident.ctime.max(left).max(after.unwrap_or_default());
        let former = self.at(&from)?;
        self.add(&from, former, None, time)?;
        self.events.push(PathEvent {
            path: path.into(),
            time,
            run: version.map(|version| version.run()),
            activity: None,
            change: PathChange::MovedUnseen { from, same_inode },
            version,
            ident: Some(*ident),
        });
        Ok(true)
    }

    /// Another path of the file with this identity, or else of one with this content, at which no
    /// file is any more. Also returns whether the inode is the same, and when that version was
    /// there.
    fn former_path(
        &self,
        path: &[u8],
        ident: &Ident,
        version: Option<EntityKey>,
    ) -> Result<Option<(Bytes, bool, Time)>> {
        let earlier = |key: &EntityKey| version.is_none_or(|version| key.run() < version.run());
        let mut same = self.store.same(ident, VersionMatch::Any)?;
        let by_inode = same.len();
        for other in alike::others(self.store, ident)? {
            if other.mtime <= ident.mtime.max(ident.ctime) {
                same.extend(self.store.same(&other, VersionMatch::Any)?);
            }
        }
        let mut best: Option<(bool, EntityKey, Bytes, Time)> = None;
        for (at, key) in same.into_iter().enumerate() {
            let same_inode = at < by_inode;
            if !earlier(&key)
                || best
                    .as_ref()
                    .is_some_and(|(by, other, ..)| (*by, *other) >= (same_inode, key))
            {
                continue;
            }
            let entity = self.store.entity(key)?;
            let from = last_name(&entity, path);
            let is_gone = now::ident(Path::new(OsStr::from_bytes(&from)), false).is_none();
            if entity.kind == EntityKind::File && !from.is_empty() && is_gone {
                let left = entity.ident.map_or(0, |ident| ident.mtime);
                best = Some((same_inode, key, from, left));
            }
        }
        Ok(best.map(|(same_inode, _, from, left)| (from, same_inode, left)))
    }
}

/// A name of the file other than `not`, the last one that it got. Empty if it has no other.
fn last_name(entity: &Entity, not: &[u8]) -> Bytes {
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

/// The version that was at a path at a moment: the last event up to then.
pub fn at_moment(events: &[PathEvent], time: Time) -> Option<&PathEvent> {
    let earlier = events.iter().filter(|event| event.time <= time);
    earlier.max_by_key(|event| event.time)
}
