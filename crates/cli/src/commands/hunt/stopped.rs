//! `--stop-on`: stops the process of a match, and asks at the terminal whether it goes on.
//!
//! A shell reads the answer, so that the follower of the log never waits for it. Without a terminal
//! or in the background, the message alone says how to go on.
//!
//! The follower, the shell and `record` are in one process group. A group is orphaned when none of
//! its processes has a parent in another group of the session. The kernel sends SIGHUP to a group
//! that becomes so while one of its processes is stopped. The end of a shell with such a parent
//! would be the cause.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use backstory_hunt::FoundStep;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, pidfd_open, pidfd_send_signal, test_kill_process,
};
use rustix::termios::tcgetpgrp;

use crate::error::complain;

/// Reads a line from the terminal, and prints its first letters.
const READ: &str = "IFS= read -r answer </dev/tty && printf %.9s \"$answer\"";

/// A process that was stopped.
#[derive(Debug)]
struct StoppedProcess {
    pid: Pid,
    handle: OwnedFd,
    /// The kernel has stopped it: the signal takes effect a moment after it was sent.
    was_seen: bool,
}

/// The processes that were stopped, and neither continued nor ended so far.
#[derive(Debug, Default)]
pub struct StoppedProcesses {
    waiting: VecDeque<StoppedProcess>,
    /// The shell that reads the answer about the first of them.
    reader: Option<Child>,
}

impl StoppedProcesses {
    /// Stops the process of an operation, if it still runs the program that did it.
    pub fn stop(&mut self, step: &FoundStep) {
        let number = step.program.pid;
        let Some(process) = stop(step) else {
            complain(&format!(
                "process {number} was not stopped: it has ended, or runs another program"
            ));
            return;
        };
        let ask = match can_ask() {
            true => "; answer here, too: c continues it, k ends it",
            false => "",
        };
        complain(&format!(
            "process {number} is stopped: `kill -CONT {number}` continues it, `kill -KILL {number}` ends it{ask}"
        ));
        if !ask.is_empty() {
            self.waiting.push_back(process);
        }
    }

    /// Takes the answer about the first process, if there is one. To be called often.
    pub fn look(&mut self) {
        let Some(first) = self.waiting.front_mut() else {
            return;
        };
        let is_stopped = first.is_stopped();
        let is_decided = first.was_seen && !is_stopped || test_kill_process(first.pid).is_err();
        first.was_seen |= is_stopped;
        if is_decided {
            // Somebody else has answered.
            self.end_reader();
            self.waiting.pop_front();
            return;
        }
        let Some(reader) = &mut self.reader else {
            self.reader = reader();
            if self.reader.is_none() {
                self.waiting.pop_front();
            }
            return;
        };
        if matches!(reader.try_wait(), Ok(None)) {
            return;
        }
        let mut answer = String::new();
        let said = reader.stdout.take().map(|out| out.take(16));
        let read = said.and_then(|mut out| out.read_to_string(&mut answer).ok());
        let is_line = read.is_some() && reader.wait().is_ok_and(|status| status.success());
        self.reader = None;
        let signal = match answer.trim() {
            "c" | "continue" => Signal::CONT,
            "k" | "kill" => Signal::KILL,
            _ if is_line => {
                complain("answer c or k");
                return;
            }
            // The terminal is closed, or the question was interrupted.
            _ => {
                complain(&format!("process {} stays stopped", first.pid));
                self.waiting.pop_front();
                return;
            }
        };
        let _ = pidfd_send_signal(&first.handle, signal);
        self.waiting.pop_front();
    }

    fn end_reader(&mut self) {
        if let Some(mut reader) = self.reader.take() {
            let _ = reader.kill();
            let _ = reader.wait();
        }
    }
}

impl Drop for StoppedProcesses {
    fn drop(&mut self) {
        self.end_reader();
    }
}

impl StoppedProcess {
    fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
        state.is_some_and(|rest| rest.starts_with('T'))
    }
}

fn stop(step: &FoundStep) -> Option<StoppedProcess> {
    let pid = Pid::from_raw(i32::try_from(step.program.pid).ok()?)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    // The kernel puts a script's interpreter before the arguments.
    let arguments = step.program.argv.iter().skip(1).map(|word| &**word);
    let arguments: Vec<&[u8]> = arguments.chain([&b""[..]]).collect();
    if command.is_empty() || !words.ends_with(&arguments) {
        return None;
    }
    pidfd_send_signal(&handle, Signal::STOP).ok()?;
    Some(StoppedProcess {
        pid,
        handle,
        was_seen: false,
    })
}

/// True if this process may read from the terminal.
fn can_ask() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal) == Ok(getpgrp()))
}

/// Starts the shell that reads an answer.
fn reader() -> Option<Child> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", READ]);
    shell.stdin(Stdio::null()).stdout(Stdio::piped());
    shell.stderr(Stdio::null());
    match shell.spawn() {
        Ok(child) => Some(child),
        Err(error) => {
            complain(&format!("cannot read an answer: {error}"));
            None
        }
    }
}
