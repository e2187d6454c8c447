//! Errors of a mount.

use std::io;
use std::path::PathBuf;

use backstory_sys::FailedOperation;

/// Why a directory could not be mounted, or a mount not be ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory cannot be used.
    #[error(
        "cannot open the directory {}: {source}; give one that exists and that you may read",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The mount would contain itself.
    #[error(
        "cannot mount {} at {}: one contains the other; give a directory outside, or the same one twice",
        directory.display(),
        mountpoint.display()
    )]
    Nested {
        /// The directory.
        directory: PathBuf,
        /// The mount point.
        mountpoint: PathBuf,
    },
    /// The device of the kernel's FUSE driver cannot be opened.
    #[error(
        "cannot open /dev/fuse: {source}; load the kernel module (`modprobe fuse`), or run as root"
    )]
    Device {
        /// Why.
        source: io::Error,
    },
    /// The kernel, or `fusermount3`, refused the mount.
    #[error("cannot mount at {}: {reason}", mountpoint.display())]
    Refused {
        /// The mount point.
        mountpoint: PathBuf,
        /// Why.
        reason: String,
    },
    /// A thread or a descriptor could not be made.
    #[error(transparent)]
    System(#[from] FailedOperation),
    /// The log of the run could not be made or ended.
    #[error(transparent)]
    Session(#[from] backstory_session::Error),
}

impl Error {
    /// For `map_err` on system calls without an object worth naming.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |source| FailedOperation::of(what)(source).into()
    }
}
