//! Mounts that only one thread of a test and its commands see. Tests use them to put another file
//! in the place of one of the system's.

use std::io;
use std::path::Path;
use std::process::Command;

use rustix::thread::UnshareFlags;

use crate::need::skipped;
use crate::user::suite_is_root;

/// The mounts of this thread, which end with it.
pub struct PrivateMounts(());

impl PrivateMounts {
    /// Gives this thread mounts of its own. `None`, with a notice, if the suite is not root.
    pub fn of_this_thread(what: &str) -> io::Result<Option<PrivateMounts>> {
        if !suite_is_root() {
            skipped(what, "needs root to mount files");
            return Ok(None);
        }
        // SAFETY: the thread shares no mounts afterwards. Its table of descriptors stays shared.
        #[allow(unsafe_code)]
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
        mount(&["--make-rprivate".as_ref(), "/".as_ref()])?;
        Ok(Some(PrivateMounts(())))
    }

    /// Puts a file in the place of another one.
    pub fn replace(&self, file: &Path, by: &Path) -> io::Result<()> {
        mount(&["--bind".as_ref(), by, file])
    }
}

fn mount(args: &[&Path]) -> io::Result<()> {
    let done = Command::new("mount").args(args).output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("mount {args:?}: {done:?}"))),
    }
}
