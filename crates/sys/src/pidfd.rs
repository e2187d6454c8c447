//! pidfds: descriptors that stand for processes.
#![allow(unsafe_code)]

use crate::call::{check, ioctl, own};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A process as `PIDFD_GET_INFO` describes it (`struct pidfd_info`, Linux 6.13).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PidfdInfo {
    /// The fields requested and filled: `PIDFD_INFO_*`.
    pub mask: u64,
    /// The cgroup's id.
    pub cgroup: u64,
    /// The thread id.
    pub pid: u32,
    /// The process id.
    pub tgid: u32,
    /// The process id of the parent.
    pub ppid: u32,
    /// The real user id.
    pub ruid: u32,
    /// The real group id.
    pub rgid: u32,
    /// The effective user id.
    pub euid: u32,
    /// The effective group id.
    pub egid: u32,
    /// The saved user id.
    pub suid: u32,
    /// The saved group id.
    pub sgid: u32,
    /// The user id that file access is checked with.
    pub fsuid: u32,
    /// The group id that file access is checked with.
    pub fsgid: u32,
    /// The wait status, if `mask` has `PIDFD_INFO_EXIT`.
    pub exit_code: i32,
}

const PIDFD_INFO_CREDS: u64 = 2;

/// `exit_code` is filled: the process has been reaped.
pub const PIDFD_INFO_EXIT: u64 = 8;

const PIDFD_GET_INFO: libc::Ioctl = (3 << 30 | 64 << 16 | 0xff << 8 | 11) as libc::Ioctl;

const _: () = assert!(size_of::<PidfdInfo>() == 64);

/// Identifies the process of a pidfd, with its exit status if it has been reaped.
pub fn pidfd_info(pidfd: BorrowedFd<'_>) -> io::Result<PidfdInfo> {
    let mut info = PidfdInfo {
        mask: 1 | PIDFD_INFO_CREDS | PIDFD_INFO_EXIT,
        ..PidfdInfo::default()
    };
    ioctl(pidfd, PIDFD_GET_INFO, &mut info)?;
    Ok(info)
}

/// Opens a pidfd of a process; with `thread`, of any thread (Linux 6.9).
pub fn pidfd_open(pid: u32, thread: bool) -> io::Result<OwnedFd> {
    let flags = if thread { libc::O_EXCL } else { 0 };
    // SAFETY: takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, flags) }).map(own)
}

/// Copies a descriptor of another process into this one. Needs the rights of a tracer.
pub fn pidfd_getfd(process: BorrowedFd<'_>, fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) }).map(own)
}
