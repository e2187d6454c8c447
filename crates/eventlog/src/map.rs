//! The bytes of a log in memory, read when they are accessed.
#![allow(unsafe_code)]

use crate::error::Error;
use backstory_files::regular;
#[cfg(not(miri))]
use memmap2::Mmap;
use std::path::Path;

/// Miri cannot map files. There a log is read into memory, and the rest of this crate runs
/// unchanged.
#[cfg(miri)]
type Mmap = Vec<u8>;

/// The bytes of a log at the time of opening.
#[derive(Debug, Default)]
pub struct MappedFile(Option<Mmap>);

impl MappedFile {
    /// Maps a file. An empty file gives no bytes.
    pub fn open(path: &Path) -> Result<MappedFile, Error> {
        let file = regular::open(path).map_err(Error::io("open", path))?;
        let length = file.metadata().map_err(Error::io("look at", path))?.len();
        if length == 0 {
            return Ok(MappedFile(None));
        }
        #[cfg(miri)]
        let map = regular::read(path).map_err(Error::io("map", path))?;
        // SAFETY: logs are private to their owner and only ever appended to. So the mapped range
        // neither changes nor disappears. If the owner shortens one while it is read, SIGBUS kills
        // this process, but it never reads wrong memory.
        #[cfg(not(miri))]
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io("map", path))?;
        Ok(MappedFile(Some(map)))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }
}
