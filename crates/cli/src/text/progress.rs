//! What is being waited for, on a terminal only, and gone when it is over.

use std::io::{IsTerminal, Write};

/// Logs smaller than this are indexed before anyone has read a line.
const WORTH_A_LINE: u64 = 8_000_000;

/// A line on the terminal while something takes long.
#[derive(Debug)]
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Shows `what`.
    pub fn start(what: &str) -> Progress {
        let mut stderr = std::io::stderr();
        let shown = stderr.is_terminal();
        if shown {
            let _ = write!(stderr, "backstory: {what} …");
            let _ = stderr.flush();
        }
        Progress { shown }
    }

    /// Shows that a run is being indexed, if its log is large.
    pub fn of_run(run: &str, bytes: u64) -> Progress {
        match bytes {
            0..WORTH_A_LINE => Progress { shown: false },
            _ => Progress::start(&format!("indexing run {run} ({})", super::when::size(bytes))),
        }
    }

    /// Takes the line away.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
