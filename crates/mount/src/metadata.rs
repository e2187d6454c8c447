//! Operations on attributes: mode, owner, times, size, extended attributes.

use crate::attributes::requested_timespec;
use crate::file_maker::as_writer;
use crate::inode_table::Inode;
use crate::recorded_tree::{Call, RecordedTree};
use backstory_abi::{META_ATTR, META_MODE, META_OWNER, META_TIMES, op};
use backstory_callers::Operation;
use fuser::{Request, TimeOrNow};
use rustix::fs::{AtFlags, CWD, Gid, Mode, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};
use rustix::fs::{XattrFlags, chmodat, chownat, utimensat};
use rustix::fs::{getxattr, getxattr_query, listxattr, listxattr_query};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::sync::Arc;

/// Longest value, and longest list of names, that the kernel takes.
const LONGEST: u32 = 1 << 16;

/// The attributes that a request sets.
#[derive(Debug, Default)]
pub(crate) struct NewAttributes {
    pub(crate) mode: Option<u32>,
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<TimeOrNow>,
    pub(crate) modified: Option<TimeOrNow>,
}

impl NewAttributes {
    /// True for `chown` with -1 and -1, which names no new owner. It sets the time of the status
    /// change, and clears the set-user-ID bit.
    fn is_empty(&self) -> bool {
        let has_time = self.accessed.is_some() || self.modified.is_some();
        let has_owner = self.user.is_some() || self.group.is_some();
        !has_time && !has_owner && self.mode.is_none() && self.size.is_none()
    }
}

/// An answer to a request for an extended attribute, or for their names.
pub(crate) enum XattrAnswer {
    /// The number of bytes, because the request had no room.
    Size(u32),
    /// The bytes.
    Bytes(Vec<u8>),
}

impl RecordedTree {
    pub(crate) fn attributes(
        &self,
        request: &Request,
        node: u64,
    ) -> Result<(Arc<Inode>, Stat), Errno> {
        let inode = self.inodes.get(node)?;
        let stat = inode.stat()?;
        // The kernel asks for the attributes of each directory on a path: no look-up of a program.
        if !inode.is(libc::S_IFDIR) && request.pid() != 0 {
            self.record_lookup(request, op::STAT, &inode.path(), Ok(()));
        }
        Ok((inode, stat))
    }

    pub(crate) fn set_attributes(
        &self,
        request: &Request,
        node: u64,
        number: Option<u64>,
        new: &NewAttributes,
    ) -> Result<(Arc<Inode>, Stat), Errno> {
        let inode = self.inodes.get(node)?;
        let call = self.call(request);
        if let Some(mode) = new.mode {
            let done = set_mode(&inode, mode);
            self.record_change(call, &inode, META_MODE, done)?;
        }
        if new.user.is_some() || new.group.is_some() || new.is_empty() {
            let (user, group) = (new.user.map(Uid::from_raw), new.group.map(Gid::from_raw));
            let done = as_writer(request.uid() != 0, || {
                chownat(inode.at(), "", user, group, AtFlags::EMPTY_PATH)
            });
            self.record_change(call, &inode, META_OWNER, done)?;
        }
        if let Some(size) = new.size {
            as_writer(request.uid() != 0, || {
                self.set_size(call, &inode, number, size)
            })?;
        }
        if new.accessed.is_some() || new.modified.is_some() {
            let times = Timestamps {
                last_access: time(new.accessed),
                last_modification: time(new.modified),
            };
            let done = utimensat(inode.at(), "", &times, AtFlags::EMPTY_PATH);
            self.record_change(call, &inode, META_TIMES, done)?;
        }
        let stat = inode.stat()?;
        Ok((inode, stat))
    }

    fn record_change(
        &self,
        call: Call,
        inode: &Inode,
        what: i32,
        done: Result<(), Errno>,
    ) -> Result<(), Errno> {
        let path = inode.path();
        let operation = Operation {
            arg: what,
            aux: libc::AT_SYMLINK_NOFOLLOW as u32,
            ..Operation::on(op::META, &path)
        };
        self.record(call, &operation.with(&done));
        done
    }

    pub(crate) fn link_text(&self, request: &Request, node: u64) -> Result<Vec<u8>, Errno> {
        let inode = self.inodes.get(node)?;
        let text = rustix::fs::readlinkat(inode.at(), "", Vec::new())?;
        self.record_lookup(request, op::READLINK, &inode.path(), Ok(()));
        Ok(text.into_bytes())
    }

    pub(crate) fn set_xattr(
        &self,
        request: &Request,
        node: u64,
        name: &OsStr,
        value: Option<&[u8]>,
        flags: i32,
    ) -> Result<(), Errno> {
        let inode = self.inodes.get(node)?;
        let call = self.call(request);
        let done = match value {
            Some(value) => {
                let flags = XattrFlags::from_bits_retain(flags as u32);
                rustix::fs::setxattr(inode.link(), name, value, flags)
            }
            None => rustix::fs::removexattr(inode.link(), name),
        };
        self.record_change(call, &inode, META_ATTR, done)
    }

    pub(crate) fn xattr(&self, node: u64, name: &OsStr, room: u32) -> Result<XattrAnswer, Errno> {
        let inode = self.inodes.get(node)?;
        let size = || getxattr_query(inode.link(), name);
        xattr_answer(room, size, |bytes| getxattr(inode.link(), name, bytes))
    }

    pub(crate) fn xattr_names(&self, node: u64, room: u32) -> Result<XattrAnswer, Errno> {
        let inode = self.inodes.get(node)?;
        let size = || listxattr_query(inode.link());
        xattr_answer(room, size, |names| listxattr(inode.link(), names))
    }
}

/// The answer to a caller with room for this many bytes. Without room it asks for the size, which
/// `rustix` does not tell to a reader without room.
fn xattr_answer(
    room: u32,
    size: impl FnOnce() -> Result<usize, Errno>,
    read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
) -> Result<XattrAnswer, Errno> {
    if room == 0 {
        return Ok(XattrAnswer::Size(size()? as u32));
    }
    let mut bytes = vec![0; room.min(LONGEST) as usize];
    let length = read(&mut bytes)?;
    bytes.truncate(length);
    Ok(XattrAnswer::Bytes(bytes))
}

/// The mode of a symbolic link cannot be set, as in the directory itself.
fn set_mode(inode: &Inode, mode: u32) -> Result<(), Errno> {
    if inode.is(libc::S_IFLNK) {
        return Err(Errno::OPNOTSUPP);
    }
    let mode = Mode::from_raw_mode(mode & 0o7777);
    chmodat(CWD, inode.link(), mode, AtFlags::empty())
}

fn time(new: Option<TimeOrNow>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match new {
        Some(TimeOrNow::SpecificTime(time)) => requested_timespec(time),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        None => special(UTIME_OMIT),
    }
}
