//! The state of the program's own objects: files of the root, and descriptors that are no
//! stand-ins.

use super::Supervisor;
use crate::engine::caller::NotifiedCall;
use backstory_sys as sys;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, open, openat2};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// At once.
const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// Offset of `stx_mode`, `stx_ino` and so on in the structures that name a file.
pub(super) struct StatusLayout {
    mode: usize,
    mode_bytes: usize,
    size: usize,
}

/// `struct stat`
pub(super) const STAT: StatusLayout = StatusLayout {
    mode: 24,
    mode_bytes: 4,
    size: 48,
};
/// `struct statx`
pub(super) const STATX: StatusLayout = StatusLayout {
    mode: 28,
    mode_bytes: 2,
    size: 40,
};

/// Mode and size of a file in another root.
fn status_within(root: &Path, path: &[u8], follows: bool) -> Option<(u32, i64)> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !follows);
    let root = open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let in_root = ResolveFlags::IN_ROOT;
    let file = openat2(
        &root,
        OsStr::from_bytes(path),
        flags,
        Mode::empty(),
        in_root,
    )
    .ok()?;
    let found = fstat(&file).ok()?;
    Some((found.st_mode, found.st_size))
}

impl StatusLayout {
    /// True if the recorded status is that of a file with this mode and size, for a regular file.
    pub fn describes(&self, bytes: &[u8], mode: u32, size: i64) -> bool {
        let field = |at: usize, length: usize| {
            let mut whole = [0; 8];
            let found = bytes.get(at..at + length)?;
            whole[..length].copy_from_slice(found);
            Some(u64::from_le_bytes(whole))
        };
        let kind = |mode: u32| mode & libc::S_IFMT;
        let known = field(self.mode, self.mode_bytes).map(|mode| kind(mode as u32));
        known == Some(kind(mode))
            && (kind(mode) != libc::S_IFREG || field(self.size, 8) == Some(size as u64))
    }
}

impl Supervisor {
    /// A descriptor of the caller.
    pub(super) fn copy_of(&self, call: &NotifiedCall, fd: i32) -> io::Result<OwnedFd> {
        let group = self.groups.get(&call.tid).copied().unwrap_or(call.tid);
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

    /// Mode and size of the file that a call asks about, in the root. `None`: it is not there.
    pub(super) fn native_status(
        &self,
        call: &NotifiedCall,
        directory: i32,
        path: &[u8],
        follows: bool,
    ) -> Option<(u32, i64)> {
        let tid = call.tid;
        let base = match directory {
            libc::AT_FDCWD => PathBuf::from(format!("/proc/{tid}/cwd")),
            fd => PathBuf::from(format!("/proc/{tid}/fd/{fd}")),
        };
        let whole = match path.first() {
            Some(b'/') => {
                // Relative to its root, which may be another one.
                let root = PathBuf::from(format!("/proc/{tid}/root"));
                if std::fs::read_link(&root).ok()? != std::path::Path::new("/") {
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
        found.ok().map(|found| (found.st_mode, found.st_size))
    }
}
