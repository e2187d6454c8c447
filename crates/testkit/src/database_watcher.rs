//! A process that watches a database.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::stage::Stage;

/// A process that watches a database. Dropped, it is killed.
pub struct DatabaseWatcher {
    child: Child,
    messages: BufReader<std::process::ChildStderr>,
}

impl DatabaseWatcher {
    /// `backstory watch KIND OPTIONS… CONNECTION`. Waits until the database is watched.
    pub fn begin(
        stage: &Stage,
        kind: &str,
        options: &[&str],
        connection: &str,
    ) -> io::Result<DatabaseWatcher> {
        let mut command = stage.backstory(&["watch", kind]);
        let command = command.args(options).arg(connection);
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let from = child.stderr.take();
        let mut messages = BufReader::new(from.ok_or_else(|| io::Error::other("no stderr"))?);
        let mut first = String::new();
        messages.read_line(&mut first)?;
        if !first.contains(" records ") {
            child.wait()?;
            return Err(io::Error::other(first));
        }
        Ok(DatabaseWatcher { child, messages })
    }

    /// Ends the watch as Ctrl-C does, and returns its messages.
    pub fn end(mut self) -> io::Result<String> {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            kill_process(pid, Signal::INT)?;
        }
        self.ended()
    }

    /// The number of bytes that the watch has read of files and sockets.
    pub fn bytes_read(&self) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id())).unwrap_or_default();
        let count = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the watch.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = Pid::from_raw(self.child.id() as i32);
        kill_process(pid.ok_or_else(|| io::Error::other("no process"))?, signal)?;
        Ok(())
    }

    /// Waits for the end of the watch, and returns its messages.
    pub fn ended(&mut self) -> io::Result<String> {
        Ok(self.ended_with()?.0)
    }

    /// Waits for the end of the watch, and returns its messages and its exit status.
    pub fn ended_with(&mut self) -> io::Result<(String, Option<i32>)> {
        let mut said = String::new();
        while self.messages.read_line(&mut said)? > 0 {}
        let status = self.child.wait()?;
        Ok((said, status.code()))
    }

    /// Kills the watch.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for DatabaseWatcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
