//! Files: opening, describing and polling them.
#![allow(unsafe_code)]

use crate::call::{check, own};
use libc::{c_int, c_long};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Opens a path below `dir`, by openat2(2).
pub fn openat2(dir: RawFd, path: &CStr, flags: c_int, resolve: u64) -> io::Result<OwnedFd> {
    // SAFETY: all-zero bytes are a valid `open_how`.
    let mut how: libc::open_how = unsafe { MaybeUninit::zeroed().assume_init() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = resolve;
    // SAFETY: path and structure outlive the call, which only reads them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            dir,
            path.as_ptr(),
            &how,
            size_of::<libc::open_how>(),
        )
    };
    check(fd).map(own)
}

/// The attributes of `path` below `dir`, by statx(2).
pub fn statx(dir: RawFd, path: &CStr, flags: c_int) -> io::Result<libc::statx> {
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME | libc::STATX_MNT_ID;
    let mut buffer = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the kernel reads the path and writes one structure.
    check(c_long::from(unsafe {
        libc::statx(dir, path.as_ptr(), flags, mask, buffer.as_mut_ptr())
    }))?;
    // SAFETY: zeroed before and written by the kernel; all its fields are integers.
    Ok(unsafe { buffer.assume_init() })
}

/// True if the mount of an open file is read-only. Calls the file system, which must be a local
/// one.
pub fn is_readonly(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let flags = rustix::fs::fstatvfs(fd)?.f_flag;
    Ok(flags.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// As [`is_readonly`], for the mount of this path in the process's own view. A link at its end is
/// followed.
pub fn is_readonly_at(path: &CStr) -> io::Result<bool> {
    let flags = rustix::fs::statvfs(path)?.f_flag;
    Ok(flags.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// True if a directory, opened for reading, has no entries but `.` and `..`.
pub fn is_empty(directory: &OwnedFd) -> io::Result<bool> {
    /// The offsets of an entry's length and of its name in `struct linux_dirent64`.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut buffer = [0u8; 512];
    loop {
        // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`.
        let got = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory.as_raw_fd(),
                buffer.as_mut_ptr(),
                buffer.len(),
            )
        };
        let mut rest = match usize::try_from(got) {
            Err(_) => return Err(io::Error::last_os_error()),
            Ok(0) => return Ok(true),
            Ok(got) => buffer.get(..got).unwrap_or_default(),
        };
        while let Some(&[low, high]) = rest.get(LENGTH..LENGTH + 2) {
            let name = rest.get(NAME..).unwrap_or_default();
            if !name.starts_with(b".\0") && !name.starts_with(b"..\0") {
                return Ok(false);
            }
            let length = usize::from(u16::from_ne_bytes([low, high]));
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
    }
}

/// Reads a symbolic link into `buffer`.
pub fn readlink<'a>(dir: RawFd, path: &CStr, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    // SAFETY: the kernel writes at most the buffer's length into it.
    let n =
        unsafe { libc::readlinkat(dir, path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    let n = check(n as c_long)? as usize;
    Ok(buffer.get(..n).unwrap_or_default())
}

/// The inode number of a descriptor. For a pidfd of a recent kernel it is unique among all
/// processes since boot.
pub fn inode(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut buffer = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel writes one structure.
    check(c_long::from(unsafe {
        libc::fstat(fd.as_raw_fd(), buffer.as_mut_ptr())
    }))?;
    // SAFETY: zeroed before and written by the kernel; all its fields are integers.
    Ok(unsafe { buffer.assume_init() }.st_ino)
}

/// The events of one descriptor, by poll(2). Waits at most `timeout` milliseconds; -1 waits for
/// ever.
pub fn poll(fd: BorrowedFd<'_>, events: i16, timeout: c_int) -> i16 {
    let mut entry = libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: one entry, which outlives the call.
    let n = unsafe { libc::poll(&mut entry, 1, timeout) };
    if n > 0 { entry.revents } else { 0 }
}
