//! The files that a command read, made, changed and removed, by path and time.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Certainty, EntityId, EntityKind, Relation};

use backstory_query::Globs;

use crate::paths::{is_cache, is_system, is_tool};
use crate::recording::Recording;

/// How a command made a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadePath {
    /// The first time it was made or changed.
    pub start: Time,
    /// The last time.
    pub end: Time,
    /// The file system held the command's version when the run ended.
    pub last: bool,
}

/// All effects of a command on files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Files that existed before the command, with the first and the last time they were read.
    pub read: BTreeMap<Bytes, (Time, Time)>,
    /// Files of tools and of the system that it read.
    pub tools: BTreeSet<Bytes>,
    /// Files it made, changed, or renamed to this path.
    pub made: BTreeMap<Bytes, MadePath>,
    /// Files it removed or renamed away, with the time.
    pub removed: BTreeMap<Bytes, Time>,
    /// Files whose mode, owner or times it changed, with the time.
    pub touched: BTreeMap<Bytes, Time>,
    /// Directories it made.
    pub directories: BTreeSet<Bytes>,
    /// Directories whose entries it listed, with the first time.
    pub listed: BTreeMap<Bytes, Time>,
}

impl Effects {
    /// True if the command made the file without a look at the version before. An assembler reads
    /// back its own output, which is no such look.
    pub fn makes_anew(&self, path: &Bytes) -> bool {
        self.made.get(path).is_some_and(|made| {
            self.read
                .get(path)
                .is_none_or(|(first, _)| *first >= made.start)
        })
    }

    /// The joint effects of these activities. A file that one of them made and another read is not
    /// an input.
    pub fn of(
        recording: &Recording,
        members: &[usize],
        outside: &HashSet<EntityId>,
        exclude: &Globs,
    ) -> Effects {
        let mut effects = Effects::default();
        let edges = || members.iter().flat_map(|&at| &recording.edges[at]);
        let own: HashSet<EntityId> = edges()
            .filter(|edge| is_making(edge.relation))
            .map(|edge| edge.entity)
            .collect();
        for edge in edges() {
            let entity = recording.entity(edge.entity);
            if outside.contains(&edge.entity)
                || !entity.path.starts_with(b"/")
                || exclude.matches(&entity.path)
            {
                continue;
            }
            let (path, start, end) = (entity.path.clone(), edge.interval.start, edge.interval.end);
            let file = matches!(entity.kind, EntityKind::File | EntityKind::Symlink);
            match edge.relation {
                Relation::Read | Relation::Execute if entity.kind == EntityKind::File => {
                    if is_tool(&path) {
                        effects.tools.insert(path);
                    } else if !own.contains(&edge.entity) || entity.version == 0 {
                        let times = effects.read.entry(path).or_insert((start, end));
                        *times = (times.0.min(start), times.1.max(end));
                    }
                }
                Relation::Write | Relation::Rename | Relation::Make
                    if file && !is_temporary(&path) =>
                {
                    // Version 0 shows that a possible write did not happen.
                    if edge.certainty == Certainty::Possible && entity.version == 0 {
                        continue;
                    }
                    let last = entity.last;
                    let made = effects
                        .made
                        .entry(path)
                        .or_insert(MadePath { start, end, last });
                    made.start = made.start.min(start);
                    made.end = made.end.max(end);
                    made.last |= last;
                }
                Relation::Make if entity.kind == EntityKind::Directory => {
                    effects.directories.insert(path);
                }
                Relation::List => {
                    let first = effects.listed.entry(path).or_insert(start);
                    *first = start.min(*first);
                }
                Relation::Delete if file => {
                    effects.removed.insert(path, start);
                }
                Relation::Meta if file => {
                    effects.touched.insert(path, start);
                }
                _ => {}
            }
        }
        effects.add_moved(recording, members, &own, exclude);
        effects
    }

    /// Adds the files below a directory that one of the activities renamed. The graph has no edge
    /// to such a file, only a derivation of its version from the version at the old path. `own`:
    /// versions that the activities made themselves.
    fn add_moved(
        &mut self,
        recording: &Recording,
        members: &[usize],
        own: &HashSet<EntityId>,
        exclude: &Globs,
    ) {
        for derived in members.iter().flat_map(|&at| recording.derived_by(at)) {
            let (new, old) = (
                recording.entity(derived.entity),
                recording.entity(derived.from),
            );
            let moved = new.path != old.path && new.kind == EntityKind::File;
            if !moved
                || own.contains(&new.id)
                || exclude.matches(&new.path)
                || is_temporary(&new.path)
            {
                continue;
            }
            let (start, end, last) = (derived.time, derived.time, new.last);
            let made = MadePath { start, end, last };
            self.made.entry(new.path.clone()).or_insert(made);
            self.removed.entry(old.path.clone()).or_insert(start);
        }
    }
}

fn is_making(relation: Relation) -> bool {
    matches!(
        relation,
        Relation::Write | Relation::Rename | Relation::Make
    )
}

/// True for files that no workflow makes: caches, and files below the system's directories.
fn is_temporary(path: &[u8]) -> bool {
    is_cache(path) || is_system(path)
}
