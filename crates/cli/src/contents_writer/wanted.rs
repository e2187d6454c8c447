//! Which versions of a run are stored, and which of them were preserved while the run was recorded.

use backstory_vocabulary::ContentsMode;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use backstory_eventlog::Log;
use backstory_eventlog::event::{Bytes, PreserveMethod};
use backstory_files::{Ident, VersionId};
use backstory_graph::model::{ActivityId, Entity, EntityId, EntityKind, Relation};
use backstory_query::is_source;
use backstory_store::{ActivityKey, RunRecord, Store};
use backstory_workflow::paths::is_tool;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::io::Errno;

use super::Error;

/// A version to store.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub ident: Ident,
    /// Paths at which the file may be.
    pub paths: Vec<PathBuf>,
    /// Other versions that the run met at these paths.
    pub others: Vec<Ident>,
    /// The file was there before the run.
    pub is_input: bool,
}

/// A version that was preserved, or should have been.
#[derive(Debug, Clone)]
pub struct Preserved {
    pub ident: Ident,
    pub path: PathBuf,
    pub how: Option<PreserveMethod>,
    /// The number of the preserved file, or the negative errno of the failure.
    pub number: Result<i32, i32>,
}

impl Preserved {
    /// Why it was not preserved.
    pub fn why(&self) -> String {
        let number = -self.number.err().unwrap_or_default();
        if number == Errno::DQUOT.raw_os_error() {
            return "what its run preserved had reached the limit of the store's contents"
                .to_owned();
        }
        std::io::Error::from_raw_os_error(number).to_string()
    }
}

/// All that is stored of a run.
#[derive(Debug, Default)]
pub struct All {
    pub versions: Vec<Wanted>,
    /// All paths that the run used. The links on these paths matter even if no file was there.
    pub paths: Vec<Bytes>,
    /// Directories that the run listed, except system directories.
    pub listed: Vec<PathBuf>,
    /// Those of the paths that were only looked up. A replay must see the same status.
    pub looked: FxHashSet<Bytes>,
}

/// The versions that were preserved, according to the log.
pub fn preserved(log: &Log) -> Vec<Preserved> {
    let of_log = log.preserved().map(|kept| Preserved {
        ident: kept.ident,
        path: OsStr::from_bytes(&kept.path).into(),
        how: kept.how,
        number: kept.number,
    });
    of_log.collect()
}

/// Activities read or made a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activities {
    Zero,
    One(ActivityId),
    Many,
}

impl Activities {
    fn and(self, another: ActivityId) -> Activities {
        match self {
            Activities::Zero => Activities::One(another),
            Activities::One(id) if id == another => self,
            _ => Activities::Many,
        }
    }
}

/// Joins entries of the same version. A renamed file is the same version, and lies at its last
/// name.
fn joined(versions: Vec<Wanted>) -> Vec<Wanted> {
    let mut known: FxHashMap<VersionId, usize> = FxHashMap::default();
    let mut all: Vec<Wanted> = Vec::new();
    for version in versions {
        match known.entry(version.ident.version_id()) {
            Entry::Occupied(at) => {
                let one = &mut all[*at.get()];
                // The entry with the latest status change has the current path.
                if version.ident.ctime > one.ident.ctime {
                    one.ident = version.ident;
                }
                one.paths.extend(version.paths);
                one.others.extend(version.others);
            }
            Entry::Vacant(free) => {
                free.insert(all.len());
                all.push(version);
            }
        }
    }
    all
}

/// The versions of files that were read or executed, and those that the run left behind. With
/// `--contents=all`, also all preserved versions. Data read back only by its writer is not stored.
pub fn of(store: &dyn Store, run: &RunRecord, preserved: &[Preserved]) -> Result<All, Error> {
    let entities = store.entities(run.key)?;
    let (mut used, mut made) = (
        vec![Activities::Zero; entities.len()],
        vec![Activities::Zero; entities.len()],
    );
    let mut became = vec![Activities::Zero; entities.len()];
    let mark = |list: &mut Vec<Activities>, id: u32, who: ActivityId| {
        if let Some(mark) = list.get_mut(id as usize) {
            *mark = mark.and(who);
        }
    };
    let mut listed = FxHashSet::default();
    for activity in store.activities(run.key)? {
        if is_source(&run.header, activity.id) {
            continue;
        }
        let stream = store.stream(ActivityKey::new(run.key, activity.id))?;
        for edge in &stream.edges {
            match edge.relation {
                Relation::Read | Relation::Execute => mark(&mut used, edge.entity.0, activity.id),
                Relation::Write | Relation::Rename | Relation::Make => {
                    mark(&mut made, edge.entity.0, activity.id);
                }
                Relation::Link => mark(&mut made, edge.entity.0, activity.id),
                Relation::List => drop(listed.insert(edge.entity.0)),
                // For a program without the recorder, only the open of the directory is known.
                Relation::Stat if !activity.lookups_known => drop(listed.insert(edge.entity.0)),
                _ => {}
            }
        }
        for derived in &stream.derived {
            mark(&mut made, derived.entity.0, activity.id);
            mark(&mut became, derived.from.0, activity.id);
        }
    }
    // A process that links a file itself does not know whether the run has read it.
    let known_read = |kept: &&Preserved| kept.how != Some(PreserveMethod::OwnLink);
    let kept: FxHashSet<VersionId> = preserved
        .iter()
        .filter(known_read)
        .map(|kept| kept.ident.version_id())
        .collect();
    let mut at_path = versions_by_name(&entities);
    let mut all = All::default();
    let done = used.into_iter().zip(made).zip(became);
    for (entity, ((used, made), became)) in entities.into_iter().zip(done) {
        let pseudo = [&b"/proc/"[..], b"/sys/", b"/dev/"];
        if entity.path.first() != Some(&b'/')
            || pseudo.iter().any(|prefix| entity.path.starts_with(prefix))
        {
            continue;
        }
        all.paths.extend(names(&entity).cloned());
        let directory = entity.kind == EntityKind::Directory;
        if directory && listed.contains(&entity.id.0) && !is_tool(&entity.path) {
            all.listed.extend(names(&entity).map(path_of));
        }
        // A file that the run changed in part or moved must exist for a replay.
        let found = entity.version == 0 && became != Activities::Zero;
        if used == Activities::Zero && made == Activities::Zero && !found {
            if entity.kind == EntityKind::File && entity.version == 0 {
                all.looked.extend(names(&entity).cloned());
            }
            continue;
        }
        if let (EntityKind::File, Some(ident)) = (entity.kind, entity.ident)
            && (entity.last || found || is_needed(used, made) || kept.contains(&ident.version_id()))
        {
            let others = at_path.remove(&entity.id).unwrap_or_default();
            all.versions.push(Wanted {
                ident,
                paths: names(&entity).map(path_of).collect(),
                others,
                is_input: entity.version == 0,
            });
        }
    }
    // If a limit is reached, what the run made is what is not stored: it can be made again.
    let (mut versions, outputs): (Vec<_>, Vec<_>) =
        all.versions.into_iter().partition(|one| one.is_input);
    versions.extend(outputs);
    all.versions = joined(versions);
    if run.header.modes.contents == Some(ContentsMode::All) {
        all.versions.extend(preserved.iter().map(|kept| Wanted {
            ident: kept.ident,
            paths: vec![kept.path.clone()],
            others: Vec::new(),
            is_input: false,
        }));
    }
    Ok(all)
}

/// All names of an entity.
fn names(entity: &Entity) -> impl Iterator<Item = &Bytes> {
    std::iter::once(&entity.path).chain(&entity.aliases)
}

fn path_of(name: &Bytes) -> PathBuf {
    OsStr::from_bytes(name).into()
}

/// For each version of a file, the other versions that have one of its names.
fn versions_by_name(entities: &[Entity]) -> FxHashMap<EntityId, Vec<Ident>> {
    let files = || entities.iter().filter(|one| one.kind == EntityKind::File);
    // Most names have one version.
    let mut once: FxHashSet<&Bytes> = FxHashSet::default();
    let mut named: FxHashMap<&Bytes, Vec<(EntityId, Ident)>> = FxHashMap::default();
    for name in files().flat_map(names) {
        if !once.insert(name) {
            named.entry(name).or_default();
        }
    }
    let mut others: FxHashMap<EntityId, Vec<Ident>> = FxHashMap::default();
    if named.is_empty() {
        return others;
    }
    for (entity, ident) in files().filter_map(|one| Some((one, one.ident?))) {
        for name in names(entity) {
            if let Some(versions) = named.get_mut(name) {
                versions.push((entity.id, ident));
            }
        }
    }
    for versions in named.into_values().filter(|versions| versions.len() > 1) {
        for (id, ident) in &versions {
            let all = versions.iter().map(|(_, other)| *other);
            let here = all.filter(|other| other.version_id() != ident.version_id());
            others.entry(*id).or_default().extend(here);
        }
    }
    others
}

/// True if an activity read the version that is not its only writer.
fn is_needed(used: Activities, made: Activities) -> bool {
    match used {
        Activities::Zero => false,
        Activities::One(_) => used != made,
        Activities::Many => true,
    }
}
