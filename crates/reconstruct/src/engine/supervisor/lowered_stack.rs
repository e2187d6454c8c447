//! The stacks of programs that a recorded program executes begin where they began in the record.
//!
//! In: an `execve` that waits for its response. Out: a longer path of the same file, in the place
//! of its path (`crate::engine::stack`). The kernel drops the memory of the caller afterwards.
//! Invariant: nothing is changed that the kernel reads for this call, or that another process or
//! thread has. So a child of `vfork`, a path that is an argument, too, and a constant stay.

use super::Supervisor;
use super::executing::{program_file, strings};
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::{field, threads};
use crate::engine::stack::{StackStrings, is_elf, is_fixed};
use backstory_sys as sys;
use std::fs;
use std::io;
use std::ops::Range;

impl Supervisor {
    /// The call executes this recorded program.
    pub(super) fn lower_stack(&self, call: &NotifiedCall, index: usize) {
        let begins = self.matchers[index].rest.start.stack;
        let can_move = !self.has_tool && call.number == libc::SYS_execve;
        if let Some(begins) = begins.filter(|begins| can_move && is_fixed(*begins)) {
            // Otherwise the program has other addresses on its stack, as with random ones.
            let _ = put_longer_path(call, begins);
        }
    }
}

fn put_longer_path(call: &NotifiedCall, begins: u64) -> io::Result<()> {
    let at = call.args[0];
    let path = call.string(at)?;
    let lists = [call.args[1], call.args[2]];
    let found = lists.map(|list| strings(call, list));
    let mut contents = StackStrings::default();
    let mut read_by_kernel: Vec<Range<u64>> = Vec::new();
    for (list, found) in lists.into_iter().zip(found) {
        let found = found?;
        read_by_kernel.push(list..list + 8 * (found.len() as u64 + 1));
        for (string, text) in found {
            contents.add(text.len());
            read_by_kernel.push(string..string + text.len() as u64 + 1);
        }
    }
    if !is_elf(&program_file(call, &path)) {
        return Ok(());
    }
    let Some(mut longer) = contents.longer_path(&path, begins) else {
        return Ok(());
    };
    longer.push(0);
    let room = at..at + longer.len() as u64;
    let overlaps = |other: &Range<u64>| other.start < room.end && room.start < other.end;
    if read_by_kernel.iter().any(overlaps) || !is_alone(call.tid) {
        return Ok(());
    }
    // A path that could be written in part only would lead to nothing.
    let before = call.bytes(at, longer.len())?;
    call.put(at, &before)?;
    call.put(at, &longer)
}

/// True if no other process and no other thread has the memory of this process.
fn is_alone(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let parent = field(&status, "PPid").and_then(|pid| pid.parse::<u32>().ok());
    // A parent of 0 is outside of the namespace.
    let parent = parent.filter(|parent| *parent != 0);
    let shares = parent.is_some_and(|parent| sys::shares_memory(pid, parent).unwrap_or(true));
    threads(pid) == 1 && !shares
}

#[cfg(test)]
mod tests {
    use super::is_alone;
    use backstory_sys as sys;
    use std::process::{Command, Stdio};
    use std::thread;

    #[test]
    fn a_process_with_threads_is_not_alone_and_a_program_of_one_thread_is() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        match sys::shares_memory(child.id(), std::process::id()) {
            Ok(_) => assert!(is_alone(child.id())),
            Err(error) => println!("SKIPPED: a program that is alone: {error}"),
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        let other = thread::spawn(|| is_alone(std::process::id()));
        assert!(!other.join().unwrap());
    }
}
