//! The stacks of programs that a recorded program executes begin where they began in the record.
//!
//! In: an `execve` that waits for its response. Out: a longer path of the same file, in the place
//! of its path (`crate::engine::stack`). The kernel drops the memory of the caller afterwards. If
//! the call fails, the memory is as before when the caller's next call is answered.
//!
//! Invariant: nothing is changed that the kernel reads for this call, or that another process or
//! thread has. So a child of `vfork`, a path that is an argument, too, and a constant stay.
//!
//! Absent: a caller whose `execve` fails finds the longer path until its next call that the filter
//! notifies of.

use super::Supervisor;
use super::executing::{program_file, strings};
use crate::engine::caller::{NotifiedCall, auxiliary_value};
use crate::engine::proc_texts::{field, threads};
use crate::engine::stack::{StackStrings, is_elf, is_fixed};
use backstory_sys as sys;
use std::fs;
use std::io;
use std::ops::Range;

/// A path that was made longer in the memory of its caller.
#[derive(Debug)]
pub(super) struct LongerPath {
    at: u64,
    longer: Vec<u8>,
    /// The bytes that were in its place.
    before: Vec<u8>,
}

impl LongerPath {
    fn put(call: &NotifiedCall, at: u64, longer: Vec<u8>) -> io::Result<LongerPath> {
        // A path that could be written in part only would lead to nothing.
        let before = call.bytes(at, longer.len())?;
        call.put(at, &before)?;
        call.put(at, &longer)?;
        Ok(LongerPath { at, longer, before })
    }

    /// Puts the former bytes back, unless the caller has executed the program. Its memory has other
    /// bytes there then, or the kernel's copy of the path.
    fn take_back(&self, call: &NotifiedCall) -> io::Result<()> {
        let is_there = call.bytes(self.at, self.longer.len())? == self.longer;
        let is_copy = || auxiliary_value(call.tid, libc::AT_EXECFN) == Some(self.at);
        match is_there && !is_copy() {
            true => call.put(self.at, &self.before),
            false => Ok(()),
        }
    }
}

impl Supervisor {
    /// The call executes this recorded program.
    pub(super) fn lower_stack(&mut self, call: &NotifiedCall, index: usize) {
        let begins = self.matchers[index].rest.start.stack;
        let can_move = !self.has_tool && call.number == libc::SYS_execve;
        if let Some(begins) = begins.filter(|begins| can_move && is_fixed(*begins)) {
            // Otherwise the program has other addresses on its stack, as with random ones.
            if let Ok(Some(path)) = put_longer_path(call, begins) {
                self.longer_paths.insert(call.tid, path);
            }
        }
    }

    /// A thread makes a call, so its last one is over. If that was an `execve`, it may have failed.
    pub(super) fn leaves_execution(&mut self, call: &NotifiedCall) {
        if let Some(path) = self.longer_paths.remove(&call.tid) {
            // An error means that the new program has no memory there.
            let _ = path.take_back(call);
        }
    }
}

/// `None`: the path stays as it is.
fn put_longer_path(call: &NotifiedCall, begins: u64) -> io::Result<Option<LongerPath>> {
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
        return Ok(None);
    }
    let Some(mut longer) = contents.longer_path(&path, begins) else {
        return Ok(None);
    };
    longer.push(0);
    let room = at..at + longer.len() as u64;
    let overlaps = |other: &Range<u64>| other.start < room.end && room.start < other.end;
    if read_by_kernel.iter().any(overlaps) || !is_alone(call.tid) {
        return Ok(None);
    }
    LongerPath::put(call, at, longer).map(Some)
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
    use super::{LongerPath, is_alone};
    use crate::engine::caller::NotifiedCall;
    use backstory_sys as sys;
    use std::process::{Command, Stdio};
    use std::thread;

    /// A call of this process.
    fn own_call() -> NotifiedCall {
        NotifiedCall {
            id: 0,
            tid: std::process::id(),
            number: libc::SYS_execve,
            args: [0; 6],
            behind: 0,
        }
    }

    #[test]
    fn a_longer_path_is_taken_back_unless_the_memory_is_another_one() {
        let before = b"/bin/one\0kept behind the path";
        let mut memory = before.to_vec();
        let at = memory.as_mut_ptr() as usize as u64;
        let call = own_call();
        let has = |length: usize| call.bytes(at, length).unwrap();
        let longer = b"//////bin/one\0";
        let path = match LongerPath::put(&call, at, longer.to_vec()) {
            Ok(path) => path,
            Err(error) => return println!("SKIPPED: the memory of a caller: {error}"),
        };
        assert_eq!(has(longer.len()), longer);
        path.take_back(&call).unwrap();
        assert_eq!(has(before.len()), before);
        call.put(at, b"other").unwrap();
        path.take_back(&call).unwrap();
        assert_eq!(has(5), b"other");
        drop(memory);
    }

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
