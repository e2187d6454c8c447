//! A file system in memory (FUSE) that lists everything it is asked to store.
//!
//! It has two directories, `log` and `data`, which stand for two disks. In: requests of the kernel.
//! Out: [`DiskOp`]s, in the order in which they arrived.

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The inode of the root.
const ROOT: u64 = 1;
/// The inode of the directory for logs.
pub const LOG: u64 = 2;
/// The inode of the directory for data.
pub const DATA: u64 = 3;
/// The kernel keeps nothing: each request arrives here.
const KEPT: Duration = Duration::ZERO;

/// An operation of the disk.
#[derive(Debug, Clone)]
pub enum DiskOp {
    /// A new file or directory.
    Make {
        parent: u64,
        name: OsString,
        inode: u64,
        directory: bool,
    },
    Remove {
        parent: u64,
        name: OsString,
    },
    Rename {
        from: (u64, OsString),
        to: (u64, OsString),
    },
    Resize {
        inode: u64,
        size: u64,
    },
    Write {
        inode: u64,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// All writes to the file before this operation become durable from now on. With `names`, so
    /// do all changes of names and sizes on its disk: one journal has them.
    BarrierBegins {
        inode: u64,
        names: bool,
    },
    /// The barrier that began at this operation is over.
    BarrierEnds {
        begun: usize,
    },
}

/// An operation, its disk and its time.
#[derive(Debug, Clone)]
pub struct ListedOp {
    pub op: DiskOp,
    /// [`LOG`] or [`DATA`].
    pub disk: u64,
    /// In ns since 1970.
    pub time: i64,
}

struct Node {
    disk: u64,
    entries: Option<BTreeMap<OsString, u64>>,
    bytes: Vec<u8>,
    mode: u16,
    changed: SystemTime,
}

#[derive(Default)]
struct DiskState {
    nodes: HashMap<u64, Node>,
    last: u64,
    ops: Vec<ListedOp>,
    /// While the log's disk hangs: its flushes, which wait for an answer.
    hanging: Option<Vec<ReplyEmpty>>,
}

/// The file system. Its clones are the same file system.
#[derive(Clone, Default)]
pub struct JournalDisk(Arc<Mutex<DiskState>>);

type Answer<T> = Result<T, Errno>;

impl DiskState {
    fn node(&mut self, inode: u64) -> Answer<&mut Node> {
        self.nodes.get_mut(&inode).ok_or(Errno::ENOENT)
    }

    fn entries(&mut self, inode: u64) -> Answer<&mut BTreeMap<OsString, u64>> {
        self.node(inode)?.entries.as_mut().ok_or(Errno::ENOTDIR)
    }

    fn find(&mut self, parent: u64, name: &OsStr) -> Answer<u64> {
        self.entries(parent)?
            .get(name)
            .copied()
            .ok_or(Errno::ENOENT)
    }

    fn list(&mut self, disk: u64, op: DiskOp) -> usize {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let time = time.as_nanos() as i64;
        self.ops.push(ListedOp { op, disk, time });
        self.ops.len() - 1
    }

    fn make(&mut self, parent: u64, name: &OsStr, mode: u32, directory: bool) -> Answer<u64> {
        if self.find(parent, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        self.last += 1;
        let inode = self.last;
        let disk = match parent {
            ROOT => inode,
            _ => self.node(parent)?.disk,
        };
        let node = Node {
            disk,
            entries: directory.then(BTreeMap::new),
            bytes: Vec::new(),
            mode: (mode & 0o7777) as u16,
            changed: SystemTime::now(),
        };
        self.nodes.insert(inode, node);
        self.entries(parent)?.insert(name.to_owned(), inode);
        let name = name.to_owned();
        let op = DiskOp::Make {
            parent,
            name,
            inode,
            directory,
        };
        self.list(disk, op);
        Ok(inode)
    }

    fn barrier(&mut self, inode: u64, names: bool, during: impl FnOnce(&mut DiskState)) {
        let disk = self.nodes[&inode].disk;
        let begun = self.list(disk, DiskOp::BarrierBegins { inode, names });
        during(self);
        self.list(disk, DiskOp::BarrierEnds { begun });
    }

    fn resize(&mut self, inode: u64, size: u64) -> Answer<()> {
        let node = self.node(inode)?;
        node.bytes.resize(size as usize, 0);
        node.changed = SystemTime::now();
        let disk = node.disk;
        self.list(disk, DiskOp::Resize { inode, size });
        Ok(())
    }

    fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> Answer<()> {
        let node = self.node(inode)?;
        put(&mut node.bytes, offset as usize, bytes);
        node.changed = SystemTime::now();
        let disk = node.disk;
        let bytes = bytes.to_vec();
        let op = DiskOp::Write {
            inode,
            offset,
            bytes,
        };
        self.list(disk, op);
        Ok(())
    }

    fn remove(&mut self, parent: u64, name: &OsStr) -> Answer<()> {
        let inode = self.entries(parent)?.remove(name).ok_or(Errno::ENOENT)?;
        let disk = self.node(inode)?.disk;
        let name = name.to_owned();
        self.list(disk, DiskOp::Remove { parent, name });
        Ok(())
    }

    fn rename(&mut self, from: (u64, OsString), to: (u64, OsString)) -> Answer<()> {
        let inode = self.find(from.0, &from.1)?;
        let disk = self.node(inode)?.disk;
        let op = DiskOp::Rename {
            from: from.clone(),
            to: to.clone(),
        };
        let replaces = self.find(to.0, &to.1).is_ok();
        self.entries(from.0)?.remove(&from.1);
        self.entries(to.0)?.insert(to.1, inode);
        match replaces {
            // As ext4 does (`auto_da_alloc`): the new file's data is written back.
            true => self.barrier(inode, false, |disk_state| {
                disk_state.list(disk, op);
            }),
            false => {
                self.list(disk, op);
            }
        }
        Ok(())
    }

    fn attributes(&mut self, inode: u64) -> Answer<FileAttr> {
        let node = self.node(inode)?;
        let size = node.bytes.len() as u64;
        let (kind, nlink) = match node.entries {
            Some(_) => (FileType::Directory, 2),
            None => (FileType::RegularFile, 1),
        };
        Ok(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size.div_ceil(512),
            atime: node.changed,
            mtime: node.changed,
            ctime: node.changed,
            crtime: UNIX_EPOCH,
            kind,
            perm: node.mode,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

/// Writes bytes into a file's content. A hole before them is zero.
pub fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

impl JournalDisk {
    /// An empty file system with its two directories.
    pub fn new() -> JournalDisk {
        let disk = JournalDisk::default();
        {
            let mut state = disk.state();
            state.last = ROOT;
            let root = Node {
                disk: ROOT,
                entries: Some(BTreeMap::new()),
                bytes: Vec::new(),
                mode: 0o755,
                changed: SystemTime::now(),
            };
            state.nodes.insert(ROOT, root);
            for (name, inode) in [("log", LOG), ("data", DATA)] {
                let made = state.make(ROOT, OsStr::new(name), 0o755, true);
                assert_eq!(made.ok(), Some(inode));
            }
        }
        disk
    }

    /// The operations so far.
    pub fn ops(&self) -> Vec<ListedOp> {
        self.state().ops.clone()
    }

    /// From now on, a flush of a file on the log's disk does not return.
    pub fn hang(&self) {
        self.state().hanging = Some(Vec::new());
    }

    /// Ends the hang.
    pub fn go_on(&self) {
        let hanging = self.state().hanging.take();
        hanging.into_iter().flatten().for_each(ReplyEmpty::ok);
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap()
    }

    fn entry(&self, inode: Answer<u64>, reply: ReplyEntry) {
        let found = inode.and_then(|inode| self.state().attributes(inode));
        match found {
            Ok(attributes) => reply.entry(&KEPT, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }
}

fn done(result: Answer<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for JournalDisk {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.state().find(parent.0, name);
        self.entry(found, reply);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let found = self.state().attributes(inode.0);
        match found {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.state();
        if let (Some(mode), Ok(node)) = (mode, state.node(inode.0)) {
            node.mode = (mode & 0o7777) as u16;
        }
        let resized = size.map_or(Ok(()), |size| state.resize(inode.0, size));
        match resized.and_then(|()| state.attributes(inode.0)) {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let made = self.state().make(parent.0, name, mode, true);
        self.entry(made, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.state().remove(parent.0, name), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (
            (parent.0, name.to_owned()),
            (new_parent.0, new_name.to_owned()),
        );
        done(
            match flags.is_empty() {
                true => self.state().rename(from, to),
                false => Err(Errno::EINVAL),
            },
            reply,
        );
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let mut state = self.state();
        let made = state.make(parent.0, name, mode, false);
        match made.and_then(|inode| state.attributes(inode)) {
            Ok(attributes) => {
                let (handle, flags) = (FileHandle(0), FopenFlags::empty());
                reply.created(&KEPT, &attributes, Generation(0), handle, flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut state = self.state();
        match state.node(inode.0) {
            Ok(node) => {
                let start = node.bytes.len().min(offset as usize);
                let end = node.bytes.len().min(start + size as usize);
                reply.data(&node.bytes[start..end]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.state();
        let written = state.write(inode.0, offset, bytes);
        if written.is_ok() && flags.0 & libc::O_DSYNC != 0 {
            state.barrier(inode.0, true, |_| ());
        }
        match written {
            Ok(()) => reply.written(bytes.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut state = self.state();
        state.barrier(inode.0, true, |_| ());
        let of_log = state.nodes[&inode.0].disk == LOG;
        match state.hanging.as_mut().filter(|_| of_log) {
            Some(hanging) => hanging.push(reply),
            None => reply.ok(),
        }
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.state().barrier(inode.0, true, |_| ());
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut state = self.state();
        let entries: Vec<(OsString, u64)> = match state.entries(inode.0) {
            Ok(entries) => entries.iter().map(|(n, i)| (n.clone(), *i)).collect(),
            Err(error) => return reply.error(error),
        };
        for (at, (name, inode)) in entries.iter().enumerate().skip(offset as usize) {
            let directory = state.nodes[inode].entries.is_some();
            let kind = match directory {
                true => FileType::Directory,
                false => FileType::RegularFile,
            };
            if reply.add(INodeNo(*inode), at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
