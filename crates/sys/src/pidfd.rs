//! pidfds: descriptors that stand for processes.
#![allow(unsafe_code)]

use crate::call::{check, ioctl, own};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// What the kernel says of a process by its pidfd (`struct pidfd_info`, Linux 6.13).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PidfdInfo {
    /// Asked and answered: `PIDFD_INFO_*`.
    pub mask: u64,
    /// As named.
    pub cgroup: u64,
    /// Thread.
    pub pid: u32,
    /// Process.
    pub tgid: u32,
    /// Parent.
    pub ppid: u32,
    /// As named.
    pub ruid: u32,
    /// As named.
    pub rgid: u32,
    /// As named.
    pub euid: u32,
    /// As named.
    pub egid: u32,
    /// As named.
    pub suid: u32,
    /// As named.
    pub sgid: u32,
    /// User that file access is checked for.
    pub fsuid: u32,
    /// Group that file access is checked for.
    pub fsgid: u32,
    /// Wait status, with `PIDFD_INFO_EXIT`.
    pub exit_code: i32,
}

const PIDFD_INFO_CREDS: u64 = 2;

/// The exit status is known.
pub const PIDFD_INFO_EXIT: u64 = 8;

const PIDFD_GET_INFO: libc::Ioctl = (3 << 30 | 64 << 16 | 0xff << 8 | 11) as libc::Ioctl;

const _: () = assert!(size_of::<PidfdInfo>() == 64);

/// Asks who a pidfd is, and how it ended if it has been reaped.
pub fn pidfd_info(pidfd: BorrowedFd<'_>) -> io::Result<PidfdInfo> {
    let mut info = PidfdInfo {
        mask: 1 | PIDFD_INFO_CREDS | PIDFD_INFO_EXIT,
        ..PidfdInfo::default()
    };
    ioctl(pidfd, PIDFD_GET_INFO, &mut info)?;
    Ok(info)
}

/// Opens a pidfd; with `thread`, of any thread (Linux 6.9), else of a process.
pub fn pidfd_open(pid: u32, thread: bool) -> io::Result<OwnedFd> {
    let flags = if thread { libc::O_EXCL } else { 0 };
    // SAFETY: takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, flags) }).map(own)
}

/// A copy of another process's descriptor, for us; needs the rights of a tracer.
pub fn pidfd_getfd(process: BorrowedFd<'_>, fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) }).map(own)
}
