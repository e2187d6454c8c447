//! The state of a mounted file system, and what the operations share.
//!
//! An operation is done on the directory behind the mount by descriptors, then recorded, then
//! answered. So a process continues only after its operation is in the arena.
//!
//! Time: an operation has the time at which it began. The caller is identified before that, so the
//! record of a process precedes the records of its operations.

use crate::inode_table::{Inode, InodeTable};
use crate::open_files::{ContentUse, OpenTable, OpenedDirectory, OpenedFile};
use crate::passthrough::Passthrough;
use backstory_abi::op;
use backstory_callers::OpenNumbers;
use backstory_callers::{Caller, CallerTable};
use backstory_callers::{Operation, OperationLog};
use backstory_preserve::SourcePreserver;
use backstory_sys::clock::counter;
use fuser::{Errno as Refusal, FileAttr, Request};
use rustix::fs::Stat;
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the kernel may answer for a directory's name and attributes. Look-ups of directories
/// are not recorded, so that this hides nothing.
const DIRECTORY_KEPT: Duration = Duration::from_secs(1);
/// The same for other files: not at all. Each process's look-up is recorded, and a change behind
/// the mount is visible at once.
const FILE_KEPT: Duration = Duration::ZERO;
/// Most look-ups that are remembered because they were recorded.
const LOOKUPS: usize = 1 << 16;

/// A request: its caller, and when the operation began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) time: u64,
    /// The sender of the request is an NFS server, and the caller its client.
    pub(crate) by_nfs: bool,
}

/// A file system that passes everything through to a directory, and records it.
pub(crate) struct RecordedTree {
    pub(crate) inodes: Arc<InodeTable>,
    pub(crate) files: OpenTable<OpenedFile>,
    pub(crate) directories: OpenTable<OpenedDirectory>,
    pub(crate) numbers: OpenNumbers,
    pub(crate) log: OperationLog,
    /// `None` if the run stores no contents.
    pub(crate) contents: Option<SourcePreserver>,
    callers: Arc<CallerTable>,
    looked: Mutex<HashSet<(u64, u16, Vec<u8>)>>,
    /// The kernel shall read and write without asking, where it can.
    pub(crate) passthrough: Arc<Passthrough>,
}

impl RecordedTree {
    /// A file system over a directory.
    pub(crate) fn new(
        inodes: Arc<InodeTable>,
        log: OperationLog,
        contents: Option<SourcePreserver>,
        callers: Arc<CallerTable>,
        passthrough: Arc<Passthrough>,
    ) -> RecordedTree {
        RecordedTree {
            inodes,
            files: OpenTable::default(),
            directories: OpenTable::default(),
            numbers: OpenNumbers::default(),
            log,
            contents,
            callers,
            looked: Mutex::default(),
            passthrough,
        }
    }

    /// Begins an operation of the request's sender.
    pub(crate) fn call(&self, request: &Request) -> Call {
        let sender = self.callers.identify(request.pid());
        let caller = self.acted_for(request, sender);
        Call {
            caller,
            time: counter(),
            by_nfs: caller != sender,
        }
    }

    /// The call by which pages of a mapping reach a file. The request does not name its process.
    pub(crate) fn call_of_mapping(&self, request: &Request, opened: &OpenedFile) -> Call {
        match opened.last_user() {
            Some(caller) => Call {
                caller,
                time: counter(),
                by_nfs: false,
            },
            None => self.call(request),
        }
    }

    /// The caller that the sender of a request acts for: an NFS server acts for its clients.
    fn acted_for(&self, request: &Request, sender: Caller) -> Caller {
        match self.inodes.is_exported() {
            true => self
                .callers
                .nfs_client(sender, request.uid(), request.gid()),
            false => sender,
        }
    }

    /// Prepares a write to an open file: preserves its content, and records that the caller has the
    /// file open. A process that reads the new data before the write is recorded has this source.
    pub(crate) fn about_to_write(&self, opened: &OpenedFile, call: Call) {
        self.preserve_opened(opened, || call);
        if self.inodes.is_exported() {
            self.callers.nfs_writes(call.caller);
        }
        opened.held_by(&self.log, call.caller);
    }

    /// Records that a caller has used the contents of an open file.
    pub(crate) fn used(&self, opened: &OpenedFile, call: Call, by: ContentUse) {
        opened.used(&self.log, call.caller, by);
        // The record of the read precedes what others make of it.
        if by == ContentUse::Read && self.inodes.is_exported() {
            self.callers.nfs_reads(call.caller);
        }
    }

    /// A program closes one of its descriptors of an open file. During an exec the kernel does
    /// that, and holds the lock of the exec. So no observer looks at the program here.
    pub(crate) fn flush(&self, request: &Request, number: u64) -> Result<(), Errno> {
        let opened = self.files.get(number)?;
        opened.flushed(&self.log, || {
            let sender = self.callers.remembered(request.pid())?;
            Some(self.acted_for(request, sender))
        });
        Ok(())
    }

    /// Records an operation. One on a file whose path is unknown is lost, and the run says so.
    pub(crate) fn record(&self, call: Call, operation: &Operation<'_>) {
        let mut strings = operation.strings.iter().flatten();
        match strings.any(|string| string.is_empty()) {
            true => self.log.lose(),
            false => self.log.operation(call.caller.ids, call.time, operation),
        }
    }

    /// Records a look-up, once for each program and path.
    pub(crate) fn record_lookup(
        &self,
        request: &Request,
        op: u16,
        path: &[u8],
        result: Result<(), Errno>,
    ) {
        let call = self.call(request);
        let new = {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.len() >= LOOKUPS {
                looked.clear();
            }
            let kind = op | u16::from(result.is_err()) << 15;
            looked.insert((call.caller.epoch, kind, path.to_vec()))
        };
        if new {
            let operation = Operation {
                arg: match op {
                    op::STAT => libc::AT_SYMLINK_NOFOLLOW,
                    _ => 0,
                },
                ..Operation::on(op, path)
            };
            self.record(call, &operation.with(&result));
        }
    }

    /// An inode of the request and one of its entries' paths.
    pub(crate) fn parent(&self, node: u64, name: &OsStr) -> Result<(Arc<Inode>, Vec<u8>), Errno> {
        let parent = self.inodes.get(node)?;
        let path = parent.child(name);
        Ok((parent, path))
    }

    /// Closes what is still open, because the mount has ended.
    pub(crate) fn close_all(&self) {
        self.files
            .drain()
            .iter()
            .for_each(|file| file.close(&self.log));
        self.directories
            .drain()
            .iter()
            .for_each(|directory| directory.close(&self.log));
        OperationLog::end_thread();
    }
}

/// An answer about a file: its attributes, and how long the kernel may keep them.
pub(crate) fn answer(stat: &Stat, node: u64) -> (FileAttr, Duration) {
    let kept = match stat.st_mode & libc::S_IFMT {
        libc::S_IFDIR => DIRECTORY_KEPT,
        _ => FILE_KEPT,
    };
    (crate::attributes::attributes(stat, node), kept)
}

/// An error in the terms of the protocol.
pub(crate) fn refusal(error: Errno) -> Refusal {
    Refusal::from_i32(error.raw_os_error())
}
