//! A store in the directory for temporary files, which receives archives of a bucket.

use std::fs::File;
use std::path::Path;

use backstory_contents::Contents;
use backstory_files::Digest;
use backstory_store::Home;
use tempfile::TempDir;

use crate::incoming::Incoming;
use crate::{Error, Parcel, Result};

/// A store of this process, which is removed when it is dropped.
pub struct ScratchStore {
    pub home: Home,
    _directory: TempDir,
}

impl ScratchStore {
    /// An empty store below `directory`.
    pub fn new(directory: &Path) -> Result<ScratchStore> {
        let made =
            TempDir::new_in(directory).map_err(Error::io("make a directory in", directory))?;
        Ok(ScratchStore {
            home: Home::open(made.path())?,
            _directory: made,
        })
    }

    /// Reads an archive: its contents are stored, the rest is checked.
    pub fn read(&self, archive: &Path) -> Result<Parcel> {
        let file = File::open(archive).map_err(Error::io("read", archive))?;
        Incoming::new(&self.home, None)?.read(file)
    }

    /// The contents that were read.
    pub fn contents(&self) -> Result<Contents> {
        Ok(Contents::create(&self.home.contents_dir())?)
    }

    /// The digests of these contents.
    pub fn digests(&self) -> Result<Vec<Digest>> {
        Ok(self.contents()?.digests()?)
    }
}
