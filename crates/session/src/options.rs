//! The options of a recording, and its result.

use backstory_eventlog::run::ResourceUsage;
use backstory_functions::FunctionPatterns;
use backstory_vocabulary::{
    ContentsMode, DurabilityMode, GuardMode, IoUringMode, LookupsMode, OutputsMode, RowsMode,
    SuppressMode, TimeMode,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of one recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// The command and its arguments. The first is searched in `PATH` as a shell does.
    pub command: Vec<OsString>,
    /// The file of the program, if it is not the first word of the command: a login shell has
    /// another name there.
    pub program: Option<OsString>,
    /// The byte engine, which executes the command and all programs that it starts.
    pub simulator: Option<SimulatorOptions>,
    /// The id of the run.
    pub id: String,
    /// The name of the run, if the user gave one.
    pub name: Option<String>,
    /// The id of the run that this one repeats.
    pub repeats: Option<String>,
    /// The path of the log while recording. Must not exist yet.
    pub part: PathBuf,
    /// The path of the finalized log, in the same file system as `part`.
    pub log: PathBuf,
    /// Recorder, guard or both.
    pub guard: GuardMode,
    /// The processes whose look-ups are recorded.
    pub lookups: LookupsMode,
    /// The treatment of io_uring.
    pub io_uring: IoUringMode,
    /// The contents to preserve before they change. They lie beside the log, in a directory of its
    /// name that ends in `.kept`.
    pub contents: ContentsMode,
    /// Store files that packages own, too.
    pub self_contained: bool,
    /// Log only the first read and the first write of each open file.
    pub suppress: SuppressMode,
    /// Whether the log is durable before the results.
    pub durability: DurabilityMode,
    /// The log has every operation a moment after it, for a process that follows the log.
    pub followed: bool,
    /// Record everything that enters and leaves the processes, into a file beside the log that ends
    /// in `.deep`. The mode says how it has what leaves. `None`: there is no such file.
    pub deep: Option<OutputsMode>,
    /// Whether the deep log has the time that programs take without a system call.
    pub time: TimeMode,
    /// The command and its programs get the same addresses in each execution.
    pub fixed_addresses: bool,
    /// The result is awaited with all that is known about the deep log, and with the confirmation
    /// of earlier runs' verdicts. Otherwise the command's end is reported first, and both are done
    /// in the background.
    pub waits_for_deep_log: bool,
    /// Whether changed rows of a watched database are recorded. `None`: no database is watched.
    pub rows: Option<RowsMode>,
    /// The server and the database that is watched, as the names of its tables begin.
    pub database: Option<String>,
    /// The functions whose calls are recorded. `None`: none, and programs get the plain recorder.
    pub functions: Option<FunctionPatterns>,
    /// Patterns of environment variable names (`*` and `?` match) whose values must not reach the
    /// log. They add to the built-in ones.
    pub redact: Vec<String>,
    /// How long daemons are recorded after the end of the command. `None`: until they end.
    pub detach_after: Option<Duration>,
    /// The private directory for the recorder's library.
    pub library_dir: PathBuf,
    /// The file that keeps for later runs which programs need no filter (`--guard=auto`). `None`:
    /// each run classifies its programs anew.
    pub verdicts: Option<PathBuf>,
    /// The command to start in the background once the log is finalized. Empty for none.
    pub after: Vec<OsString>,
    /// The program's version, for the header of the log.
    pub version: String,
    /// The connection of ssh through which another recorded machine starts the command, for the
    /// header of the log.
    pub ssh_connection: Option<String>,
    /// Variables that the command gets in the place of the launcher's. With `PATH` among them, the
    /// command is searched there.
    pub variables: Vec<(OsString, OsString)>,
    /// The command is a shell each of whose command lines is a run of its own. `None` for every
    /// other command.
    pub lines: Option<LineOptions>,
    /// Set-user-id programs of an ordinary user keep their privilege, and run outside of the
    /// recording.
    pub broker: bool,
}

impl Options {
    /// Every mode has its default, no content is preserved, and nothing happens after the
    /// recording. The command is still to be set.
    pub fn new(id: String, part: PathBuf, log: PathBuf, library_dir: PathBuf) -> Options {
        Options {
            command: Vec::new(),
            program: None,
            simulator: None,
            id,
            name: None,
            repeats: None,
            part,
            log,
            guard: GuardMode::On,
            lookups: LookupsMode::Library,
            io_uring: IoUringMode::Decode,
            contents: ContentsMode::Off,
            self_contained: false,
            suppress: SuppressMode::On,
            durability: DurabilityMode::After,
            followed: false,
            deep: None,
            time: TimeMode::Usual,
            fixed_addresses: false,
            waits_for_deep_log: false,
            rows: None,
            database: None,
            functions: None,
            redact: Vec::new(),
            detach_after: None,
            library_dir,
            verdicts: None,
            after: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ssh_connection: None,
            variables: Vec::new(),
            lines: None,
            broker: false,
        }
    }

    /// The directory of the contents that are preserved during the run.
    pub(crate) fn kept_dir(&self) -> PathBuf {
        self.log.with_extension("kept")
    }
}

/// A program that executes others in its own process, and says which system calls are theirs.
#[derive(Debug, Clone)]
pub struct SimulatorOptions {
    /// The path of its launcher, and its options. The command follows them.
    pub words: Vec<OsString>,
    /// Its programs, the launcher among them.
    pub files: Vec<PathBuf>,
}

impl SimulatorOptions {
    /// The path of the launcher.
    pub(crate) fn launcher(&self) -> &Path {
        self.words.first().map_or(Path::new(""), Path::new)
    }
}

/// The options for a shell whose marks say when a command line begins and ends.
#[derive(Debug, Clone)]
pub struct LineOptions {
    /// Makes the ids of the lines' runs.
    pub new_id: fn() -> String,
    /// Which lines are not recorded.
    pub policy: crate::LinePolicy,
}

/// The result of a recording, at the end of the command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordingResult {
    /// The id of the run.
    pub run: String,
    /// The exit status of the command, if it exited.
    pub exit: Option<i32>,
    /// The signal that ended the command, if one did.
    pub signal: Option<i32>,
    /// Whether the record is complete: the verdict that the store will give. `None` while the
    /// verdict is open, because processes of the run are still being recorded or because the log
    /// could not be finalized yet.
    pub complete: Option<bool>,
    /// The number of operations known to be lost.
    pub lost: u64,
    /// Reasons why the run may not be complete, one sentence each.
    pub reasons: Vec<String>,
    /// Effects of recording on the programs, one sentence each.
    pub warnings: Vec<String>,
    /// The reason why the command never ran, in a shell's words.
    pub refusal: Option<String>,
    /// The errno of the failed start, if the command never ran.
    pub not_started: Option<i32>,
    /// The log is finalized later. Processes of the run outlived the command and are still being
    /// recorded. Or the deep log is still to be finished, or verdicts of earlier runs to be
    /// confirmed.
    pub still_recording: bool,
    /// The resources that the run's processes used until the command ended. `None` if unknown.
    pub usage: Option<ResourceUsage>,
    /// The terminal's keyboard sent the signal that ended the command to this process, too. A shell
    /// expects this process to die of it as the command did (see
    /// [`end_by_signal`](crate::end_by_signal)).
    pub by_key: bool,
}

impl RecordingResult {
    /// The one line for standard error, without `backstory: `. It gives the reason why the command
    /// never ran, else the most important reason or warning and the number of others. `None`
    /// without any.
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

    /// The exit status of `record`.
    ///
    /// - The command's status, or 128+n for a signal.
    /// - 127 or 126, as in a shell, if the command could not be executed.
    /// - 125 if there were too few processes or too little memory to start it.
    pub fn status(&self) -> i32 {
        match (self.not_started, self.exit, self.signal) {
            (Some(libc::ENOENT), ..) => 127,
            // The command is not at fault. There was no room for it beside the recording, or the
            // process that responds to the guard's notifications had died.
            (Some(libc::EAGAIN | libc::ENOMEM | libc::ENOSYS), ..) => 125,
            (Some(_), ..) => 126,
            (None, Some(code), _) => code,
            (None, None, Some(signal)) => 128 + signal,
            (None, None, None) => 125,
        }
    }
}
