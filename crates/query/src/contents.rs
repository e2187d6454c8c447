//! The contents of a run's files, for rebuilding them elsewhere.

use backstory_ordering::SmallSort;
use std::collections::{HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::RunHeader;
use backstory_files::Digest;
use backstory_files::Ident;
use backstory_graph::model::{ActivityId, ByName, Entity, EntityKind, Relation};
use backstory_store::facts::{Availability, SnapshotEntry};
use backstory_store::{ActivityKey, Store};

use crate::Result;
use crate::runs::{is_path, record};
use crate::why_unknown::why_not;

/// The files of a run by version, and the layout of its paths.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunContents {
    /// The run's id.
    pub run: String,
    /// Whether all its versions have been looked at: contents are stored in the background after a
    /// run. Before that, whatever is not known already is [`Availability::Missing`].
    pub settled: bool,
    /// Versions of files, links and directories that the run used or made, in the order of their
    /// first use.
    pub files: Vec<Content>,
    /// Every directory and symbolic link on the way to them, as they lay at the run's end, in the
    /// order of their paths.
    pub snapshot: Vec<SnapshotEntry>,
}

/// One version of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Absolute path by which the run used it first. If that name was removed and another was left,
    /// the other.
    pub path: Bytes,
    /// Further names by which the run used it.
    pub aliases: Vec<Bytes>,
    /// Names that the run left it: its path, and names it was given while it was open for writing.
    /// A further name of a complete file has a version of its own.
    pub stayed: Vec<Bytes>,
    /// File, link or directory.
    pub kind: EntityKind,
    /// 0 for a version that existed before the run. The run's inputs are version 0, and two
    /// contents of one path are two versions.
    pub version: u32,
    /// True if the file system had this version when the run ended.
    pub last: bool,
    /// Type and permission bits, from the version's identity or the directory snapshot.
    pub mode: Option<u32>,
    /// The target of a link.
    pub target: Option<Bytes>,
    /// The identity. `None` if it could not be determined.
    pub ident: Option<Ident>,
    /// The digest of its content. `backstory_contents::Contents::read` opens it.
    pub digest: Option<Digest>,
    /// Where the content is available.
    pub availability: Availability,
    /// Its role in the run.
    pub role: ContentRole,
    /// The time of the run's first operation on it.
    pub first_used: Time,
}

/// The role of a version in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ContentRole {
    /// Read, and not made by the run.
    Input,
    /// Made by the run, and existing at its end.
    Output,
    /// Made by the run, and removed or replaced by its end.
    Intermediate,
    /// Executed, or the interpreter of an executed file.
    Program,
    /// Read, and a shared library by its name.
    Library,
}

/// The digest of a version's content and the place where it is available. `None` if neither is
/// known.
pub fn known(
    store: &dyn Store,
    ident: Option<&Ident>,
) -> Result<Option<(Option<Digest>, Availability)>> {
    let fact = match ident {
        Some(ident) => store.fact(ident)?,
        None => None,
    };
    Ok(fact.map(|fact| (fact.digest, fact.availability)))
}

/// The same, or else that of later versions with the same content. A program without the recorder
/// that reads a file and sets its times leaves the same content under another identity.
fn known_by(
    store: &dyn Store,
    ident: Option<&Ident>,
    heirs: impl FnOnce() -> Vec<Ident>,
) -> Result<Option<(Option<Digest>, Availability)>> {
    let own = known(store, ident)?;
    if !matches!(own, Some((_, Availability::Missing(_)))) {
        return Ok(own);
    }
    for heir in heirs() {
        let found = known(store, Some(&heir))?;
        if found.as_ref().is_some_and(|(digest, held)| {
            digest.is_some() && !matches!(held, Availability::Missing(_))
        }) {
            return Ok(found);
        }
    }
    Ok(own)
}

/// Versions 0 of files that the run in fact made. An open that does not require the file to exist
/// does not show whether it made the file. If the file is gone by the run's end, the version
/// written into it shows it by its birth time, which is never too late. If contents are stored, the
/// absence of a preserved content shows it, too.
pub fn born(entities: &[Entity], header: &RunHeader) -> HashSet<u32> {
    let keeps = header.modes.stores_contents();
    let mut found = HashSet::new();
    for entity in entities.iter().filter(|entity| entity.version > 0) {
        let born = match entity.ident {
            Some(ident) => ident.birth >= header.started,
            None => keeps && !entity.last,
        };
        let mut at = entity;
        while let Some(before) = at.previous.and_then(|id| entities.get(id.0 as usize)) {
            let same_file = born && before.path == at.path && before.version < at.version;
            let older = before
                .ident
                .is_some_and(|ident| ident.birth < header.started);
            if !same_file || older || before.version == 0 && !found.insert(before.id.0) {
                break;
            }
            at = before;
        }
    }
    found
}

/// Whether an activity is the process of backstory that wrote the run's records, as `mount` does.
/// The contents of its program are not those of the run.
pub fn is_source(header: &RunHeader, activity: ActivityId) -> bool {
    header.source.is_some() && activity == ActivityId(0)
}

/// The contents of a run's files.
pub fn contents(store: &dyn Store, run: &str) -> Result<RunContents> {
    let _one_state = store.reading()?;
    let record = record(store, run)?;
    let surroundings = store.directory_snapshot(run)?;
    let settled = surroundings.is_some();
    let snapshot = surroundings.map(|s| s.entries).unwrap_or_default();
    let mut uses: HashMap<u32, Use> = HashMap::new();
    let (mut became, mut written): (HashMap<u32, Vec<u32>>, HashSet<u32>) = Default::default();
    for activity in store.activities(record.key)? {
        if is_source(&record.header, activity.id) {
            continue;
        }
        let stream = store.stream(ActivityKey::new(record.key, activity.id))?;
        for edge in &stream.edges {
            if edge.relation == Relation::Write {
                written.insert(edge.entity.0);
            }
            uses.entry(edge.entity.0)
                .or_default()
                .add(edge.relation, edge.interval.start);
        }
        for derived in &stream.derived {
            became
                .entry(derived.from.0)
                .or_default()
                .push(derived.entity.0);
            uses.entry(derived.entity.0)
                .or_default()
                .derived(derived.time);
        }
    }
    let mut files = Vec::new();
    let entities = store.entities(record.key)?;
    let replaced: HashSet<_> = entities.iter().filter_map(|later| later.previous).collect();
    let born = born(&entities, &record.header);
    for entity in entities.iter().cloned() {
        let Some(used) = uses
            .get(&entity.id.0)
            .filter(|used| used.matters(&entity) && !born.contains(&entity.id.0))
        else {
            continue;
        };
        let heirs = || super::heirs(&entity, &entities, &became, &|id| written.contains(&id)).0;
        let known = known_by(store, entity.ident.as_ref(), heirs)?;
        let all = || {
            std::iter::once(&entity.path)
                .chain(&entity.aliases)
                .cloned()
        };
        let mut names: Vec<Bytes> = all().collect();
        let stayed = stayed(&entity, used.deleted);
        let path = names.remove(stayed.first().copied().unwrap_or(0));
        let at = snapshot.binary_search_by(|place| place.path.cmp(&path));
        let place = at.ok().map(|at| &snapshot[at]);
        let (digest, held) = known.unwrap_or_else(|| {
            let ended = used.deleted || replaced.contains(&entity.id);
            let why = why_not((&record.header, settled), &entity, ended);
            (None, Availability::Missing(why.to_owned()))
        });
        files.push(Content {
            role: used.role(&entity, !stayed.is_empty()),
            first_used: used.first,
            kind: kind(&entity),
            version: entity.version,
            last: entity.last,
            mode: entity.ident.map(|i| i.mode).or(place.map(|p| p.mode)),
            target: place.and_then(|place| place.target.clone()),
            ident: entity.ident,
            digest,
            availability: held,
            path,
            aliases: names,
            stayed: all()
                .enumerate()
                .filter(|(at, _)| stayed.contains(at))
                .map(|(_, name)| name)
                .collect(),
        });
    }
    files.sort_small_by(|a, b| (a.first_used, &a.path).cmp(&(b.first_used, &b.path)));
    Ok(RunContents {
        run: run.to_owned(),
        settled,
        files,
        snapshot,
    })
}

/// The kind of an entity. Renaming a directory does not show its type, but its identity does.
pub fn kind(entity: &Entity) -> EntityKind {
    const TYPE: u32 = 0o170_000;
    const DIRECTORY: u32 = 0o040_000;
    match (entity.kind, entity.ident) {
        (EntityKind::File, Some(ident)) if ident.mode & TYPE == DIRECTORY => EntityKind::Directory,
        (kind, _) => kind,
    }
}

/// The names that a run left an entity, as indexes counted from its path. Further names count if
/// the run made and did not remove them. If the names used are unknown and one was removed
/// (`deleted`), none counts.
pub fn stayed(entity: &Entity, deleted: bool) -> Vec<usize> {
    if entity.by_name.len() != 1 + entity.aliases.len() {
        return if deleted { Vec::new() } else { vec![0] };
    }
    let did = |by: &ByName, relation: Relation| (by.seen | by.possible) & relation.bit() != 0;
    let by_name = entity.by_name.iter().enumerate();
    let left = by_name
        .filter(|(at, by)| !did(by, Relation::Delete) && (*at == 0 || did(by, Relation::Make)));
    left.map(|(at, _)| at).collect()
}

/// The operations of a run on an entity.
#[derive(Debug, Clone, Copy)]
struct Use {
    first: Time,
    read: bool,
    executed: bool,
    made: bool,
    link: bool,
    deleted: bool,
    derived: bool,
}

impl Default for Use {
    fn default() -> Use {
        Use {
            first: Time::MAX,
            read: false,
            executed: false,
            made: false,
            link: false,
            deleted: false,
            derived: false,
        }
    }
}

impl Use {
    fn add(&mut self, relation: Relation, start: Time) {
        self.first = self.first.min(start);
        match relation {
            Relation::Read => self.read = true,
            Relation::Execute => self.executed = true,
            Relation::Write | Relation::Rename | Relation::Make => self.made = true,
            Relation::Link => self.link = true,
            Relation::Delete => self.deleted = true,
            _ => {}
        }
    }

    fn derived(&mut self, time: Time) {
        self.first = self.first.min(time);
        self.derived = true;
    }

    /// True if the run made it. A file with a second name (`/bin/cat`, `/usr/bin/cat`) derives from
    /// itself without being made.
    fn is_made(&self, entity: &Entity) -> bool {
        self.made || self.derived && entity.version > 0
    }

    fn matters(&self, entity: &Entity) -> bool {
        let made = self.is_made(entity);
        let content = self.read || self.executed || made;
        is_path(&entity.path)
            && match entity.kind {
                EntityKind::File => content,
                EntityKind::Symlink => content || self.link,
                EntityKind::Directory => made,
                _ => false,
            }
    }

    fn role(&self, entity: &Entity, has_name: bool) -> ContentRole {
        match () {
            // A file does not exist under a removed name, whatever further names it has.
            () if self.is_made(entity) && entity.last && has_name => ContentRole::Output,
            () if self.is_made(entity) => ContentRole::Intermediate,
            () if self.executed => ContentRole::Program,
            () if is_library(&entity.path) => ContentRole::Library,
            () => ContentRole::Input,
        }
    }
}

/// True for `libm.so`, `libm.so.6` or `ld-linux-x86-64.so.2`.
fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let so = name.windows(3).rposition(|w| w == b".so");
    so.is_some_and(|at| {
        let rest = &name[at + 3..];
        at > 0 && rest.iter().all(|b| b.is_ascii_digit() || *b == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_recognized_by_its_name() {
        for name in ["/lib/libm.so.6", "/x/a.so", "/lib64/ld-linux-x86-64.so.2"] {
            assert!(is_library(name.as_bytes()), "{name}");
        }
        for name in ["/x/notes.so.txt", "/x/.so", "/x/libm.a", "/lib.so/readme"] {
            assert!(!is_library(name.as_bytes()), "{name}");
        }
    }
}
