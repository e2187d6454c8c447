//! Errors of a deep log as a whole. Damage inside is no error: see [`crate::DeepDamage`].

use std::path::{Path, PathBuf};

/// A deep log could not be written or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system reported an error.
    #[error("cannot {operation} deep log {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The deep log.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file could not be opened or mapped.
    #[error(transparent)]
    Open(#[from] backstory_eventlog::Error),
    /// The file has content, but no frame of a deep log.
    #[error("{} is not a deep log of backstory", path.display())]
    NotADeepLog {
        /// The file.
        path: PathBuf,
    },
    /// A later version of backstory wrote it.
    #[error("deep log {} has format {found}, this backstory reads up to {known}: use a newer one", path.display())]
    Newer {
        /// The deep log.
        path: PathBuf,
        /// Its version.
        found: u16,
        /// The latest version that can be read.
        known: u16,
    },
    /// A header or an end that JSON cannot express.
    #[error("cannot encode a frame of deep log {}: {source}", path.display())]
    Encode {
        /// The deep log.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
}

impl Error {
    /// True if the disk still has the room that a deep log leaves free.
    pub fn leaves_room(&self) -> bool {
        // Errors of the kernel have other kinds.
        matches!(self, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::Other)
    }

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
