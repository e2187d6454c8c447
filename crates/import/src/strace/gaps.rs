//! The gaps of a trace. In: facts that are met while it is read. Out: reasons, in sentences.

use super::moments::TimeKind;
use backstory_eventlog::Reason;
use backstory_vocabulary::counted;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

/// Calls that nearly every program makes at its start. If a trace has none, an option of strace
/// left calls out.
const OF_EVERY_PROGRAM: [&str; 9] = [
    "brk",
    "arch_prctl",
    "set_tid_address",
    "mprotect",
    "munmap",
    "rt_sigaction",
    "rt_sigprocmask",
    "futex",
    "getpid",
];

/// Groups of calls, with what a trace without them leaves unknown.
const GROUPS: &[(&[&str], &str)] = &[
    (&["open", "openat", "openat2", "creat"], "opens of files"),
    (&["read", "pread64", "readv"], "reads"),
    (&["write", "pwrite64", "writev"], "writes"),
    (&["close"], "closes of descriptors"),
    (&["dup", "dup2", "dup3", "fcntl"], "copies of descriptors"),
    (&["execve", "execveat"], "executed programs"),
    (&["clone", "clone3", "fork", "vfork"], "new processes"),
    (
        &["rename", "renameat", "renameat2", "unlink", "unlinkat"],
        "changed names",
    ),
    (&["pipe", "pipe2", "socket", "connect"], "pipes and sockets"),
    (&["getdents64", "getdents"], "listed directories"),
];

/// Facts about a trace, counted while it is read.
#[derive(Debug, Default)]
pub(super) struct TraceGaps {
    /// Names of all calls.
    pub(super) names: HashSet<Box<str>>,
    /// Lines that are strace's.
    pub(super) recognized: usize,
    /// Lines that are not, and the position of the first: file, line, column.
    pub(super) foreign: usize,
    pub(super) first_foreign: Option<(usize, u64, usize)>,
    /// Strings of arguments that strace cut.
    pub(super) cut_arguments: usize,
    /// Paths that strace cut, or could not read.
    pub(super) unprinted: usize,
    /// Lines that are too long.
    pub(super) cut_lines: usize,
    /// The last line has no end.
    pub(super) is_cut_off: bool,
    /// Children that have no line.
    pub(super) unfollowed: usize,
    /// Processes whose beginning is not in the log.
    pub(super) orphans: usize,
    /// Descriptors from before the log that it does not name.
    pub(super) unknown_descriptors: BTreeSet<i32>,
    /// A relative path was used before the directory was known.
    pub(super) guessed_directory: bool,
    /// Processes that still live at the end.
    pub(super) living: usize,
}

/// The number of names that are remembered: there are fewer system calls.
const MOST_NAMES: usize = 1024;

impl TraceGaps {
    /// Notes a call.
    pub(super) fn met(&mut self, name: &str) {
        if self.names.len() < MOST_NAMES && !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.names.contains(*name))
    }

    /// True unless an option of strace left calls out.
    pub(super) fn has_every_call(&self) -> bool {
        self.has_any(&OF_EVERY_PROGRAM)
    }

    /// The reasons. `guess`: the directory in which relative paths are taken to begin, if the log
    /// does not have it.
    pub(super) fn reasons(&self, guess: Option<&PathBuf>, unordered: bool) -> Vec<Reason> {
        let mut all = Vec::new();
        if !self.has_every_call() {
            let missing = GROUPS.iter().filter(|(names, _)| !self.has_any(names));
            let missing: Vec<&str> = missing.map(|(_, what)| *what).collect();
            let what = "strace was told to trace some system calls only (-e)".to_owned();
            all.push(match missing.is_empty() {
                true => what,
                false => format!("{what}, and the log has no {}", missing.join(", no ")),
            });
        }
        if self.unfollowed > 0 {
            let children = counted(self.unfollowed, "child", "children");
            all.push(format!(
                "strace did not follow {children} of the command (-f)"
            ));
        }
        if self.orphans > 0 {
            let processes = counted(self.orphans, "process", "processes");
            all.push(format!("the beginning of {processes} is not in the log"));
        }
        if !self.unknown_descriptors.is_empty() {
            let numbers: Vec<String> = self
                .unknown_descriptors
                .iter()
                .take(8)
                .map(i32::to_string)
                .collect();
            let numbers = numbers.join(", ");
            all.push(format!(
                "the files of descriptors that were open before the log began are unknown (-y): {numbers}"
            ));
        }
        if let Some(directory) = guess.filter(|_| self.guessed_directory) {
            all.push(format!(
                "the log does not have the directory in which the command began, and relative paths \
                 are taken to begin at {}",
                directory.display()
            ));
        }
        if self.cut_arguments > 0 {
            let arguments = counted(self.cut_arguments, "argument", "arguments");
            all.push(format!("strace cut {arguments} of programs (-s)"));
        }
        if self.unprinted > 0 {
            let paths = counted(self.unprinted, "path", "paths");
            all.push(format!("strace did not print {paths} to the end"));
        }
        if self.cut_lines > 0 {
            let lines = counted(self.cut_lines, "line", "lines");
            all.push(format!("{lines} of the log are too long to be read"));
        }
        if self.foreign > 0 {
            let (lines, first) = (
                counted(self.foreign, "line", "lines"),
                self.first_foreign.map_or(0, |(_, line, _)| line),
            );
            all.push(format!(
                "{lines} of the log, the first being line {first}, cannot be decoded"
            ));
        }
        if self.is_cut_off || self.living > 0 {
            let processes = counted(self.living, "process", "processes");
            all.push(format!("the log ends before {processes} of the run"));
        }
        if unordered {
            all.push("the files of the log have no times, which would tell the order of calls of different processes (-ttt)".to_owned());
        }
        all.into_iter()
            .map(|what| Reason::ImportGap { what })
            .collect()
    }
}

/// The facts about times that were concluded.
pub(super) fn time_warnings(kind: TimeKind) -> Vec<Reason> {
    let what = match kind {
        TimeKind::Epoch => return Vec::new(),
        TimeKind::Unknown => {
            "the log has no times (-ttt), so only the order of the operations is known"
        }
        TimeKind::Day => "the log has no dates (-ttt); they follow from the time of the log's file",
        TimeKind::Since => {
            "the log has relative times (-r); they are counted back from the time of the log's file"
        }
    };
    vec![Reason::ImportedTimes { what }]
}
