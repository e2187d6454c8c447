//! What a command took and what it made, by path and time.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Certainty, EntityId, EntityKind, Relation};

use backstory_query::Globs;

use crate::paths::{is_cache, is_system, is_tool};
use crate::recording::Recording;

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// When it was first made or changed.
    pub start: Time,
    /// When it was last.
    pub end: Time,
    /// The command's version of it is what was there when the run ended.
    pub last: bool,
}

/// Everything a command did to files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Files that were there already, and when they were first and last read.
    pub read: BTreeMap<Bytes, (Time, Time)>,
    /// Files of tools and of the system.
    pub tools: BTreeSet<Bytes>,
    /// Files it made, changed, or gave this name.
    pub made: BTreeMap<Bytes, Made>,
    /// Files it removed or renamed away, and when.
    pub removed: BTreeMap<Bytes, Time>,
    /// Files of which it changed the mode, owner or times, and when.
    pub touched: BTreeMap<Bytes, Time>,
    /// Directories it made.
    pub directories: BTreeSet<Bytes>,
}

impl Effects {
    /// What these activities did together. What one of them made and another read is nobody's input.
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
                    // What could have been written and was not is version 0 still.
                    if edge.certainty == Certainty::Possible && entity.version == 0 {
                        continue;
                    }
                    let last = entity.last;
                    let made = effects
                        .made
                        .entry(path)
                        .or_insert(Made { start, end, last });
                    made.start = made.start.min(start);
                    made.end = made.end.max(end);
                    made.last |= last;
                }
                Relation::Make if entity.kind == EntityKind::Directory => {
                    effects.directories.insert(path);
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
        effects
    }
}

fn is_making(relation: Relation) -> bool {
    matches!(
        relation,
        Relation::Write | Relation::Rename | Relation::Make
    )
}

/// What no workflow is for: caches, and what lies where only the system writes.
fn is_temporary(path: &[u8]) -> bool {
    is_cache(path) || is_system(path)
}
