//! Which versions of a run are to be stored, and what was preserved of them while it was recorded.

use backstory_vocabulary::ContentsMode;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use backstory_eventlog::Log;
use backstory_eventlog::event::{Op, PreserveMethod};
use backstory_files::Ident;
use backstory_graph::model::{ActivityId, EntityKind, Relation};
use backstory_store::{ActivityKey, RunRecord, Store};
use backstory_workflow::paths::is_tool;

use super::Error;

/// A version to be stored.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub ident: Ident,
    /// Where it may be.
    pub paths: Vec<PathBuf>,
}

/// A version that was preserved, or should have been.
#[derive(Debug, Clone)]
pub struct Preserved {
    pub ident: Ident,
    pub path: PathBuf,
    pub how: Option<PreserveMethod>,
    /// Its file, or the error number that it was not preserved for.
    pub number: Result<i32, i32>,
}

impl Preserved {
    /// Why it was not preserved.
    pub fn why(&self) -> String {
        let number = self.number.err().unwrap_or_default();
        std::io::Error::from_raw_os_error(-number).to_string()
    }
}

/// What is to be stored of a run.
#[derive(Debug, Default)]
pub struct All {
    pub versions: Vec<Wanted>,
    /// All paths that were used in some way: it matters where links on the way to them led, also if there was nothing.
    pub paths: Vec<PathBuf>,
    /// Directories that were listed, but those of the system.
    pub listed: Vec<PathBuf>,
    /// Those of the paths that were only looked at: whoever does it again has to see the same.
    pub looked: HashSet<PathBuf>,
}

/// What the log says was preserved.
pub fn preserved(log: &Log) -> Vec<Preserved> {
    let mut found = Vec::new();
    for event in log.events() {
        if let (Op::Kept { path, number, how }, Some(ident)) = (event.op, event.ident) {
            let failed = event.outcome.value().filter(|value| *value < 0);
            found.push(Preserved {
                ident,
                path: OsStr::from_bytes(&path).into(),
                how,
                number: failed.map_or(Ok(number), Err),
            });
        }
    }
    found
}

/// Who read or made a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    One(ActivityId),
    Many,
}

impl Who {
    fn and(self, another: ActivityId) -> Who {
        match self {
            Who::Nobody => Who::One(another),
            Who::One(id) if id == another => self,
            _ => Who::Many,
        }
    }
}

/// One for each version: a file that was renamed is the version that it was, and lies at the last of its names.
fn joined(versions: Vec<Wanted>) -> Vec<Wanted> {
    let mut known: HashMap<State, usize> = HashMap::new();
    let mut all: Vec<Wanted> = Vec::new();
    for version in versions {
        match known.entry(state(&version.ident)) {
            Entry::Occupied(at) => {
                let one = &mut all[*at.get()];
                // Times of change tell the last one from those before: what is looked for lies there.
                if version.ident.ctime > one.ident.ctime {
                    one.ident = version.ident;
                }
                one.paths.extend(version.paths);
            }
            Entry::Vacant(free) => {
                free.insert(all.len());
                all.push(version);
            }
        }
    }
    all
}

/// The versions of files that were read or executed, those that the run left behind and, if everything is asked for, all that was
/// preserved. What only its maker has read, in the same program, is not wanted for that.
pub fn of(store: &dyn Store, run: &RunRecord, preserved: &[Preserved]) -> Result<All, Error> {
    let entities = store.entities(run.key)?;
    let (mut used, mut made) = (
        vec![Who::Nobody; entities.len()],
        vec![Who::Nobody; entities.len()],
    );
    let mut became = vec![Who::Nobody; entities.len()];
    let mark = |list: &mut Vec<Who>, id: u32, who: ActivityId| {
        if let Some(mark) = list.get_mut(id as usize) {
            *mark = mark.and(who);
        }
    };
    let mut listed = HashSet::new();
    for activity in store.activities(run.key)? {
        let stream = store.stream(ActivityKey::new(run.key, activity.id))?;
        for edge in &stream.edges {
            match edge.relation {
                Relation::Read | Relation::Execute => mark(&mut used, edge.entity.0, activity.id),
                Relation::Write | Relation::Rename | Relation::Make => {
                    mark(&mut made, edge.entity.0, activity.id);
                }
                Relation::Link => mark(&mut made, edge.entity.0, activity.id),
                Relation::List => drop(listed.insert(edge.entity.0)),
                // Of a program without the recorder no more is seen than that it opened the directory.
                Relation::Stat if !activity.lookups_known => drop(listed.insert(edge.entity.0)),
                _ => {}
            }
        }
        for derived in &stream.derived {
            mark(&mut made, derived.entity.0, activity.id);
            mark(&mut became, derived.from.0, activity.id);
        }
    }
    let kept: HashSet<State> = preserved.iter().map(|kept| state(&kept.ident)).collect();
    let mut all = All::default();
    let done = used.into_iter().zip(made).zip(became);
    for (entity, ((used, made), became)) in entities.into_iter().zip(done) {
        let made_up = [&b"/proc/"[..], b"/sys/", b"/dev/"];
        if entity.path.first() != Some(&b'/')
            || made_up.iter().any(|prefix| entity.path.starts_with(prefix))
        {
            continue;
        }
        let names = std::iter::once(&entity.path).chain(&entity.aliases);
        let paths: Vec<PathBuf> = names.map(|path| OsStr::from_bytes(path).into()).collect();
        all.paths.extend_from_slice(&paths);
        let directory = entity.kind == EntityKind::Directory;
        if directory && listed.contains(&entity.id.0) && !is_tool(&entity.path) {
            all.listed.extend_from_slice(&paths);
        }
        // What the run found and changed in part, or moved: to do that again, it has to be there.
        let found = entity.version == 0 && became != Who::Nobody;
        if used == Who::Nobody && made == Who::Nobody && !found {
            if entity.kind == EntityKind::File && entity.version == 0 {
                all.looked.extend(paths);
            }
            continue;
        }
        if let (EntityKind::File, Some(ident)) = (entity.kind, entity.ident)
            && (entity.last || found || is_needed(used, made) || kept.contains(&state(&ident)))
        {
            all.versions.push(Wanted { ident, paths });
        }
    }
    all.versions = joined(all.versions);
    if run.header.modes.contents == Some(ContentsMode::All) {
        all.versions.extend(preserved.iter().map(|kept| Wanted {
            ident: kept.ident,
            paths: vec![kept.path.clone()],
        }));
    }
    Ok(all)
}

/// Device, inode, size and time of modification: versions that differ in one of these are not the same.
pub type State = (u64, u64, i64, i64);

/// That of an identity.
pub fn state(ident: &Ident) -> State {
    (ident.dev, ident.ino, ident.size, ident.mtime)
}

/// Somebody has read it who has not made it alone.
fn is_needed(used: Who, made: Who) -> bool {
    match used {
        Who::Nobody => false,
        Who::One(_) => used != made,
        Who::Many => true,
    }
}
