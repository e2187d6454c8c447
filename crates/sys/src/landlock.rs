//! landlock(7): the version that the kernel offers, and a process without access to files.
#![allow(unsafe_code)]

use crate::call::{check, own};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null;

/// `LANDLOCK_CREATE_RULESET_VERSION`
const VERSION: u32 = 1;

/// The version of the kernel's Landlock interface. `None` where it is missing or switched off.
pub fn landlock_version() -> Option<i64> {
    // SAFETY: with this flag the call takes no structure, and makes nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            null::<u8>(),
            0usize,
            VERSION,
        )
    };
    (version > 0).then_some(version)
}

/// `LANDLOCK_ACCESS_FS_EXECUTE`, `…_READ_FILE` and `…_READ_DIR`
const READ: u64 = 1 | 1 << 2 | 1 << 3;

/// The access rights to files, and to the network, that a version of the interface knows.
fn known_rights(version: i64) -> (u64, u64) {
    let files = match version {
        1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    let network = if version >= 4 { 0b11 } else { 0 };
    ((1 << files) - 1, network)
}

/// Takes all access to files and to TCP from the calling thread and its children, but for reading
/// and executing below `readable`. Descriptors that are open stay usable. It takes
/// [`set_no_new_privs`](crate::set_no_new_privs) before.
///
/// Returns false where the kernel has no Landlock.
pub fn forbid_files(readable: Option<BorrowedFd<'_>>) -> io::Result<bool> {
    #[repr(C)]
    struct Ruleset {
        files: u64,
        network: u64,
    }
    #[repr(C, packed)]
    struct Beneath {
        allowed: u64,
        parent: i32,
    }
    let Some(version) = landlock_version() else {
        return Ok(false);
    };
    let (files, network) = known_rights(version);
    let rules = Ruleset { files, network };
    // Older kernels know the first field only.
    let size = if version >= 4 { 16usize } else { 8 };
    // SAFETY: the kernel reads `size` bytes of a structure that outlives the call.
    let made = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &rules, size, 0) };
    let ruleset = own(check(made)?);
    if let Some(readable) = readable {
        let beneath = Beneath {
            allowed: READ,
            parent: readable.as_raw_fd(),
        };
        // SAFETY: the kernel reads the packed structure of `LANDLOCK_RULE_PATH_BENEATH` (1).
        check(unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                ruleset.as_raw_fd(),
                1,
                &beneath,
                0,
            )
        })?;
    }
    // SAFETY: takes a descriptor and no pointer.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })?;
    Ok(true)
}
