//! landlock(7): the version that the kernel offers.
#![allow(unsafe_code)]

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
