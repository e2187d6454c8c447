//! Listings of directories.

use crate::attributes::kind;
use crate::recorded_tree::RecordedTree;
use fuser::{FileType, INodeNo, ReplyDirectory};
use rustix::fs::{RawDir, SeekFrom};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;

/// Bytes of entries that are taken from the directory at a time.
const PIECE: usize = 32 << 10;

impl RecordedTree {
    /// Adds the entries after a position that an earlier entry gave, as many as there is room for.
    pub(crate) fn list_directory(
        &self,
        number: u64,
        offset: u64,
        reply: &mut ReplyDirectory,
    ) -> Result<(), Errno> {
        let opened = self.directories.get(number)?;
        let _position = opened.list(&self.log);
        rustix::fs::seek(&opened.file, SeekFrom::Start(offset))?;
        let mut room = vec![MaybeUninit::uninit(); PIECE];
        let mut entries = RawDir::new(&opened.file, &mut room);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let node = match name.as_bytes() {
                b"." => opened.inode.node(),
                _ => entry.ino(),
            };
            let kind = file_type(entry.file_type());
            if reply.add(INodeNo(node), entry.next_entry_cookie(), kind, name) {
                break;
            }
        }
        Ok(())
    }
}

/// The type of an entry. A file system that does not say it is asked later, by a look-up.
fn file_type(given: rustix::fs::FileType) -> FileType {
    match given {
        rustix::fs::FileType::Unknown => FileType::RegularFile,
        known => kind(known.as_raw_mode()),
    }
}
