//! Errors of a watch of a file system.

use std::io;
use std::path::PathBuf;

use backstory_sys::FailedOperation;

/// Why a file system could not be watched, or a watch not be ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory cannot be used.
    #[error(
        "cannot open the directory {}: {source}; give one that exists, of the file system to watch",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel does not notify this process.
    #[error(
        "the kernel does not notify this process (fanotify): {source}; watching a file system needs \
         root (CAP_SYS_ADMIN) and Linux 5.17"
    )]
    Kernel {
        /// Why.
        source: io::Error,
    },
    /// The file system cannot be watched.
    #[error(
        "cannot watch the file system of {}: {source}; it may have no file handles (overlayfs, FUSE) \
         or be a subvolume: `backstory mount` records a directory of it",
        path.display()
    )]
    FileSystem {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A descriptor could not be made or read.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_is_named_with_what_to_give_instead() {
        let error = Error::Directory {
            path: "/nowhere".into(),
            source: io::ErrorKind::NotFound.into(),
        };
        let said = error.to_string();
        assert!(said.contains("/nowhere") && said.contains("give one that exists"));
    }
}
