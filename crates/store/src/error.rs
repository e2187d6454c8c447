//! Errors of a store. Each names the object that it is about.

use std::path::{Path, PathBuf};

/// Result of store operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No option and no environment variable names the store.
    #[error(
        "cannot tell where the store is: neither --store, BACKSTORY_STORE, XDG_DATA_HOME nor HOME is set; give --store DIR"
    )]
    NoHome,
    /// The path of the store is not a directory.
    #[error("the store {} is not a directory; choose another with --store DIR", .0.display())]
    NotADirectory(PathBuf),
    /// The store's directory can't be written.
    #[error("the store {} is not writable ({reason}); choose another with --store DIR", dir.display())]
    NotWritable {
        /// The store.
        dir: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The directory belongs to another user, who could replace every file in it.
    #[error("the store {} belongs to user {owner}; choose another with --store DIR, or record as that user", dir.display())]
    NotYours {
        /// The store.
        dir: PathBuf,
        /// The number of the directory's owner.
        owner: u32,
    },
    /// There is no store there, and this operation does not make one.
    #[error("there is no store at {}; record something first, or give --store DIR", .0.display())]
    NoStore(PathBuf),
    /// The directory was made by a newer program.
    #[error("the store {} has format {found}, this program knows formats up to {known}; upgrade backstory", dir.display())]
    NewerFormat {
        /// The store.
        dir: PathBuf,
        /// Its format.
        found: u64,
        /// The newest this program knows.
        known: u64,
    },
    /// The `format` file holds no number.
    #[error("{} does not hold a format number; this is no backstory store, or it is damaged", .0.display())]
    BadFormat(PathBuf),
    /// The file `engine` has a word that this program does not know.
    #[error("{} names the storage engine '{found}', which this program does not know; upgrade backstory", path.display())]
    UnknownEngine {
        /// The file.
        path: PathBuf,
        /// Its word.
        found: String,
    },
    /// This program was built without the engine of the store.
    #[error("the store {} has the storage engine {engine}, without which this program was built; `cargo install backstory --features {feature}` builds one with it, or choose another store with --store DIR", dir.display())]
    EngineNotBuilt {
        /// The store.
        dir: PathBuf,
        /// The word of its engine.
        engine: &'static str,
        /// The feature of the program that has the engine.
        feature: &'static str,
    },
    /// This program was built without the engine that a store is to have.
    #[error(
        "this program was built without the storage engine {engine}; `cargo install backstory --features {feature}` builds one with it"
    )]
    NoSuchEngine {
        /// The word of the engine.
        engine: &'static str,
        /// The feature of the program that has the engine.
        feature: &'static str,
    },
    /// The store has another engine than the operation needs.
    #[error("the store {} has the storage engine {found}, and this operation needs {wanted}; choose another store with --store DIR", dir.display())]
    OtherEngine {
        /// The store.
        dir: PathBuf,
        /// The word of its engine.
        found: &'static str,
        /// The word of the engine that is needed.
        wanted: &'static str,
    },
    /// The database was made by a newer program.
    #[error("the database {} has schema {found}, this program knows schemas up to {known}; upgrade backstory", path.display())]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest this program knows.
        known: i64,
    },
    /// The database was made by a program from before the first release.
    #[error("the database {} is from before version 0.1.0 of backstory; move it away and the runs are indexed again from their logs", .0.display())]
    PreRelease(PathBuf),
    /// The file is a database of something else, or none.
    #[error("{} is not a backstory database; move it away and the runs are indexed again from their logs", .0.display())]
    NotOurs(PathBuf),
    /// The database is damaged.
    #[error("the database {} is damaged ({detail}); `backstory store rebuild` makes it again from the logs", path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
    /// No space is left.
    #[error("no space left for the database {}; nothing was changed", .0.display())]
    Full(PathBuf),
    /// Another process kept the database locked for longer than this one waits.
    #[error("the database {} is locked by another process; try again", .0.display())]
    Busy(PathBuf),
    /// The caller stopped the question ([`crate::SqliteStore::interrupt_when`]).
    #[error("the question to the database {} was stopped", .0.display())]
    Interrupted(PathBuf),
    /// Any other failure of the database.
    #[error("cannot {doing} in the database {}: {source}", path.display())]
    Database {
        /// The operation that failed.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// Any other failure of a key-value engine.
    #[error("cannot {doing} in the database {}: {reason}", path.display())]
    Engine {
        /// The operation that failed.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// The engine's message.
        reason: String,
    },
    /// The file that names the server of the database is missing or cannot be understood.
    #[error("{} names no PostgreSQL database ({reason}); `backstory store migrate --to postgresql --connection postgresql://USER@HOST/DATABASE` writes it", path.display())]
    NoConnection {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// The server refused the connection, or was not reached.
    #[error("cannot connect to {}, which {} names: {reason}; check that the server runs, and the password in PGPASSWORD or ~/.pgpass", server.display(), file.display())]
    Unreachable {
        /// The database, without a password.
        server: PathBuf,
        /// The file that names it.
        file: PathBuf,
        /// The message of the server or the system.
        reason: String,
    },
    /// The connection to the server ended.
    #[error("the connection to {} was lost ({reason}); what was not finished is not in the database, so repeat the command", server.display())]
    ConnectionLost {
        /// The database, without a password.
        server: PathBuf,
        /// The message of the server or the system.
        reason: String,
    },
    /// The server does not permit the operation to this user.
    #[error("{} does not permit that ({reason}); only the role that recorded a run may change it, and the database's owner grants all other rights", server.display())]
    NotPermitted {
        /// The database, without a password.
        server: PathBuf,
        /// The message of the server.
        reason: String,
    },
    /// A file of the store could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// A stored record can't be decoded.
    #[error(
        "a stored {0} is damaged; `backstory store rebuild` makes the database again from the logs"
    )]
    Damaged(&'static str),
    /// The run is in the store already.
    #[error("run {0} is in the store already")]
    Exists(String),
    /// No such run.
    #[error("no run {0} in the store")]
    NoRun(String),
    /// The graph names an activity or entity that it did not announce.
    #[error("run {run}: {what} {id} was named before it was announced")]
    Unannounced {
        /// The run being appended.
        run: String,
        /// `activity` or `entity`.
        what: &'static str,
        /// Its id in the run.
        id: u64,
    },
    /// A number outgrew its field.
    #[error("too many {0} for this store")]
    TooMany(&'static str),
    /// The caller could not produce the graph that was being appended.
    #[error("cannot build the graph: {0}")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// True if the user has to give another argument or variable: the path of the store is not
    /// known, or is not a directory.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Error::NoHome | Error::NotADirectory(_))
    }

    /// Wraps the error of the caller that produces the graph.
    pub fn source_failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Source(error.into())
    }

    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Error::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    /// Sorts a database failure by what the user can do about it.
    pub(crate) fn database(doing: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::*;
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(NotADatabase) => Error::NotOurs(path),
            Some(DatabaseCorrupt) => Error::Corrupt {
                path,
                detail: source.to_string(),
            },
            Some(DiskFull) => Error::Full(path),
            Some(OperationInterrupted) => Error::Interrupted(path),
            Some(DatabaseBusy | DatabaseLocked) => Error::Busy(path),
            Some(ReadOnly) => Error::NotWritable {
                dir: path,
                reason: source.to_string(),
            },
            _ => Error::Database {
                doing,
                path,
                source,
            },
        }
    }
}
