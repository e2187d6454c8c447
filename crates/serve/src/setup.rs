//! How a server is set up, and what its caller can do for it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstory_store::Home;

use crate::gate::AccessToken;

/// An inspector's sentences about the changes between two contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideChange {
    /// The inspector.
    pub inspector: String,
    /// The changes in plain sentences. There is at least one.
    pub sentences: Vec<String>,
}

/// Asks an inspector: the file's name, its former content, and its present one. `None` if none
/// reads the format, or if it has nothing to tell in time.
pub type AskInside = dyn Fn(&[u8], &[u8], &[u8]) -> Option<InsideChange> + Send + Sync;

/// Abilities of the program that starts the server, which this crate lacks.
#[derive(Clone)]
pub struct Hooks {
    /// Adds finished runs, facts and annotations to the store. Called on a thread of its own.
    pub refresh: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Says whether a process records into a log.
    pub is_recording: fn(&Path) -> bool,
    /// Asks an inspector in its sandbox.
    pub inside: Arc<AskInside>,
    /// The program whose command `rerun` brings a file up to date.
    pub program: PathBuf,
}

/// The subject that the page opens with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// The list of runs.
    #[default]
    Home,
    /// A run, by its id.
    Run(String),
    /// A file, by its absolute path.
    File(Vec<u8>),
}

/// How a server is set up.
#[derive(Clone)]
pub struct Setup {
    /// The store.
    pub home: Home,
    /// The port, or 0 for any that is free.
    pub port: u16,
    /// The secret that clients must know.
    pub token: AccessToken,
    /// The page may run `backstory rerun`.
    pub allow_rerun: bool,
    /// The subject that the page opens with.
    pub start: Start,
    /// The directory of the project, in which `status` stays. `None`: everywhere.
    pub project: Option<PathBuf>,
    /// The abilities of the caller.
    pub hooks: Hooks,
}

impl fmt::Debug for Setup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Setup")
            .field("home", &self.home)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
