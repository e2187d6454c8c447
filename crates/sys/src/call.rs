//! The results of raw system calls.
#![allow(unsafe_code)]

use libc::{c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Turns the result of a system call into a value or the thread's errno.
pub(crate) fn check<T: Copy + Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Owns a descriptor that a successful system call returned. No other owner may exist.
pub(crate) fn own(fd: c_long) -> OwnedFd {
    // SAFETY: the caller got `fd` from a successful call that returned a new descriptor, which has
    // no other owner.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// `ioctl` with an argument of the type and size that `request` names.
pub(crate) fn ioctl<T>(
    fd: BorrowedFd<'_>,
    request: libc::Ioctl,
    argument: *mut T,
) -> io::Result<c_int> {
    // SAFETY: only called from below, with an argument of the type and size that the request names.
    let r = unsafe { libc::ioctl(fd.as_raw_fd(), request, argument) };
    check(c_long::from(r)).map(|r| r as c_int)
}
