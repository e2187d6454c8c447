//! Errors of the arena.

use std::io;
use std::path::{Path, PathBuf};

/// Why an arena cannot be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on the arena's file failed.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// Verb.
        what: &'static str,
        /// The arena's file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A system call without an object worth naming failed.
    #[error("cannot {what}: {source}")]
    System {
        /// Verb and object.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The file is not an arena, or one of another version.
    #[error("the arena {} is damaged or of another version", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// For `map_err` on operations on files.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File { what, path, source }
    }

    /// For `map_err` on other system calls.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |source| Error::System {
            what,
            source: source.into(),
        }
    }
}
