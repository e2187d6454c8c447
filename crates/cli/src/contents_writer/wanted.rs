//! Which versions of a run are stored, and which of them were preserved while the run was recorded.

use backstory_vocabulary::ContentsMode;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

use backstory_eventlog::Log;
use backstory_eventlog::event::{Bytes, PreserveMethod};
use backstory_files::{Ident, VersionId};
use backstory_graph::model::{Entity, EntityKind};
use backstory_store::{RunRecord, Store};
use backstory_workflow::paths::is_tool;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::io::Errno;

use super::Error;
use super::uses::{Activities, Uses};

/// A version to store.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub ident: Ident,
    /// Paths at which the file may be.
    pub paths: Vec<PathBuf>,
    /// For each of its names that has several versions: those that the run met there, this one
    /// among them. They are shared, because a long run meets thousands of versions of one file.
    pub namesakes: Vec<Rc<[Ident]>>,
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
                one.namesakes.extend(version.namesakes);
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
    let uses = Uses::of(store, run, entities.len())?;
    // A process that links a file itself does not know whether the run has read it.
    let known_read = |kept: &&Preserved| kept.how != Some(PreserveMethod::OwnLink);
    let kept: FxHashSet<VersionId> = preserved
        .iter()
        .filter(known_read)
        .map(|kept| kept.ident.version_id())
        .collect();
    let at_name = versions_by_name(&entities);
    let mut all = All::default();
    for entity in entities {
        let version = uses.version(entity.id);
        let pseudo = [&b"/proc/"[..], b"/sys/", b"/dev/"];
        if entity.path.first() != Some(&b'/')
            || pseudo.iter().any(|prefix| entity.path.starts_with(prefix))
        {
            continue;
        }
        all.paths.extend(names(&entity).cloned());
        let directory = entity.kind == EntityKind::Directory;
        if directory && uses.is_listed(entity.id) && !is_tool(&entity.path) {
            all.listed.extend(names(&entity).map(path_of));
        }
        // A file that the run changed in part or moved must exist for a replay.
        let found = entity.version == 0 && version.became != Activities::Zero;
        if version.used == Activities::Zero && version.made == Activities::Zero && !found {
            if entity.kind == EntityKind::File && entity.version == 0 {
                all.looked.extend(names(&entity).cloned());
            }
            continue;
        }
        if let (EntityKind::File, Some(ident)) = (entity.kind, entity.ident)
            && (entity.last || found || version.is_needed() || kept.contains(&ident.version_id()))
        {
            let known = names(&entity).filter_map(|name| at_name.get(name));
            all.versions.push(Wanted {
                ident,
                paths: names(&entity).map(path_of).collect(),
                namesakes: known.cloned().collect(),
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
            namesakes: Vec::new(),
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

/// The versions of files that have the same name, for each name that several have.
fn versions_by_name(entities: &[Entity]) -> FxHashMap<Bytes, Rc<[Ident]>> {
    let files = || entities.iter().filter(|one| one.kind == EntityKind::File);
    // Most names have one version.
    let mut once: FxHashSet<&Bytes> = FxHashSet::default();
    let mut named: FxHashMap<&Bytes, Vec<Ident>> = FxHashMap::default();
    for name in files().flat_map(names) {
        if !once.insert(name) {
            named.entry(name).or_default();
        }
    }
    if named.is_empty() {
        return FxHashMap::default();
    }
    for (entity, ident) in files().filter_map(|one| Some((one, one.ident?))) {
        for name in names(entity) {
            if let Some(versions) = named.get_mut(name) {
                versions.push(ident);
            }
        }
    }
    let several = named.into_iter().filter(|(_, all)| all.len() > 1);
    several
        .map(|(name, all)| (name.clone(), all.into()))
        .collect()
}
