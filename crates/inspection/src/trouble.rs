//! The failures of an inspection.

use std::path::PathBuf;

use crate::worker_process::printable;

/// Why an inspector gave no answer. Each message is a sentence that names the file, what happened,
/// and what helps.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The worker is not installed.
    #[error("the format of {object} is not read, because {} is not installed: install it beside this program or in {}", crate::WORKER, .directory.display())]
    NoWorker {
        /// The file.
        object: String,
        /// A directory in which the worker is found.
        directory: PathBuf,
    },
    /// Earlier files took too long.
    #[error(
        "the format of {object} is not read, because files before it took {seconds} s: compare it alone"
    )]
    NoTime {
        /// The file.
        object: String,
        /// The time that all files may take.
        seconds: u64,
    },
    /// A component could not be read.
    #[error("cannot read the component {} of inspector {inspector}: {cause}", .path.display())]
    NoComponent {
        /// The inspector.
        inspector: String,
        /// The component's file.
        path: PathBuf,
        /// The kernel's reason, or that the file is too large.
        cause: std::io::Error,
    },
    /// The worker could not be started.
    #[error("the format of {object} is not read, because {} cannot be started: {cause}", .program.display())]
    NotStarted {
        /// The file.
        object: String,
        /// The program.
        program: PathBuf,
        /// The kernel's reason.
        cause: std::io::Error,
    },
    /// The content is too large.
    #[error("the format of {object} is not read, because it has more than {} MiB: use the format's own program", crate::LARGEST_CONTENT >> 20)]
    TooLarge {
        /// The file.
        object: String,
    },
    /// The inspector could not read the file.
    #[error(
        "inspector {inspector} cannot read {object}: {because}; check the file with the format's own program"
    )]
    Unreadable {
        /// The inspector.
        inspector: String,
        /// The file.
        object: String,
        /// Its own words, printable.
        because: String,
    },
    /// The columns that the user chose as the key of a table were not used.
    #[error("no key was used for {object}, because {because}")]
    NoKey {
        /// The file.
        object: String,
        /// The reason, and what helps.
        because: String,
    },
    /// The inspector ended without an answer.
    #[error("inspector {inspector} crashed on {object}: {how}; use the format's own program")]
    Crashed {
        /// The inspector.
        inspector: String,
        /// The file.
        object: String,
        /// The signal or status, and its last words.
        how: String,
    },
    /// The inspector took too long.
    #[error(
        "inspector {inspector} took more than {seconds} s on {object} and was ended; use the format's own program"
    )]
    TooSlow {
        /// The inspector.
        inspector: String,
        /// The file.
        object: String,
        /// The limit that it reached.
        seconds: u64,
    },
    /// The answer is not what an inspector may say.
    #[error("the answer of inspector {inspector} about {object} is refused: {because}")]
    Refused {
        /// The inspector.
        inspector: String,
        /// The file.
        object: String,
        /// The reason of the refusal.
        because: String,
    },
}

impl Trouble {
    /// The worker is not installed, and could be in this directory.
    pub fn no_worker(name: &[u8], directory: PathBuf) -> Trouble {
        Trouble::NoWorker {
            object: printable(&String::from_utf8_lossy(name)),
            directory,
        }
    }
}
