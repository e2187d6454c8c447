//! Errors of seals. Each names its object.

use std::io;
use std::path::{Path, PathBuf};

/// Result of work on seals.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run cannot be sealed, or a chain cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database or the directory of the store failed.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
    /// The stored contents failed.
    #[error(transparent)]
    Contents(#[from] backstory_contents::Error),
    /// The run could not be described, or `ssh-keygen` could not sign.
    #[error(transparent)]
    Exchange(#[from] backstory_exchange::Error),
    /// A file failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of the chain is not what it should be.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The mistake.
        what: String,
    },
    /// A program that signs, verifies or gets time stamps failed.
    #[error("{0}")]
    Tool(String),
}

impl Error {
    /// Wraps an error of a file.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io {
            doing,
            path,
            source,
        }
    }

    /// A file of the chain with something wrong.
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Error {
        Error::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}
