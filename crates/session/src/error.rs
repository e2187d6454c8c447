//! Errors before the command has started, or while a log is finished afterwards.

use std::io;
use std::path::{Path, PathBuf};

use backstory_sys::FailedOperation;

/// A failed operation and its object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on a file or directory of the recording, or another system call, failed.
    #[error(transparent)]
    Failed(#[from] FailedOperation),
    /// The log could not be written or read.
    #[error("cannot {what} the log {}: {source}", path.display())]
    Log {
        /// Verb.
        what: &'static str,
        /// The log.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The address space limit leaves too little room.
    #[error("cannot record in so little address space: allow {} kB more (`ulimit -v`)", bytes.div_ceil(1000))]
    Room {
        /// Bytes that are needed beside those in use.
        bytes: usize,
    },
    /// The limit of open files leaves too few descriptors.
    #[error("cannot record: Too many open files: {free} more may be open, and {needed} are needed; raise the limit (`ulimit -n`) by {}", needed - free)]
    Descriptors {
        /// Descriptors that this process may still open.
        free: usize,
        /// Descriptors that are needed to start a command.
        needed: usize,
    },
    /// The kernel does not let programs have the same addresses in each execution.
    #[error(
        "cannot record with fixed addresses: personality: {0}; a container may forbid it, so leave --fixed-addresses out"
    )]
    Addresses(#[source] std::io::Error),
    /// An empty command.
    #[error("no command to record")]
    NoCommand,
    /// A string for the kernel with a NUL byte inside.
    #[error("{what} contains a NUL byte")]
    Nul {
        /// The name of the string.
        what: &'static str,
    },
    /// The arena could not be made or opened.
    #[error(transparent)]
    Arena(#[from] backstory_arena::Error),
    /// `recover` was called for a run that is still being recorded.
    #[error("the run of {} is still being recorded", path.display())]
    StillRecording {
        /// The log of that run.
        path: PathBuf,
    },
}

impl Error {
    /// For `map_err` on operations on files.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let failed = FailedOperation::on(what, path);
        move |source| failed(source).into()
    }

    /// For `map_err` on system calls without an object worth naming.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |source| FailedOperation::of(what)(source).into()
    }

    /// For `map_err` on the log.
    pub(crate) fn log<E>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Error
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let path = path.to_owned();
        move |source| Error::Log {
            what,
            path,
            source: Box::new(source),
        }
    }
}
