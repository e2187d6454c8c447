//! Errors of the arena.

use std::io;
use std::path::{Path, PathBuf};

use backstory_sys::FailedOperation;

/// Why an arena cannot be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on the arena's file, or another system call, failed.
    #[error(transparent)]
    Failed(#[from] FailedOperation),
    /// The file is not an arena, or one of another version.
    #[error("the arena {} is damaged or of another version", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// For `map_err` on operations on files.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let failed = FailedOperation::on(what, path);
        move |source| failed(source).into()
    }

    /// For `map_err` on other system calls.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |source| FailedOperation::of(what)(source).into()
    }
}
