//! What can go wrong with contents, each with the object it concerns.

use std::io;
use std::path::{Path, PathBuf};

use backstory_files::Digest;

/// Result of operations on contents.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on contents failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was ever kept here.
    #[error("no contents are kept at {}; record with --contents=lazy to keep them", .0.display())]
    None(PathBuf),
    /// The directory was made by a newer program.
    #[error("the contents {} have format {found}, this program knows formats up to {known}; upgrade backstory", dir.display())]
    NewerFormat {
        /// The directory.
        dir: PathBuf,
        /// Its format.
        found: u64,
        /// The newest this program knows.
        known: u64,
    },
    /// The `format` file holds no number.
    #[error("{} does not hold a format number; these are no contents, or they are damaged", .0.display())]
    BadFormat(PathBuf),
    /// A file could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What was to be put could not be read.
    #[error("cannot read what was to be kept: {0}")]
    Source(#[source] io::Error),
    /// No such content.
    #[error("no content {0} is kept")]
    NotKept(Digest),
    /// The file of a content is no longer there.
    #[error("the content {digest} is gone: {} is not there; `backstory store verify` lists all that is damaged", path.display())]
    Gone {
        /// The content.
        digest: Digest,
        /// Where it should be.
        path: PathBuf,
    },
    /// The bytes of a content are not those that were kept.
    #[error("the content {digest} in {} is damaged ({what}); `backstory store verify` lists all that is damaged", path.display())]
    Damaged {
        /// The content.
        digest: Digest,
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
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
