//! The paths of files that notifications name by handles.
//!
//! In: handles, and the names that notifications tell. Out: absolute paths, as seen through one
//! mount of the file system.
//!
//! Invariant: the path of a known directory follows the notifications that were taken so far. Its
//! removal does not change it. A directory that is met for the first time has its present path.

use backstory_files::Ident;
use backstory_sys::{DirectoryEntry, FileHandle};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, statx};
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Most directories that are known. Others are looked up again.
const KNOWN: usize = 1 << 18;
/// Most directories above another one.
const DEPTH: usize = 1024;

/// The place of a directory.
#[derive(Debug)]
enum Place {
    /// The root of the mount.
    Root,
    /// An entry of another directory.
    Below(DirectoryEntry),
}

/// A file, as it is now.
#[derive(Debug)]
pub(crate) struct PresentFile {
    descriptor: OwnedFd,
    /// Its identity and the state of its content.
    pub(crate) ident: Ident,
}

impl PresentFile {
    /// The text of a symbolic link.
    pub(crate) fn link_text(&self) -> Option<Vec<u8>> {
        let text = rustix::fs::readlinkat(&self.descriptor, c"", Vec::new());
        text.ok().map(CString::into_bytes)
    }

    /// Whether the file is a script that names its interpreter.
    pub(crate) fn is_script(&self) -> bool {
        let link = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        let mut start = [0; 2];
        let read = File::open(link).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *b"#!"
    }
}

/// The directories of a file system.
#[derive(Debug)]
pub(crate) struct DirectoryTable {
    mount: OwnedFd,
    root: Vec<u8>,
    known: HashMap<FileHandle, Place>,
}

fn mount_id(path: &Path) -> Option<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let found = statx(CWD, path, flags, StatxFlags::MNT_ID).ok()?;
    Some(found.stx_mnt_id)
}

/// The mount point above a directory.
fn mount_root(directory: &Path) -> &Path {
    let own = mount_id(directory);
    let same = |path: &&Path| mount_id(path) == own;
    let above = directory.ancestors().take_while(same);
    above.last().unwrap_or(directory)
}

impl DirectoryTable {
    /// A table for the file system of this directory. The path has no symbolic links.
    pub(crate) fn new(directory: &Path) -> io::Result<DirectoryTable> {
        let root = mount_root(directory);
        // open_by_handle_at(2) takes no descriptor that was opened with `O_PATH`.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mount = rustix::fs::open(root, flags, Mode::empty())?;
        let root = root.as_os_str().as_bytes().to_vec();
        let top = FileHandle::of(mount.as_fd(), c".")?;
        let known = HashMap::from([(top, Place::Root)]);
        Ok(DirectoryTable { mount, root, known })
    }

    /// The path of an entry. `None` if its directory is gone, or outside of the mount.
    pub(crate) fn path(&mut self, entry: &DirectoryEntry) -> Option<Vec<u8>> {
        let mut names = vec![entry.name.clone()];
        let mut directory = entry.directory.clone();
        for _ in 0..DEPTH {
            match self.known.get(&directory) {
                Some(Place::Root) => return Some(self.joined(&names)),
                Some(Place::Below(above)) => {
                    names.push(above.name.clone());
                    directory = above.directory.clone();
                }
                None => self.look_up(&directory)?,
            }
        }
        None
    }

    /// The path with these names, the last one first.
    fn joined(&self, names: &[Vec<u8>]) -> Vec<u8> {
        let mut path = match &self.root[..] {
            b"/" => Vec::new(),
            root => root.to_vec(),
        };
        for name in names.iter().rev().filter(|name| name[..] != b"."[..]) {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        match path.is_empty() {
            true => b"/".to_vec(),
            false => path,
        }
    }

    /// Finds the present place of a directory.
    fn look_up(&mut self, directory: &FileHandle) -> Option<()> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let opened = directory.open(self.mount.as_fd(), flags).ok()?;
        let path = path_of(&opened)?;
        let below = path
            .strip_prefix(&self.root[..])
            .filter(|_| path != self.root)?;
        let name = below.rsplit(|byte| *byte == b'/').next()?.to_vec();
        let above = FileHandle::of(opened.as_fd(), c"..").ok()?;
        self.place(directory.clone(), above, name);
        Some(())
    }

    fn place(&mut self, directory: FileHandle, above: FileHandle, name: Vec<u8>) {
        if self.known.len() >= KNOWN {
            self.known.retain(|_, place| matches!(place, Place::Root));
        }
        let entry = DirectoryEntry {
            directory: above,
            name,
        };
        self.known.insert(directory, Place::Below(entry));
    }

    /// Takes the place of a directory that is known to have been there.
    pub(crate) fn was_at(&mut self, directory: &FileHandle, entry: &DirectoryEntry) {
        if !self.known.contains_key(directory) {
            self.now_at(directory, entry);
        }
    }

    /// Takes the new place of a directory.
    pub(crate) fn now_at(&mut self, directory: &FileHandle, entry: &DirectoryEntry) {
        self.place(
            directory.clone(),
            entry.directory.clone(),
            entry.name.clone(),
        );
    }

    /// Forgets all places, because notifications were lost.
    pub(crate) fn forget(&mut self) {
        self.known.retain(|_, place| matches!(place, Place::Root));
    }

    /// The file as it is now. `None` if it has been removed.
    pub(crate) fn present(&self, file: &FileHandle) -> Option<PresentFile> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let descriptor = file.open(self.mount.as_fd(), flags).ok()?;
        let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let ident = Ident::from(&statx(&descriptor, c"", flags, wanted).ok()?);
        Some(PresentFile { descriptor, ident })
    }
}

/// The path of an open directory that still exists.
fn path_of(opened: &OwnedFd) -> Option<Vec<u8>> {
    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let path = std::fs::read_link(link).ok()?.into_os_string().into_vec();
    (path.starts_with(b"/") && !path.ends_with(b" (deleted)")).then_some(path)
}
