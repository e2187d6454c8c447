//! How a server is set up, and what its caller can do for it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstory_inspection::{ComparedContents, TableKeys};
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

/// Asks an inspector about the difference of two contents, as `backstory diff` does: the file's
/// name, both contents, and what their comparison found. `None` if no inspector is asked.
pub type AskStated = dyn Fn(&[u8], (&[u8], &[u8]), &ComparedContents) -> Option<Result<InsideChange, String>>
    + Send
    + Sync;

/// A source of bytes. Ends of ranges are behind the last byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteSource {
    /// `file`, `pipe`, `socket`, `device` or `arguments`.
    pub kind: &'static str,
    /// Its path or name.
    pub path: Vec<u8>,
    /// The run that read it.
    pub run: String,
    /// Bytes that were only moved.
    pub copied: Vec<(u64, u64)>,
    /// Bytes that were operands.
    pub computed: Vec<(u64, u64)>,
    /// Other bytes that decided by branches or comparisons.
    pub implicit: Vec<(u64, u64)>,
}

/// Bytes that the same functions wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteWriter {
    /// The bytes. Ends of ranges are behind the last byte.
    pub ranges: Vec<(u64, u64)>,
    /// The functions that were active, the innermost first. Empty if the engine knows none.
    pub functions: Vec<WritingFunction>,
    /// The recorded calls of functions that wrote the file, each as one line.
    pub calls: Vec<String>,
    /// All of this in words. `None`: nothing is known.
    pub how: Option<String>,
}

/// A function that was active at a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritingFunction {
    /// Its name.
    pub name: String,
    /// The name of its source file. Empty without debugging information.
    pub file: String,
    /// The line of the call, or of the write.
    pub line: Option<u64>,
}

/// The sources of a range of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteOrigins {
    /// The sources.
    pub sources: Vec<ByteSource>,
    /// The functions that wrote the bytes.
    pub writers: Vec<ByteWriter>,
    /// Bytes of the range that came from no input.
    pub constant: Vec<(u64, u64)>,
    /// Why more bytes are possible.
    pub possible: Vec<String>,
    /// The ranges are coarser than bytes.
    pub coarse: bool,
}

/// Follows a range of bytes of a file that a run wrote: the run's id, path and range. `None` if
/// the byte engine did not follow the run, or the run did not write the file.
pub type AskBytes =
    dyn Fn(&str, &[u8], Range<u64>) -> Result<Option<ByteOrigins>, String> + Send + Sync;

/// Abilities of the program that starts the server, which this crate lacks.
#[derive(Clone)]
pub struct Hooks {
    /// Adds finished runs, facts and annotations to the store. Called on a thread of its own.
    pub refresh: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Says whether a process records into a log.
    pub is_recording: fn(&Path) -> bool,
    /// Asks an inspector in its sandbox.
    pub inside: Arc<AskInside>,
    /// Asks an inspector about a difference.
    pub stated: Arc<AskStated>,
    /// Follows bytes.
    pub bytes: Arc<AskBytes>,
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
    /// The columns that the user chose as keys of tables.
    pub keys: TableKeys,
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
