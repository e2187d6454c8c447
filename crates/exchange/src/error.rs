//! Errors of an exchange between two stores. Each names its object.

use std::io;
use std::path::Path;

/// Result of an exchange.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an exchange failed, or a part of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database or the directory of this store failed.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
    /// The stored contents of this store failed.
    #[error(transparent)]
    Contents(#[from] backstory_contents::Error),
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] backstory_eventlog::Error),
    /// A file or a stream failed.
    #[error("cannot {doing} {object}: {source}")]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or stream.
        object: String,
        /// The system's error.
        source: io::Error,
    },
    /// Something that came in is not added to the store: the sentence names it.
    #[error("{0}")]
    Refused(String),
    /// The other side does not keep to the protocol. Nothing more is exchanged with it.
    #[error("the other side does not keep to the protocol: {0}")]
    Protocol(String),
    /// The other side reports that it cannot do what it was asked for.
    #[error("the other side reports: {0}")]
    OtherSide(String),
    /// The other side cannot be reached, or the connection ended.
    #[error("{0}")]
    Connection(String),
    /// `ssh-keygen` could not sign or verify.
    #[error("{0}")]
    Signature(String),
}

impl Error {
    /// Wraps an error of a file.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let object = path.display().to_string();
        move |source| Error::Io {
            doing,
            object,
            source,
        }
    }

    /// True if only one run is concerned, and others may follow on the same connection.
    pub fn concerns_one_run(&self) -> bool {
        !matches!(self, Error::Protocol(_) | Error::Connection(_))
    }
}
