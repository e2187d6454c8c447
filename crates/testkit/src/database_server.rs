//! A server of a database for a test, whichever it is.

use std::io;
use std::path::Path;
use std::process::Output;

use crate::database_watcher::DatabaseWatcher;
use crate::stage::Stage;

/// A running server with the database `bank`. Dropped, it is stopped.
pub trait DatabaseServer: Sized {
    /// Starts a server in the stage, with settings beside those that recording needs. `None`, with
    /// a notice, where none is installed.
    fn begin(what: &str, stage: &Stage, settings: &[&str]) -> io::Result<Option<Self>>;

    /// Executes statements in the database, and returns the rows of their results.
    fn execute(&self, stage: &Stage, text: &str) -> io::Result<String>;

    /// The command that connects to the database through TCP.
    fn client(&self) -> String;

    /// The same through the server's socket file.
    fn local_client(&self) -> String;

    /// The shell line that executes a file, and stops at the first error.
    fn executes_file(&self, file: &Path) -> String;

    /// Begins to watch the database, and waits until it is watched.
    fn watched(&self, stage: &Stage, options: &[&str]) -> io::Result<DatabaseWatcher>;
}

/// Refuses the output of a command that failed.
pub(crate) fn checked(output: &Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(said))
}
