//! Operations on names: make, remove, link, rename.

use crate::file_maker::as_caller;
use crate::inode_table::{Inode, ident_at};
use crate::recorded_tree::{Call, RecordedTree};
use backstory_abi::op;
use backstory_callers::Operation;
use fuser::Request;
use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// A file that an operation found or made.
pub(crate) type FoundInode = Result<(Arc<Inode>, Stat), Errno>;

/// The mode and umask of a file that is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewMode {
    pub(crate) mode: u32,
    pub(crate) umask: u32,
}

impl RecordedTree {
    pub(crate) fn look_up(&self, request: &Request, parent: u64, name: &OsStr) -> FoundInode {
        if let Some(found) = self.inodes.look_up_by_handle(parent, name) {
            return found;
        }
        let directory = self.inodes.get(parent)?;
        let found = self.inodes.look_up(&directory, name);
        if let Err(Errno::NOENT) = found {
            let path = directory.child(name);
            self.record_lookup(request, op::STAT, &path, Err(Errno::NOENT));
        }
        found
    }

    pub(crate) fn make_node(
        &self,
        request: &Request,
        (parent, name): (u64, &OsStr),
        new: NewMode,
        device: u64,
    ) -> FoundInode {
        let (directory, path) = self.parent(parent, name)?;
        let slot = self.inodes.descriptors.slot()?;
        let call = self.call(request);
        let made = as_caller(request, new.umask, || {
            let kind = FileType::from_raw_mode(new.mode);
            let mode = Mode::from_raw_mode(new.mode & 0o7777);
            rustix::fs::mknodat(directory.at(), name, kind, mode, device)
        });
        let operation = Operation {
            aux: new.mode,
            ..Operation::on(op::MKNOD, &path)
        };
        self.record(call, &operation.with(&made));
        made?;
        self.inodes.look_up_made(&directory, name, Some(slot))
    }

    pub(crate) fn make_directory(
        &self,
        request: &Request,
        (parent, name): (u64, &OsStr),
        new: NewMode,
    ) -> FoundInode {
        let (directory, path) = self.parent(parent, name)?;
        let slot = self.inodes.descriptors.slot()?;
        let call = self.call(request);
        let made = as_caller(request, new.umask, || {
            rustix::fs::mkdirat(directory.at(), name, Mode::from_raw_mode(new.mode & 0o7777))
        });
        let operation = Operation {
            aux: new.mode,
            ..Operation::on(op::MKDIR, &path)
        };
        self.record(call, &operation.with(&made));
        made?;
        self.inodes.look_up_made(&directory, name, Some(slot))
    }

    pub(crate) fn make_link(
        &self,
        request: &Request,
        (parent, name): (u64, &OsStr),
        text: &OsStr,
    ) -> FoundInode {
        let (directory, path) = self.parent(parent, name)?;
        let slot = self.inodes.descriptors.slot()?;
        let call = self.call(request);
        let made = as_caller(request, 0, || {
            rustix::fs::symlinkat(text, directory.at(), name)
        });
        let operation = Operation {
            op: op::SYMLINK,
            fd: libc::AT_FDCWD,
            strings: [Some(text.as_bytes()), Some(&path)],
            ..Operation::default()
        };
        self.record(call, &operation.with(&made));
        made?;
        self.inodes.look_up_made(&directory, name, Some(slot))
    }

    /// A hard link.
    pub(crate) fn add_name(
        &self,
        request: &Request,
        node: u64,
        (parent, name): (u64, &OsStr),
    ) -> FoundInode {
        let inode = self.inodes.get(node)?;
        let (directory, path) = self.parent(parent, name)?;
        let slot = self.inodes.descriptors.slot()?;
        let call = self.call(request);
        let (old, ident) = (inode.path(), inode.ident());
        let follow = AtFlags::SYMLINK_FOLLOW;
        let made = rustix::fs::linkat(CWD, inode.link(), directory.at(), name, follow);
        let operation = Operation {
            ident,
            ..Operation::between(op::LINK, &old, &path)
        };
        self.record(call, &operation.with(&made));
        made?;
        self.inodes.look_up_made(&directory, name, Some(slot))
    }

    pub(crate) fn remove(
        &self,
        request: &Request,
        (parent, name): (u64, &OsStr),
        flags: AtFlags,
    ) -> Result<(), Errno> {
        let (directory, path) = self.parent(parent, name)?;
        let call = self.call(request);
        let ident = ident_at(directory.at(), name);
        self.record_link_text(call, &directory, name, &path);
        let sole = self.inodes.sole_name(&directory, name);
        if !flags.contains(AtFlags::REMOVEDIR) {
            self.preserve_entry(call, &directory, name);
        }
        let removed = rustix::fs::unlinkat(directory.at(), name, flags);
        self.inodes.removed(sole.filter(|_| removed.is_ok()));
        let operation = Operation {
            arg: match flags.contains(AtFlags::REMOVEDIR) {
                true => libc::AT_REMOVEDIR,
                false => 0,
            },
            ident,
            ..Operation::on(op::UNLINK, &path)
        };
        self.record(call, &operation.with(&removed));
        removed
    }

    pub(crate) fn rename(
        &self,
        request: &Request,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let (from, old) = self.parent(parent, name)?;
        let (to, new) = self.parent(new_parent, new_name)?;
        let call = self.call(request);
        let ident = ident_at(to.at(), new_name);
        self.record_link_text(call, &to, new_name, &new);
        let replaced = self.inodes.sole_name(&to, new_name);
        if !flags.intersects(RenameFlags::EXCHANGE | RenameFlags::NOREPLACE) {
            self.preserve_entry(call, &to, new_name);
        }
        let renamed = rustix::fs::renameat_with(from.at(), name, to.at(), new_name, flags);
        if renamed.is_ok() {
            match flags.contains(RenameFlags::EXCHANGE) {
                true => self.inodes.moved(&from, name),
                false => self.inodes.removed(replaced),
            }
            self.inodes.moved(&to, new_name);
        }
        let operation = Operation {
            aux: flags.bits(),
            ident,
            ..Operation::between(op::RENAME, &old, &new)
        };
        self.record(call, &operation.with(&renamed));
        renamed
    }

    /// Records the text of a symbolic link that the next operation removes.
    fn record_link_text(&self, call: Call, directory: &Inode, name: &OsStr, path: &[u8]) {
        if let Ok(text) = rustix::fs::readlinkat(directory.at(), name, Vec::new()) {
            let operation = Operation {
                op: op::LINK_TEXT,
                fd: libc::AT_FDCWD,
                strings: [Some(path), Some(text.as_bytes())],
                ..Operation::default()
            };
            self.record(call, &operation);
        }
    }
}
