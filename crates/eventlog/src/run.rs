//! What a run is, apart from its events: the first and the last frame of its log.
//!
//! Invariant: fields are added, never removed or renamed; a log that was written before a field existed has its default.

use backstory_files::Ident;
use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode};
use serde::{Deserialize, Serialize};

/// First frame of every log: everything known before the command starts. Paths and strings that may not be UTF-8 are bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunHeader {
    /// Short id, unique in a store: 8 characters of Crockford base 32, lower case.
    pub id: String,
    /// Name the user gave, or none.
    pub name: Option<String>,
    /// The command and its arguments.
    pub command: Vec<Vec<u8>>,
    /// Environment, secrets redacted (`NAME=<redacted>`).
    pub environment: Vec<Vec<u8>>,
    /// Current directory.
    pub cwd: Vec<u8>,
    /// Descriptors the command inherits: number and what `/proc/self/fd` says of it.
    pub descriptors: Vec<(i32, Vec<u8>)>,
    /// How each of `descriptors`, in the same order, is open: `O_ACCMODE` of its flags, -1 if unknown. Empty: not known of any.
    pub descriptor_flags: Vec<i32>,
    /// Which file each of `descriptors` led to, and what it held, before the command ran; none where it is no regular file. Empty:
    /// not known of any.
    pub descriptor_files: Vec<Option<Ident>>,
    /// Pid of the launcher, which the command has as its ancestor.
    pub launcher_pid: u32,
    /// Boot id of the machine.
    pub boot_id: String,
    /// `uname -srm`, distribution, host name, CPU model.
    pub machine: Machine,
    /// User id the command runs as.
    pub uid: u32,
    /// Options that shape what the log can know.
    pub modes: Modes,
    /// ns since 1970.
    pub started: i64,
    /// ns since the machine's boot, when it started: a clock that nobody sets. 0: not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub since_boot: i64,
    /// The arena's path, for recovery after a crash.
    pub arena: Option<String>,
    /// `backstory --version`
    pub version: String,
}

impl RunHeader {
    /// How far the calendar was ahead of the time since the machine's boot, if that is known. Differs between two runs of one boot only
    /// if somebody set the machine's clock in between.
    pub fn ahead_of_boot(&self) -> Option<i64> {
        let known = self.since_boot != 0 && !self.boot_id.is_empty();
        known.then(|| self.started.saturating_sub(self.since_boot))
    }

    /// What has to be added to a time of this run to have it by the clock of another, because the machine's clock was set between
    /// them; 0 if that is not known. Less than a second is drift.
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

/// `serde` asks by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &i64) -> bool {
    *number == 0
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

/// How a run was recorded. `None`: the log's header was lost, or an earlier version wrote it without this field.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Modes {
    /// Whether the guard watched.
    pub guard: Option<GuardMode>,
    /// Which processes' look-ups were recorded.
    pub lookups: Option<LookupsMode>,
    /// What happened to io_uring.
    pub io_uring: Option<IoUringMode>,
    /// Whether repeated reads and writes were left out.
    pub suppress: Option<SuppressMode>,
    /// Which contents were stored.
    pub contents: Option<ContentsMode>,
    /// Contents of files that packages own were stored, too.
    pub self_contained: bool,
}

impl Modes {
    /// True if the run stores contents; false where that is not known.
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
    /// Signal that ended it, if one did.
    pub signal: Option<i32>,
    /// ns since 1970 when the command ended.
    pub command_ended: i64,
    /// ns since 1970 when the last process of the run ended or recording stopped.
    pub ended: i64,
    /// Operations known to be lost.
    pub lost: u64,
    /// Reasons why the run may not be complete, one sentence each, for people. Empty means complete.
    pub incomplete_because: Vec<String>,
    /// What recording changed for the programs, one sentence each, for people: who lost a privilege.
    pub warnings: Vec<String>,
    /// Errno of the failed start (ENOENT, EACCES …), if the command never ran.
    pub not_started: Option<i32>,
    /// What is behind the names of the header's `descriptors` at the end, before anybody who waited for it can have gone on.
    pub descriptor_files: Vec<Option<Ident>>,
    /// What file systems' clock said, in ns since 1970, when the command was let go: what has an earlier time was changed before. 0: not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub quiet: i64,
}

/// Two readings of the clocks, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPoint {
    /// Time-stamp counter.
    pub counter: u64,
    /// `CLOCK_REALTIME` in ns.
    pub real: i64,
}
