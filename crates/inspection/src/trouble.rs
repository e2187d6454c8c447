//! The failures of an inspection.

use std::path::PathBuf;

/// Why an inspector gave no answer. Each message names the inspector and the inspected file.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The worker is not installed.
    #[error("{} is not installed beside this program: install it there, or in {}, to see what is inside of files", crate::WORKER, .0.display())]
    NoWorker(PathBuf),
    /// The worker that runs WebAssembly components is not installed.
    #[error("inspector {inspector} is a WebAssembly component: install {} in {} to run it", crate::COMPONENT_WORKER, .directory.display())]
    NoComponentWorker {
        /// The inspector.
        inspector: String,
        /// The directory of the other worker.
        directory: PathBuf,
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
    #[error("cannot start {}: {cause}", .program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The kernel's reason.
        cause: std::io::Error,
    },
    /// The content is too large.
    #[error("{object} is not inspected: it has more than {} MiB", crate::LARGEST_CONTENT >> 20)]
    TooLarge {
        /// The file.
        object: String,
    },
    /// The inspector could not read the file.
    #[error("inspector {inspector} cannot read {object}: {because}")]
    Unreadable {
        /// The inspector.
        inspector: String,
        /// The file.
        object: String,
        /// Its own words, printable.
        because: String,
    },
    /// The inspector ended without an answer.
    #[error("inspector {inspector} crashed on {object}: {how}")]
    Crashed {
        /// The inspector.
        inspector: String,
        /// The file.
        object: String,
        /// The signal or status, and its last words.
        how: String,
    },
    /// The inspector took too long.
    #[error("inspector {inspector} took more than {seconds} s on {object} and was ended")]
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
