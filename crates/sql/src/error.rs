//! Why a question in SQL has no answer.

use std::time::Duration;

/// Result of a question in SQL.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a question in SQL has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// SQLite does not understand the text.
    #[error("{message}")]
    Syntax {
        /// SQLite's words.
        message: String,
        /// The offset in bytes of the part that is wrong.
        at: Option<usize>,
    },
    /// The text has more than one statement, or none.
    #[error("expected one SELECT statement")]
    NotOne,
    /// The statement would change something.
    #[error("only SELECT is allowed: a question never changes the store")]
    Refused,
    /// The answer takes too long.
    #[error("no answer within {} s: narrow the question (`WHERE run = ...`), or allow more with --timeout", .0.as_secs())]
    TooLong(Duration),
    /// The answer takes too much memory.
    #[error(
        "the question needs more than {0} MB of memory: narrow it, or allow more with --memory"
    )]
    TooMuchMemory(u64),
    /// The answer fails in the middle, in SQLite's words or those of a store that cannot be read.
    #[error("{0}")]
    Failed(String),
    /// A failure of the store.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
    /// A failure of a query.
    #[error(transparent)]
    Query(backstory_query::Error),
    /// A failure while steps were found.
    #[error(transparent)]
    Workflow(backstory_workflow::Error),
    /// Another failure of SQLite.
    #[error("SQLite fails: {0}")]
    Sqlite(rusqlite::Error),
}

impl Error {
    /// True if the question is wrong, whatever the store contains.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Error::Syntax { .. } | Error::NotOne | Error::Refused)
    }

    pub(crate) fn query(error: backstory_query::Error) -> Error {
        match error {
            backstory_query::Error::Store(error) => Error::Store(error),
            other => Error::Query(other),
        }
    }

    pub(crate) fn workflow(error: backstory_workflow::Error) -> Error {
        match error {
            backstory_workflow::Error::Store(error) => Error::Store(error),
            backstory_workflow::Error::Query(error) => Error::query(error),
            other => Error::Workflow(other),
        }
    }
}
