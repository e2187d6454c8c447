//! Operations on contents: open, read, write, and what changes the size or the blocks of a file.

use crate::file_maker::{as_caller, as_writer};
use crate::inode_table::Inode;
use crate::names::NewMode;
use crate::open_files::{ContentUse, HeldFile, OpenedDirectory, OpenedFile, sets_id};
use crate::recorded_tree::{Call, RecordedTree};
use backstory_abi::op;
use backstory_callers::Operation;
use backstory_preserve::ChangeKind;
use fuser::{BackingId, Request, WriteFlags};
use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom, Stat};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use std::ffi::OsStr;
use std::fs::File;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};

/// Flags that the kernel has acted on already, or that concern the program's descriptor alone.
///
/// The kernel passes the position of each write: with `O_APPEND`, pages of a mapping would be
/// written to the end. So each write of a program is appended by itself. `O_DIRECT` would demand
/// that buffers of this process are aligned.
const NOT_FOR_US: i32 = libc::O_APPEND | libc::O_DIRECT | libc::O_NOFOLLOW | libc::O_NOCTTY;

fn backing_flags(flags: i32) -> OFlags {
    OFlags::from_bits_retain((flags & !NOT_FOR_US) as u32) | OFlags::CLOEXEC
}

/// An open file that is not in the table yet.
pub(crate) struct FreshFile {
    pub(crate) opened: OpenedFile,
    pub(crate) stat: Stat,
}

impl RecordedTree {
    pub(crate) fn open_file(
        &self,
        request: &Request,
        node: u64,
        flags: i32,
    ) -> Result<OpenedFile, Errno> {
        let inode = self.inodes.get(node)?;
        let slot = self.inodes.descriptors.slot()?;
        let call = self.call(request);
        let (path, before) = (inode.path(), inode.ident());
        if flags & libc::O_ACCMODE == libc::O_RDONLY {
            self.note_read(&inode);
        }
        let preserved = self.preserve_for_open(call, &inode, flags);
        let truncates = flags & libc::O_TRUNC != 0 && request.uid() != 0;
        let opened = as_writer(truncates, || {
            inode.open(backing_flags(flags & !(libc::O_CREAT | libc::O_EXCL)))
        });
        let number = self.numbers.next();
        let operation = Operation {
            arg: flags,
            ident: before,
            ..Operation::on(op::OPEN, &path)
        };
        // An NFS server opens files for its own ends, and for clients whose users it tells later.
        // So the first use of the content tells that a client opened the file.
        let by = (!call.by_nfs || flags & libc::O_TRUNC != 0).then_some(call.caller);
        if by.is_some() || opened.is_err() {
            self.record(call, &operation.returning(&opened, number));
        }
        let file = HeldFile(File::from(opened?), slot);
        let opened = OpenedFile::new(file, inode, number, flags, by);
        if preserved {
            opened.changes.get_or_init(|| ());
        }
        Ok(opened)
    }

    pub(crate) fn create_file(
        &self,
        request: &Request,
        (parent, name): (u64, &OsStr),
        new: NewMode,
        flags: i32,
    ) -> Result<FreshFile, Errno> {
        let (directory, path) = self.parent(parent, name)?;
        let descriptors = &self.inodes.descriptors;
        let (slot, of_inode) = (descriptors.slot()?, descriptors.slot()?);
        let call = self.call(request);
        let made = as_caller(request, new.umask, || {
            let flags = backing_flags(flags) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(new.mode & 0o7777);
            rustix::fs::openat(directory.at(), name, flags, mode)
        });
        let fresh = made.is_ok();
        let opened = match made {
            // Another process made it since the kernel looked.
            Err(Errno::EXIST) if flags & libc::O_EXCL == 0 => {
                self.open_made(call, (&directory, name), flags)
            }
            made => made.and_then(|file| {
                let found = self.inodes.look_up_made(&directory, name, Some(of_inode));
                Ok((file, found?))
            }),
        };
        let number = self.numbers.next();
        let ident = match (&opened, fresh) {
            (Ok((_, (inode, _))), false) => inode.ident(),
            _ => None,
        };
        // The exact knowledge that the file is new: the graph takes it from these flags.
        let exclusive = if fresh { libc::O_EXCL } else { 0 };
        let operation = Operation {
            arg: flags | libc::O_CREAT | exclusive,
            aux: new.mode,
            ident,
            ..Operation::on(op::OPEN, &path)
        };
        match (&opened, fresh) {
            // The file was made, although the program does not get it. The machine's table of open
            // files is full, or another process has removed the name.
            (Err(_), true) => {
                self.record(call, &operation.returning(&Ok::<_, Errno>(()), number));
                self.record(call, &Operation::through(op::CLOSE, number));
            }
            _ => self.record(call, &operation.returning(&opened, number)),
        }
        let (file, (inode, stat)) = opened?;
        let file = HeldFile(File::from(file), slot);
        let opened = OpenedFile::new(file, inode, number, flags, Some(call.caller));
        if fresh {
            opened.changes.get_or_init(|| ());
        }
        Ok(FreshFile { opened, stat })
    }

    fn open_made(
        &self,
        call: Call,
        (directory, name): (&Inode, &OsStr),
        flags: i32,
    ) -> Result<(OwnedFd, (Arc<Inode>, Stat)), Errno> {
        let (inode, stat) = self.inodes.look_up(directory, name)?;
        self.preserve_for_open(call, &inode, flags);
        let opened = inode.open(backing_flags(flags & !libc::O_CREAT));
        match opened {
            Ok(file) => Ok((file, (inode, stat))),
            Err(error) => {
                self.inodes.forget(inode.node(), 1);
                Err(error)
            }
        }
    }

    /// Chooses for a file that was just opened: registers it for reads and writes by the kernel, or
    /// returns `None`. All open files of an inode have the same: the kernel refuses others.
    pub(crate) fn register(
        &self,
        opened: &mut OpenedFile,
        register: impl FnOnce(&File) -> std::io::Result<BackingId>,
    ) -> Option<Arc<BackingId>> {
        if !opened.inode.is(libc::S_IFREG) {
            return None;
        }
        let inode = Arc::clone(&opened.inode);
        let mut access = inode.access.lock().unwrap_or_else(PoisonError::into_inner);
        opened.backing = match access.backing.upgrade() {
            None if access.served == 0 => self.new_backing(opened, register),
            known => known,
        };
        match &opened.backing {
            Some(backing) => access.backing = Arc::downgrade(backing),
            None => {
                access.served += 1;
                opened.served = true;
            }
        }
        opened.backing.clone()
    }

    fn new_backing(
        &self,
        opened: &OpenedFile,
        register: impl FnOnce(&File) -> std::io::Result<BackingId>,
    ) -> Option<Arc<BackingId>> {
        if !self.passthrough.is_tried() {
            return None;
        }
        // The kernel writes with the privileges of the registration, not those of the program.
        if sets_id(&opened.file) {
            return None;
        }
        let registered = as_writer(true, || {
            let registered = register(&opened.file);
            registered.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        });
        match registered {
            Ok(backing) => Some(Arc::new(backing)),
            Err(error) => {
                self.passthrough.refused(error);
                None
            }
        }
    }

    pub(crate) fn read_file(
        &self,
        request: &Request,
        number: u64,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        let opened = self.files.get(number)?;
        let call = self.call(request);
        self.note_read(&opened.inode);
        let mut done = 0;
        // A short answer means the end of the file to the kernel.
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(&opened.file, rest, offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => (),
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        self.used(&opened, call, ContentUse::Read);
        Ok(done)
    }

    pub(crate) fn write_file(
        &self,
        request: &Request,
        number: u64,
        (offset, bytes): (u64, &[u8]),
        (flags, open_flags): (WriteFlags, i32),
    ) -> Result<usize, Errno> {
        let opened = self.files.get(number)?;
        let of_mapping = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let call = (!of_mapping).then(|| self.call(request));
        match call {
            Some(call) => self.about_to_write(&opened, call),
            None => self.preserve_opened(&opened, || self.call_of_mapping(request, &opened)),
        }
        let ordinary = flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        // The file may have grown behind the mount since the kernel chose the position.
        let appends = open_flags & libc::O_APPEND != 0 && !of_mapping;
        let written = as_writer(ordinary, || {
            rustix::io::retry_on_intr(|| match appends {
                true => {
                    let parts = [IoSlice::new(bytes)];
                    pwritev2(&opened.file, &parts, offset, ReadWriteFlags::APPEND)
                }
                false => rustix::io::pwrite(&opened.file, bytes, offset),
            })
        })?;
        match call {
            Some(call) => self.used(&opened, call, ContentUse::Write),
            None => opened.mapped_pages_written(),
        }
        Ok(written)
    }

    pub(crate) fn allocate(
        &self,
        request: &Request,
        number: u64,
        range: (u64, u64),
        mode: i32,
    ) -> Result<(), Errno> {
        let opened = self.files.get(number)?;
        let call = self.call(request);
        self.about_to_write(&opened, call);
        let flags = FallocateFlags::from_bits_retain(mode as u32);
        as_writer(request.uid() != 0, || {
            rustix::fs::fallocate(&opened.file, flags, range.0, range.1)
        })?;
        self.used(&opened, call, ContentUse::Write);
        Ok(())
    }

    pub(crate) fn copy_range(
        &self,
        request: &Request,
        (from, mut from_offset): (u64, u64),
        (to, mut to_offset): (u64, u64),
        length: u64,
    ) -> Result<usize, Errno> {
        let (source, target) = (self.files.get(from)?, self.files.get(to)?);
        let call = self.call(request);
        self.note_read(&source.inode);
        self.about_to_write(&target, call);
        // The answer has 32 bits.
        let length = usize::try_from(length.min(1 << 30)).unwrap_or(1 << 30);
        let copied = as_writer(request.uid() != 0, || {
            rustix::fs::copy_file_range(
                &source.file,
                Some(&mut from_offset),
                &target.file,
                Some(&mut to_offset),
                length,
            )
        })?;
        // The source ends before the range. Nothing of it has reached the target.
        if copied == 0 {
            return Ok(0);
        }
        self.used(&source, call, ContentUse::Read);
        self.used(&target, call, ContentUse::Write);
        let operation = Operation {
            arg: target.number(),
            result: i32::try_from(copied).unwrap_or(i32::MAX),
            ..Operation::through(op::COPY, source.number())
        };
        self.record(call, &operation);
        Ok(copied)
    }

    pub(crate) fn seek(&self, number: u64, offset: i64, whence: i32) -> Result<u64, Errno> {
        let opened = self.files.get(number)?;
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let to = match whence {
            libc::SEEK_DATA => SeekFrom::Data(offset),
            libc::SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        rustix::fs::seek(&opened.file, to)
    }

    pub(crate) fn open_directory(
        &self,
        request: &Request,
        node: u64,
        flags: i32,
    ) -> Result<u64, Errno> {
        let inode = self.inodes.get(node)?;
        let slot = self.inodes.descriptors.slot()?;
        let call = self.call(request);
        let path = inode.path();
        let opened = inode.open(OFlags::RDONLY | OFlags::DIRECTORY);
        let number = self.numbers.next();
        let operation = Operation {
            arg: flags | libc::O_DIRECTORY,
            ..Operation::on(op::OPEN, &path)
        };
        self.record(call, &operation.returning(&opened, number));
        let file = HeldFile(File::from(opened?), slot);
        let opened = OpenedDirectory::new(file, inode, number, call.caller);
        Ok(self.directories.insert(number, Arc::new(opened)))
    }

    /// Records that a file was truncated by its path, or by an open file.
    pub(crate) fn set_size(
        &self,
        call: Call,
        inode: &Inode,
        number: Option<u64>,
        size: u64,
    ) -> Result<(), Errno> {
        if let Some(opened) = number.and_then(|number| self.files.get(number).ok()) {
            self.about_to_write(&opened, call);
            rustix::fs::ftruncate(&opened.file, size)?;
            self.used(&opened, call, ContentUse::Write);
            return Ok(());
        }
        let (path, before) = (inode.path(), inode.ident());
        self.preserve(call, ChangeKind::Part, inode);
        let done = inode
            .open(OFlags::WRONLY | OFlags::NONBLOCK)
            .and_then(|file| rustix::fs::ftruncate(file, size));
        let operation = Operation {
            ident: before,
            ..Operation::on(op::TRUNCATE, &path)
        };
        self.record(call, &operation.with(&done));
        done
    }
}
