//! Finds an earlier version of a file whose content is stored. The new content is stored as the
//! changes from it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::{Digest, Ident};
use backstory_store::{Store, same_version};

use super::wanted::Wanted;

/// Most versions that are looked at: the oldest that the run met, and the newest at a path.
const MOST: usize = 16;

/// The search ends for a run after so many files without an earlier version. A run that reads
/// thousands of files for the first time asks the store no further.
const MISSES: usize = 16;

/// The search for earlier versions of the files of one run.
#[derive(Debug, Default)]
pub struct FormerVersions {
    misses: usize,
}

impl FormerVersions {
    /// The content of another version of this file: one of the oldest that the run met, or else the
    /// newest at the same path. A failed question is no reason to store nothing: the content is
    /// then stored whole.
    pub fn digest(&mut self, store: &dyn Store, wanted: &Wanted) -> Option<Digest> {
        let own = wanted.ident.version_id();
        let met = wanted.namesakes.iter().flat_map(|all| all.iter());
        let mut met = met.filter(|one| one.version_id() != own).take(MOST);
        let met = met.find_map(|ident| stored(store, ident));
        if met.is_some() || self.misses >= MISSES {
            return met;
        }
        let found = wanted
            .paths
            .iter()
            .find_map(|path| newest_at(store, path, &wanted.ident));
        self.misses = if found.is_some() { 0 } else { self.misses + 1 };
        found
    }
}

/// The content of the newest other version at a path.
fn newest_at(store: &dyn Store, path: &Path, own: &Ident) -> Option<Digest> {
    let versions = store.at_path(path.as_os_str().as_bytes()).ok()?;
    let idents = versions.into_iter().take(MOST).filter_map(|version| {
        let ident = store.entity(version).ok()?.ident?;
        (!same_version(&ident, own)).then_some(ident)
    });
    idents.into_iter().find_map(|ident| stored(store, &ident))
}

/// The digest of a version whose content is stored.
fn stored(store: &dyn Store, ident: &Ident) -> Option<Digest> {
    let fact = store.fact(ident).ok()??;
    fact.digest.filter(|_| fact.availability.is_stored())
}
