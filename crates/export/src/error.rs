//! Why something cannot be exported.

use std::io;
use std::path::PathBuf;

/// Result of exports.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is not known which steps make the file.
    #[error(transparent)]
    Currency(#[from] backstory_currency::Error),
    /// The log of a run cannot be read.
    #[error(transparent)]
    Log(#[from] backstory_eventlog::Error),
    /// There is no such format.
    #[error("there is no format '{name}'; known are: {known}")]
    NoFormat {
        /// The unknown name.
        name: String,
        /// All known names, separated by commas.
        known: String,
    },
    /// The recording has nothing that this format could express.
    #[error("{subject} has no {what}: {advice}")]
    Nothing {
        /// Which run or file.
        subject: String,
        /// The missing part.
        what: &'static str,
        /// Advice for the user.
        advice: &'static str,
    },
    /// A directory cannot go to stdout.
    #[error("{0} is a directory of files: name one with -o DIR")]
    NotAStream(&'static str),
    /// The commands of a run may change, and its whole command cannot be repeated.
    #[error(
        "{because}, which decided on the commands of run {run}; the whole run cannot be written, because it read {lost}: \
         record it with a script and files instead"
    )]
    Lost {
        /// The run's id.
        run: String,
        /// The fact that decided on its commands, as half a sentence.
        because: String,
        /// The standard input that is gone, in words.
        lost: &'static str,
    },
    /// The target exists, and is not of a kind that is replaced.
    #[error("{} is there already, and is {what}: name another with -o, or remove it", .path.display())]
    InTheWay {
        /// The target.
        path: PathBuf,
        /// The kind of the existing file.
        what: &'static str,
    },
    /// The directory that the target would be in is not there.
    #[error("cannot write {}: there is no directory {}: make it, or name another place with -o", .path.display(), .directory.display())]
    NoDirectory {
        /// The target.
        path: PathBuf,
        /// Where it would be.
        directory: PathBuf,
    },
    /// The target cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The target.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A part of the target cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Part {
        /// The target.
        path: PathBuf,
        /// Which part, and why.
        source: Box<Error>,
    },
    /// The format cannot express the subject.
    #[error("{format} has no way to say {what}: {advice}")]
    Unsayable {
        /// Which format.
        format: &'static str,
        /// What.
        what: String,
        /// Advice for the user.
        advice: &'static str,
    },
    /// A program that the format needs failed or is not there.
    #[error("{program}: {why}")]
    Program {
        /// Which.
        program: &'static str,
        /// The program's message, or advice.
        why: String,
    },
    /// A content is needed, and is not available.
    #[error("the content of {path} is not available: {why}; {advice}")]
    NoContent {
        /// Which file.
        path: String,
        /// Why.
        why: String,
        /// Advice for the user.
        advice: &'static str,
    },
    /// A content is stored, and cannot be read.
    #[error("what {path} held: {source}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why. In a box, because it is large.
        source: Box<backstory_contents::Error>,
    },
    /// The store of contents failed.
    #[error(transparent)]
    Contents(#[from] backstory_contents::Error),
    /// A database that is part of the export cannot be written.
    #[error("its database: {0}")]
    Database(#[from] rusqlite::Error),
    /// A table that is part of the export cannot be written.
    #[error("its table {table}: {source}")]
    Table {
        /// Which file.
        table: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Writing the stream failed.
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// The query failed.
    #[error(transparent)]
    Query(#[from] backstory_query::Error),
    /// The steps could not be found.
    #[error(transparent)]
    Workflow(#[from] backstory_workflow::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
}
