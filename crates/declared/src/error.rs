//! Why declarations cannot be read.

use std::path::PathBuf;

/// Result of reading declarations.
pub type Result<T> = std::result::Result<T, Error>;

/// Why declarations cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A build tool could not be started.
    #[error("cannot run {program} in {} to read its rules: {source}", directory.display())]
    Start {
        /// The tool.
        program: String,
        /// Its current directory.
        directory: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file with declarations could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A line of a list is no pattern.
    #[error("{}: {source}", path.display())]
    Pattern {
        /// The list.
        path: PathBuf,
        /// The cause.
        source: Box<backstory_query::Error>,
    },
}
