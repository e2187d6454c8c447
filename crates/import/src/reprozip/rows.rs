//! The rows of a trace.

/// A process of the trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct TracedProgramProcess {
    pub(super) id: i64,
    pub(super) parent: Option<i64>,
    /// ns of a clock that begins at the machine's boot.
    pub(super) time: i64,
    /// It is a thread of its parent.
    pub(super) is_thread: bool,
    /// Exit status, or 256 and the signal that ended it.
    pub(super) exit: Option<i64>,
}

/// A program that a process executed.
#[derive(Debug, Clone)]
pub(super) struct ExecutedProgram {
    pub(super) process: i64,
    pub(super) time: i64,
    pub(super) path: Vec<u8>,
    pub(super) argv: Vec<Vec<u8>>,
    pub(super) cwd: Vec<u8>,
}

/// A file that a process opened or looked at.
#[derive(Debug, Clone)]
pub(super) struct OpenedFile {
    pub(super) process: i64,
    pub(super) time: i64,
    pub(super) path: Vec<u8>,
    /// `FILE_READ` and so on.
    pub(super) mode: i64,
    pub(super) is_directory: bool,
}
