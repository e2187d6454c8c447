//! Which versions of a run are to be stored, and what was preserved of them while it was recorded.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use backstory_eventlog::Log;
use backstory_eventlog::event::{Ident, Kept, Op};
use backstory_graph::model::{EntityKind, Relation};
use backstory_store::{ActivityKey, RunRecord, Store};

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
    pub how: Option<Kept>,
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
    /// All paths that content was used by.
    pub paths: Vec<PathBuf>,
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

/// The versions of files that were read or executed, those that the run left behind and, if everything is asked for, all that was
/// preserved.
pub fn of(store: &dyn Store, run: &RunRecord, preserved: &[Preserved]) -> Result<All, Error> {
    let entities = store.entities(run.key)?;
    let (mut used, mut made) = (vec![false; entities.len()], vec![false; entities.len()]);
    let mark = |list: &mut Vec<bool>, id: u32| {
        if let Some(mark) = list.get_mut(id as usize) {
            *mark = true;
        }
    };
    for activity in store.activities(run.key)? {
        let stream = store.stream(ActivityKey::new(run.key, activity.id))?;
        for edge in &stream.edges {
            match edge.relation {
                Relation::Read | Relation::Execute => mark(&mut used, edge.entity.0),
                Relation::Write | Relation::Rename | Relation::Make => mark(&mut made, edge.entity.0),
                Relation::Link => mark(&mut made, edge.entity.0),
                _ => {}
            }
        }
        for derived in &stream.derived {
            mark(&mut made, derived.entity.0);
        }
    }
    let mut all = All::default();
    for (entity, (used, made)) in entities.into_iter().zip(used.into_iter().zip(made)) {
        if !used && !made || entity.path.first() != Some(&b'/') {
            continue;
        }
        let names = std::iter::once(&entity.path).chain(&entity.aliases);
        let paths: Vec<PathBuf> = names.map(|path| OsStr::from_bytes(path).into()).collect();
        all.paths.extend_from_slice(&paths);
        if let (EntityKind::File, Some(ident)) = (entity.kind, entity.ident)
            && (used || entity.last)
        {
            all.versions.push(Wanted { ident, paths });
        }
    }
    if run.header.modes.contents == "all" {
        all.versions.extend(preserved.iter().map(|kept| Wanted {
            ident: kept.ident,
            paths: vec![kept.path.clone()],
        }));
    }
    Ok(all)
}
