//! Sorts the errors of redb by their remedy.

use std::path::Path;

use redb::Error as RedbError;

use crate::Error;
use crate::key_value::damage::{corrupt, failed_io};

/// Sorts a failure by what the user can do about it.
pub fn failed(doing: &'static str, path: &Path, error: RedbError) -> Error {
    match error {
        RedbError::Corrupted(detail) => corrupt(path, detail),
        RedbError::DatabaseAlreadyOpen | RedbError::WouldBlock => Error::Busy(path.to_owned()),
        RedbError::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Error::NotOurs(path.to_owned())
        }
        RedbError::Io(error) => failed_io(doing, path, error),
        RedbError::TableDoesNotExist(_) | RedbError::TableTypeMismatch { .. } => {
            Error::NotOurs(path.to_owned())
        }
        error => Error::Engine {
            doing,
            path: path.to_owned(),
            reason: error.to_string(),
        },
    }
}
