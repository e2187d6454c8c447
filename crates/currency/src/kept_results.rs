//! Lists the files that recorded runs made and that still exist.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_store::Store;
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
    for directory in store.directories_below(b"/")? {
        if is_system(&directory) || is_cache(&directory) || is_of_kernel(&directory) {
            continue;
        }
        let here = directory.starts_with(&top);
        let made = store.made_in(&directory)?;
        let names: BTreeSet<_> = made.into_iter().map(|(name, _)| name).collect();
        for name in names {
            let path = [&*directory, &*name].concat();
            if name.is_empty() || is_nameless(&path) || is_cache(&path) {
                continue;
            }
            match fs::symlink_metadata(to_path(&path)) {
                Ok(found) if found.is_dir() => {}
                Ok(_) if here => inside.push(to_path(&path).to_owned()),
                Ok(_) => kept.outside += 1,
                Err(_) => kept.removed += usize::from(here),
            }
        }
    }
    inside.sort();
    inside.dedup();
    kept.inside = inside;
    Ok(kept)
}
