//! The file `graph.postgresql` of a store: which database of which server has its graph.
//!
//! In: a connection in the form of libpq, `postgresql://USER@HOST:PORT/DATABASE` or `host=…
//! dbname=…`. Out: a JSON object that only its owner may read: the text may have a password.
//!
//! Invariant: no message and no `Debug` output shows the text.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use backstory_files::regular;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The database of a server, as a store names it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionFile {
    /// Server, database and user, in the form of libpq. May have a password.
    pub connection: String,
    /// The number of the store's directory, as hexadecimal digits. Facts and annotations in the
    /// database have it.
    pub directory: String,
}

impl std::fmt::Debug for ConnectionFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ConnectionFile({})", self.directory)
    }
}

impl ConnectionFile {
    /// The file of a store that is new to the database.
    pub fn new(connection: &str) -> Result<ConnectionFile> {
        let mut number = [0; 16];
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty()).map_err(
            |error| {
                Error::io(
                    "get a random number from",
                    Path::new("/dev/urandom"),
                    error.into(),
                )
            },
        )?;
        Ok(ConnectionFile {
            connection: connection.to_owned(),
            directory: format!("{:032x}", u128::from_be_bytes(number)),
        })
    }

    /// Reads the file.
    ///
    /// Errors: [`Error::NoConnection`] if it is missing or damaged.
    pub fn read(path: &Path) -> Result<ConnectionFile> {
        let wrong = |reason: &str| Error::NoConnection {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let text = match regular::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(wrong("it does not exist"));
            }
            Err(error) => return Err(Error::io("read", path, error)),
        };
        // The message of the parser could show a part of the text.
        let read = serde_json::from_slice(&text);
        read.map_err(|_| wrong("it is damaged"))
    }

    /// Writes a new file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(Error::source_failed)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let written = options
            .open(path)
            .and_then(|mut file| writeln!(file, "{text}"));
        written.map_err(|error| Error::io("write", path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_connection_is_read_as_it_was_written_and_is_readable_by_its_owner_only() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("graph.postgresql");
        let file = ConnectionFile::new("postgresql://ann:secret@h/x").unwrap();
        file.write(&path).unwrap();
        assert_eq!(ConnectionFile::read(&path).unwrap(), file);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(!format!("{file:?}").contains("secret"));
    }

    #[test]
    fn a_damaged_connection_is_an_error_without_the_password() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("graph.postgresql");
        std::fs::write(&path, "{\"connection\": \"secret\", \"directory\": 7}").unwrap();
        let error = ConnectionFile::read(&path).unwrap_err().to_string();
        assert!(
            !error.contains("secret") && error.contains("graph.postgresql"),
            "{error}"
        );
    }
}
