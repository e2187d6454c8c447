//! The files that the kernel knows, each with an `O_PATH` descriptor.
//!
//! Invariants:
//!
//! - A file is addressed by its descriptor, never by its path. So no rename and no symbolic link
//!   can lead an operation out of the mounted directory.
//! - While an inode is in the table, its descriptor keeps the file system from using its number for
//!   another file. So the number can serve as the node id.
//! - An inode leaves the table when the kernel has forgotten every look-up of it. Of an exported
//!   mount, the places of its files stay: see [`exported`](crate::exported).

use crate::descriptor_budget::{DescriptorBudget, DescriptorSlot};
use crate::known_places::{KnownPlaces, generation};
use crate::writer_count::WriterCount;
use backstory_files::Ident;
use fuser::{BackingId, Generation};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The node id of the mounted directory.
pub(crate) const ROOT: u64 = 1;
/// Node ids from here on belong to files whose inode numbers are not unique below the mount.
const OTHER_FILE_SYSTEMS: u64 = 1 << 62;
/// The text that `/proc` adds to the path of a file that lost its name.
const DELETED: &[u8] = b" (deleted)";

/// Device and inode number.
type FileKey = (u64, u64);

/// How the open files of an inode are read and written: all by the kernel, or all by requests.
#[derive(Debug, Default)]
pub(crate) struct ContentAccess {
    /// The registration for reads and writes by the kernel, which the open files share.
    pub(crate) backing: Weak<BackingId>,
    /// Open files whose reads and writes are requests.
    pub(crate) served: u32,
}

/// A file that the kernel knows.
#[derive(Debug)]
pub(crate) struct Inode {
    descriptor: OwnedFd,
    key: FileKey,
    node: u64,
    /// Tells the file from others of its number, in an exported mount. 0 elsewhere.
    generation: u32,
    mode: u32,
    /// The name that was looked up last, of a file that has or had several.
    other_name: Mutex<Option<Vec<u8>>>,
    /// The open files that can write to it.
    pub(crate) writers: WriterCount,
    /// How the contents are read and written.
    pub(crate) access: Mutex<ContentAccess>,
    /// That of the descriptor. The mounted directory has none.
    _slot: Option<DescriptorSlot>,
}

impl Inode {
    /// The node id.
    pub(crate) fn node(&self) -> u64 {
        self.node
    }

    /// The generation in handles of the file.
    pub(crate) fn generation(&self) -> Generation {
        Generation(self.generation.into())
    }

    /// Device and inode number.
    pub(crate) fn key(&self) -> FileKey {
        self.key
    }

    /// The `O_PATH` descriptor.
    pub(crate) fn at(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// True for a file of this type (`S_IFDIR` …).
    pub(crate) fn is(&self, kind: u32) -> bool {
        self.mode & libc::S_IFMT == kind
    }

    /// A path in `/proc` that leads to the file itself.
    pub(crate) fn link(&self) -> String {
        format!("/proc/self/fd/{}", self.descriptor.as_raw_fd())
    }

    /// The path of the file in the mounted directory. Of several names, the one that was looked up
    /// last. Of a file without a name, the last one. Empty if it is unknown: it is longer than the
    /// kernel tells (`PATH_MAX`), or `/proc` is missing.
    pub(crate) fn path(&self) -> Vec<u8> {
        let path = std::fs::read_link(self.link()).unwrap_or_default();
        let path = path.into_os_string().into_vec();
        let last = path.strip_suffix(DELETED).map(<[u8]>::to_vec);
        let other = self.other_name().clone();
        if last.is_none() && other.is_none() {
            return path;
        }
        let names = self.stat().map_or(0, |stat| stat.st_nlink);
        match (last, other) {
            (Some(last), _) if names == 0 => last,
            (Some(_), Some(other)) => other,
            (None, Some(other)) if names > 1 => other,
            _ => path,
        }
    }

    fn other_name(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.other_name
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the name by which the file was looked up. The descriptor knows its first name only.
    pub(crate) fn looked_up(&self, path: impl FnOnce() -> Vec<u8>, stat: &Stat) {
        let mut other = self.other_name();
        if !self.is(libc::S_IFDIR) && (stat.st_nlink > 1 || other.is_some()) {
            *other = Some(path());
        }
    }

    /// The path of an entry of this directory. Empty if that of the directory is unknown.
    pub(crate) fn child(&self, name: &OsStr) -> Vec<u8> {
        let mut path = self.path();
        if path.is_empty() {
            return path;
        }
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        path
    }

    /// The attributes.
    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.descriptor, "", AtFlags::EMPTY_PATH)
    }

    /// The identity and the state of the content.
    pub(crate) fn ident(&self) -> Option<Ident> {
        ident(&self.descriptor)
    }

    /// Opens the file. `flags` must not make a file.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = (flags | OFlags::CLOEXEC) - OFlags::NOFOLLOW;
        rustix::fs::open(self.link(), flags, Mode::empty())
    }
}

/// Device and inode number.
pub(crate) fn file_key(stat: &Stat) -> FileKey {
    (stat.st_dev, stat.st_ino)
}

/// The identity of the file behind a descriptor.
pub(crate) fn ident(descriptor: impl AsFd) -> Option<Ident> {
    ident_at(descriptor, OsStr::new(""))
}

/// The identity of a directory's entry. A symbolic link is not followed.
pub(crate) fn ident_at(directory: impl AsFd, name: &OsStr) -> Option<Ident> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = rustix::fs::statx(directory, name, flags, wanted);
    stat.ok().map(|stat| Ident::from(&stat))
}

#[derive(Debug)]
struct KnownInode {
    inode: Arc<Inode>,
    lookups: u64,
}

#[derive(Debug, Default)]
struct InodeIndex {
    by_node: HashMap<u64, KnownInode>,
    by_key: HashMap<FileKey, u64>,
    others: u64,
}

/// The table.
#[derive(Debug)]
pub(crate) struct InodeTable {
    index: Mutex<InodeIndex>,
    pub(crate) device: u64,
    /// The descriptors that this table and open files may have.
    pub(crate) descriptors: Arc<DescriptorBudget>,
    /// The places of all files that were looked up, in an exported mount.
    pub(crate) places: Option<KnownPlaces>,
}

impl InodeTable {
    /// A table of the mounted directory alone.
    pub(crate) fn new(root: OwnedFd, exported: bool) -> Result<InodeTable, Errno> {
        let stat = rustix::fs::fstat(&root)?;
        let key = file_key(&stat);
        let inode = Arc::new(Inode {
            descriptor: root,
            key,
            node: ROOT,
            // The kernel has this one for the root of a mount.
            generation: 0,
            mode: stat.st_mode,
            other_name: Mutex::default(),
            writers: WriterCount::default(),
            access: Mutex::default(),
            _slot: None,
        });
        let mut index = InodeIndex::default();
        index.by_key.insert(key, ROOT);
        let lookups = u64::MAX;
        index.by_node.insert(ROOT, KnownInode { inode, lookups });
        Ok(InodeTable {
            index: Mutex::new(index),
            device: stat.st_dev,
            descriptors: DescriptorBudget::of_process()?,
            places: exported.then(KnownPlaces::default),
        })
    }

    fn index(&self) -> MutexGuard<'_, InodeIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The inode of a node id.
    pub(crate) fn get(&self, node: u64) -> Result<Arc<Inode>, Errno> {
        let index = self.index();
        let known = index.by_node.get(&node).ok_or(Errno::STALE)?;
        Ok(Arc::clone(&known.inode))
    }

    /// Looks up an entry of a directory, and counts the look-up.
    pub(crate) fn look_up(
        &self,
        directory: &Inode,
        name: &OsStr,
    ) -> Result<(Arc<Inode>, Stat), Errno> {
        self.look_up_made(directory, name, None)
    }

    /// The same for an entry that was just made. The slot was taken before that.
    pub(crate) fn look_up_made(
        &self,
        directory: &Inode,
        name: &OsStr,
        slot: Option<DescriptorSlot>,
    ) -> Result<(Arc<Inode>, Stat), Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(&directory.descriptor, name, flags, Mode::empty())?;
        let stat = rustix::fs::statat(&descriptor, "", AtFlags::EMPTY_PATH)?;
        let inode = self.admit(descriptor, &stat, slot)?;
        inode.looked_up(|| directory.child(name), &stat);
        self.found(&inode, directory, name, &stat);
        Ok((inode, stat))
    }

    /// Counts a look-up of an inode that the kernel knows. Returns false if it has forgotten it.
    pub(crate) fn count(&self, node: u64) -> bool {
        match self.index().by_node.get_mut(&node) {
            Some(known) => {
                known.lookups = known.lookups.saturating_add(1);
                true
            }
            None => false,
        }
    }

    /// True if the kernel knows the file.
    pub(crate) fn knows(&self, stat: &Stat) -> bool {
        self.index().by_key.contains_key(&file_key(stat))
    }

    /// The node id of a file that the kernel knows.
    pub(crate) fn node_of(&self, stat: &Stat) -> Option<u64> {
        let index = self.index();
        index.by_key.get(&file_key(stat)).copied()
    }

    /// True if a program may have the file open.
    pub(crate) fn is_open(&self, file: FileKey) -> bool {
        let index = self.index();
        let node = index.by_key.get(&file);
        let known = node.and_then(|node| index.by_node.get(node));
        // An open file has the inode, too.
        known.is_some_and(|known| Arc::strong_count(&known.inode) > 1)
    }

    /// Some files that no program has open. Directories are not among them.
    pub(crate) fn unused(&self, most: usize) -> Vec<Arc<Inode>> {
        let index = self.index();
        let known = index.by_node.values().map(|known| &known.inode);
        let unused = known.filter(|inode| {
            // An open file has the inode, too.
            Arc::strong_count(inode) == 1 && !inode.is(libc::S_IFDIR)
        });
        unused.take(most).map(Arc::clone).collect()
    }

    /// Counts a look-up of the file behind a descriptor. Without a slot, a new file takes one.
    pub(crate) fn admit(
        &self,
        descriptor: OwnedFd,
        stat: &Stat,
        slot: Option<DescriptorSlot>,
    ) -> Result<Arc<Inode>, Errno> {
        let key = file_key(stat);
        let mut index = self.index();
        let node = index.by_key.get(&key).copied();
        if let Some(known) = node.and_then(|node| index.by_node.get_mut(&node)) {
            known.lookups = known.lookups.saturating_add(1);
            return Ok(Arc::clone(&known.inode));
        }
        let slot = slot.map_or_else(|| self.descriptors.slot(), Ok)?;
        let plain = stat.st_dev == self.device && (ROOT + 1..OTHER_FILE_SYSTEMS).contains(&key.1);
        let node = match plain {
            true => key.1,
            false => {
                index.others += 1;
                OTHER_FILE_SYSTEMS + index.others
            }
        };
        let generation = match &self.places {
            Some(_) if plain => generation(&descriptor),
            _ => 0,
        };
        let inode = Arc::new(Inode {
            descriptor,
            key,
            node,
            generation,
            mode: stat.st_mode,
            other_name: Mutex::default(),
            writers: WriterCount::default(),
            access: Mutex::default(),
            _slot: Some(slot),
        });
        let known = KnownInode {
            inode: Arc::clone(&inode),
            lookups: 1,
        };
        index.by_node.insert(node, known);
        index.by_key.insert(key, node);
        Ok(inode)
    }

    /// Takes back look-ups that the kernel forgot.
    pub(crate) fn forget(&self, node: u64, lookups: u64) {
        let gone = self.index().take_back(node, lookups);
        // The index is free: of a removed file, this close frees all pages, which takes
        // milliseconds for a large file.
        drop(gone);
    }
}

impl InodeIndex {
    /// Takes back look-ups of a file. Returns its entry if none is left.
    fn take_back(&mut self, node: u64, lookups: u64) -> Option<KnownInode> {
        let known = self.by_node.get_mut(&node).filter(|_| node != ROOT)?;
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups > 0 {
            return None;
        }
        let gone = self.by_node.remove(&node)?;
        self.by_key.remove(&gone.inode.key);
        Some(gone)
    }
}
