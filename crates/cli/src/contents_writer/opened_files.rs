//! The files that were opened for their contents, and what is known of their directories.
//!
//! The files of a run share few directories. Each of these is resolved once, and files are opened
//! from it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_eventlog::event::Bytes;
use backstory_files::{Ident, NearDirectories};
use rustc_hash::{FxHashMap, FxHashSet};

use super::source::{self, Source};

/// The files that were opened so far.
#[derive(Debug, Default)]
pub struct OpenedFiles {
    near: NearDirectories,
    /// Paths at which a regular file was opened without following a link.
    paths: FxHashSet<Bytes>,
    /// Canonical paths of directories.
    real: FxHashMap<Bytes, Option<PathBuf>>,
}

impl OpenedFiles {
    /// Opens a file: see [`source::open`].
    pub fn open(&mut self, path: &Path, wanted: &Ident, ended: i64) -> Result<Source, String> {
        let source = source::open(&mut self.near, path, wanted, ended)?;
        if !source.is_behind_link() {
            self.paths.insert(path.as_os_str().as_bytes().into());
        }
        Ok(source)
    }

    /// The paths at which a regular file was opened without following a link.
    pub fn paths(&self) -> &FxHashSet<Bytes> {
        &self.paths
    }

    /// The canonical path of an open file.
    pub fn real_path(&mut self, path: &Path, source: &Source) -> Option<PathBuf> {
        if source.is_behind_link() {
            return path.canonicalize().ok();
        }
        let (directory, name) = (path.parent()?, path.file_name()?);
        let key = directory.as_os_str().as_bytes();
        if !self.real.contains_key(key) {
            let real = directory.canonicalize().ok();
            self.real.insert(key.into(), real);
        }
        Some(self.real.get(key)?.as_ref()?.join(name))
    }
}
