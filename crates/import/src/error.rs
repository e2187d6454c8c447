//! Why a log could not be imported.

use std::path::PathBuf;

/// Why a log could not be imported. Nothing is left in the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the log could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no log of the tool.
    #[error("{}, line {line}, column {column}: this is no log of {tool}: {expected} was expected", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The tool.
        tool: &'static str,
        /// The line, from 1.
        line: u64,
        /// The byte of the line, from 1.
        column: usize,
        /// The text that should be there.
        expected: &'static str,
    },
    /// A log of perf has no names.
    #[error("{}: perf trace printed pointers instead of names: it needs root and BPF skeletons (`perf version --build-options`); or use strace or bpftrace", path.display())]
    WithoutNames {
        /// The file.
        path: PathBuf,
    },
    /// The file is no document of the format.
    #[error("{}, line {line}, column {column}: this is no {format}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The format, as people call it.
        format: &'static str,
        /// The line, from 1.
        line: u64,
        /// The byte of the line.
        column: usize,
        /// The reason.
        why: String,
    },
    /// The file is an archive, but no pack of ReproZip.
    #[error("{} is no pack of ReproZip: it is an archive whose first file is {first:?}, without METADATA/trace.sqlite3", path.display())]
    NoPack {
        /// The file.
        path: PathBuf,
        /// The name of its first file.
        first: String,
    },
    /// A directory was given instead of a file.
    #[error("{} is a directory: name the files of the log", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// A pipe was given instead of a file.
    #[error("{} is a pipe, and a log is read more than once: write it into a file, or import with --pipe PIPE", path.display())]
    Pipe {
        /// The pipe.
        path: PathBuf,
    },
    /// The document has more than can be imported.
    #[error("{} has more than {most} activities, files and relations, which is more than an import reads", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        most: usize,
    },
    /// The files cannot be of one run.
    #[error("{}: {why}", path.display())]
    NotOfOneRun {
        /// The first file that does not fit.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// The log of the run could not be written.
    #[error("cannot write the log of the run: {0}")]
    Log(#[from] backstory_eventlog::Error),
    /// The log of the run could not be made or finalized.
    #[error("cannot {what} {}: {source}", path.display())]
    Write {
        /// Verb.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Error {
    /// Of a file of the log that could not be read.
    pub(crate) fn read(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// Of a file that as a whole is no log of this format.
    pub(crate) fn not_of_format(
        path: &std::path::Path,
        format: &'static str,
        why: String,
    ) -> Error {
        Error::Malformed {
            path: path.to_owned(),
            format,
            line: 1,
            column: 1,
            why,
        }
    }

    /// Of a document that describes more than [`MOST`](crate::description::MOST) things.
    pub(crate) fn too_large(path: &std::path::Path) -> Error {
        Error::TooLarge {
            path: path.to_owned(),
            most: crate::description::MOST,
        }
    }

    /// Of a file of the store that could not be written.
    pub(crate) fn write<'a>(
        what: &'static str,
        path: &'a std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Error + 'a {
        move |source| Error::Write {
            what,
            path: path.to_owned(),
            source,
        }
    }
}
