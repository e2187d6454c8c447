//! Why a judgement is not possible.

/// Result of judgements.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a judgement is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A query of the store failed.
    #[error(transparent)]
    Query(#[from] backstory_query::Error),
    /// The steps of a run could not be found.
    #[error(transparent)]
    Workflow(#[from] backstory_workflow::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
}
