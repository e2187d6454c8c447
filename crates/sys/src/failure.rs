//! A failed operation, as an error that names the operation and its object.

use std::path::{Path, PathBuf};
use std::{error, fmt, io};

/// An operation that the kernel refused.
#[derive(Debug)]
pub struct FailedOperation {
    what: &'static str,
    path: Option<PathBuf>,
    source: io::Error,
}

impl FailedOperation {
    /// For `map_err` on an operation on a file. `what` is a verb.
    pub fn on(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FailedOperation {
        let path = Some(path.to_owned());
        move |source| FailedOperation { what, path, source }
    }

    /// For `map_err` on a system call without an object worth naming. `what` is a verb with its
    /// object.
    pub fn of<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> FailedOperation {
        move |error| FailedOperation {
            what,
            path: None,
            source: error.into(),
        }
    }
}

impl fmt::Display for FailedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedOperation { what, path, source } = self;
        match path {
            Some(path) => write!(f, "cannot {what} {}: {source}", path.display()),
            None => write!(f, "cannot {what}: {source}"),
        }
    }
}

impl error::Error for FailedOperation {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}
