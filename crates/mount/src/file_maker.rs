//! Makes and changes files as the caller would: with its user, its group and its umask.
//!
//! A file that an ordinary user changes loses its set-user-ID bit. So this process gives up its
//! privilege to keep the bit while it changes a file for such a user.
//!
//! The kernel has checked the caller's permissions before (`default_permissions`). The caller may
//! have its permission from a supplementary group, which a request does not name. So the thread
//! keeps the capability to pass permission checks.

use backstory_sys as sys;
use fuser::Request;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::cell::Cell;

thread_local! {
    static OWN_UMASK: Cell<bool> = const { Cell::new(false) };
}

/// The capabilities that a thread keeps while it has another user's identity.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::MKNOD);

/// Gives the thread its own identity back.
struct IdentityRestored {
    user: bool,
    group: bool,
}

impl Drop for IdentityRestored {
    fn drop(&mut self) {
        if self.user {
            sys::set_file_user(0);
        }
        if self.group {
            sys::set_file_group(0);
        }
    }
}

/// Runs `make` with the identity and the umask of the caller. Only root has other identities: a
/// file system of an ordinary user serves that user alone.
pub(crate) fn as_caller<T>(
    request: &Request,
    umask: u32,
    make: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    if !OWN_UMASK.get() {
        sys::own_file_context().map_err(|_| Errno::IO)?;
        OWN_UMASK.set(true);
    }
    rustix::process::umask(Mode::from_raw_mode(umask));
    let root = rustix::process::geteuid().is_root();
    let identity = IdentityRestored {
        user: root && request.uid() != 0,
        group: root && request.gid() != 0,
    };
    if identity.group {
        sys::set_file_group(request.gid());
    }
    if identity.user {
        sys::set_file_user(request.uid());
        let mut sets = capabilities(None)?;
        sets.effective |= KEPT & sets.permitted;
        set_capabilities(None, sets)?;
    }
    make()
}

/// Gives the thread a capability back.
struct CapabilityRestored(CapabilitySet);

impl Drop for CapabilityRestored {
    fn drop(&mut self) {
        if let Ok(mut sets) = capabilities(None) {
            sets.effective |= self.0;
            // The thread had it a moment ago.
            let _ = set_capabilities(None, sets);
        }
    }
}

/// Runs `change`, which changes the contents or the size of a file. If the caller is ordinary, the
/// file loses its set-user-ID and set-group-ID bits, as without the mount.
pub(crate) fn as_writer<T>(
    ordinary: bool,
    change: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    // Without root, the file system has not got the privilege.
    if !ordinary || !rustix::process::geteuid().is_root() {
        return change();
    }
    let mut sets = capabilities(None)?;
    let _restored = CapabilityRestored(sets.effective & CapabilitySet::FSETID);
    sets.effective -= CapabilitySet::FSETID;
    set_capabilities(None, sets)?;
    change()
}
