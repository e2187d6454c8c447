//! What was at each path before the run.
//!
//! A path that the run used as it was (a version 0) was there; one of which only later versions are known was made by the run, and
//! what is only known to be missing was not there. How directories and links lay is known from the run's end: less what it made.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_files::Ident;
use backstory_graph::model::{Certainty, Entity, EntityKind, Relation};
use backstory_query::{self as query, RunContents, kind};
use backstory_store::facts::{Listed, Looked, SnapshotEntry};
use backstory_store::{ActivityKey, RunRecord, Store};
use backstory_workflow::paths::{is_below_kernel, parent};

use crate::Result;

/// What the run had to do with a path that was there before it.
#[derive(Debug, Clone)]
pub struct InitialPath {
    /// Absolute path.
    pub path: Bytes,
    /// Further names.
    pub aliases: Vec<Bytes>,
    /// What it was.
    pub kind: EntityKind,
    /// Which version, if that is known.
    pub ident: Option<Ident>,
    /// Versions that the run made of it without writing: under another name, or with other times.
    pub heirs: Vec<Ident>,
    /// Versions that the run made of it by writing into it.
    pub written: Vec<Ident>,
    /// Its content mattered: it was read, executed, or became another file.
    pub content: bool,
    /// It certainly was read or executed.
    pub certain: bool,
    /// It was executed.
    pub executed: bool,
    /// Its entries were listed.
    pub listed: bool,
    /// The run changed, renamed or removed it, or something at its path.
    pub changed: bool,
}

impl InitialPath {
    /// A path may have been a link to whoever looked at it, and a file to whoever opened it: what was opened says more.
    fn join(&mut self, other: InitialPath) {
        if other.content && !self.content {
            (self.kind, self.ident) = (other.kind, other.ident);
        }
        self.ident = self.ident.or(other.ident);
        self.content |= other.content;
        self.certain |= other.certain;
        self.executed |= other.executed;
        self.listed |= other.listed;
        self.aliases.extend(other.aliases);
        self.heirs.extend(other.heirs);
        self.written.extend(other.written);
    }
}

/// The state of the file system before the run, as far as the run had to do with it.
#[derive(Debug, Default)]
pub struct InitialState {
    /// Everything that was there.
    pub paths: Vec<InitialPath>,
    /// Directories and links on the way.
    pub places: Vec<SnapshotEntry>,
    /// Directories that processes of the run began in.
    pub stood: Vec<Bytes>,
    /// What was in the directories that it listed, by their paths without links.
    pub listings: BTreeMap<Bytes, Vec<Listed>>,
    /// Files that were only looked at, by their paths without links.
    pub looked: BTreeMap<Vec<u8>, Looked>,
    /// Paths that the run made and that were not there before.
    pub made: BTreeSet<Bytes>,
    /// Paths that were looked for and not there.
    pub missing: BTreeSet<Bytes>,
}

impl InitialState {
    /// How everything lay. Needs to know what the run made; `put_there`: what it made where something had been.
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
            // A link that the run put where another had been: where that one led is not told by it.
            .filter(|place| place.target.is_none() || !put_there.contains(&place.path))
            .cloned()
            .collect();
    }
}

/// A path of a file system with files: not a channel, and not what the kernel makes up.
pub fn is_plain(path: &[u8]) -> bool {
    path.starts_with(b"/") && !is_below_kernel(path)
}

/// Finds out what was there before a run.
pub fn before(store: &dyn Store, record: &RunRecord, held: &RunContents) -> Result<InitialState> {
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
    let mut first = InitialState::default();
    let mut there: BTreeMap<Bytes, InitialPath> = BTreeMap::new();
    let mut made: BTreeSet<Bytes> = BTreeSet::new();
    let mut changed: HashSet<Bytes> = HashSet::new();
    for entity in &entities {
        let done = deeds.get(&entity.id.0).copied().unwrap_or_default();
        let was_there = done.any || done.became || followed.contains(&entity.id.0);
        if entity.path.first() != Some(&b'/') || !(was_there || entity.version > 0) {
            continue;
        }
        if entity.kind == EntityKind::Missing {
            first.missing.insert(entity.path.clone());
            continue;
        }
        if entity.version > 0 || done.changed {
            changed.insert(entity.path.clone());
        }
        // What only was made has version 1, or 0 with a deed that makes: a link, a directory, a further name of a file.
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
            // What its caller gave it to write to is its caller's affair.
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
        };
        match there.entry(entity.path.clone()) {
            Entry::Vacant(free) => drop(free.insert(before)),
            Entry::Occupied(mut known) => known.get_mut().join(before),
        }
    }
    // What the run made or moved in them, too.
    let within: HashSet<&[u8]> = changed.iter().map(|path| parent(path)).collect();
    for before in there.values_mut() {
        let names = std::iter::once(&before.path).chain(&before.aliases);
        before.changed = names.into_iter().any(|name| changed.contains(name));
        // A directory has but one version: the time that it has is of the run's last change in it.
        if before.kind == EntityKind::Directory && within.contains(&*before.path) {
            before.ident = before.ident.map(|ident| Ident { mtime: 0, ..ident });
        }
    }
    first.stood = stood
        .into_iter()
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

/// Versions that others of the run came after. What was emptied, and never looked at, is one: it has to be there to be opened.
fn followed(entities: &[Entity]) -> HashSet<u32> {
    let made = entities.iter().filter(|entity| entity.version > 0);
    made.filter_map(|entity| Some(entity.previous?.0)).collect()
}

/// What was done in a run.
#[derive(Debug, Default)]
struct RunOperations {
    /// With each entity.
    deeds: HashMap<u32, PathOperations>,
    /// What derives from each.
    derived: HashMap<u32, Vec<u32>>,
    /// Where processes began.
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
    /// Somebody whose look-ups are not known opened it, and may have listed it.
    opened: bool,
    changed: bool,
    written: bool,
    made: bool,
    became: bool,
}

impl PathOperations {
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
    fn kernel_file_systems_have_no_plain_paths() {
        assert!(is_plain(b"/home/u/x") && !is_plain(b"/proc/self/maps") && !is_plain(b"pipe:1"));
    }
}
