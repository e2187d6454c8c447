//! Errors of the views.

use std::io;

/// Why a view could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The question behind the view has no answer.
    #[error(transparent)]
    Query(#[from] backstory_query::Error),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
    /// The steps could not be found.
    #[error(transparent)]
    Workflow(#[from] backstory_workflow::Error),
    /// The terminal could not be used.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// The result of a view.
pub type Result<T> = std::result::Result<T, Error>;
