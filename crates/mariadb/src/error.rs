//! Reasons why a database cannot be watched.

use std::path::PathBuf;

/// Why a database cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection's text cannot be read.
    #[error(
        "{0:?} is no connection: write mysql://USER@HOST:PORT/DATABASE, or mysql://USER@/DATABASE?socket=PATH"
    )]
    Target(String),
    /// No connection.
    #[error("cannot connect to the server at {address}: {source}")]
    Connect {
        /// Host and port, or the socket's path.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection to the server broke")]
    Broken(#[source] std::io::Error),
    /// The server wants a log-in that is not supported.
    #[error(
        "the server asks for the log-in {0}; create the user with mysql_native_password or unix_socket"
    )]
    LogIn(String),
    /// The server refused something.
    #[error("the server refuses {what}: {message} ({code})")]
    Refused {
        /// The statement, or what it was for.
        what: String,
        /// The server's number of the error.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// The server sent something unexpected.
    #[error("the server sent {0}, which the protocol does not allow here")]
    Protocol(String),
    /// A setting of the server.
    #[error("{setting} is {value}, but recording needs {wanted}: {remedy}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The value that is needed.
        wanted: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// The log of statements cannot be read.
    #[error(
        "cannot read the log of server_audit {path}: {source}; watch as root or as the server's user, on the server's machine"
    )]
    LogFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The machine refuses something.
    #[error("cannot {what}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The run cannot be recorded.
    #[error(transparent)]
    Session(#[from] backstory_session::Error),
}

impl Error {
    /// Makes an error of the machine.
    pub(crate) fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |source| Error::System {
            what,
            source: source.into(),
        }
    }
}
