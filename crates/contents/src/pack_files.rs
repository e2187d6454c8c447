//! The state of the packs' files, by which a process notices that another one has written.
//!
//! A process that has read the indexes need not read them again while these files are as they were.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{Error, Result, layout};

/// The packs and their indexes, as they were at one moment. Only a holder of the writers' lock
/// changes them.
#[derive(Debug, PartialEq, Eq)]
pub struct PackFiles(Vec<PackState>);

#[derive(Debug, PartialEq, Eq)]
struct PackState {
    number: u32,
    pack: FileState,
    /// `None` without an index.
    index: Option<FileState>,
}

/// The marks of a file and of its state.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl PackFiles {
    /// The present state of all packs.
    pub fn of(dir: &Path) -> Result<PackFiles> {
        let all = layout::packs(dir)?.into_iter().map(|number| {
            let pack = layout::pack(dir, number);
            Ok(PackState {
                number,
                pack: FileState::of(&pack).map_err(Error::io("look at", &pack))?,
                index: FileState::of(&layout::pack_index(dir, number)).ok(),
            })
        });
        Ok(PackFiles(all.collect::<Result<_>>()?))
    }

    /// The number of the last pack, and its length.
    pub fn last(&self) -> Option<(u32, u64)> {
        let last = self.0.last()?;
        Some((last.number, last.pack.length))
    }
}

impl FileState {
    fn of(path: &Path) -> std::io::Result<FileState> {
        let meta = std::fs::metadata(path)?;
        Ok(FileState {
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}
