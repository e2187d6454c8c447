//! Why the steps of a run cannot be found.

/// Result of looking for steps.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the steps of a run cannot be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recorded commands left no file.
    #[error(
        "{0} has no step that left a file: a workflow makes files; see `backstory files` for what it touched"
    )]
    NoSteps(String),
    /// A query of the store failed.
    #[error(transparent)]
    Query(#[from] backstory_query::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
}
