//! Why a comparison or a replay is not possible.

use std::io;
use std::path::PathBuf;

use backstory_eventlog::event::Bytes;

/// Result of comparisons and replays.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a comparison or a replay is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A query of the store failed.
    #[error(transparent)]
    Query(#[from] backstory_query::Error),
    /// The steps could not be judged.
    #[error(transparent)]
    Currency(#[from] backstory_currency::Error),
    /// The steps of a run could not be found.
    #[error(transparent)]
    Workflow(#[from] backstory_workflow::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] backstory_store::Error),
    /// The contents failed.
    #[error(transparent)]
    Contents(#[from] backstory_contents::Error),
    /// The run's command could not be started.
    #[error(
        "the command of run {0} could not be started when it was recorded: there is nothing to replay"
    )]
    NeverRan(String),
    /// The contents of the run's files were not stored.
    #[error(
        "run {0} was recorded without contents: record again with --contents=lazy, or take its files from this machine as they are now with --allow-host"
    )]
    NoContents(String),
    /// Files that the run read are not available.
    #[error(
        "run {run} cannot be replayed: {what}; --allow-host takes from this machine what is there"
    )]
    Lacking {
        /// The run.
        run: String,
        /// The missing files.
        what: Lack,
    },
    /// There is no such argument.
    #[error("there is no argument {number}: the command has {count}, counted from 1")]
    NoArgument {
        /// Which.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// An argument is not in the record.
    #[error(
        "argument {number} of the command holds a secret that is not in the record: give it with --arg {number}=VALUE"
    )]
    RedactedArgument {
        /// Which, counted from 1.
        number: usize,
    },
    /// The run did not use the file that was to be replaced.
    #[error("the run did not use {}: `backstory files` lists what it used", String::from_utf8_lossy(.0))]
    NotAnInput(Bytes),
    /// The replacement of an input cannot be read.
    #[error("cannot use {} as an input: {source}", path.display())]
    Input {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The machine does not let an ordinary user make a namespace.
    #[error(
        "this machine lets you make no {what} namespace ({source}), and a replay is done in one"
    )]
    NoNamespace {
        /// Which.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The root could not be built.
    #[error("cannot {doing} {} for the replay: {source}", path.display())]
    Build {
        /// The attempted operation.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Paths whose contents are not available, each with the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct Lack(pub Vec<(Bytes, String)>);

/// The number of paths that a message names.
const NAMED: usize = 3;

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (path, why)) in self.0.iter().take(NAMED).enumerate() {
            let between = if at == 0 { "" } else { "; " };
            write!(
                f,
                "{between}the content of {} is not available: {why}",
                String::from_utf8_lossy(path)
            )?;
        }
        match self.0.len() {
            more if more > NAMED => write!(f, "; and of {} more files", more - NAMED),
            _ => Ok(()),
        }
    }
}

impl Error {
    pub(crate) fn build(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(rustix::io::Errno) -> Error {
        let path = path.into();
        move |source| Error::Build {
            doing,
            path,
            source: source.into(),
        }
    }

    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Build {
            doing,
            path,
            source,
        }
    }
}
