//! Errors of a log as a whole. Damage inside a log is no error: see [`crate::log::Damage`].

use std::path::{Path, PathBuf};

/// A log could not be written or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system reported an error.
    #[error("cannot {operation} log {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The log.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file has content, but no frame of a log.
    #[error("{} is not a log of backstory", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
    },
    /// A later version of backstory wrote it.
    #[error("log {} has format {found}, this backstory reads up to {known}: use a newer one", path.display())]
    Newer {
        /// The log.
        path: PathBuf,
        /// Its version.
        found: u16,
        /// The latest version that can be read.
        known: u16,
    },
    /// The frame is longer than its length field can express.
    #[error("cannot append {bytes} bytes to log {} as one frame: too long", path.display())]
    TooLong {
        /// The log.
        path: PathBuf,
        /// Bytes of the frame's content.
        bytes: usize,
    },
    /// A header or an end that JSON cannot express.
    #[error("cannot encode the {what} of log {}: {source}", path.display())]
    Encode {
        /// The frame.
        what: &'static str,
        /// The log.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
}

impl Error {
    /// Wraps an error of the file system.
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io {
            operation,
            path,
            source,
        }
    }
}
