//! Why a question has no answer.

use std::path::PathBuf;

/// Result of questions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No run ever used or made this path.
    #[error("no recorded run has seen {}", .0.display())]
    NotFound(PathBuf),
    /// Runs only ever found that there is nothing at this path.
    #[error("no recorded run has seen {}: it was looked for, but was not there", .0.display())]
    OnlyMissing(PathBuf),
    /// No run has this id or name.
    #[error("no run has the id or name '{0}'; `backstory log` lists all")]
    NoRun(String),
    /// More than one run's id begins like this.
    #[error("more than one run's id begins with '{0}': {1}")]
    Ambiguous(String, String),
    /// Nothing was ever recorded.
    #[error("nothing has been recorded yet")]
    NoRuns,
    /// A pattern that is none.
    #[error("'{0}' is not a pattern: {1}")]
    BadPattern(String, String),
    /// A relative path, and no current directory to start at.
    #[error("cannot tell where {} is: {source}", path.display())]
    NoDirectory {
        /// The path.
        path: PathBuf,
        /// Why there is no directory.
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
}
