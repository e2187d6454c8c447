//! Why the files of the byte engine cannot be read.

use std::path::PathBuf;

/// A failure to read what the byte engine recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot read {path}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The content is not what the format allows.
    #[error("{path} is damaged at byte {at}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where reading stopped.
        at: usize,
        /// The finding, in words.
        what: &'static str,
    },
}
