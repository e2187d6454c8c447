//! A run, apart from its events: the first and the last frame of its log.
//!
//! Invariant: fields are added, never removed or renamed. In a log from before a field existed, the
//! field has its default.

use crate::job_rank::JobRank;
use backstory_files::Ident;
use backstory_vocabulary::{
    ContentsMode, DurabilityMode, GuardMode, IoUringMode, LookupsMode, OutputsMode, RowsMode,
    SuppressMode,
};
use serde::{Deserialize, Serialize};

/// First frame of every log: everything known before the command starts. Paths and strings that may
/// not be UTF-8 are bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunHeader {
    /// Short id, unique in a store: 8 characters of Crockford base 32, lower case.
    pub id: String,
    /// Name that the user gave.
    pub name: Option<String>,
    /// The id of the run that this one repeats, wholly or in part, if `rerun` made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// The source that wrote the records, if it is not a recorded command: `mount`, `postgres`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The server and the database that the run watched, as the names of its tables begin:
    /// `postgres://localhost:5432/bank`. `None` if the run watched none, and in logs of earlier
    /// versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The log of another tool that the run was made from. `None` for every other run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedLog>,
    /// The line of a recorded shell that this run is. `None` for every other run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<ShellLine>,
    /// The connection of ssh through which another recorded machine started the command: the
    /// destination, a slash, and the id of this run. `None` for every other run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_connection: Option<String>,
    /// The place of the run in a job of a launcher of parallel work. `None` for every other run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_rank: Option<JobRank>,
    /// The command and its arguments. A line of a shell is the argument of the shell's `-c`.
    pub command: Vec<Vec<u8>>,
    /// Environment, secrets redacted (`NAME=<redacted>`).
    pub environment: Vec<Vec<u8>>,
    /// Current directory.
    pub cwd: Vec<u8>,
    /// Descriptors that the command inherits: number, and target of the link in `/proc/self/fd`.
    pub descriptors: Vec<(i32, Vec<u8>)>,
    /// How each of `descriptors`, in the same order, is open: `O_ACCMODE` of its flags, or -1 if
    /// unknown. Empty if unknown for all.
    pub descriptor_flags: Vec<i32>,
    /// The regular file of each of `descriptors`, before the command ran. `None` for other types.
    /// Empty if unknown for all.
    pub descriptor_files: Vec<Option<Ident>>,
    /// Pid of the launcher, an ancestor of the command.
    pub launcher_pid: u32,
    /// Boot id of the machine.
    pub boot_id: String,
    /// `uname -srm`, distribution, host name, CPU model.
    pub machine: Machine,
    /// User id of the command.
    pub uid: u32,
    /// Options that limit what the log can contain.
    pub modes: Modes,
    /// ns since 1970.
    pub started: i64,
    /// Start in ns since the machine's boot, by a clock that cannot be set. 0 if unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub since_boot: i64,
    /// The arena's path, for recovery after a crash.
    pub arena: Option<String>,
    /// `backstory --version`
    pub version: String,
}

impl RunHeader {
    /// Adds the text of a shell's line that was known at its end only.
    pub fn complete_line(&mut self, end: &RunEnd) {
        if let (Some(line), Some(text)) = (&mut self.line, &end.line_text) {
            line.text.clone_from(text);
            self.command.truncate(1);
            self.command.extend([b"-c".to_vec(), text.clone()]);
        }
    }

    /// The observer of an event of this run. An imported run has no observer of its own: its
    /// records are in the form of the guard's.
    pub fn observer(&self, via: crate::event::Via) -> crate::event::Via {
        match self.imported {
            Some(_) => crate::event::Via::Import,
            None => via,
        }
    }

    /// The difference between the calendar and the time since boot, if it is known. It differs
    /// between two runs of one boot only if the machine's clock was set in between.
    pub fn ahead_of_boot(&self) -> Option<i64> {
        let known = self.since_boot != 0 && !self.boot_id.is_empty();
        known.then(|| self.started.saturating_sub(self.since_boot))
    }

    /// The ns to add to a time of this run to convert it to the clock of another run. It is not
    /// 0 only if the machine's clock was set between the runs. It is 0 if that is unknown.
    /// A difference of less than a second is drift and counts as 0.
    pub fn to_clock_of(&self, other: &RunHeader) -> i64 {
        let set = match (self.ahead_of_boot(), other.ahead_of_boot()) {
            (Some(own), Some(others)) if self.boot_id == other.boot_id => {
                others.saturating_sub(own)
            }
            _ => 0,
        };
        if set.abs() < 1_000_000_000 { 0 } else { set }
    }
}

/// `serde` passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// `serde` passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The log of another tool, from which a run was made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedLog {
    /// The format: `strace`.
    pub format: String,
    /// The files of the log, in the order in which they were given.
    pub files: Vec<ImportedFile>,
}

/// One file of an imported log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedFile {
    /// Its absolute path at the import.
    pub path: Vec<u8>,
    /// The BLAKE3 digest of its content, in hexadecimal digits.
    pub digest: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A command line that was typed in a recorded shell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ShellLine {
    /// The id of the run that has what the shell did outside of its lines.
    pub session: String,
    /// Its number in the session, from 1.
    pub number: u64,
    /// The text as it was typed. Empty if it is not known, or known at the end only.
    pub text: Vec<u8>,
    /// The path of the terminal. Empty if the shell has no terminal.
    pub terminal: Vec<u8>,
}

/// The machine a run was made on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Machine {
    pub kernel: String,
    pub distribution: String,
    pub host: String,
    pub cpu: String,
}

/// The modes of a run's recording. `None`: the log's header was lost, or an earlier version wrote
/// it without this field.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Modes {
    /// Whether the guard was active.
    pub guard: Option<GuardMode>,
    /// The processes whose look-ups were recorded.
    pub lookups: Option<LookupsMode>,
    /// The treatment of io_uring.
    pub io_uring: Option<IoUringMode>,
    /// Whether repeated reads and writes were left out.
    pub suppress: Option<SuppressMode>,
    /// The contents that were stored.
    pub contents: Option<ContentsMode>,
    /// True if contents of files that packages own were stored, too.
    pub self_contained: bool,
    /// Whether the log reached the disk before the results. `None` in logs of earlier versions,
    /// whose runs are as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityMode>,
    /// How the deep log of the run has the bytes that left. `None` if the run has no deep log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deep: Option<OutputsMode>,
    /// Whether the rows that transactions of a watched database changed were recorded. `None` if
    /// the run watched no database, and in logs of earlier versions, which always have rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowsMode>,
    /// True if the byte engine executed the programs (`record --bytes`). The run's processes are
    /// those of a run without it, but slower.
    #[serde(skip_serializing_if = "is_false")]
    pub byte_engine: bool,
    /// True if the programs had the same addresses in each execution
    /// (`record --fixed-addresses`), and so lacked the protection of random ones.
    #[serde(skip_serializing_if = "is_false")]
    pub fixed_addresses: bool,
}

impl Modes {
    /// True if the run stores contents. False if that is unknown.
    pub fn stores_contents(&self) -> bool {
        matches!(self.contents, Some(ContentsMode::Lazy | ContentsMode::All))
    }
}

/// Last frame of a finished log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    /// Exit status of the command, if it exited.
    pub exit: Option<i32>,
    /// The signal that ended the command, if one did.
    pub signal: Option<i32>,
    /// End of the command, in ns since 1970.
    pub command_ended: i64,
    /// End of the last process of the run, or of recording, in ns since 1970.
    pub ended: i64,
    /// Number of operations known to be lost.
    pub lost: u64,
    /// Reasons why the run may not be complete, one sentence each. Empty means complete.
    pub incomplete_because: Vec<String>,
    /// Effects of recording on the programs, one sentence each: programs that lost a privilege.
    pub warnings: Vec<String>,
    /// Errno of the failed start (ENOENT, EACCES …), if the command never ran.
    pub not_started: Option<i32>,
    /// The files behind the names of the header's `descriptors` at the end, before any waiting
    /// process can have continued.
    pub descriptor_files: Vec<Option<Ident>>,
    /// The file systems' clock at the start of the command, in ns since 1970. A file with an
    /// earlier time was changed before. 0 if unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub quiet: i64,
    /// The resources that the command and its descendants used. `None` if unknown: another process
    /// than the supervisor ended the run, or an earlier version wrote the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ResourceUsage>,
    /// The text of a shell's line, where the shell gives it after the line has run. See
    /// [`RunHeader::complete_line`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_text: Option<Vec<u8>>,
}

/// Resources that processes used until they ended: `getrusage(2)` with `RUSAGE_CHILDREN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceUsage {
    /// Processor time in user mode, of all processes together; ns.
    pub user: i64,
    /// Processor time in the kernel, of all processes together; ns.
    pub system: i64,
    /// The largest resident set that one process had; bytes.
    pub peak_memory: u64,
}

/// Two readings of the clocks, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPoint {
    /// Time-stamp counter.
    pub counter: u64,
    /// `CLOCK_REALTIME` in ns.
    pub real: i64,
}
