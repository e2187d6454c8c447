//! A file, and the state of its content by size and times.

use backstory_files::{CLOCK_GRANULARITY, now};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A file and the state of its content. The numbers are those of `bs_ident` in `backstory_abi.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileState {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// When the content changed last, in ns since 1970.
    pub modified: i64,
    /// When the content or the inode changed last, in ns since 1970.
    pub changed: i64,
}

impl FileState {
    /// The state that the kernel reports.
    pub fn of(meta: &Metadata) -> FileState {
        let time = |seconds: i64, rest: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest);
        FileState {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: time(meta.mtime(), meta.mtime_nsec()),
            changed: time(meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// True if another content of this file would have another state: the clock of the file system
    /// has ticked since the last change.
    pub fn is_settled(&self) -> bool {
        let now = now();
        self.changed < now && now - self.changed > CLOCK_GRANULARITY
    }
}
