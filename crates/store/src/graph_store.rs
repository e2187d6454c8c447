//! The part of a store that has the runs and their graphs.
//!
//! An engine must implement eight methods. All other methods have defaults that read whole runs:
//! they are right, and their time grows with the store. An engine overrides those that it can do
//! faster.
//!
//! | must | default |
//! | --- | --- |
//! | `append`, `remove`, `set_label` | `reading`, `run_ids`, `run`, `run_by_key`, `run_id`, `run_started`, `runs_named` |
//! | `runs`, `activities`, `entities`, `stream`, `extended` | `activity`, `entity`, `touching`, `at_path`, `rename_candidates`, `below`, `made_in`, `directories_below`, `directories_of`, `same` |

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::{
    Activity, ActivityId, Derived, Edge, Entity, EntityKind, Inform, Relation,
};
use rustix::fs::FileType;

use crate::appender::Body;
use crate::{ActivityKey, EntityKey, Error, Result, RunKey, RunRecord};

/// Everything one activity did, with the ids of its run, in the order it was appended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Stream {
    /// Its edges to the entities that it used and generated.
    pub edges: Vec<Edge>,
    /// Informs of which it is the receiver.
    pub informed_by: Vec<Inform>,
    /// Informs of which it is the sender.
    pub informs: Vec<Inform>,
    /// Versions that it derived from others.
    pub derived: Vec<Derived>,
}

/// Which entities of an identity a caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// Those that their own run generated.
    Made,
    /// All.
    Any,
}

/// A text that a user can write on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    /// A name, by which commands find the run.
    Name,
    /// A note.
    Note,
}

/// Keeps reads to one state of the store until it is dropped: see [`GraphStore::reading`].
#[derive(Default)]
pub struct ReadGuard<'s> {
    end: Option<Box<dyn FnOnce() + 's>>,
}

impl<'s> ReadGuard<'s> {
    /// A guard that calls `end` when it is dropped.
    pub fn new(end: impl FnOnce() + 's) -> ReadGuard<'s> {
        ReadGuard {
            end: Some(Box::new(end)),
        }
    }
}

impl Drop for ReadGuard<'_> {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

/// The runs of a store and their graphs. Object safe.
pub trait GraphStore {
    /// Appends a run, atomically; `body` emits its graph. If `body` or the store fails, the store
    /// is as it was.
    ///
    /// Errors: [`Error::Exists`] if the run is in the store; [`Error::Unannounced`] if the graph
    /// names an activity or entity that it did not announce; those of `body`.
    fn append(
        &mut self,
        header: &RunHeader,
        end: &RunEnd,
        log_bytes: u64,
        body: &mut Body<'_>,
    ) -> Result<RunKey>;

    /// Removes a run from the graph, but not its log. False if the store does not have it.
    fn remove(&mut self, id: &str) -> Result<bool>;

    /// Writes a label on a run, or removes it. [`Error::NoRun`] if the store does not have the run.
    fn set_label(&mut self, id: &str, label: Label, text: Option<&str>) -> Result<()>;

    /// All runs, the newest first ([`newest_first`](crate::newest_first)).
    fn runs(&self) -> Result<Vec<RunRecord>>;

    /// The activities of a run in the order of their ids.
    fn activities(&self, run: RunKey) -> Result<Vec<Activity>>;

    /// The entities of a run in the order of their ids.
    fn entities(&self, run: RunKey) -> Result<Vec<Entity>>;

    /// Everything that an activity did.
    fn stream(&self, key: ActivityKey) -> Result<Stream>;

    /// The extended records of a run (activity, time, kind, payload), in the order they were
    /// appended.
    fn extended(&self, run: RunKey) -> Result<Vec<(ActivityId, Time, Bytes, Bytes)>>;

    /// All reads see one state of the store while the guard is alive. They may also cost less.
    fn reading(&self) -> Result<ReadGuard<'_>> {
        Ok(ReadGuard::default())
    }

    /// All runs in the order of [`runs`](GraphStore::runs), without their records.
    fn runs_in_order(&self) -> Result<Vec<RunKey>> {
        Ok(self.runs()?.into_iter().map(|run| run.key).collect())
    }

    /// The run that was recorded last.
    fn newest_run(&self) -> Result<Option<RunRecord>> {
        records_newest_first(self)?.next().transpose()
    }

    /// The ids of all runs.
    fn run_ids(&self) -> Result<HashSet<String>> {
        Ok(self.runs()?.into_iter().map(|run| run.header.id).collect())
    }

    /// The run with this id.
    fn run(&self, id: &str) -> Result<Option<RunRecord>> {
        Ok(self.runs()?.into_iter().find(|run| run.header.id == id))
    }

    /// The run with this number.
    fn run_by_key(&self, key: RunKey) -> Result<Option<RunRecord>> {
        Ok(self.runs()?.into_iter().find(|run| run.key == key))
    }

    /// The id of the run with this number.
    fn run_id(&self, key: RunKey) -> Result<Option<String>> {
        Ok(self.run_by_key(key)?.map(|record| record.header.id))
    }

    /// When the run with this number began, by the clock of its machine.
    fn run_started(&self, key: RunKey) -> Result<Option<Time>> {
        Ok(self.run_by_key(key)?.map(|record| record.header.started))
    }

    /// The runs that have this name now, the newest first.
    fn runs_named(&self, name: &str) -> Result<Vec<RunRecord>> {
        let mut runs = self.runs()?;
        runs.retain(|run| run.name.as_deref() == Some(name));
        Ok(runs)
    }

    /// One activity.
    fn activity(&self, key: ActivityKey) -> Result<Activity> {
        let all = self.activities(key.run())?;
        let found = all.into_iter().nth(key.local().0 as usize);
        found.ok_or(Error::Damaged("process (it is missing)"))
    }

    /// One entity.
    fn entity(&self, key: EntityKey) -> Result<Entity> {
        let all = self.entities(key.run())?;
        let found = all.into_iter().nth(key.local().0 as usize);
        found.ok_or(Error::Damaged("entity (it is missing)"))
    }

    /// The activities that generated or removed an entity, or derived another one to it, in no
    /// order. A file that thousands of processes read may have none.
    fn generators(&self, key: EntityKey) -> Result<Vec<ActivityId>> {
        let touching = self.touching(key)?.into_iter();
        let mut found: Vec<_> = touching
            .filter_map(|(activity, generated)| generated.then_some(activity))
            .collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// The activities that used, generated or derived from an entity, in no order. True for an
    /// activity that generated or removed it.
    fn touching(&self, key: EntityKey) -> Result<Vec<(ActivityId, bool)>> {
        let (mut found, wanted) = (BTreeSet::new(), key.local());
        for activity in self.activities(key.run())? {
            let stream = self.stream(ActivityKey::new(key.run(), activity.id))?;
            let edges = stream.edges.iter().filter(|edge| edge.entity == wanted);
            found.extend(edges.map(|edge| (activity.id, !edge.relation.is_use())));
            for derived in &stream.derived {
                let ends = [(derived.entity, true), (derived.from, false)];
                let here = ends.into_iter().filter(|(end, _)| *end == wanted);
                found.extend(here.map(|(_, generated)| (activity.id, generated)));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Entities whose path or alias is this absolute path, those of the run appended last first.
    fn at_path(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
        let has = |entity: &Entity| {
            let mut names = std::iter::once(&entity.path).chain(&entity.aliases);
            names.any(|name| &**name == path)
        };
        entities_where(self, &has)
    }

    /// Entities at this path, those of the run appended last first. Among them are all that may be
    /// directories ([`may_be_directory`]) and that their run renamed to the path or away from it.
    /// Nearly every run uses a directory, and few rename it. The default returns all entities at
    /// the path.
    fn rename_candidates(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
        self.at_path(path)
    }

    /// Entities with a path or alias that begins with `prefix` and that `wanted` accepts, in no
    /// order. A missing path is no such entity.
    fn below(&self, prefix: &[u8], wanted: &dyn Fn(&[u8]) -> bool) -> Result<Vec<EntityKey>> {
        let has = |entity: &Entity| {
            let mut names = std::iter::once(&entity.path).chain(&entity.aliases);
            entity.kind != EntityKind::Missing
                && names.any(|name| name.starts_with(prefix) && wanted(name))
        };
        entities_where(self, &has)
    }

    /// The entities that their runs made in a directory, each with a name that it had there. In no
    /// order. `directory` ends with a slash.
    fn made_in(&self, directory: &[u8]) -> Result<Vec<(Bytes, EntityKey)>> {
        let mut found = Vec::new();
        for key in entities_where(self, &|entity| entity.version > 0)? {
            let entity = self.entity(key)?;
            for path in std::iter::once(&entity.path).chain(&entity.aliases) {
                let (own, name) = split_path(path);
                if own == directory {
                    found.push((name.into(), key));
                }
            }
        }
        Ok(found)
    }

    /// The directories at and below `top` that the runs touched, sorted. All end with a slash, as
    /// `top` does.
    fn directories_below(&self, top: &[u8]) -> Result<Vec<Bytes>> {
        let mut found = BTreeSet::new();
        for key in entities_where(self, &|_| true)? {
            let entity = self.entity(key)?;
            for path in std::iter::once(&entity.path).chain(&entity.aliases) {
                let (directory, _) = split_path(path);
                found.extend(directory.starts_with(top).then(|| Bytes::from(directory)));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The directories of the paths and aliases of a run's entities, sorted. All end with a slash,
    /// except the empty one of names that have no slash.
    fn directories_of(&self, run: RunKey) -> Result<Vec<Bytes>> {
        let mut found = BTreeSet::new();
        for entity in self.entities(run)? {
            for path in std::iter::once(&entity.path).chain(&entity.aliases) {
                let (directory, _) = split_path(path);
                found.insert(Bytes::from(directory));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Entities of any run that are the same version of the same file ([`same_version`]), in no
    /// order.
    fn same(&self, ident: &Ident, which: VersionMatch) -> Result<Vec<EntityKey>> {
        use EntityKind::*;
        let same = |entity: &Entity| {
            matches!(entity.kind, File | Directory | Symlink)
                && entity.ident.is_some_and(|own| same_version(&own, ident))
        };
        let mut found = Vec::new();
        for key in entities_where(self, &same)? {
            if which == VersionMatch::Any || is_made(self, key)? {
                found.push(key);
            }
        }
        Ok(found)
    }

    /// For each identity the entities that [`same`](GraphStore::same) finds of those that runs
    /// made. A search asks for hundreds at a time.
    fn made_versions(&self, idents: &[Ident]) -> Result<Vec<Vec<EntityKey>>> {
        let all = idents.iter();
        all.map(|ident| self.same(ident, VersionMatch::Made))
            .collect()
    }
}

/// The records of all runs, the newest first. Each is read only when it is wanted.
pub fn records_newest_first<S: GraphStore + ?Sized>(
    store: &S,
) -> Result<impl Iterator<Item = Result<RunRecord>> + '_> {
    let runs = store.runs_in_order()?.into_iter();
    Ok(runs.filter_map(|run| store.run_by_key(run).transpose()))
}

/// Whether two identities are of one content state of one file. Compares device, inode, size,
/// modification time and, where both are known, birth. `link` and `chmod` change the status-change
/// time but not the content, so it is not compared.
pub fn same_version(a: &Ident, b: &Ident) -> bool {
    let born_together = a.birth == 0 || b.birth == 0 || a.birth == b.birth;
    a.version_id() == b.version_id() && born_together
}

/// False if a version is known to be a regular file or a symbolic link. A path whose kind is not
/// known is taken for a file. It has no identity.
pub fn may_be_directory(kind: EntityKind, ident: Option<&Ident>) -> bool {
    let is_regular = |ident: &Ident| FileType::from_raw_mode(ident.mode) == FileType::RegularFile;
    match kind {
        EntityKind::File => !ident.is_some_and(is_regular),
        EntityKind::Symlink => false,
        _ => true,
    }
}

/// A path as its directory, which ends with a slash, and its name.
fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    path.split_at(slash.map_or(0, |slash| slash + 1))
}

/// All entities for which `wanted` is true, those of the run appended last first.
fn entities_where<S: GraphStore + ?Sized>(
    store: &S,
    wanted: &dyn Fn(&Entity) -> bool,
) -> Result<Vec<EntityKey>> {
    let mut runs = store.runs_in_order()?;
    runs.sort_unstable_by_key(|run| Reverse(*run));
    let mut found = Vec::new();
    for run in runs {
        let entities = store.entities(run)?;
        let here = entities.iter().filter(|entity| wanted(entity));
        found.extend(here.map(|entity| EntityKey::new(run, entity.id)));
    }
    Ok(found)
}

/// Whether the content of an entity came from its own run.
fn is_made<S: GraphStore + ?Sized>(store: &S, key: EntityKey) -> Result<bool> {
    for (activity, _) in store.touching(key)? {
        let stream = store.stream(ActivityKey::new(key.run(), activity))?;
        let mut edges = stream
            .edges
            .iter()
            .filter(|edge| edge.entity == key.local());
        let mut derived = stream.derived.iter();
        if edges.any(|edge| makes(edge.relation)) || derived.any(|one| one.entity == key.local()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the relation gives its entity a content: written, created, or renamed to.
pub(crate) fn makes(relation: Relation) -> bool {
    matches!(
        relation,
        Relation::Write | Relation::Make | Relation::Rename
    )
}
