//! What was at each path before the run.
//!
//! A path that the run used as it was (a version 0) was there; one of which only later versions are known was made by the run, and
//! what is only known to be missing was not there. How directories and links lay is known from the run's end: less what it made.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Ident};
use backstory_graph::model::{Certainty, EntityKind, Relation};
use backstory_query::RunContents;
use backstory_store::facts::Place;
use backstory_store::{ActivityKey, RunRecord, Store};

use crate::Result;

/// What the run had to do with a path that was there before it.
#[derive(Debug, Clone)]
pub struct Before {
    /// Absolute path.
    pub path: Bytes,
    /// Further names.
    pub aliases: Vec<Bytes>,
    /// What it was.
    pub kind: EntityKind,
    /// Which version, if that is known.
    pub ident: Option<Ident>,
    /// Its content mattered: it was read, executed, or became another file.
    pub content: bool,
    /// It certainly did.
    pub certain: bool,
    /// It was executed.
    pub executed: bool,
    /// Its entries were listed.
    pub listed: bool,
    /// The run changed, renamed or removed it, or something at its path.
    pub changed: bool,
}

impl Before {
    /// A path may have been a link to whoever looked at it, and a file to whoever opened it: what was opened says more.
    fn join(&mut self, other: Before) {
        if other.content && !self.content {
            (self.kind, self.ident) = (other.kind, other.ident);
        }
        self.ident = self.ident.or(other.ident);
        self.content |= other.content;
        self.certain |= other.certain;
        self.executed |= other.executed;
        self.listed |= other.listed;
        self.aliases.extend(other.aliases);
    }
}

/// The state of the file system before the run, as far as the run had to do with it.
#[derive(Debug, Default)]
pub struct First {
    /// Everything that was there.
    pub paths: Vec<Before>,
    /// Directories and links on the way.
    pub places: Vec<Place>,
    /// Paths that the run made and that were not there before.
    pub made: BTreeSet<Bytes>,
    /// Paths that were looked for and not there.
    pub missing: BTreeSet<Bytes>,
}

/// A path of a file system with files: not a channel, and not what the kernel makes up.
pub fn is_plain(path: &[u8]) -> bool {
    let made_up = [&b"/proc/"[..], b"/sys/", b"/dev/"];
    path.starts_with(b"/") && !made_up.iter().any(|prefix| path.starts_with(prefix))
}

/// Finds out what was there before a run.
pub fn before(store: &dyn Store, record: &RunRecord, held: &RunContents) -> Result<First> {
    let entities = store.entities(record.key)?;
    let mut deeds: HashMap<u32, Deeds> = HashMap::new();
    for activity in store.activities(record.key)? {
        let stream = store.stream(ActivityKey::new(record.key, activity.id))?;
        for edge in &stream.edges {
            deeds
                .entry(edge.entity.0)
                .or_default()
                .add(edge.relation, edge.certainty);
        }
        for derived in &stream.derived {
            deeds.entry(derived.from.0).or_default().became = true;
        }
    }
    let mut first = First::default();
    let mut there: BTreeMap<Bytes, Before> = BTreeMap::new();
    let mut made: BTreeSet<Bytes> = BTreeSet::new();
    let mut changed: HashSet<Bytes> = HashSet::new();
    for entity in &entities {
        let done = deeds.get(&entity.id.0).copied().unwrap_or_default();
        if entity.path.first() != Some(&b'/') || !(done.any || done.became || entity.version > 0) {
            continue;
        }
        if entity.kind == EntityKind::Missing {
            first.missing.insert(entity.path.clone());
            continue;
        }
        if entity.version > 0 || done.changed {
            changed.insert(entity.path.clone());
        }
        if entity.version > 0 {
            made.insert(entity.path.clone());
            continue;
        }
        let before = Before {
            path: entity.path.clone(),
            aliases: entity.aliases.clone(),
            kind: entity.kind,
            ident: entity.ident,
            content: done.content || done.became,
            certain: done.certain || done.became,
            executed: done.executed,
            listed: done.listed,
            changed: false,
        };
        match there.entry(entity.path.clone()) {
            Entry::Vacant(free) => drop(free.insert(before)),
            Entry::Occupied(mut known) => known.get_mut().join(before),
        }
    }
    // A link or directory that only was made has version 1, or 0 with a deed that makes.
    for entity in entities.iter().filter(|entity| entity.version == 0) {
        let done = deeds.get(&entity.id.0).copied().unwrap_or_default();
        if done.made && matches!(entity.kind, EntityKind::Directory | EntityKind::Symlink) {
            there.remove(&entity.path);
            made.insert(entity.path.clone());
        }
    }
    for before in there.values_mut() {
        let names = std::iter::once(&before.path).chain(&before.aliases);
        before.changed = names.into_iter().any(|name| changed.contains(name));
    }
    first.made = made
        .into_iter()
        .filter(|path| !there.contains_key(path))
        .collect();
    first.places = held
        .places
        .iter()
        .filter(|place| !below_any(&first.made, &place.path))
        .cloned()
        .collect();
    first.paths = there
        .into_values()
        .filter(|b| !below_any(&first.made, &b.path))
        .collect();
    Ok(first)
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
struct Deeds {
    any: bool,
    content: bool,
    certain: bool,
    executed: bool,
    listed: bool,
    changed: bool,
    made: bool,
    became: bool,
}

impl Deeds {
    fn add(&mut self, relation: Relation, certainty: Certainty) {
        self.any = true;
        match relation {
            Relation::Read | Relation::Execute => {
                self.content = true;
                self.executed |= relation == Relation::Execute;
                self.certain |= certainty == Certainty::Seen;
            }
            Relation::List => self.listed = true,
            Relation::Write | Relation::Delete | Relation::Rename | Relation::Meta => self.changed = true,
            Relation::Make => self.made = true,
            Relation::Stat | Relation::Missing | Relation::Link => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_something_made_was_not_there() {
        let made = BTreeSet::from([Bytes::from(&b"/w/d"[..])]);
        assert!(below_any(&made, b"/w/d/x") && below_any(&made, b"/w/d"));
        assert!(!below_any(&made, b"/w/dd") && !below_any(&made, b"/w"));
    }

    #[test]
    fn what_the_kernel_makes_up_is_no_plain_path() {
        assert!(is_plain(b"/home/u/x") && !is_plain(b"/proc/self/maps") && !is_plain(b"pipe:1"));
    }
}
