//! Errors of contents, each with the object that it concerns.

use std::io;
use std::path::{Path, PathBuf};

use backstory_files::Digest;

/// Result of an operation on contents.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on contents failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No content was ever stored here.
    #[error("no contents are kept at {}; record with --contents=lazy to keep them", .0.display())]
    None(PathBuf),
    /// A newer program made the directory.
    #[error("the contents {} have format {found}, this program knows formats up to {known}; upgrade backstory", dir.display())]
    NewerFormat {
        /// The directory.
        dir: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format that this program knows.
        known: u64,
    },
    /// The `format` file holds no number.
    #[error("{} does not hold a format number; these are no contents, or they are damaged", .0.display())]
    BadFormat(PathBuf),
    /// A file could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The source of a content could not be read.
    #[error("cannot read what was to be kept: {0}")]
    Source(#[source] io::Error),
    /// No such content is stored.
    #[error("no content {0} is kept")]
    NotKept(Digest),
    /// The file of a content does not exist any more.
    #[error("the content {digest} is gone: {} is not there; `backstory store verify` lists all that is damaged", path.display())]
    Gone {
        /// The content.
        digest: Digest,
        /// The path where it should be.
        path: PathBuf,
    },
    /// Another store had the content, and has it no more.
    #[error("the content {digest} was left in {store}, whose file {} {what}; fetch it there again, or record with --self-contained", path.display())]
    Elsewhere {
        /// The content.
        digest: Digest,
        /// The other store, in words.
        store: String,
        /// Its file.
        path: PathBuf,
        /// The fault: "is gone", "has another content".
        what: String,
    },
    /// The bytes of a content are not those that were stored.
    #[error("the content {digest} in {} is damaged ({what}); `backstory store verify` lists all that is damaged", path.display())]
    Damaged {
        /// The content.
        digest: Digest,
        /// The file that holds it.
        path: PathBuf,
        /// The kind of damage.
        what: &'static str,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io {
            doing,
            path,
            source,
        }
    }
}
