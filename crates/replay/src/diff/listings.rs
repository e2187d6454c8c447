//! Listed directories: the names that a side found and had not made itself.
//!
//! Listings are known as the run left them. Names that the run removed are added, and names that it
//! made are left out. Absent: directories of the system, directories with more names than are
//! recorded, and the order of names.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Entity, EntityKind};
use backstory_store::{ActivityKey, Store};
use backstory_workflow::paths::parent;

use super::file_use::FileUse;
use crate::Result;

/// A listed directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryListing {
    /// Absolute path.
    pub path: Bytes,
    /// The names in it.
    pub names: BTreeSet<Vec<u8>>,
    /// The activities that listed it.
    pub by: Vec<ActivityKey>,
    /// The time of the first listing.
    pub at: Time,
}

/// The directories that a run listed and whose names are known.
pub(super) fn of(
    store: &dyn Store,
    run: &str,
    entities: &[Entity],
    used: &HashMap<u32, FileUse>,
    listers: HashMap<u32, Vec<ActivityKey>>,
) -> Result<Vec<DirectoryListing>> {
    let places = store
        .directory_snapshot(run)?
        .map(|s| s.entries)
        .unwrap_or_default();
    let entries: HashMap<&[u8], _> = places
        .iter()
        .filter_map(|place| Some((&*place.path, place.listing.as_ref()?)))
        .collect();
    let done = |entity: &Entity| used.get(&entity.id.0).copied().unwrap_or_default();
    let is_made = |entity: &Entity| entity.version > 0 || done(entity).made;
    let real = || {
        entities
            .iter()
            .filter(|entity| entity.kind != EntityKind::Missing)
    };
    let there: HashSet<&[u8]> = real().filter(|e| !is_made(e)).map(|e| &*e.path).collect();
    let made: HashSet<&[u8]> = real().filter(|e| is_made(e)).map(|e| &*e.path).collect();
    let removed = || real().filter(|entity| !is_made(entity) && done(entity).deleted);
    let mut found = Vec::new();
    for (entity, by) in listers {
        let Some(directory) = entities.get(entity as usize) else {
            continue;
        };
        let Some(entries) = entries.get(&*directory.path) else {
            continue;
        };
        let own = |name: &[u8]| {
            let path = [&directory.path, &b"/"[..], name].concat();
            made.contains(&*path) && !there.contains(&*path)
        };
        let mut names: BTreeSet<Vec<u8>> = entries
            .iter()
            .map(|entry| entry.name.to_vec())
            .filter(|name| !own(name))
            .into_tree();
        let gone = removed().filter(|entity| parent(&entity.path) == &*directory.path);
        names.extend(gone.map(|entity| last(&entity.path).to_vec()));
        found.push(DirectoryListing {
            path: directory.path.clone(),
            names,
            by,
            at: done(directory).first,
        });
    }
    Ok(found)
}

/// The last component of a path.
fn last(path: &[u8]) -> &[u8] {
    let at = path
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |at| at + 1);
    &path[at..]
}
