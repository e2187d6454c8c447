//! The history of a path over all runs: who made, changed, renamed and deleted the file.
//!
//! In: a store and a path. Out: [`PathEvent`]s in order of time. A rename leads on to the file's
//! former path, so a history goes back to the first version. So does a rename of a directory above
//! the file. Between two recorded events, the identities of the versions show that the file was
//! changed or moved outside of any recorded run.
//!
//! Invariant: an event is either recorded, or marked as inferred. Absent: the file's content.

mod directories;
mod known_versions;
mod recorded;

pub(crate) use directories::moved_with_directory;

use backstory_ordering::SmallSort;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::model::EntityKind;
use backstory_store::{ActivityKey, EntityKey, RunKey, Store, VersionMatch};

use known_versions::KnownVersions;
use recorded::last_name;

use crate::root::Asked;
use crate::{Error, Result, alike, now};

/// A change of the file at a path.
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
    /// The time of the change. For a change outside of recorded runs, the latest possible time, as
    /// far as the file's times say. If the file is gone, that is the present moment.
    pub time: Time,
    /// The run that recorded it, or that first met its result. `None` if only the present state of
    /// the file shows it.
    pub run: Option<RunKey>,
    /// The activity that did it. `None` for an inferred event.
    pub activity: Option<ActivityKey>,
    /// The change.
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
        let events = found.recorded_at(name)?;
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
    found
        .events
        .sort_small_by_key(|event| (event.time, event.run));
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
    /// Adds the events of one path up to a time, with those that follow from them.
    fn add(
        &mut self,
        path: &[u8],
        mut events: Vec<PathEvent>,
        present: Option<Ident>,
        until: Time,
    ) -> Result<()> {
        events.retain(|event| event.time <= until);
        // A later run may have found a version that an earlier run made. The file's times are
        // coarser than those of the runs, so the finding could seem to be earlier.
        let is_found = |event: &PathEvent| event.change == PathChange::Found;
        // The version that a deletion ends was found, too, if no run made it.
        let made = events
            .iter()
            .filter(|event| !is_found(event) && event.change.leaves_file());
        let made: KnownVersions = made.filter_map(|event| event.ident).collect();
        let is_made = |event: &PathEvent| {
            let ident = event.ident.as_ref();
            ident.is_some_and(|ident| made.contains(ident))
        };
        events.retain(|event| !(is_found(event) && is_made(event)));
        let mut known = KnownVersions::default();
        let mut exists = false;
        let mut before: Option<Time> = None;
        for mut event in events {
            match &event.change {
                PathChange::Found => {
                    let Some(ident) = event.ident.filter(|ident| !known.contains(ident)) else {
                        continue;
                    };
                    known.extend([ident]);
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
                        let mut former = self.recorded_at(&from)?;
                        // The other half of this rename.
                        let to_here = PathChange::RenamedTo(event.path.clone());
                        former.retain(|one| one.run != event.run || one.change != to_here);
                        self.add(&from, former, None, event.time)?;
                    }
                    exists = true;
                }
                change => exists = change.leaves_file(),
            }
            known.extend(event.ident.filter(|_| event.change.leaves_file()));
            before = Some(event.time);
            self.events.push(event);
        }
        if until == Time::MAX {
            self.compare_with_present(path, present, &known, exists, before)?;
        }
        Ok(())
    }

    /// True if the run made the file at this path itself.
    fn is_of_run(&self, path: &[u8], run: Option<RunKey>) -> Result<bool> {
        let mut is_made = false;
        for key in self.store.at_path(path)? {
            if Some(key.run()) == run {
                is_made = true;
                if self.store.entity(key)?.version == 0 {
                    return Ok(false);
                }
            }
        }
        // A directory above the file was renamed by a run that did not use the file.
        Ok(is_made)
    }

    /// Adds an event if the file is not as the last run left it.
    fn compare_with_present(
        &mut self,
        path: &[u8],
        present: Option<Ident>,
        known: &KnownVersions,
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
                let after = after.unwrap_or_default().saturating_add(1);
                let time = after.max(backstory_files::now());
                self.events.push(event(time, PathChange::GoneUnseen, None));
            }
            Some(ident) if !known.contains(&ident) => {
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
        let former = self.recorded_at(&from)?;
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

/// The version that was at a path at a moment: the last event up to then.
pub fn at_moment(events: &[PathEvent], time: Time) -> Option<&PathEvent> {
    let earlier = events.iter().filter(|event| event.time <= time);
    earlier.max_by_key(|event| event.time)
}
