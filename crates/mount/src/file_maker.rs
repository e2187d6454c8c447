//! Makes files as the caller would: with its user, its group and its umask.
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
