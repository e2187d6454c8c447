//! The state of a file that shows whether the file was changed or replaced.
//!
//! In: the metadata of a file. Out: an [`InodeState`], which can be stored as a text.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The inode of a file, and its last change. Both are equal only if nothing has changed the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InodeState {
    device: u64,
    inode: u64,
    /// The status-change time in ns.
    changed: i128,
    /// The number of hard links.
    pub links: u64,
}

impl InodeState {
    /// The state of a file.
    pub fn of(found: &Metadata) -> InodeState {
        InodeState {
            device: found.dev(),
            inode: found.ino(),
            changed: i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec()),
            links: found.nlink(),
        }
    }

    /// The state as a text.
    pub fn text(&self) -> Vec<u8> {
        let (device, inode) = self.inode();
        format!("{device} {inode} {} {}", self.changed, self.links).into_bytes()
    }

    /// The state of a text.
    pub fn parse(text: &[u8]) -> Option<InodeState> {
        let mut numbers = std::str::from_utf8(text).ok()?.split(' ');
        Some(InodeState {
            device: numbers.next()?.parse().ok()?,
            inode: numbers.next()?.parse().ok()?,
            changed: numbers.next()?.parse().ok()?,
            // Notes of earlier versions end here.
            links: numbers.next().unwrap_or("1").parse().ok()?,
        })
    }

    /// Device and inode.
    pub fn inode(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// True if both are states of one inode.
    pub fn is_same_inode(&self, other: &InodeState) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}
