//! Why a reconstruction is not possible.

use std::io;

/// An error of a reconstruction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The deep log has no process whose start it knows.
    #[error(
        "the deep log has no program with its start: it was cut off before, or the program is static"
    )]
    NoProgram,
    /// The process is not in the deep log.
    #[error("process {0} is not in the deep log; `backstory processes` lists the deep ones")]
    NoProcess(u32),
    /// There are fewer requests.
    #[error("there is no request {wanted}: the run served {found}")]
    NoRequest {
        /// The number that was given.
        wanted: usize,
        /// The number of requests.
        found: usize,
    },
    /// The record does not have the connection of a request.
    #[error("the deep log does not have the beginning of the connection of request {0}")]
    NoConnection(usize),
    /// The program could not be started.
    #[error("cannot start {program}: {source}")]
    NotStarted {
        /// Its path.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// The kernel refused a call of the supervisor.
    #[error("cannot {doing} the program that runs again: {source}")]
    Supervise {
        /// The attempt.
        doing: &'static str,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    /// The kernel refused `doing`.
    pub fn supervise(doing: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Supervise { doing, source }
    }
}
