//! The state of the file system before a run.
//!
//! In: a run's entities and edges. Out: an [`InitialState`].
//!
//! - A path with a version 0 existed before the run.
//! - A path with later versions only was made by the run.
//! - A path that is only known as missing did not exist.
//! - Directories and links are known from the run's end, less those that the run made.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_files::Ident;
use backstory_graph::model::{Certainty, Entity, EntityKind, Relation};
use backstory_query::{self as query, RunContents, kind};
use backstory_store::facts::{Listed, Looked, SnapshotEntry};
use backstory_store::{ActivityKey, RunRecord, Store};
use backstory_workflow::paths::{is_below_kernel, parent};

use super::LoggedUses;
use crate::Result;

/// A path that existed before the run, and its use by the run.
#[derive(Debug, Clone)]
pub struct InitialPath {
    /// Absolute path.
    pub path: Bytes,
    /// Further names.
    pub aliases: Vec<Bytes>,
    /// Its kind before the run.
    pub kind: EntityKind,
    /// Its version's identity, if known.
    pub ident: Option<Ident>,
    /// Versions that the run made of it without writing: under another name, or with other times.
    pub heirs: Vec<Ident>,
    /// Versions that the run made of it by writing into it.
    pub written: Vec<Ident>,
    /// Its content was needed: it was read or executed, or became another file.
    pub content: bool,
    /// It certainly was read or executed.
    pub certain: bool,
    /// It was executed.
    pub executed: bool,
    /// Its entries were listed.
    pub listed: bool,
    /// The run changed, renamed or removed it, or something at its path.
    pub changed: bool,
    /// A process had it open for writing, and may not have written.
    pub writable: bool,
}

impl InitialPath {
    /// Joins two records of a path. A process that looked at the path saw a link, and one that
    /// opened it saw a file: the opened one says more.
    fn join(&mut self, other: InitialPath) {
        if other.content && !self.content {
            (self.kind, self.ident) = (other.kind, other.ident);
        }
        self.ident = self.ident.or(other.ident);
        self.content |= other.content;
        self.certain |= other.certain;
        self.executed |= other.executed;
        self.listed |= other.listed;
        self.writable |= other.writable;
        self.aliases.extend(other.aliases);
        self.heirs.extend(other.heirs);
        self.written.extend(other.written);
    }
}

/// The file system before the run, as far as the run used it.
#[derive(Debug, Default)]
pub struct InitialState {
    /// Paths that existed.
    pub paths: Vec<InitialPath>,
    /// Directories and links above them.
    pub places: Vec<SnapshotEntry>,
    /// Directories in which processes of the run began, or into which they changed.
    pub stood: Vec<Bytes>,
    /// The entries of the listed directories, by their paths without links.
    pub listings: BTreeMap<Bytes, Vec<Listed>>,
    /// Files that were only looked at, by their paths without links.
    pub looked: BTreeMap<Vec<u8>, Looked>,
    /// Paths that the run made and that did not exist before.
    pub made: BTreeSet<Bytes>,
    /// Paths that were looked for in vain.
    pub missing: BTreeSet<Bytes>,
    /// See [`LoggedUses::occupied`].
    pub occupied: BTreeSet<Bytes>,
}

impl InitialState {
    /// Adds directories, links and listings. The run's own files must be known already.
    /// `put_there`: files that the run made in place of others.
    fn lay(&mut self, held: &RunContents, put_there: &BTreeSet<Bytes>) {
        let listings = held.snapshot.iter();
        self.listings = listings
            .filter_map(|place| Some((place.path.clone(), place.listing.clone()?)))
            .collect();
        self.looked = looked(&held.snapshot);
        self.places = held
            .snapshot
            .iter()
            .filter(|place| !below_any(&self.made, &place.path))
            // A link that replaced another one does not say where the old one led.
            .filter(|place| place.target.is_none() || !put_there.contains(&place.path))
            .cloned()
            .collect();
    }
}

/// True for a path of a file: neither a channel nor below a directory of the kernel.
pub fn is_plain(path: &[u8]) -> bool {
    path.starts_with(b"/") && !is_below_kernel(path)
}

/// Bytes of the longest name in the root of a replay. Most file systems have the same limit.
const LONGEST_NAME: usize = 255;

/// False if a name in the path is too long for a file. A call with such a path failed, and left a
/// look at a file.
fn can_be_named(path: &[u8]) -> bool {
    let mut names = path.split(|&byte| byte == b'/');
    names.all(|name| name.len() <= LONGEST_NAME)
}

/// Finds the state before a run.
pub fn before(
    store: &dyn Store,
    record: &RunRecord,
    held: &RunContents,
    logged: &LoggedUses,
) -> Result<InitialState> {
    let entities = store.entities(record.key)?;
    let RunOperations {
        deeds,
        derived,
        stood,
    } = RunOperations::of(store, record)?;
    let named: HashSet<u32> = derived.values().flatten().copied().collect();
    let followed = followed(&entities);
    let born = query::born(&entities, &record.header);
    let callers: HashSet<&[u8]> = record
        .header
        .descriptors
        .iter()
        .map(|(_, target)| &**target)
        .collect();
    let mut first = InitialState {
        occupied: logged.occupied.clone(),
        ..InitialState::default()
    };
    let mut there: BTreeMap<Bytes, InitialPath> = BTreeMap::new();
    let mut made: BTreeSet<Bytes> = BTreeSet::new();
    let mut changed: HashSet<Bytes> = HashSet::new();
    for entity in &entities {
        let done = deeds.get(&entity.id.0).copied().unwrap_or_default();
        let was_there = done.any || done.became || followed.contains(&entity.id.0);
        if entity.path.first() != Some(&b'/') || !(was_there || entity.version > 0) {
            continue;
        }
        let is_possible = entity.version > 0 || done.is_of_file() || can_be_named(&entity.path);
        if entity.kind == EntityKind::Missing || !is_possible {
            first.missing.insert(entity.path.clone());
            continue;
        }
        if entity.version > 0 || done.changed {
            changed.insert(entity.path.clone());
        }
        // A made file has version 1. Version 0 with an operation that makes is a link, a directory,
        // or a further name of a file.
        let bare = matches!(entity.kind, EntityKind::Directory | EntityKind::Symlink);
        if entity.version > 0
            || born.contains(&entity.id.0)
            || done.made && (bare || named.contains(&entity.id.0))
        {
            made.insert(entity.path.clone());
            continue;
        }
        let wrote = |id: u32| deeds.get(&id).is_some_and(|done| done.written);
        let (heirs, written) = query::heirs(entity, &entities, &derived, &wrote);
        let done = match callers.contains(&*entity.path) {
            // A file that the caller passed for output belongs to the caller.
            true => PathOperations {
                became: false,
                ..done
            },
            false => done,
        };
        let known = entity.ident.or(heirs.first().copied());
        let before = InitialPath {
            path: entity.path.clone(),
            aliases: entity.aliases.clone(),
            kind: kind(&Entity {
                ident: known,
                ..entity.clone()
            }),
            ident: known,
            heirs,
            written,
            content: done.content || done.became,
            certain: done.certain,
            executed: done.executed,
            listed: done.listed || done.opened && entity.kind == EntityKind::Directory,
            changed: false,
            writable: known.is_some_and(|file| logged.writable.contains(&(file.dev, file.ino))),
        };
        match there.entry(entity.path.clone()) {
            Entry::Vacant(free) => drop(free.insert(before)),
            Entry::Occupied(mut known) => known.get_mut().join(before),
        }
    }
    // The run also changed the directories in which it made or moved files.
    let within: HashSet<&[u8]> = changed.iter().map(|path| parent(path)).collect();
    for before in there.values_mut() {
        let names = std::iter::once(&before.path).chain(&before.aliases);
        before.changed = names.into_iter().any(|name| changed.contains(name));
        // A directory has one version only, and its time is that of the run's last change in it.
        if before.kind == EntityKind::Directory && within.contains(&*before.path) {
            before.ident = before.ident.map(|ident| Ident { mtime: 0, ..ident });
        }
    }
    first.stood = stood
        .into_iter()
        .chain(logged.entered.iter().cloned())
        .filter(|path| is_plain(path) && !made.contains(path) && !below_any(&made, path))
        .collect();
    let (put_there, made) = made.into_iter().partition(|path| there.contains_key(path));
    let put_there: BTreeSet<Bytes> = put_there;
    first.made = made;
    first.lay(held, &put_there);
    first.paths = there
        .into_values()
        .filter(|b| !below_any(&first.made, &b.path))
        .collect();
    Ok(first)
}

fn looked(places: &[SnapshotEntry]) -> BTreeMap<Vec<u8>, Looked> {
    let files = places.iter().flat_map(|place| {
        let path = |file: &Looked| [&place.path, &b"/"[..], &file.name].concat();
        place
            .looked
            .iter()
            .map(move |file| (path(file), file.clone()))
    });
    files.collect()
}

/// Versions that later versions of the run followed. A file that the run emptied without reading it
/// is one: it must exist to be opened.
fn followed(entities: &[Entity]) -> HashSet<u32> {
    let made = entities.iter().filter(|entity| entity.version > 0);
    made.filter_map(|entity| Some(entity.previous?.0)).collect()
}

/// The operations of a run.
#[derive(Debug, Default)]
struct RunOperations {
    /// The operations on each entity.
    deeds: HashMap<u32, PathOperations>,
    /// The entities derived from each entity.
    derived: HashMap<u32, Vec<u32>>,
    /// Current directories of processes at their begin.
    stood: BTreeSet<Bytes>,
}

impl RunOperations {
    fn of(store: &dyn Store, record: &RunRecord) -> Result<RunOperations> {
        let mut done = RunOperations::default();
        for activity in store.activities(record.key)? {
            let stream = store.stream(ActivityKey::new(record.key, activity.id))?;
            done.stood.insert(activity.cwd);
            for edge in &stream.edges {
                let deeds = done.deeds.entry(edge.entity.0).or_default();
                deeds.add(edge.relation, edge.certainty);
                deeds.opened |= edge.relation == Relation::Stat && !activity.lookups_known;
            }
            for next in &stream.derived {
                done.deeds.entry(next.from.0).or_default().became = true;
                done.derived
                    .entry(next.from.0)
                    .or_default()
                    .push(next.entity.0);
            }
        }
        Ok(done)
    }
}

/// True if the path, or a directory above it, is one of these.
fn below_any(made: &BTreeSet<Bytes>, path: &[u8]) -> bool {
    let ends = path
        .iter()
        .enumerate()
        .filter(|&(at, &byte)| at > 0 && byte == b'/');
    let mut above = ends.map(|(at, _)| &path[..at]).chain([path]);
    above.any(|path| made.contains(path))
}

#[derive(Debug, Clone, Copy, Default)]
struct PathOperations {
    any: bool,
    content: bool,
    certain: bool,
    executed: bool,
    listed: bool,
    /// A process whose look-ups are not known opened it, and may have listed it.
    opened: bool,
    changed: bool,
    written: bool,
    made: bool,
    became: bool,
}

impl PathOperations {
    /// True if an operation shows that there was a file.
    fn is_of_file(&self) -> bool {
        self.content || self.listed || self.changed || self.made || self.became
    }

    fn add(&mut self, relation: Relation, certainty: Certainty) {
        self.any = true;
        match relation {
            Relation::Read | Relation::Execute => {
                self.content = true;
                self.executed |= relation == Relation::Execute;
                self.certain |= certainty == Certainty::Seen;
            }
            Relation::List => self.listed = true,
            Relation::Write => (self.changed, self.written) = (true, true),
            Relation::Delete | Relation::Rename | Relation::Meta => self.changed = true,
            Relation::Make => self.made = true,
            Relation::Stat | Relation::Missing | Relation::Link => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_a_made_directory_did_not_exist_before() {
        let made = BTreeSet::from([Bytes::from(&b"/w/d"[..])]);
        assert!(below_any(&made, b"/w/d/x") && below_any(&made, b"/w/d"));
        assert!(!below_any(&made, b"/w/dd") && !below_any(&made, b"/w"));
    }

    #[test]
    fn no_file_has_a_name_that_is_too_long() {
        let path = |length| [&b"/w/"[..], &vec![b'x'; length], b"/y"].concat();
        assert!(can_be_named(&path(LONGEST_NAME)) && !can_be_named(&path(LONGEST_NAME + 1)));
    }

    #[test]
    fn kernel_file_systems_have_no_plain_paths() {
        assert!(is_plain(b"/home/u/x") && !is_plain(b"/proc/self/maps") && !is_plain(b"pipe:1"));
    }
}
