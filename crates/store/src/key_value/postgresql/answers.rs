//! Sorts the errors of a server by their remedy.

use std::path::PathBuf;

use postgres::error::{DbError, SqlState};

use crate::Error;

/// The names in messages.
#[derive(Debug, Clone)]
pub struct Failing {
    /// The database, without a password.
    pub server: PathBuf,
    /// The file that names it.
    pub file: PathBuf,
}

/// True if the connection cannot be used any more.
pub fn is_lost(error: &postgres::Error) -> bool {
    match error.code() {
        Some(code) => ["08", "57P"]
            .iter()
            .any(|class| code.code().starts_with(class)),
        None => true,
    }
}

/// The message of the server or the system, without the words of this client.
pub fn reason(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => match std::error::Error::source(error) {
            Some(source) => source.to_string(),
            None => error.to_string(),
        },
    }
}

impl Failing {
    /// The error of a connection that could not be made.
    pub fn unreachable(&self, error: &postgres::Error) -> Error {
        Error::Unreachable {
            server: self.server.clone(),
            file: self.file.clone(),
            reason: reason(error),
        }
    }

    /// The error of an operation.
    pub fn error(&self, doing: &'static str, error: &postgres::Error) -> Error {
        let (path, reason) = (self.server.clone(), reason(error));
        let server = path.clone();
        let code = error.as_db_error().map(DbError::code);
        match code {
            _ if is_lost(error) => Error::ConnectionLost { server, reason },
            Some(&SqlState::DISK_FULL) => Error::Full(path),
            Some(&SqlState::LOCK_NOT_AVAILABLE) => Error::Busy(path),
            Some(&SqlState::INSUFFICIENT_PRIVILEGE | &SqlState::READ_ONLY_SQL_TRANSACTION) => {
                Error::NotPermitted { server, reason }
            }
            Some(&SqlState::INVALID_SCHEMA_NAME) => Error::NoConnection {
                path: self.file.clone(),
                reason,
            },
            Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => Error::Corrupt {
                path,
                detail: reason,
            },
            _ => Error::Engine {
                doing,
                path,
                reason,
            },
        }
    }
}
