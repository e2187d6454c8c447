//! The identity and the umask with which the calling thread makes files.
//!
//! All of these belong to one thread in Linux. Other threads keep theirs.
#![allow(unsafe_code)]

use std::io;

/// Gives the calling thread an umask, a current directory and a root of its own, as copies.
///
/// # Errors
///
/// unshare(2) failed.
pub fn own_file_context() -> io::Result<()> {
    // SAFETY: no pointers. The thread's memory stays shared.
    match unsafe { libc::unshare(libc::CLONE_FS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the user that the kernel gives to files of the calling thread. The thread loses the
/// capabilities over files if `uid` is not 0, and gets them back with user 0 (capabilities(7)).
pub fn set_file_user(uid: u32) {
    // SAFETY: no pointers. The raw call changes the calling thread only.
    unsafe { libc::syscall(libc::SYS_setfsuid, libc::c_ulong::from(uid)) };
}

/// Sets the group that the kernel gives to files of the calling thread.
pub fn set_file_group(gid: u32) {
    // SAFETY: no pointers. The raw call changes the calling thread only.
    unsafe { libc::syscall(libc::SYS_setfsgid, libc::c_ulong::from(gid)) };
}
