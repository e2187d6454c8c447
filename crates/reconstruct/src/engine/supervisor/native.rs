//! The state of the program's own objects: files of the root, and descriptors that are no
//! stand-ins.

use super::Supervisor;
use crate::engine::caller::NotifiedCall;
use crate::engine::placeholder::is_placeholder;
use crate::ready::OUT;
use backstory_sys as sys;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// At once.
const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// Bytes of the kernel's `struct stat`.
const STAT_BYTES: usize = 144;

/// Offsets of the fields in the structures that describe a file.
pub(super) struct StatusLayout {
    mode: usize,
    mode_bytes: usize,
    size: usize,
    inode: usize,
    /// The device: one number in `struct stat`, its two parts in `struct statx`.
    device: usize,
    is_extended: bool,
}

/// `struct stat`
pub(super) const STAT: StatusLayout = StatusLayout {
    mode: 24,
    mode_bytes: 4,
    size: 48,
    inode: 8,
    device: 0,
    is_extended: false,
};
/// `struct statx`
pub(super) const STATX: StatusLayout = StatusLayout {
    mode: 28,
    mode_bytes: 2,
    size: 40,
    inode: 32,
    device: 136,
    is_extended: true,
};

/// The bytes of the kernel's `struct stat`.
pub(super) fn status_bytes(of: &Stat) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(STAT_BYTES);
    for word in [of.st_dev, of.st_ino, of.st_nlink] {
        bytes.extend(word.to_le_bytes());
    }
    for half in [of.st_mode, of.st_uid, of.st_gid, 0] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(of.st_rdev.to_le_bytes());
    for word in [of.st_size, of.st_blksize, of.st_blocks] {
        bytes.extend(word.to_le_bytes());
    }
    let times = [
        (of.st_atime, of.st_atime_nsec),
        (of.st_mtime, of.st_mtime_nsec),
        (of.st_ctime, of.st_ctime_nsec),
    ];
    for (seconds, ns) in times {
        bytes.extend(seconds.to_le_bytes());
        bytes.extend(ns.to_le_bytes());
    }
    bytes.resize(STAT_BYTES, 0);
    bytes
}

/// True if a look-up found nothing.
pub(super) fn is_missing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOENT)
}

/// True for a recorded error of a look-up that the kernel may not give here. The root has one user,
/// who may use every file. A regular file or a link that the run did not use is not there, so that
/// what is looked up below it is missing.
pub(super) fn is_only_recorded(errno: i32, is_missing: impl FnOnce() -> bool) -> bool {
    match errno {
        libc::EACCES => true,
        libc::ENOTDIR | libc::ELOOP => is_missing(),
        _ => false,
    }
}

/// The status of a file in another root.
fn status_within(root: &Path, path: &[u8], follows: bool) -> io::Result<Stat> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !follows);
    let root = open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let in_root = ResolveFlags::IN_ROOT;
    let file = openat2(
        &root,
        OsStr::from_bytes(path),
        flags,
        Mode::empty(),
        in_root,
    )?;
    Ok(fstat(&file)?)
}

/// The number of this many bytes at a position.
fn field(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole[..length].copy_from_slice(bytes.get(at..at + length)?);
    Some(u64::from_le_bytes(whole))
}

impl StatusLayout {
    /// True for `struct statx`.
    pub fn is_extended(&self) -> bool {
        self.is_extended
    }

    /// True if the recorded status is that of a file of this kind.
    pub fn is_kind(&self, bytes: &[u8], mode: u32) -> bool {
        let known = field(bytes, self.mode, self.mode_bytes);
        known.map(|known| known as u32 & libc::S_IFMT) == Some(mode & libc::S_IFMT)
    }

    /// The same, and of this size, for a regular file.
    pub fn describes(&self, bytes: &[u8], mode: u32, size: i64) -> bool {
        let has_size = field(bytes, self.size, 8) == Some(size as u64);
        self.is_kind(bytes, mode) && (mode & libc::S_IFMT != libc::S_IFREG || has_size)
    }

    /// Device and inode.
    pub fn ident(&self, bytes: &[u8]) -> Option<(u64, u64)> {
        let device = match self.is_extended {
            false => field(bytes, self.device, 8)?,
            true => {
                let part = |at| field(bytes, at, 4).map(|part| part as u32);
                rustix::fs::makedev(part(self.device)?, part(self.device + 4)?)
            }
        };
        Some((device, field(bytes, self.inode, 8)?))
    }

    /// Writes device and inode into a status.
    pub fn put_ident(&self, bytes: &mut [u8], (device, inode): (u64, u64)) {
        let mut put = |at: usize, number: &[u8]| {
            if let Some(to) = bytes.get_mut(at..at + number.len()) {
                to.copy_from_slice(number);
            }
        };
        put(self.inode, &inode.to_le_bytes());
        if self.is_extended {
            put(self.device, &rustix::fs::major(device).to_le_bytes());
            put(self.device + 4, &rustix::fs::minor(device).to_le_bytes());
        } else {
            put(self.device, &device.to_le_bytes());
        }
    }
}

impl Supervisor {
    /// A descriptor of the caller.
    pub(super) fn copy_of(&self, call: &NotifiedCall, fd: i32) -> io::Result<OwnedFd> {
        let group = self.group_of(call);
        let process = sys::pidfd_open(group, false)?;
        sys::pidfd_getfd(process.as_fd(), fd)
    }

    /// The events of a set of epoll for members that the kernel knows, as `epoll_wait` has them.
    pub(super) fn native_events(&self, call: &NotifiedCall, room: usize) -> Vec<u8> {
        let Ok(set) = self.copy_of(call, call.int(0)) else {
            return Vec::new();
        };
        let mut events = Vec::with_capacity(room.min(64));
        let found = epoll::wait(
            &set,
            rustix::buffer::spare_capacity(&mut events),
            Some(&NOW),
        );
        if found.is_err() {
            return Vec::new();
        }
        let one = |event: &epoll::Event| {
            let (flags, data) = (event.flags, event.data);
            let mut bytes = flags.bits().to_le_bytes().to_vec();
            bytes.extend(data.u64().to_le_bytes());
            bytes
        };
        events.iter().flat_map(one).collect()
    }

    /// True if a wait for these events of a descriptor has no end: see [`is_placeholder`].
    pub(super) fn is_silent(&self, call: &NotifiedCall, fd: i32, events: u32) -> bool {
        let is_standard_input = fd <= 2 && events & OUT == 0;
        is_standard_input
            && self
                .copy_of(call, fd)
                .is_ok_and(|own| is_placeholder(own.as_fd()))
    }

    /// Which of these descriptors, with their events, are ready. By position.
    pub(super) fn native_ready(
        &self,
        call: &NotifiedCall,
        list: &[(usize, i32, u32)],
    ) -> Vec<(usize, u32)> {
        let mut ready = Vec::new();
        for (at, fd, events) in list {
            let Ok(copy) = self.copy_of(call, *fd) else {
                continue;
            };
            let flags = PollFlags::from_bits_retain(*events as u16);
            let mut one = [PollFd::new(&copy, flags)];
            if poll(&mut one, Some(&NOW)).is_ok_and(|count| count > 0) {
                ready.push((*at, u32::from(one[0].revents().bits())));
            }
        }
        ready
    }

    /// The status of the file that a call asks about, in the root.
    pub(super) fn native_status(
        &self,
        call: &NotifiedCall,
        directory: i32,
        path: &[u8],
        follows: bool,
    ) -> io::Result<Stat> {
        let tid = call.tid;
        let base = base_of(call, directory);
        let whole = match path.first() {
            Some(b'/') => {
                // Relative to its root, which may be another one.
                let root = PathBuf::from(format!("/proc/{tid}/root"));
                if std::fs::read_link(&root)? != std::path::Path::new("/") {
                    return status_within(&root, path, follows);
                }
                OsStr::from_bytes(path).into()
            }
            None => base,
            _ => base.join(OsStr::from_bytes(path)),
        };
        let found = match follows || path.is_empty() {
            true => rustix::fs::stat(&whole),
            false => rustix::fs::lstat(&whole),
        };
        Ok(found?)
    }
}

/// The absolute path of the file that a relative path leads to, in the root. `None`: it is not
/// there, or the path is not relative.
pub(super) fn absolute_path(
    call: &NotifiedCall,
    (directory, path): (i32, &[u8]),
    follows: bool,
) -> Option<Vec<u8>> {
    if path.is_empty() || path.starts_with(b"/") {
        return None;
    }
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !follows);
    let whole = base_of(call, directory).join(OsStr::from_bytes(path));
    let file = open(whole.as_path(), flags, Mode::empty()).ok()?;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Some(link.ok()?.into_os_string().into_vec())
}

/// The directory that a relative path of a call begins at.
fn base_of(call: &NotifiedCall, directory: i32) -> PathBuf {
    let tid = call.tid;
    match directory {
        libc::AT_FDCWD => PathBuf::from(format!("/proc/{tid}/cwd")),
        fd => PathBuf::from(format!("/proc/{tid}/fd/{fd}")),
    }
}
