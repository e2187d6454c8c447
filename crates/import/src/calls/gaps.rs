//! The gaps of a trace. In: facts that are met while it is read. Out: reasons, in sentences.

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

/// The tool that wrote a trace, and its options that close gaps. An option stands in parentheses
/// behind a space, or is empty if the tool has none.
pub(crate) struct TracingTool {
    /// Its name.
    pub(crate) name: &'static str,
    /// Selects system calls.
    pub(crate) selection: &'static str,
    /// Follows children.
    pub(crate) children: &'static str,
    /// Prints the files of descriptors.
    pub(crate) descriptors: &'static str,
    /// Prints whole strings.
    pub(crate) strings: &'static str,
}

/// Facts about a trace, counted while it is read.
#[derive(Debug, Default)]
pub(crate) struct TraceGaps {
    /// Names of all calls.
    pub(crate) names: HashSet<Box<str>>,
    /// Lines that are strace's.
    pub(crate) recognized: usize,
    /// Lines that are not, and the position of the first: file, line, column.
    pub(crate) foreign: usize,
    pub(crate) first_foreign: Option<(usize, u64, usize)>,
    /// Strings of arguments that strace cut.
    pub(crate) cut_arguments: usize,
    /// Paths that strace cut, or could not read.
    pub(crate) unprinted: usize,
    /// Lines that are too long.
    pub(crate) cut_lines: usize,
    /// The last line has no end.
    pub(crate) is_cut_off: bool,
    /// Children that have no line.
    pub(crate) unfollowed: usize,
    /// Processes whose beginning is not in the log.
    pub(crate) orphans: usize,
    /// Descriptors from before the log that it does not name.
    pub(crate) unknown_descriptors: BTreeSet<i32>,
    /// A relative path was used before the directory was known.
    pub(crate) guessed_directory: bool,
    /// Processes that still live at the end.
    pub(crate) living: usize,
    /// The tool has no way to leave calls out.
    pub(crate) every_call: bool,
    /// Another reason says which calls the tool left out.
    pub(crate) is_selection_known: bool,
}

/// The number of names that are remembered: there are fewer system calls.
const MOST_NAMES: usize = 1024;

impl TraceGaps {
    /// Notes a call.
    pub(crate) fn met(&mut self, name: &str) {
        if self.names.len() < MOST_NAMES && !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.names.contains(*name))
    }

    /// True unless an option of strace left calls out.
    pub(crate) fn has_every_call(&self) -> bool {
        self.every_call || self.has_any(&OF_EVERY_PROGRAM)
    }

    /// The effects of which the log has no call: `, and the log has no reads, no writes`.
    pub(crate) fn missing_groups(&self) -> String {
        let missing = GROUPS.iter().filter(|(names, _)| !self.has_any(names));
        let missing: Vec<&str> = missing.map(|(_, what)| *what).collect();
        match missing.is_empty() {
            true => String::new(),
            false => format!(", and the log has no {}", missing.join(", no ")),
        }
    }

    /// The reasons. `guess`: the directory in which relative paths are taken to begin, if the log
    /// does not have it.
    pub(crate) fn reasons(&self, tool: &TracingTool, guess: Option<&PathBuf>) -> Vec<Reason> {
        let TracingTool { name, .. } = tool;
        let mut all = Vec::new();
        if !self.has_every_call() && !self.is_selection_known {
            all.push(format!(
                "{name} was told to trace some system calls only{}{}",
                tool.selection,
                self.missing_groups()
            ));
        }
        if self.unfollowed > 0 {
            let children = counted(self.unfollowed, "child", "children");
            all.push(format!(
                "{name} did not follow {children} of the command{}",
                tool.children
            ));
        }
        self.unknown_beginning(tool, guess, &mut all);
        self.unread_text(tool, &mut all);
        all.into_iter()
            .map(|what| Reason::ImportGap { what })
            .collect()
    }

    /// Adds reasons for the state before the log.
    fn unknown_beginning(
        &self,
        tool: &TracingTool,
        guess: Option<&PathBuf>,
        all: &mut Vec<String>,
    ) {
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
                "the files of descriptors that were open before the log began are unknown{}: {numbers}",
                tool.descriptors
            ));
        }
        if let Some(directory) = guess.filter(|_| self.guessed_directory) {
            all.push(format!(
                "the log does not have the directory in which the command began, and relative paths \
                 are taken to begin at {}",
                directory.display()
            ));
        }
    }

    /// Adds reasons for text that the tool did not write, or that could not be read.
    fn unread_text(&self, tool: &TracingTool, all: &mut Vec<String>) {
        let TracingTool { name, .. } = tool;
        if self.cut_arguments > 0 {
            let arguments = counted(self.cut_arguments, "argument", "arguments");
            all.push(format!(
                "{name} cut {arguments} of programs{}",
                tool.strings
            ));
        }
        if self.unprinted > 0 {
            let paths = counted(self.unprinted, "path", "paths");
            all.push(format!("{name} did not print {paths} to the end"));
        }
        if self.cut_lines > 0 {
            let lines = counted(self.cut_lines, "line", "lines");
            all.push(format!("{lines} of the log are too long to be read"));
        }
        if self.foreign > 0 {
            let lines = counted(self.foreign, "line", "lines");
            // A line that was cut short has no other end, and no place.
            let first = self.first_foreign.map_or_else(String::new, |(_, line, _)| {
                format!(", the first being line {line},")
            });
            all.push(format!("{lines} of the log{first} cannot be decoded"));
        }
        if self.is_cut_off || self.living > 0 {
            let processes = counted(self.living, "process", "processes");
            all.push(format!("the log ends before {processes} of the run"));
        }
    }
}
