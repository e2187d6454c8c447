//! The states of the files of a database of SQLite, one after the other.
//!
//! In: the path of a database. Out: for each process that changed the database or its log, the
//! versions of all its files once the process had made its last change. Or: the state to which a
//! version of the database or of its log belongs.
//!
//! A database, its write-ahead log (`-wal`) and its rollback journal (`-journal`) belong together.
//! A process changes them in turn, so a state in the middle of its changes means nothing. Processes
//! whose changes overlap in time make one state together. Absent: contents.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Activity, ActivityId, Certainty, EntityKind, Relation};
use backstory_ordering::SmallSort;
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};

use crate::history::{PathChange, PathEvent, history};
use crate::{Error, Result};

/// The ends of the names of the log and the journal, after the name of the database.
const BESIDE: [&str; 2] = ["-wal", "-journal"];

/// A file of a database at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileThen {
    /// No file was there.
    Absent,
    /// It had this version.
    Version(EntityKey),
    /// It had a version that no run knows.
    Unknown,
}

/// The contents of a database, of its write-ahead log and of its rollback journal.
pub type StateContents = [Vec<u8>; 3];

/// The files of a database, once a process had made its last change.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseState {
    /// When.
    pub time: Time,
    /// The run that recorded it.
    pub run: Option<RunKey>,
    /// The database, its write-ahead log and its rollback journal.
    pub files: [FileThen; 3],
    /// The newest version of the database that came with this state, if one did.
    pub database: Option<EntityKey>,
    /// That of the log.
    pub log: Option<EntityKey>,
    /// The processes that wrote the database or its log. Each one of several is only possible.
    pub writers: Vec<(Activity, Certainty)>,
    /// No file was there before.
    pub is_new: bool,
}

/// The paths of the recorded files that have a log or journal of SQLite beside them.
///
/// # Errors
///
/// The store fails.
pub fn sqlite_databases(store: &dyn Store) -> Result<BTreeSet<Bytes>> {
    let without_end = |name: &[u8]| {
        let mut ends = BESIDE.iter();
        ends.find_map(|end| name.strip_suffix(end.as_bytes()))
            .map(Bytes::from)
    };
    let mut paths = BTreeSet::new();
    for key in store.below(b"/", &|name| without_end(name).is_some())? {
        let entity = store.entity(key)?;
        let names = std::iter::once(&entity.path).chain(&entity.aliases);
        paths.extend(names.filter_map(|name| without_end(name)));
    }
    let mut found = BTreeSet::new();
    for path in paths {
        for key in store.at_path(&path)? {
            if store.entity(key)?.kind == EntityKind::File {
                found.insert(path);
                break;
            }
        }
    }
    Ok(found)
}

impl DatabaseState {
    /// The contents of the files, which `read` gets by their versions. An absent file is empty.
    /// `None` if one is not available.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn contents<E>(
        &self,
        mut read: impl FnMut(EntityKey) -> std::result::Result<Option<Vec<u8>>, E>,
    ) -> std::result::Result<Option<StateContents>, E> {
        let mut contents: StateContents = Default::default();
        for (then, content) in self.files.iter().zip(&mut contents) {
            match then {
                FileThen::Absent => {}
                FileThen::Unknown => return Ok(None),
                FileThen::Version(version) => match read(*version)? {
                    Some(bytes) => *content = bytes,
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(contents))
    }

    /// True if the database had a write-ahead log.
    pub fn has_log(&self) -> bool {
        self.files[1] != FileThen::Absent
    }
}

/// The contents of the two states to which two versions of a database, or of its write-ahead log,
/// belong. `name`: the path of the versions. `read` gets a content by its version.
///
/// `None` if neither state has a log: the contents of the versions then have all rows. `None` also
/// if a content is not available, or if a version belongs to no state.
///
/// # Errors
///
/// As [`history`], and those of `read`.
pub fn logged_states<E: From<Error>>(
    store: &dyn Store,
    name: &[u8],
    (old, new): (EntityKey, EntityKey),
    read: impl Fn(EntityKey) -> std::result::Result<Option<Vec<u8>>, E>,
) -> std::result::Result<Option<[StateContents; 2]>, E> {
    let database = name.strip_suffix(BESIDE[0].as_bytes());
    let place = usize::from(database.is_some());
    let states = database_states(store, database.unwrap_or(name))?;
    let of = |version| state_of(store, &states, place, version);
    let (Some(before), Some(after)) = (of(old)?, of(new)?) else {
        return Ok(None);
    };
    if !before.has_log() && !after.has_log() {
        return Ok(None);
    }
    Ok(match (before.contents(&read)?, after.contents(&read)?) {
        (Some(before), Some(after)) => Some([before, after]),
        _ => None,
    })
}

/// The last state of a version's own run to which the version belongs, else the last of any run. A
/// later run may leave the database as it is, and change its log. `place` is that of the version's
/// file in [`DatabaseState::files`]. `None` if it belongs to none: another version came in the
/// middle of the same process's changes.
fn state_of<'s>(
    store: &dyn Store,
    states: &'s [DatabaseState],
    place: usize,
    version: EntityKey,
) -> Result<Option<&'s DatabaseState>> {
    let ident = store.entity(version)?.ident;
    // Each run has its own name for a version that it used without changing it.
    let [mut in_run, mut named, mut elsewhere] = [None, None, None];
    for state in states {
        let FileThen::Version(then) = state.files[place] else {
            continue;
        };
        let is_named = then == version;
        if !is_named && (ident.is_none() || store.entity(then)?.ident != ident) {
            continue;
        }
        match (state.run == Some(version.run()), is_named) {
            (true, _) => in_run = Some(state),
            (false, true) => named = Some(state),
            (false, false) => elsewhere = Some(state),
        }
    }
    Ok(in_run.or(named).or(elsewhere))
}

/// An event of one of the files: which, and what.
type FileEvent = (usize, PathEvent);

/// The states of a database, the oldest first.
///
/// # Errors
///
/// As [`history`].
pub fn database_states(store: &dyn Store, path: &[u8]) -> Result<Vec<DatabaseState>> {
    let mut events: Vec<FileEvent> = Vec::new();
    for (place, end) in ["", BESIDE[0], BESIDE[1]].into_iter().enumerate() {
        let name = [path, end.as_bytes()].concat();
        match history(store, Path::new(OsStr::from_bytes(&name))) {
            Ok(found) => events.extend(found.into_iter().map(|event| (place, event))),
            Err(Error::NotFound(_) | Error::OnlyMissing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    events.sort_small_by_key(|(place, event)| (event.time, event.run, *place));
    let mut files = [FileThen::Absent; 3];
    let mut states = Vec::new();
    for group in groups(events) {
        let is_new = files[0] == FileThen::Absent;
        let was_found = |event: &PathEvent| {
            matches!(event.change, PathChange::Found | PathChange::ChangedUnseen)
        };
        let found = group
            .iter()
            .any(|(place, event)| *place == 0 && was_found(event));
        for (place, event) in &group {
            files[*place] = match (event.change.leaves_file(), event.version) {
                (false, _) => FileThen::Absent,
                (true, Some(version)) => FileThen::Version(version),
                (true, None) => FileThen::Unknown,
            };
        }
        let Some((_, last)) = group.last() else {
            continue;
        };
        let newest = |wanted: usize| {
            let mut own = group.iter().rev().filter(|(place, _)| *place == wanted);
            own.find_map(|(_, event)| event.version.filter(|_| event.change.leaves_file()))
        };
        states.push(DatabaseState {
            time: last.time,
            run: last.run,
            files,
            database: newest(0),
            log: newest(1),
            writers: writers(store, &group)?,
            is_new: is_new && !found,
        });
    }
    Ok(states)
}

/// The run and the activity of an event. The activity of an inferred event is unknown.
type Maker = (Option<RunKey>, Option<ActivityKey>);

/// The events of each process, in order of time. Processes whose events overlap are one group.
fn groups(events: Vec<FileEvent>) -> Vec<Vec<FileEvent>> {
    let maker = |event: &PathEvent| -> Maker { (event.run, event.activity) };
    let mut ends: BTreeMap<_, Time> = BTreeMap::new();
    for (_, event) in &events {
        let end = ends.entry(maker(event)).or_insert(event.time);
        *end = event.time.max(*end);
    }
    let mut groups: Vec<Vec<FileEvent>> = Vec::new();
    let mut open: Option<(Maker, Time)> = None;
    for (place, event) in events {
        let of = maker(&event);
        let end = ends.get(&of).copied().unwrap_or(event.time);
        match (&mut open, groups.last_mut()) {
            (Some((last, until)), Some(group)) if *last == of || event.time < *until => {
                *until = end.max(*until);
                *last = of;
                group.push((place, event));
            }
            _ => {
                open = Some((of, end));
                groups.push(vec![(place, event)]);
            }
        }
    }
    groups
}

/// The processes that wrote the versions of the database or its log in a group.
fn writers(store: &dyn Store, group: &[FileEvent]) -> Result<Vec<(Activity, Certainty)>> {
    let mut found: BTreeMap<(RunKey, ActivityId), Certainty> = BTreeMap::new();
    let versions = group.iter().filter(|(place, _)| *place < 2);
    let versions = versions.filter(|(_, event)| event.activity.is_some());
    let versions: BTreeSet<EntityKey> = versions.filter_map(|(_, event)| event.version).collect();
    for version in versions {
        for (activity, generated) in store.touching(version)? {
            if !generated {
                continue;
            }
            let key = ActivityKey::new(version.run(), activity);
            for edge in store.stream(key)?.edges {
                if edge.entity == version.local() && edge.relation == Relation::Write {
                    let known = found
                        .entry((version.run(), activity))
                        .or_insert(edge.certainty);
                    *known = edge.certainty.max(*known);
                }
            }
        }
    }
    let is_alone = found.len() == 1;
    let writers = found.into_iter().map(|((run, activity), certainty)| {
        let activity = store.activity(ActivityKey::new(run, activity))?;
        let certainty = match is_alone {
            true => certainty,
            false => Certainty::Possible,
        };
        Ok((activity, certainty))
    });
    writers.collect()
}
