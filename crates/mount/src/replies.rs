//! Results of operations, as answers of the FUSE protocol.

use crate::metadata::XattrAnswer;
use crate::names::FoundInode;
use crate::open_files::{OpenedFile, sets_id};
use crate::recorded_tree::{answer, refusal};
use fuser::{FopenFlags, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyWrite, ReplyXattr};
use rustix::io::Errno;

/// Answers with a file, and counts a look-up of it.
pub(crate) fn entry(found: FoundInode, reply: ReplyEntry) {
    match found {
        Ok((inode, stat)) => {
            let (attributes, kept) = answer(&stat, inode.node());
            reply.entry(&kept, &attributes, inode.generation());
        }
        Err(error) => reply.error(refusal(error)),
    }
}

/// Answers with the attributes of a file.
pub(crate) fn attributes(found: FoundInode, reply: ReplyAttr) {
    match found {
        Ok((inode, stat)) => {
            let (attributes, kept) = answer(&stat, inode.node());
            reply.attr(&kept, &attributes);
        }
        Err(error) => reply.error(refusal(error)),
    }
}

/// Answers with a result.
pub(crate) fn done(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(refusal(error)),
    }
}

/// Answers with the number of bytes that were written.
pub(crate) fn count(result: Result<usize, Errno>, reply: ReplyWrite) {
    match result {
        Ok(count) => reply.written(count as u32),
        Err(error) => reply.error(refusal(error)),
    }
}

/// Answers with an extended attribute, or its size.
pub(crate) fn xattr(result: Result<XattrAnswer, Errno>, reply: ReplyXattr) {
    match result {
        Ok(XattrAnswer::Size(size)) => reply.size(size),
        Ok(XattrAnswer::Bytes(bytes)) => reply.data(&bytes),
        Err(error) => reply.error(refusal(error)),
    }
}

/// The kernel's cache is bypassed where the program asked for that.
pub(crate) fn open_flags(flags: i32) -> FopenFlags {
    match flags & libc::O_DIRECT {
        0 => FopenFlags::empty(),
        _ => FopenFlags::FOPEN_DIRECT_IO,
    }
}

/// The flags of an open file whose inode the kernel reads and writes by itself.
///
/// The kernel writes with privileges that clear a set-user-ID bit, also if root writes. A file can
/// have got the bit while it was open. Then this open file cannot be excluded from the others'
/// registration, but `FOPEN_DIRECT_IO` takes precedence: its reads and writes are requests.
/// It has no shared mapping (`fuse_file_mmap` of Linux 6.9).
pub(crate) fn flags_beside_backing(opened: &OpenedFile) -> FopenFlags {
    match opened.writes() && sets_id(&opened.file) {
        true => FopenFlags::FOPEN_DIRECT_IO,
        false => FopenFlags::empty(),
    }
}
