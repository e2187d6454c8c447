//! Look-ups by handle, which an NFS server makes: of a file itself (`.`), and of a directory's
//! parent (`..`).
//!
//! In: a node id that the kernel may have forgotten. Out: the file, or `ESTALE`.

use crate::inode_table::{Inode, InodeTable, ROOT};
use crate::known_places::{Place, generation};
use crate::names::FoundInode;
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;

/// Deepest directory that a search reaches.
const DEEPEST: usize = 1 << 12;
/// Flags that find a file without opening it.
const FOUND: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn is_directory(stat: &Stat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFDIR
}

fn has_other_names(stat: &Stat) -> bool {
    !is_directory(stat) && stat.st_nlink > 1
}

impl InodeTable {
    /// True if an NFS server can export the mount.
    pub(crate) fn is_exported(&self) -> bool {
        self.places.is_some()
    }

    /// Answers a look-up by handle. `None` if the name is that of an entry.
    pub(crate) fn look_up_by_handle(&self, node: u64, name: &OsStr) -> Option<FoundInode> {
        self.places.as_ref()?;
        match name.as_encoded_bytes() {
            b"." => Some(self.look_up_again(node)),
            b".." => Some(self.parent_of(node)),
            _ => None,
        }
    }

    fn look_up_again(&self, node: u64) -> FoundInode {
        if let Ok(inode) = self.get(node) {
            let stat = inode.stat()?;
            if self.count(node) {
                return Ok((inode, stat));
            }
        }
        let places = self.places.as_ref().ok_or(Errno::STALE)?;
        let (generation, found) = places.of(node).ok_or(Errno::STALE)?;
        let found = found.iter().find_map(|place| {
            let (descriptor, stat) = self.open_at(place)?;
            let same = self.is((node, generation), &descriptor, &stat);
            same.then_some((descriptor, stat))
        });
        let (descriptor, stat) = found.ok_or(Errno::STALE)?;
        let inode = self.admit(descriptor, &stat, None)?;
        let path = inode.path();
        inode.looked_up(|| path, &stat);
        Ok((inode, stat))
    }

    fn is(&self, file: (u64, u32), descriptor: &OwnedFd, stat: &Stat) -> bool {
        let number = (stat.st_dev, stat.st_ino);
        number == (self.device, file.0) && generation(descriptor) == file.1
    }

    fn open_at(&self, place: &Place) -> Option<(OwnedFd, Stat)> {
        let directory = self.open_directory(place.directory)?;
        let descriptor = rustix::fs::openat(directory, &place.name, FOUND, Mode::empty()).ok()?;
        let stat = rustix::fs::statat(&descriptor, "", AtFlags::EMPTY_PATH).ok()?;
        Some((descriptor, stat))
    }

    /// Opens a directory at the place where it was found. Another directory may be there by now.
    fn open_directory(&self, node: u64) -> Option<OwnedFd> {
        let places = self.places.as_ref()?;
        let (mut at, mut names) = (node, Vec::new());
        let known = loop {
            if let Ok(known) = self.get(at) {
                break known;
            }
            let (_, found) = places.of(at)?;
            let place = found.into_iter().next().filter(|_| names.len() < DEEPEST)?;
            names.push(place.name);
            at = place.directory;
        };
        let mut directory = known.at().try_clone_to_owned().ok()?;
        while let Some(name) = names.pop() {
            let flags = FOUND | OFlags::DIRECTORY;
            directory = rustix::fs::openat(&directory, &name, flags, Mode::empty()).ok()?;
        }
        Some(directory)
    }

    /// The directory that has a directory. One that was never looked up can lie outside of the
    /// mounted directory.
    fn parent_of(&self, node: u64) -> FoundInode {
        let inode = self.get(node)?;
        let name = if node == ROOT { "." } else { ".." };
        let descriptor = rustix::fs::openat(inode.at(), name, FOUND, Mode::empty())?;
        let stat = rustix::fs::statat(&descriptor, "", AtFlags::EMPTY_PATH)?;
        let places = self.places.as_ref().ok_or(Errno::STALE)?;
        let was_found = || {
            let known = places.of(stat.st_ino);
            known.is_some_and(|known| self.is((stat.st_ino, known.0), &descriptor, &stat))
        };
        if !self.knows(&stat) && !was_found() {
            return Err(Errno::STALE);
        }
        Ok((self.admit(descriptor, &stat, None)?, stat))
    }

    /// Notes where a file was found.
    pub(crate) fn found(&self, inode: &Inode, directory: &Inode, name: &OsStr, stat: &Stat) {
        if let Some(places) = self.places.as_ref().filter(|_| stat.st_dev == self.device) {
            let file = (inode.node(), inode.generation().0 as u32);
            places.found(file, (directory.node(), name), has_other_names(stat));
        }
    }

    /// Notes the new place of a file that was renamed.
    pub(crate) fn moved(&self, directory: &Inode, name: &OsStr) {
        let Some(places) = &self.places else { return };
        let stat = rustix::fs::statat(directory.at(), name, AtFlags::SYMLINK_NOFOLLOW);
        let Some(stat) = stat.ok().filter(|stat| stat.st_dev == self.device) else {
            return;
        };
        if let Some((generation, _)) = places.of(stat.st_ino) {
            let file = (stat.st_ino, generation);
            places.found(file, (directory.node(), name), has_other_names(&stat));
        }
    }

    /// The file that has this name alone.
    pub(crate) fn sole_name(&self, directory: &Inode, name: &OsStr) -> Option<u64> {
        self.places.as_ref()?;
        let stat = rustix::fs::statat(directory.at(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (stat.st_dev == self.device && !has_other_names(&stat)).then_some(stat.st_ino)
    }

    /// Forgets the place of a file that has lost its last name.
    pub(crate) fn removed(&self, file: Option<u64>) {
        if let (Some(places), Some(file)) = (&self.places, file) {
            places.removed(file);
        }
    }
}
