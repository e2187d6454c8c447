//! Files that a test executes, written so that they can be executed at once.
//!
//! Invariant: this process never has a descriptor for writing to such a file. A test on another
//! thread may start a child at any moment. The child inherits all descriptors until its own
//! `execve`, and meanwhile an `execve` of the file fails with `ETXTBSY`. So a child process writes
//! the file, and it has ended when these functions return.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a file that every user may execute.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut writer = Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()?;
    let written = writer.stdin.take().map(|mut to| to.write_all(content));
    ended_well(writer.wait()?)?;
    written.unwrap_or(Ok(()))
}

/// Copies a program with its mode.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    ended_well(
        Command::new("/bin/cp")
            .arg("--")
            .arg(from)
            .arg(to)
            .status()?,
    )
}

/// Puts the worker `name` beside `program`. The workspace's build leaves the worker beside `built`.
/// False, with a notice, if it is not there.
pub fn worker_beside(built: &Path, program: &Path, name: &str) -> io::Result<bool> {
    let from = built.with_file_name(name);
    if !from.is_file() {
        let why = format!("needs {}: cargo build --workspace", from.display());
        crate::need::skipped("what a worker does", &why);
        return Ok(false);
    }
    let to = program.with_file_name(name);
    if !to.is_file() {
        std::fs::hard_link(&from, &to).or_else(|_| copy(&from, &to))?;
    }
    Ok(true)
}

fn ended_well(status: std::process::ExitStatus) -> io::Result<()> {
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("writing a program: {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Other threads start children all the time, as the tests of a suite do. With a user to change
    /// to, a child exists for a while before its `execve`.
    #[test]
    fn a_written_program_can_be_executed_while_other_tests_start_children() {
        let directory = tempfile::tempdir().unwrap();
        let large = std::env::current_exe().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let mut child = Command::new("/bin/true");
                        child.uid(rustix::process::getuid().as_raw());
                        child.status().unwrap();
                    }
                });
            }
            let executed = (0..50).try_for_each(|number| {
                let script = directory.path().join(format!("script{number}"));
                let copied = directory.path().join(format!("copied{number}"));
                write(&script, b"#!/bin/true\n")?;
                copy(&large, &copied)?;
                Command::new(script).status().and_then(ended_well)?;
                let mut command = Command::new(copied);
                let command = command.arg("--help").stdout(Stdio::null());
                command.status().and_then(ended_well)
            });
            over.store(true, Ordering::Relaxed);
            executed.unwrap();
        });
    }
}
