//! Processes of the machine, from `/proc`.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Children of `pid` that live or are not yet reaped, by number.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<u32> = numbers.filter(|n| parent(*n) == Some(pid)).collect();
    found.sort_unstable();
    found
}

/// Parent of `pid`. `None` if the process is gone.
pub fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold any text, but no bracket follows it.
    status
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// True if a thread of `pid` exists and is no zombie. The descriptors of a process are closed only
/// when its last thread is gone.
pub fn alive(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    let states = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    states
        .filter_map(|status| status.rsplit_once(')')?.1.trim_start().chars().next())
        .any(|state| !matches!(state, 'Z' | 'X'))
}

/// `kill -9`.
pub fn kill(pid: u32) -> io::Result<()> {
    send(pid, Signal::KILL)
}

/// `kill -STOP`.
pub fn stop(pid: u32) -> io::Result<()> {
    send(pid, Signal::STOP)
}

/// `kill -CONT`.
pub fn resume(pid: u32) -> io::Result<()> {
    send(pid, Signal::CONT)
}

fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = number.ok_or_else(|| io::Error::other(format!("no process number: {pid}")))?;
    Ok(kill_process(pid, signal)?)
}

/// Waits until `condition` holds. Returns false if it does not within `patience`.
pub fn eventually(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        let asked = Instant::now();
        if condition() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        // Some conditions run programs. They leave half of the processor to others.
        std::thread::sleep(asked.elapsed().max(Duration::from_millis(1)));
    }
}
