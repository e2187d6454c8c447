//! The begin and the end of a run without a command of its own: a mount, or a watch of a database.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use backstory_session as session;
use backstory_store::Home;
use backstory_vocabulary::{GuardMode, LookupsMode};

use crate::recording_options;

/// The options of a run of a source, which has no command of its own.
pub(super) fn source_options(
    home: &Home,
    id: String,
    name: Option<String>,
    redact: Vec<String>,
) -> session::Options {
    session::Options {
        command: std::env::args_os().collect(),
        name,
        guard: GuardMode::Off,
        lookups: LookupsMode::All,
        redact,
        ..recording_options::of_store(home, id)
    }
}

/// Starts the indexer with the lowest priority, as the last step of a command. Without it, the
/// first question does the work.
pub(super) fn start_indexer(words: &[OsString]) {
    // The new process inherits the priority.
    backstory_sys::come_last();
    if let Some((program, rest)) = words.split_first() {
        let _ = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
    }
}
