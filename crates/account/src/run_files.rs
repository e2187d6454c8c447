//! The files of a run, as its commands used them.
//!
//! In: a store, a run and a filter. Out: [`RunFiles`]: the files that commands used, made and
//! removed, each with these commands. A file that one command made, used alone and left to be
//! removed is only counted.
//!
//! Directories and devices count only if a command changed them.
//!
//! Absent: look-ups, pipes, and links that are only possible.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Certainty, EntityId, EntityKind, Relation};
use backstory_query::FileFilter;
use backstory_query::answer::Access;
use backstory_store::{ActivityKey, Store};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{Line, call, outside};

use crate::Result;
use crate::commands::commands;

/// The files of a run at the level of commands.
#[derive(Debug, Default)]
pub struct RunFiles {
    /// The files, by path.
    pub files: Vec<CommandFile>,
    /// The commands that touched them.
    pub commands: Vec<Line>,
    /// The number of files that lived within one command.
    pub within: usize,
}

/// A file with the commands that touched it. Commands are indexes of [`RunFiles::commands`].
#[derive(Debug, Default, Clone, PartialEq)]
pub struct CommandFile {
    /// Its absolute path.
    pub path: Bytes,
    /// The commands that made it or changed its content.
    pub made_by: BTreeSet<usize>,
    /// The commands that changed its mode, owner, times or attributes, or wrote to a device.
    pub changed_by: BTreeSet<usize>,
    /// The commands that read or executed it.
    pub used_by: BTreeSet<usize>,
    /// The commands that removed it.
    pub removed_by: BTreeSet<usize>,
    /// True if the run made it and left it.
    pub remains: bool,
    /// The size of the last version in bytes, if it is known.
    pub size: Option<i64>,
    /// The end of the last operation.
    pub last: Time,
}

impl CommandFile {
    /// The acts on the file, in the words of a filter.
    pub fn access(&self) -> Vec<Access> {
        let done = [
            (Access::Read, &self.used_by),
            (Access::Write, &self.made_by),
            (Access::Meta, &self.changed_by),
            (Access::Delete, &self.removed_by),
        ];
        let done = done.into_iter().filter(|(_, by)| !by.is_empty());
        done.map(|(access, _)| access).collect()
    }

    /// True if one command made it, nothing else used it, and it is gone.
    fn is_within_one(&self) -> bool {
        let all = self
            .made_by
            .iter()
            .chain(&self.changed_by)
            .chain(&self.used_by)
            .chain(&self.removed_by);
        let all: BTreeSet<&usize> = all.into_tree();
        !self.made_by.is_empty() && !self.remains && all.len() == 1
    }
}

/// Lists the files of a run that a filter accepts.
///
/// # Errors
///
/// If there is no such run, or the store fails.
pub fn run_files(store: &dyn Store, run: &str, filter: &FileFilter) -> Result<RunFiles> {
    let _one_state = store.reading()?;
    let record = store.run(run)?;
    let record = record.ok_or_else(|| backstory_query::Error::NoRun(run.to_owned()))?;
    let activities = store.activities(record.key)?.into_iter();
    let ids: Vec<_> = activities.map(|activity| activity.id).collect();
    let entities = store.entities(record.key)?;
    let made = entities.iter().filter(|entity| entity.version > 0);
    let made: HashSet<EntityId> = made.map(|entity| entity.id).collect();
    // The edges to other files are read below, one activity after the other.
    let (recording, places) =
        Recording::excerpt(store, record.key, &ids, &|id| made.contains(&id))?;
    let outside = outside(&recording);
    let roots = commands(&recording, &outside);
    let mut opened: HashMap<Bytes, usize> = HashMap::new();
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    let mut lines: Vec<Line> = Vec::new();
    let mut by_path: BTreeMap<Bytes, CommandFile> = BTreeMap::new();
    for id in ids {
        let Some(&at) = places.activities.get(&id) else {
            continue;
        };
        if !filter.accepts_program(&recording.activities[at]) {
            continue;
        }
        for edge in store.stream(ActivityKey::new(record.key, id))?.edges {
            let Some(entity) = entities.get(edge.entity.0 as usize) else {
                continue;
            };
            if !is_subject(entity.kind, edge.relation)
                || edge.certainty != Certainty::Seen
                || !is_touch(edge.relation)
                || !filter.accepts_path(&entity.path)
            {
                continue;
            }
            let root = roots[at];
            let command = *numbers.entry(root).or_insert_with(|| {
                lines.push(call(&recording, &[root], &outside, &mut HashSet::new()));
                lines.len() - 1
            });
            let given = places.entities.get(&edge.entity);
            let given = given.is_some_and(|id| recording.given.contains(&(at, *id)));
            if given && !edge.relation.is_use() {
                // A shell opened it for a program.
                opened.insert(entity.path.clone(), command);
                continue;
            }
            let file = by_path.entry(entity.path.clone()).or_default();
            match edge.relation {
                Relation::Read | Relation::Execute => file.used_by.insert(command),
                Relation::Delete => file.removed_by.insert(command),
                Relation::Meta => file.changed_by.insert(command),
                _ if entity.kind == EntityKind::Device => file.changed_by.insert(command),
                _ => file.made_by.insert(command),
            };
            file.last = file.last.max(edge.interval.end);
        }
    }
    for (path, command) in opened {
        let file = by_path.entry(path).or_default();
        if file.made_by.is_empty() {
            file.made_by.insert(command);
        }
    }
    for entity in &entities {
        if let Some(file) = by_path.get_mut(&entity.path) {
            file.remains |= entity.last && entity.version > 0;
            file.size = entity.ident.map(|ident| ident.size).or(file.size);
        }
    }
    let mut found = RunFiles {
        commands: lines,
        ..RunFiles::default()
    };
    for (path, mut file) in by_path {
        file.path = path;
        if file.is_within_one() {
            found.within += 1;
        } else if filter.accepts_access(&file.access()) {
            found.files.push(file);
        }
    }
    Ok(found)
}

/// True if such an edge to an entity of this kind is about a file.
fn is_subject(kind: EntityKind, relation: Relation) -> bool {
    match kind {
        EntityKind::File | EntityKind::Symlink => true,
        EntityKind::Directory | EntityKind::Device => !relation.is_use(),
        _ => false,
    }
}

/// True if the relation concerns the content, the existence or the attributes of a file.
fn is_touch(relation: Relation) -> bool {
    matches!(
        relation,
        Relation::Read
            | Relation::Execute
            | Relation::Write
            | Relation::Make
            | Relation::Rename
            | Relation::Delete
            | Relation::Meta
    )
}
