//! The directory of a run's preserved contents, and the methods of moving a content there.
//!
//! Invariant: a file with a number in this directory is whole. An incomplete copy is removed.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Most bytes that one call copies.
const PIECE: usize = 1 << 30;
/// Smaller files are copied without checking the free space.
const SMALL: u64 = 1 << 20;

/// The method by which a content got into the directory, as numbered in the log.
pub(super) use backstory_abi::{KEPT_CLONE as CLONE, KEPT_COPY as COPY, KEPT_LINK as LINK};

/// The directory of preserved contents, made when it is first needed.
pub(super) struct ContentDirectory {
    path: PathBuf,
    made: OnceLock<Result<OwnedFd, Errno>>,
}

impl ContentDirectory {
    /// A directory that will be made at this path.
    pub(super) fn new(path: PathBuf) -> ContentDirectory {
        ContentDirectory {
            path,
            made: OnceLock::new(),
        }
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory now. A failure is that of each content.
    pub(super) fn prepare(&self) {
        let _ = self.directory();
    }

    fn directory(&self) -> Result<BorrowedFd<'_>, Errno> {
        let made = self.made.get_or_init(|| make(&self.path));
        made.as_ref().map(AsFd::as_fd).map_err(|errno| *errno)
    }

    /// Links a file into the directory. Its descriptor need not permit reading. Fails where hard
    /// links are not possible or not permitted.
    pub(super) fn link(&self, file: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
        let source = format!("/proc/self/fd/{}", file.as_raw_fd());
        let name = number.to_string();
        rustix::fs::linkat(
            CWD,
            &source,
            self.directory()?,
            &name,
            AtFlags::SYMLINK_FOLLOW,
        )
    }

    /// Copies a file, sharing its blocks where the file system can. Its descriptor need not permit
    /// reading. Fails if the file is not in the state `before` any more. Returns the method.
    pub(super) fn copy(
        &self,
        file: BorrowedFd<'_>,
        before: &Statx,
        number: i32,
    ) -> Result<u32, Errno> {
        self.copy_as(file, before, &number.to_string())
    }

    /// Replaces a hard link by a copy, because the file itself is about to change.
    pub(super) fn replace(
        &self,
        file: BorrowedFd<'_>,
        before: &Statx,
        number: i32,
    ) -> Result<(), Errno> {
        let (name, new) = (number.to_string(), format!("{number}.new"));
        self.copy_as(file, before, &new)?;
        let directory = self.directory()?;
        rustix::fs::renameat(directory, &new, directory, &name)
    }

    fn copy_as(&self, file: BorrowedFd<'_>, before: &Statx, name: &str) -> Result<u32, Errno> {
        let from = reopen(file)?;
        let directory = self.directory()?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let to = rustix::fs::openat(directory, name, flags, mode)?;
        // The umask may be that of another process, for which this thread makes a file.
        rustix::fs::fchmod(&to, mode)?;
        let done = fill(&from, &to, before.stx_size).and_then(|how| {
            let after = look(from.as_fd())?;
            same(before, &after).then_some(how).ok_or(Errno::STALE)
        });
        done.inspect_err(|_| {
            // A file that cannot be removed is found and removed when the run's contents are
            // stored.
            let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        })
    }
}

/// The kernel's description of an open file.
pub(super) fn look(file: BorrowedFd<'_>) -> Result<Statx, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted)
}

/// True if both describe the same content, as far as the kernel tells.
fn same(a: &Statx, b: &Statx) -> bool {
    let state = |s: &Statx| (s.stx_size, s.stx_mtime.tv_sec, s.stx_mtime.tv_nsec);
    state(a) == state(b)
}

fn make(path: &Path) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    rustix::fs::fchmod(&directory, Mode::RWXU)?; // independent of the umask
    Ok(directory)
}

/// Reopens a descriptor for reading: it may be an `O_PATH` one. It does not change the access time
/// where that is permitted, and does not wait for a lease.
fn reopen(file: BorrowedFd<'_>) -> Result<File, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let quiet = rustix::fs::open(&path, flags | OFlags::NOATIME, Mode::empty());
    let opened = match quiet {
        Err(Errno::PERM) => rustix::fs::open(&path, flags, Mode::empty()),
        other => other,
    }?;
    Ok(File::from(opened))
}

/// Fills an empty file with the content of another.
fn fill(from: &File, to: &OwnedFd, size: u64) -> Result<u32, Errno> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(CLONE);
    }
    if size > SMALL {
        leave_room(to, size)?;
    }
    // Bytes beyond `size` were appended after the file was examined, which the caller notices.
    let mut copied = 0;
    while copied < size {
        match rustix::fs::copy_file_range(from, None, to, None, PIECE) {
            Ok(0) => break,
            Ok(n) => copied += n as u64,
            Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                return read_and_write(from, to);
            }
            Err(errno) => return Err(errno),
        }
    }
    // Some file systems of the kernel (`/proc`, `/sys`) report that there are no bytes to copy.
    if copied == 0 && size > 0 {
        return read_and_write(from, to);
    }
    Ok(COPY)
}

/// Copies by read(2) and write(2), from the current position to the end.
fn read_and_write(from: &File, to: &OwnedFd) -> Result<u32, Errno> {
    let mut buffer = vec![0; 128 * 1024];
    loop {
        let n = match rustix::io::read(from, &mut buffer) {
            Ok(0) => return Ok(COPY),
            Ok(n) => n,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        let mut rest = buffer.get(..n).unwrap_or_default();
        while !rest.is_empty() {
            match rustix::io::write(to, rest) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// Fails if a large copy would leave less free space than it takes itself. Preserving must not
/// cause the program to run out of space.
fn leave_room(to: &OwnedFd, size: u64) -> Result<(), Errno> {
    let room = rustix::fs::fstatvfs(to)?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if free / 2 < size {
        Err(Errno::NOSPC)
    } else {
        Ok(())
    }
}

/// True for a regular file.
pub(super) fn is_regular(st: &Statx) -> bool {
    FileType::from_raw_mode(st.stx_mode.into()) == FileType::RegularFile
}
