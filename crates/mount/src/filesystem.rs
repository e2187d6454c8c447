//! The operations of the FUSE protocol, each passed to the method that does and records it.
//!
//! Absent on purpose: permission checks (`default_permissions`) and locks, which the kernel does
//! itself. Listings have no attributes, because the kernel would not keep them.

use crate::metadata::NewAttributes;
use crate::names::NewMode;
use crate::recorded_tree::{RecordedTree, answer, refusal};
use crate::replies::{attributes, count, done, entry, flags_beside_backing, open_flags, xattr};
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Most bytes of one write.
const MOST_WRITTEN: u32 = 1 << 20;
/// Most requests of the kernel that no process waits for. One of them is the end of an open file,
/// which must not wait behind others.
const BACKGROUND: u16 = 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Filesystem for RecordedTree {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // The kernel of this protocol's version may lack some: then it does without.
        let _ = config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC);
        let _ = config.add_capabilities(InitFlags::FUSE_DONT_MASK);
        let _ = config.add_capabilities(InitFlags::FUSE_POSIX_ACL);
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let _ = config.add_capabilities(InitFlags::FUSE_AUTO_INVAL_DATA);
        // Without it, the kernel asks for the capabilities of a file before each write.
        let _ = config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2);
        if self.inodes.is_exported() {
            let _ = config.add_capabilities(InitFlags::FUSE_EXPORT_SUPPORT);
        }
        let _ = config.set_max_write(MOST_WRITTEN);
        let _ = config.set_max_background(BACKGROUND);
        if self.passthrough.is_tried() {
            let able = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
            if !able || config.set_max_stack_depth(1).is_err() {
                self.passthrough.lacks_kernel();
            }
        }
        Ok(())
    }

    fn destroy(&mut self) {
        self.close_all();
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.look_up(request, parent.0, name), reply);
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        self.inodes.forget(node.0, lookups);
    }

    fn getattr(&self, request: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(self.attributes(request, node.0), reply);
    }

    fn setattr(
        &self,
        request: &Request,
        node: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let new = NewAttributes {
            mode,
            user,
            group,
            size,
            accessed,
            modified,
        };
        let number = handle.map(|handle| handle.0);
        attributes(self.set_attributes(request, node.0, number, &new), reply);
    }

    fn readlink(&self, request: &Request, node: INodeNo, reply: ReplyData) {
        match self.link_text(request, node.0) {
            Ok(text) => reply.data(&text),
            Err(error) => reply.error(refusal(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let device = crate::attributes::decoded_device(device);
        let new = NewMode { mode, umask };
        entry(
            self.make_node(request, (parent.0, name), new, device),
            reply,
        );
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let new = NewMode { mode, umask };
        entry(self.make_directory(request, (parent.0, name), new), reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(
            self.remove(request, (parent.0, name), AtFlags::empty()),
            reply,
        );
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(
            self.remove(request, (parent.0, name), AtFlags::REMOVEDIR),
            reply,
        );
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        entry(
            self.make_link(request, (parent.0, name), target.as_os_str()),
            reply,
        );
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let renamed = RecordedTree::rename(
            self,
            request,
            (parent.0, name),
            (new_parent.0, new_name),
            flags,
        );
        done(renamed, reply);
    }

    fn link(
        &self,
        request: &Request,
        node: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        entry(self.add_name(request, node.0, (parent.0, name)), reply);
    }

    fn open(&self, request: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let mut opened = match self.open_file(request, node.0, flags.0) {
            Ok(opened) => opened,
            Err(error) => return reply.error(refusal(error)),
        };
        let backing = self.register(&mut opened, |file| reply.open_backing(file));
        let asks_for_writes = flags_beside_backing(&opened);
        let handle = FileHandle(self.files.insert(opened.number(), Arc::new(opened)));
        match backing {
            Some(backing) => reply.opened_passthrough(handle, asks_for_writes, &backing),
            None => reply.opened(handle, open_flags(flags.0)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let new = NewMode { mode, umask };
        let mut fresh = match self.create_file(request, (parent.0, name), new, flags) {
            Ok(fresh) => fresh,
            Err(error) => return reply.error(refusal(error)),
        };
        let backing = self.register(&mut fresh.opened, |file| reply.open_backing(file));
        let inode = &fresh.opened.inode;
        let (attributes, kept) = answer(&fresh.stat, inode.node());
        let generation = inode.generation();
        let number = fresh.opened.number();
        let handle = FileHandle(self.files.insert(number, Arc::new(fresh.opened)));
        let none = FopenFlags::empty();
        match backing {
            Some(id) => {
                reply.created_passthrough(&kept, &attributes, generation, handle, none, &id);
            }
            None => reply.created(&kept, &attributes, generation, handle, open_flags(flags)),
        }
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            let room = &mut buffer[..size as usize];
            match self.read_file(request, handle.0, offset, room) {
                Ok(count) => reply.data(&room[..count]),
                Err(error) => reply.error(refusal(error)),
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let flags = (write_flags, flags.0);
        count(
            self.write_file(request, handle.0, (offset, bytes), flags),
            reply,
        );
    }

    fn flush(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: LockOwner,
        reply: ReplyEmpty,
    ) {
        done(RecordedTree::flush(self, request, handle.0), reply);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        if let Some(opened) = self.files.remove(handle.0) {
            opened.close(&self.log);
        }
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, data: bool, reply: ReplyEmpty) {
        let opened = self.files.get(handle.0);
        done(
            opened.and_then(|opened| synchronize(&opened.file, data)),
            reply,
        );
    }

    fn opendir(&self, request: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_directory(request, node.0, flags.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(refusal(error)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.list_directory(handle.0, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(refusal(error)),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        if let Some(directory) = self.directories.remove(handle.0) {
            directory.close(&self.log);
        }
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, handle: FileHandle, data: bool, reply: ReplyEmpty) {
        let opened = self.directories.get(handle.0);
        done(
            opened.and_then(|opened| synchronize(&opened.file, data)),
            reply,
        );
    }

    fn statfs(&self, _: &Request, node: INodeNo, reply: ReplyStatfs) {
        let inode = self.inodes.get(node.0);
        match inode.and_then(|inode| rustix::fs::fstatvfs(inode.at())) {
            Ok(fs) => reply.statfs(
                fs.f_blocks,
                fs.f_bfree,
                fs.f_bavail,
                fs.f_files,
                fs.f_ffree,
                fs.f_bsize as u32,
                fs.f_namemax as u32,
                fs.f_frsize as u32,
            ),
            Err(error) => reply.error(refusal(error)),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        done(
            self.set_xattr(request, node.0, name, Some(value), flags),
            reply,
        );
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        xattr(self.xattr(node.0, name, room), reply);
    }

    fn listxattr(&self, _: &Request, node: INodeNo, room: u32, reply: ReplyXattr) {
        xattr(self.xattr_names(node.0, room), reply);
    }

    fn removexattr(&self, request: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.set_xattr(request, node.0, name, None, 0), reply);
    }

    fn fallocate(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        done(
            self.allocate(request, handle.0, (offset, length), mode),
            reply,
        );
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.seek(handle.0, offset, whence) {
            Ok(offset) => reply.offset(offset as i64),
            Err(error) => reply.error(refusal(error)),
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        _: INodeNo,
        from: FileHandle,
        from_offset: u64,
        _: INodeNo,
        to: FileHandle,
        to_offset: u64,
        length: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let copied = self.copy_range(request, (from.0, from_offset), (to.0, to_offset), length);
        count(copied, reply);
    }
}

fn synchronize(file: &std::fs::File, data: bool) -> Result<(), Errno> {
    match data {
        true => rustix::fs::fdatasync(file),
        false => rustix::fs::fsync(file),
    }
}
