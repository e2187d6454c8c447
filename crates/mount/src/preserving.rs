//! Preserves contents before a request changes them, in a run that stores contents.
//!
//! In: a file that an operation is about to change. Out: the content in the run's directory, and a
//! record of it, before the operation is done.
//!
//! The thread that serves the request copies the content. Its caller waits for that. Other requests
//! are served by other threads meanwhile.
//!
//! Which operation preserves:
//!
//! | operation | when |
//! | --- | --- |
//! | open that empties the file, truncate, unlink, rename onto a file | before it |
//! | write, `fallocate`, `copy_file_range`, change of the size of an open file | the first of each open file |
//! | open for writing, if the kernel may write without asking | before it |

use crate::inode_table::{Inode, file_key};
use crate::open_files::OpenedFile;
use crate::recorded_tree::{Call, RecordedTree};
use backstory_abi::op;
use backstory_callers::Operation;
use backstory_preserve::{ChangeKind, SourcePreserver};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

impl RecordedTree {
    /// Preserves the content of a file that is about to change.
    pub(crate) fn preserve(&self, call: Call, kind: ChangeKind, inode: &Inode) {
        if let Some(contents) = self.contents.as_ref().filter(|_| inode.is(libc::S_IFREG)) {
            self.keep(contents, (call, kind), inode.at(), || inode.path());
        }
    }

    /// Preserves the content of a file that is about to be opened. Returns whether the first change
    /// through the open file needs nothing more.
    pub(crate) fn preserve_for_open(&self, call: Call, inode: &Inode, flags: i32) -> bool {
        let unseen = self.passthrough.is_tried();
        let kind = match flags & libc::O_ACCMODE {
            _ if flags & libc::O_TRUNC != 0 => ChangeKind::Write,
            libc::O_RDWR if unseen => ChangeKind::Update,
            libc::O_WRONLY if unseen => ChangeKind::Part,
            _ => return false,
        };
        self.preserve(call, kind, inode);
        true
    }

    /// Preserves the content of a file before its first change through an open file. Other changes
    /// through it wait until that is done.
    pub(crate) fn preserve_opened(&self, opened: &OpenedFile, call: impl FnOnce() -> Call) {
        if self.contents.is_some() {
            opened.changes.get_or_init(|| {
                self.preserve(call(), ChangeKind::Part, &opened.inode);
            });
        }
    }

    /// Preserves the content of the file that is about to lose this name of a directory.
    pub(crate) fn preserve_entry(&self, call: Call, directory: &Inode, name: &OsStr) {
        let Some(contents) = &self.contents else {
            return;
        };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(directory.at(), name, flags, Mode::empty()) else {
            return;
        };
        // A second name would show in the link count, which programs that have it open can see.
        let kind = match rustix::fs::fstat(&file) {
            Ok(stat) if stat.st_mode & libc::S_IFMT != libc::S_IFREG => return,
            Ok(stat) if !self.inodes.is_open(file_key(&stat)) => ChangeKind::Remove,
            _ => ChangeKind::Write,
        };
        let file: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(&file);
        self.keep(contents, (call, kind), file, || directory.child(name));
    }

    /// Notes that a process reads a file, before it gets the content.
    pub(crate) fn note_read(&self, inode: &Inode) {
        if let Some(contents) = &self.contents {
            let (device, number) = inode.key();
            contents.note_read(device, number);
        }
    }

    fn keep(
        &self,
        contents: &SourcePreserver,
        (call, kind): (Call, ChangeKind),
        file: BorrowedFd<'_>,
        path: impl FnOnce() -> Vec<u8>,
    ) {
        let Some(kept) = contents.preserve(kind, file) else {
            return;
        };
        let path = path();
        let operation = Operation {
            arg: kept.number,
            aux: kept.how,
            result: -kept.error,
            ident: Some(kept.ident),
            ..Operation::on(op::KEPT, &path)
        };
        self.record(call, &operation);
    }
}
