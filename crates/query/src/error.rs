//! Errors of questions.

use std::path::PathBuf;

/// Result of a question.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No run ever used or made this path.
    #[error("no recorded run has seen {}", .0.display())]
    NotFound(PathBuf),
    /// No process of a run exchanged data with this address.
    #[error(
        "no recorded process exchanged data with {0}; `backstory peers` lists the connections of a \
         run, those that failed too"
    )]
    NoPeer(String),
    /// Runs looked for this path and found no file.
    #[error("no recorded run has seen {}: it was looked for, but was not there", .0.display())]
    OnlyMissing(PathBuf),
    /// No run used this table or row of a database.
    #[error("no recorded run has seen {0}; `backstory watch` records a database")]
    NoTable(String),
    /// No run used this table. Runs used others, which are named.
    #[error("no recorded run has seen {0}; recorded tables: {1}")]
    OtherTables(String, String),
    /// No run has this row of a table that runs used.
    #[error(
        "no recorded run has seen {row}: it has no recorded change with this key; `backstory of \
         --table {table}` shows what changed the table"
    )]
    NoRow {
        /// The row.
        row: String,
        /// The table, as the question names it.
        table: String,
    },
    /// No run has this row, and watches of its table have gaps.
    #[error("{row} is unknown: {gaps}")]
    NoRows {
        /// The row.
        row: String,
        /// The gaps: see [`gap_summary`](crate::gap_summary).
        gaps: String,
    },
    /// Several databases or schemas have this table.
    #[error("{0} can be one of several: {1}; write DATABASE/SCHEMA.TABLE or the whole name")]
    ManyTables(String, String),
    /// No run has this id or name.
    #[error("no run has the id or name '{0}'; `backstory log` lists all")]
    NoRun(String),
    /// The ids of several runs begin with this text.
    #[error("more than one run's id begins with '{0}': {1}")]
    Ambiguous(String, String),
    /// The store contains no run.
    #[error("nothing has been recorded yet")]
    NoRuns,
    /// A pattern that cannot be parsed.
    #[error("'{0}' is not a pattern: {1}")]
    BadPattern(String, String),
    /// A relative path without a current directory.
    #[error("cannot tell where {} is: {source}", path.display())]
    NoDirectory {
        /// The path.
        path: PathBuf,
        /// The error of the current directory.
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
    /// The record of the byte engine cannot be read.
    #[error(transparent)]
    Bytes(#[from] backstory_bytes::Error),
}

impl Error {
    /// True if the question itself is wrong, whatever the store contains: a pattern cannot be
    /// parsed.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Error::BadPattern(..))
    }
}
