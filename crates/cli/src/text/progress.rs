//! A line on the terminal that says what takes long. It appears on a terminal only, and disappears
//! when the work is done.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time before the line appears.
const PATIENCE: Duration = Duration::from_millis(500);

/// A line on the terminal while something takes long.
#[derive(Debug)]
pub struct Progress {
    waiting: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows `what` after half a second.
    pub fn start(what: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { waiting: None };
        }
        let (over, wait) = channel();
        let line = format!("backstory: {what} …");
        let show = move || {
            let mut stderr = std::io::stderr();
            if let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(PATIENCE) {
                let _ = stderr.write_all(line.as_bytes());
                let _ = wait.recv();
                let _ = stderr.write_all(b"\r\x1b[K");
            }
        };
        // Without a thread for it, only the line is missing.
        let thread = std::thread::Builder::new()
            .name("progress".into())
            .spawn(show);
        Progress {
            waiting: thread.ok().map(|thread| (over, thread)),
        }
    }

    /// Shows that a run is being indexed.
    pub fn of_run(run: &str, bytes: u64) -> Progress {
        Progress::start(&format!(
            "indexing run {run} ({})",
            super::when::size(bytes)
        ))
    }

    /// Removes the line.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.waiting.take() {
            drop(over);
            // The thread has ended, so that it prints nothing after this.
            let _ = thread.join();
        }
    }
}
