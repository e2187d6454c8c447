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
    // The flag marks the open file for `is_placeholder`. It changes nothing for this device. A
    // shell that appends opens for writing alone.
    let input = std::io::stdin();
    if let Ok(flags) = fcntl_getfl(input.as_fd()) {
        let _ = fcntl_setfl(input.as_fd(), flags | OFlags::APPEND);
    }
}

/// True for a descriptor that [`put`] made, in whichever process.
pub fn is_placeholder(descriptor: BorrowedFd<'_>) -> bool {
    let marked = OFlags::APPEND | OFlags::RDWR;
    let is_marked = || fcntl_getfl(descriptor).is_ok_and(|flags| flags.contains(marked));
    let is_null = || fstat(descriptor).is_ok_and(|about| about.st_rdev == makedev(1, 3));
    is_marked() && is_null()
}

#[cfg(test)]
mod tests {
    use super::is_placeholder;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn a_null_device_that_a_shell_opened_is_no_placeholder() {
        let mut both = File::options();
        both.read(true).write(true);
        let mut appending = File::options();
        appending.append(true);
        for options in [&both, &appending] {
            let device = options.open("/dev/null").unwrap();
            assert!(!is_placeholder(device.as_fd()), "{options:?}");
        }
        let marked = both.append(true).open("/dev/null").unwrap();
        assert!(is_placeholder(marked.as_fd()));
    }
}
