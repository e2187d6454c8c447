//! Why a scene cannot be told.

/// An error of a scene.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store cannot answer.
    #[error(transparent)]
    Query(#[from] backstory_query::Error),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
    /// No run knows what the question is about.
    #[error("{0}")]
    NotFound(String),
}

/// The result of a question.
pub type Result<T> = std::result::Result<T, Error>;
