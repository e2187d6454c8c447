//! What can go wrong before the command has started, or while a log is finished afterwards.

use std::io;
use std::path::{Path, PathBuf};

/// A failed operation and what it failed on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory of ours.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// Verb.
        what: &'static str,
        /// Object.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something that the kernel should have given us.
    #[error("cannot {what}: {source}")]
    System {
        /// Verb and object.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The log could not be written or read.
    #[error("cannot {what} the log {}: {source}", path.display())]
    Log {
        /// Verb.
        what: &'static str,
        /// Which log.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Too little address space.
    #[error("cannot record in so little address space: allow {} kB more (`ulimit -v`)", bytes.div_ceil(1000))]
    Room {
        /// What there has to be beside what is used already.
        bytes: usize,
    },
    /// An empty command.
    #[error("no command to record")]
    NoCommand,
    /// A string for the kernel with a NUL byte inside.
    #[error("{what} contains a NUL byte")]
    Nul {
        /// Which.
        what: &'static str,
    },
    /// The arena could not be made or opened.
    #[error(transparent)]
    Arena(#[from] backstory_arena::Error),
    /// `recover` on a run whose recorder lives.
    #[error("the run of {} is still being recorded", path.display())]
    StillRecording {
        /// The part log.
        path: PathBuf,
    },
}

impl Error {
    /// For `map_err` on operations on files.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File { what, path, source }
    }

    /// For `map_err` on system calls without an object worth naming.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |source| Error::System {
            what,
            source: source.into(),
        }
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
