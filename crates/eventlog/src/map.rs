//! A log's bytes in memory, read when they are touched.
#![allow(unsafe_code)]

use crate::error::Error;
use backstory_files::regular;
#[cfg(not(miri))]
use memmap2::Mmap;
use std::path::Path;

/// Miri maps no files: there a log is read into memory, and the rest of this crate runs as it is.
#[cfg(miri)]
type Mmap = Vec<u8>;

/// The bytes that a log had when it was opened.
#[derive(Debug)]
pub struct MappedFile(Option<Mmap>);

impl MappedFile {
    /// Maps a file; an empty one is no bytes.
    pub fn open(path: &Path) -> Result<MappedFile, Error> {
        let file = regular::open(path).map_err(Error::io("open", path))?;
        let length = file.metadata().map_err(Error::io("look at", path))?.len();
        if length == 0 {
            return Ok(MappedFile(None));
        }
        #[cfg(miri)]
        let map = regular::read(path).map_err(Error::io("map", path))?;
        // SAFETY: logs are private to their owner and only ever appended to, so the mapped range neither changes nor goes away.
        // Whoever shortens one while it is read gets this process killed by SIGBUS, never wrong memory.
        #[cfg(not(miri))]
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io("map", path))?;
        Ok(MappedFile(Some(map)))
    }

    /// No bytes.
    pub fn nothing() -> MappedFile {
        MappedFile(None)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }
}
