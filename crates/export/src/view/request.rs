//! A request for an export.

use std::path::PathBuf;

use backstory_workflow::Subject;

/// The level of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// One activity for each command that a person would have written, and the files between the
    /// commands.
    #[default]
    Command,
    /// One activity for each program that ran; no files of the system or of tools.
    Process,
    /// Everything: system files, look-ups, and the processes between fork and exec.
    All,
}

/// A request for an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The run or file.
    pub subject: Subject,
    /// The level of detail.
    pub level: Level,
    /// Files whose path matches one of these patterns are left out.
    pub exclude: Vec<String>,
    /// Steps that differ only in a name become one rule.
    pub generalise: bool,
    /// A bill of materials lists every file, not only packages and results.
    pub files: bool,
    /// The export is executed ([`crate::Format::is_executed`]).
    pub executed: bool,
    /// The directory in which the store keeps contents.
    pub contents: Option<PathBuf>,
    /// The directory in which the store keeps the bytes of refined runs.
    pub bytes: Option<PathBuf>,
}

impl Request {
    /// A request with the defaults of the command line: commands, no exclusions, rules where steps
    /// allow them, no contents and bytes.
    pub fn new(subject: Subject) -> Request {
        Request {
            subject,
            level: Level::default(),
            exclude: Vec::new(),
            generalise: true,
            files: false,
            executed: false,
            contents: None,
            bytes: None,
        }
    }
}
