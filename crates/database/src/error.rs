//! Reasons why a database cannot be watched.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::connection_target::ConnectionTarget;

/// Why a database cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection's text cannot be read.
    #[error("{text:?} is no connection: write {forms}")]
    Target {
        /// The text, without its password.
        text: String,
        /// The texts that can be read.
        forms: &'static str,
    },
    /// No connection.
    #[error("cannot connect to the server at {address}: {source}; check that it listens there")]
    Connect {
        /// Host and port, or the socket's path.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The connection broke before the server let the user in.
    #[error("the log-in at {address} broke off: {source}; check that {scheme} listens there")]
    Unanswered {
        /// Host and port, or the path of the socket or its directory.
        address: String,
        /// The server's kind, as in names of entities.
        scheme: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection to the server broke")]
    Broken(#[source] std::io::Error),
    /// The server wants a log-in that is not supported.
    #[error("the server asks for {wanted}; {remedy}")]
    LogIn {
        /// The log-in.
        wanted: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The server refused the connection, perhaps because it is not encrypted.
    #[error("the server refuses the connection: {message}; {remedy}")]
    Denied {
        /// The server's message.
        message: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The server refused something.
    #[error("the server refuses {what}: {message}{}{}", in_parentheses(*code), after_semicolon(remedy))]
    Refused {
        /// The statement, or what it was for.
        what: String,
        /// The server's number of the error. 0: it has none.
        code: u16,
        /// The server's message.
        message: String,
        /// The remedy, if one is known.
        remedy: Option<&'static str>,
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
    /// Several settings of the server.
    #[error("{}", joined(.0))]
    Settings(Vec<Error>),
    /// A log that the server writes cannot be read.
    #[error(
        "cannot read {log} {path}: {source}; watch as root or as the server's user, on the server's machine"
    )]
    LogFile {
        /// The kind of log.
        log: &'static str,
        /// The file or directory.
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

/// The messages of several errors.
fn joined(errors: &[Error]) -> String {
    let messages: Vec<String> = errors.iter().map(Error::to_string).collect();
    messages.join("; ")
}

impl Error {
    /// Makes an error of the machine.
    pub fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
        move |source| Error::System {
            what,
            source: source.into(),
        }
    }

    /// The server closed the connection.
    pub fn closed() -> Error {
        Error::Broken(std::io::ErrorKind::UnexpectedEof.into())
    }

    /// The error of a log-in at a server. A connection that breaks says where.
    #[must_use]
    pub fn at_log_in(self, target: &ConnectionTarget) -> Error {
        let source = match self {
            // The time to wait is over.
            Error::Broken(source) if source.kind() == ErrorKind::WouldBlock => {
                std::io::Error::new(ErrorKind::TimedOut, "no answer came in time")
            }
            Error::Broken(source) => source,
            other => return other,
        };
        Error::Unanswered {
            address: target.address(),
            scheme: target.scheme,
            source,
        }
    }

    /// A setting with another value than recording needs.
    pub fn setting(
        setting: &'static str,
        value: &str,
        wanted: &'static str,
        remedy: &'static str,
    ) -> Error {
        Error::Setting {
            setting,
            value: match value {
                "" => "not set".to_owned(),
                value => value.to_owned(),
            },
            wanted,
            remedy,
        }
    }

    /// A refusal, with the beginning of the statement.
    pub fn refused(what: &str, code: u16, message: &[u8], remedy: Option<&'static str>) -> Error {
        Error::Refused {
            remedy,
            what: what.chars().take(120).collect(),
            code,
            message: String::from_utf8_lossy(message).into_owned(),
        }
    }
}

fn in_parentheses(code: u16) -> String {
    match code {
        0 => String::new(),
        code => format!(" ({code})"),
    }
}

fn after_semicolon(remedy: &Option<&'static str>) -> String {
    remedy.map_or(String::new(), |remedy| format!("; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_that_breaks_off_names_the_server() {
        let target = ConnectionTarget {
            scheme: "mariadb",
            host: "db.lab".to_owned(),
            port: 5432,
            user: String::new(),
            database: String::new(),
            password: None,
        };
        let silent = Error::Broken(ErrorKind::WouldBlock.into()).at_log_in(&target);
        assert_eq!(
            silent.to_string(),
            "the log-in at db.lab:5432 broke off: no answer came in time; check that mariadb \
             listens there"
        );
        let closed = Error::closed().at_log_in(&target).to_string();
        assert!(closed.starts_with("the log-in at db.lab:5432"), "{closed}");
    }

    #[test]
    fn a_refusal_names_the_remedy_if_one_is_known() {
        let refused = |remedy| Error::refused("SHOW x", 0, b"no", remedy).to_string();
        assert_eq!(refused(None), "the server refuses SHOW x: no");
        assert_eq!(refused(Some("ask")), "the server refuses SHOW x: no; ask");
    }
}
