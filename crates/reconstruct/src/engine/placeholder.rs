//! What a program has as standard descriptors if the record has nothing of them: `/dev/null`.
//!
//! A read from it ends at once. A wait for input is another matter: `/dev/null` is always ready,
//! with its end. The recorded program may have had a terminal or a pipe there that was silent. If a
//! recorded wait had found input, the record would have the descriptor. So a wait finds none.

use backstory_sys as sys;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat, makedev};
use std::os::fd::{AsFd, BorrowedFd};

/// Puts `/dev/null` in the place of the standard descriptors of this process.
pub fn put() {
    sys::nullify(&[0, 1, 2]);
    // The flag marks the open file for `is_placeholder`. It changes nothing for this device.
    let input = std::io::stdin();
    if let Ok(flags) = fcntl_getfl(input.as_fd()) {
        let _ = fcntl_setfl(input.as_fd(), flags | OFlags::APPEND);
    }
}

/// True for a descriptor that [`put`] made, in whichever process.
pub fn is_placeholder(descriptor: BorrowedFd<'_>) -> bool {
    let is_marked = || fcntl_getfl(descriptor).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    let is_null = || fstat(descriptor).is_ok_and(|about| about.st_rdev == makedev(1, 3));
    is_marked() && is_null()
}
