//! Lists the files that recorded runs made and that still exist.
//!
//! The log of a whole run (`backstory record make > log`) is counted, and not listed: a shell
//! opened it for the command's output.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_eventlog::event::{Bytes, Time};
use backstory_query as query;
use backstory_store::{EntityKey, RunKey, Store};
use backstory_workflow::callers_files;
use backstory_workflow::paths::{is_cache, is_of_kernel, is_system, to_path};

use crate::Result;
use crate::file_state::is_nameless;

/// The files that runs made and that still exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptResults {
    /// Those below the directory that was asked for, sorted.
    pub inside: Vec<PathBuf>,
    /// How many files below the directory were made by runs and do not exist any more.
    pub removed: usize,
    /// How many exist in other directories.
    pub outside: usize,
    /// How many files below the directory are logs of whole runs.
    pub logs: usize,
}

/// The files that runs made and that still exist. `top`: the directory to look in; `None`: all.
/// Directories, caches and the system's files are no results.
///
/// # Errors
///
/// If the store fails.
pub fn kept_results(store: &dyn Store, top: Option<&Path>) -> Result<KeptResults> {
    let _one_state = store.reading()?;
    let top = top.map_or(b"/".to_vec(), |top| {
        let path = top.as_os_str().as_bytes();
        [path.strip_suffix(b"/").unwrap_or(path), b"/"].concat()
    });
    let (mut kept, mut inside) = (KeptResults::default(), Vec::new());
    let mut writers = Writers::of(store);
    for directory in store.directories_below(b"/")? {
        if is_system(&directory) || is_cache(&directory) || is_of_kernel(&directory) {
            continue;
        }
        let here = directory.starts_with(&top);
        let made = store.made_in(&directory)?;
        let mut versions: BTreeMap<Bytes, Vec<EntityKey>> = BTreeMap::new();
        for (name, version) in made {
            versions.entry(name).or_default().push(version);
        }
        for (name, versions) in versions {
            let path = [&*directory, &*name].concat();
            if name.is_empty() || is_nameless(&path) || is_cache(&path) {
                continue;
            }
            match fs::symlink_metadata(to_path(&path)) {
                Ok(found) if found.is_dir() => {}
                Ok(_) if here && writers.only_printed(&path, &versions)? => kept.logs += 1,
                Ok(_) if here => inside.push(to_path(&path).to_owned()),
                Ok(_) => kept.outside += 1,
                Err(_) => kept.removed += usize::from(here),
            }
        }
    }
    inside.sort_small();
    inside.dedup();
    kept.inside = inside;
    Ok(kept)
}

/// The runs that wrote the files.
struct Writers<'s> {
    store: &'s dyn Store,
    /// The begin of each run, and the files that belong to its caller.
    runs: HashMap<RunKey, (Time, Vec<Vec<u8>>)>,
}

impl Writers<'_> {
    fn of(store: &dyn Store) -> Writers<'_> {
        Writers {
            store,
            runs: HashMap::new(),
        }
    }

    /// True if the file at `path` is a log of the last run that wrote one of these versions.
    fn only_printed(&mut self, path: &[u8], versions: &[EntityKey]) -> Result<bool> {
        let mut newest = None;
        for version in versions {
            let run = version.run();
            if !self.runs.contains_key(&run) {
                let found = self.load(run)?;
                self.runs.insert(run, found);
            }
            newest = newest.max(Some((self.runs[&run].0, run)));
        }
        Ok(newest.is_some_and(|(_, run)| self.runs[&run].1.iter().any(|file| file == path)))
    }

    fn load(&self, run: RunKey) -> Result<(Time, Vec<Vec<u8>>)> {
        let Some(record) = self.store.run_by_key(run)? else {
            return Ok((Time::MIN, Vec::new()));
        };
        let files = match query::printed_files(&record.header).is_empty() {
            true => Vec::new(),
            false => callers_files(self.store, &record.header.id)?,
        };
        Ok((record.header.started, files))
    }
}
