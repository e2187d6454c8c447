//! What a caller asks of a recording, and what it gets back.

use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// One recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// The command and its arguments; the first is searched in `PATH` as a shell does.
    pub command: Vec<OsString>,
    /// Id of the run.
    pub id: String,
    /// Name of the run, if the user gave one.
    pub name: Option<String>,
    /// The log while recording. Must not exist yet.
    pub part: PathBuf,
    /// The log once finalized; in the same file system as `part`.
    pub log: PathBuf,
    /// Recorder, guard or both.
    pub guard: GuardMode,
    /// Whose look-ups.
    pub lookups: LookupsMode,
    /// io_uring.
    pub io_uring: IoUringMode,
    /// Contents kept before they change. They lie beside the log, in a directory of its name that ends in `.kept`.
    pub contents: ContentsMode,
    /// Keep files that packages own, too.
    pub self_contained: bool,
    /// Only the first read and the first write per open file are logged.
    pub suppress: SuppressMode,
    /// Names of environment variables (`*` and `?` match) whose values are kept out of the log, beside the built-in ones.
    pub redact: Vec<String>,
    /// How long after the command's end its daemons are still recorded. None: until they end.
    pub detach_after: Option<Duration>,
    /// Private directory that the recorder's library is extracted to at first use.
    pub library_dir: PathBuf,
    /// Command to start in the background once the log is finalized, or nothing.
    pub after: Vec<OsString>,
    /// Version of the program, for the log's header.
    pub version: String,
}

/// What became of a recording, at the moment the command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Id of the run.
    pub run: String,
    /// Exit status of the command, if it exited.
    pub exit: Option<i32>,
    /// Signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Whether the record is complete: the verdict that the store will give. `None` while the verdict is open, because processes of
    /// the run are still being recorded or because the log could not be finalized yet.
    pub complete: Option<bool>,
    /// Operations known to be lost.
    pub lost: u64,
    /// Why the run may not be complete, one sentence each.
    pub reasons: Vec<String>,
    /// What recording changed for the programs, one sentence each.
    pub warnings: Vec<String>,
    /// Why the command never ran, as a shell words it.
    pub refusal: Option<String>,
    /// Errno of the failed start, if the command never ran.
    pub not_started: Option<i32>,
    /// Processes of the run outlived the command and are still being recorded; the log is finalized later.
    pub still_recording: bool,
    /// The signal that ended the command came from the terminal's keyboard, and to this process, too: whoever waits for it
    /// expects it to die of it (see [`end_by_signal`](crate::end_by_signal)), as the command has.
    pub by_key: bool,
}

impl Recorded {
    /// The one line for standard error, without `backstory: `, if something is wrong: why the command never ran, else the most
    /// important reason or warning, and how many more there are.
    pub fn warning(&self) -> Option<String> {
        if self.refusal.is_some() {
            return self.refusal.clone();
        }
        let run = &self.run;
        let first = match (self.reasons.first(), self.warnings.first()) {
            (Some(reason), _) => format!("the record of run {run} is not complete: {reason}"),
            (None, Some(warning)) => warning.clone(),
            (None, None) => return None,
        };
        match self.reasons.len() + self.warnings.len() - 1 {
            0 => Some(first),
            more => Some(format!(
                "{first} (and {more} more, see `backstory show {run}`)"
            )),
        }
    }

    /// The status that `record` exits with: the command's, 128+n for a signal, 127 or 126 as a shell has it, 125
    /// where there were not even processes or memory to start it.
    pub fn status(&self) -> i32 {
        match (self.not_started, self.exit, self.signal) {
            (Some(libc::ENOENT), ..) => 127,
            // Nothing is wrong with the command: there was no room for it beside us, or who answers the guard's calls died before.
            (Some(libc::EAGAIN | libc::ENOMEM | libc::ENOSYS), ..) => 125,
            (Some(_), ..) => 126,
            (None, Some(code), _) => code,
            (None, None, Some(signal)) => 128 + signal,
            (None, None, None) => 125,
        }
    }
}
