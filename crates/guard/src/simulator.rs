//! Programs that run under the byte engine (`record --bytes`), a simulator of processors.
//!
//! In: a notification. Out: the call as the program made it. The engine loads a program into its
//! own process, and makes the program's system calls. It makes calls of its own, too: it reads the
//! program and debugging information, and writes its results. In its memory, it lists the program's
//! calls that are under way (`bytes/c/under_way.c`). All other calls of its process are its own.
//!
//! Invariant: a run under the engine has the calls of a run without it. A program's `execve` is
//! that of the program, although the engine executes itself again.

use crate::arguments::Arguments;
use crate::callers::Callers;
use crate::decoded_call::{DecodedCall, StringList};
use crate::memory::{ProcessMemory, Unreadable};
use crate::notification_buffers::Notification;
use backstory_abi::simulator_calls::{ENTRY, HEAD, MOST, SimulatedCall, active_calls, of_thread};
use backstory_abi::{MAGIC_SIMULATOR, MAGIC_WHICH};
use backstory_sys as sys;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors above the program's limit that Valgrind adds for itself: `N_RESERVED_FDS`.
const RESERVED_DESCRIPTORS: u64 = 12;

/// The engine of a run.
#[derive(Debug, Default)]
pub struct Simulator {
    launcher: PathBuf,
    /// The words before the command, the launcher first.
    words: Vec<Vec<u8>>,
    /// The program of the command.
    program: Vec<u8>,
    /// Device and inode of its programs.
    files: Vec<(u64, u64)>,
    /// The address of its list. All its processes have it at the same address: the engine is a
    /// static program. 0 until the first one has started.
    calls: AtomicU64,
}

impl Simulator {
    /// The engine that is started by `words`, with the path of the launcher first. `program` is
    /// that of the command, and `files` are the engine's programs.
    pub fn new(words: &[Vec<u8>], launcher: &Path, program: &[u8], files: &[PathBuf]) -> Simulator {
        let place = |path: &PathBuf| {
            let path = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
            sys::statx(libc::AT_FDCWD, &path, 0).ok().map(place)
        };
        Simulator {
            launcher: launcher.to_owned(),
            words: words.to_vec(),
            program: program.to_vec(),
            files: files.iter().filter_map(place).collect(),
            calls: AtomicU64::new(0),
        }
    }

    /// True for a file of the engine, such as the library that Valgrind puts into programs.
    pub(crate) fn owns(&self, path: &[u8]) -> bool {
        let directory = self.launcher.parent();
        directory.is_some_and(|own| Path::new(OsStr::from_bytes(path)).starts_with(own))
    }

    /// True if the thread's process runs a program of the engine.
    pub(crate) fn runs(&self, callers: &Callers, tid: u32) -> bool {
        let Ok(exe) = CString::new(format!("{tid}/exe")) else {
            return false;
        };
        let found = sys::statx(callers.proc(), &exe, 0);
        found.is_ok_and(|found| self.files.contains(&place(found)))
    }

    /// The call as the program made it. `None`: the engine made it.
    ///
    /// # Errors
    /// The caller's memory cannot be read.
    pub(crate) fn program_call(
        &self,
        notification: &Notification,
        gate: Option<u64>,
    ) -> Result<Option<Notification>, Unreadable> {
        let list = self.calls.load(Ordering::Acquire);
        if list == 0 {
            return Ok(None);
        }
        let mut memory = ProcessMemory::of(notification.tid);
        let read = |at: usize, to: &mut [u8]| memory.exact(list + at as u64, to);
        let calls = active_calls(read)?;
        let calls = calls.iter().copied();
        let same = calls.filter(|call| is_same(call, notification));
        let found = of_thread(same, notification.tid);
        Ok(found.map(|call| {
            let number = call.number as u32;
            let ip = match (call.is_gated, gate) {
                (true, Some(gate)) => gate,
                _ => notification.ip,
            };
            Notification {
                ip,
                // An execve is that of the engine's launcher.
                nr: number,
                args: if is_exec(number) {
                    call.args
                } else {
                    notification.args
                },
                ..*notification
            }
        }))
    }

    /// True if two processes have the same program: one is a fork of the other. `None`: the engine
    /// does not execute both.
    pub(crate) fn is_same_program(&self, callers: &Callers, one: u32, two: u32) -> Option<bool> {
        let list = self.calls.load(Ordering::Acquire);
        let image = |tid| {
            let mut number = [0; 8];
            let at = list + (HEAD + MOST * ENTRY) as u64;
            let known = list != 0 && self.runs(callers, tid);
            let read = known.then(|| ProcessMemory::of(tid).exact(at, &mut number));
            read?.ok().map(|()| number)
        };
        Some(image(one)? == image(two)?)
    }

    /// Handles a request of the engine. False: it is another call.
    pub(crate) fn take_request(&self, notification: &Notification) -> bool {
        let [which, request, address, ..] = notification.args;
        let is_own = notification.nr == libc::SYS_getpriority as u32
            && which as i32 == MAGIC_WHICH
            && request as i32 == MAGIC_SIMULATOR;
        if is_own {
            self.calls.store(address, Ordering::Release);
        }
        is_own
    }

    /// Replaces the start of the engine by that of the command, which its arguments contain.
    pub(crate) fn unwrapped(&self, mut decoded: DecodedCall, a: &Arguments<'_>) -> DecodedCall {
        if let DecodedCall::Exec { name, args, .. } = &mut decoded
            && Path::new(OsStr::from_bytes(&name.path)) == self.launcher
            && let Some(behind) = self.behind_words(args)
        {
            *name = a.name(libc::AT_FDCWD, &self.program);
            *args = behind;
        }
        decoded
    }

    /// The arguments behind the engine's own.
    fn behind_words(&self, args: &StringList) -> Option<StringList> {
        let mut rest = &args.bytes[..];
        for word in &self.words {
            rest = rest.strip_prefix(&word[..])?.strip_prefix(b"\0")?;
        }
        Some(StringList {
            bytes: rest.to_vec(),
            count: args.count.checked_sub(self.words.len())?,
            whole: args.whole,
        })
    }

    /// The lowest number of a descriptor that is the engine's own, in a process of it.
    pub(crate) fn first_own_descriptor(tid: u32) -> Option<i32> {
        let limits = std::fs::read_to_string(format!("/proc/{tid}/limits")).ok()?;
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))?;
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        i32::try_from(limit.checked_sub(RESERVED_DESCRIPTORS)?).ok()
    }
}

fn place(of: libc::statx) -> (u64, u64) {
    (
        libc::makedev(of.stx_dev_major, of.stx_dev_minor),
        of.stx_ino,
    )
}

fn is_exec(number: u32) -> bool {
    let number = i64::from(number);
    number == libc::SYS_execve || number == libc::SYS_execveat
}

/// True if the kernel got this call of the program. Valgrind replaces all arguments of an `execve`,
/// and those of other calls from the third on.
fn is_same(call: &SimulatedCall, notification: &Notification) -> bool {
    match is_exec(notification.nr) {
        true => is_exec(call.number as u32),
        false => {
            call.number == u64::from(notification.nr) && call.args[..2] == notification.args[..2]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry as the engine writes it.
    fn entry(active: u64, number: i64, args: [u64; 6], gated: u64) -> Vec<u8> {
        let words = [&[active, number.cast_unsigned()], &args[..], &[gated, 0]].concat();
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_call_is_the_programs_if_the_engine_lists_it_as_active() {
        let of = |first| [first, 2, 3, 4, 5, 6];
        let mut list = 11u64.to_le_bytes().to_vec();
        list.extend(entry(0, libc::SYS_openat, of(1), 0));
        list.extend(entry(1, libc::SYS_openat, of(7), 1));
        for _ in 0..8 {
            list.extend(entry(0, 0, of(0), 0));
        }
        list.extend(entry(1, libc::SYS_execveat, of(9), 0));
        list.resize(HEAD + MOST * ENTRY, 0);
        let simulator = Simulator::default();
        simulator
            .calls
            .store(list.as_ptr() as u64, Ordering::Release);
        let call = |number: i64, args| Notification {
            id: 1,
            tid: sys::gettid(),
            nr: number as u32,
            arch: 0,
            ip: 5,
            args,
        };
        let found = |number, args| {
            simulator
                .program_call(&call(number, args), Some(77))
                .unwrap()
        };
        assert!(found(libc::SYS_openat, of(1)).is_none());
        assert!(found(libc::SYS_unlink, of(7)).is_none());
        // Valgrind may replace arguments from the third on.
        let open = found(libc::SYS_openat, [7, 2, 0, 0, 0, 0]).unwrap();
        assert_eq!((open.ip, open.args), (77, [7, 2, 0, 0, 0, 0]));
        let exec = found(libc::SYS_execve, of(0)).unwrap();
        assert_eq!((i64::from(exec.nr), exec.args), (libc::SYS_execveat, of(9)));
        assert_eq!(exec.ip, 5);
    }

    #[test]
    fn the_engine_has_the_numbers_of_the_recordings_requests() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bytes/c/");
        let read = |name| std::fs::read_to_string(format!("{directory}{name}")).unwrap();
        let source = read("under_way.c") + &read("callers.c");
        let number = |name: &str| {
            let define = format!("#define {name} ");
            let text = source.split(&define).nth(1).unwrap().lines().next();
            let text = text.unwrap().trim_start_matches("0x");
            u32::from_str_radix(text, if name == "SIMULATOR" { 10 } else { 16 }).unwrap()
        };
        assert_eq!(number("WHICH"), MAGIC_WHICH as u32);
        assert_eq!(number("SIMULATOR"), MAGIC_SIMULATOR as u32);
        assert_eq!(number("RECORDS"), backstory_abi::RECORDS_IN_SIMULATOR);
        assert_eq!(number("READABLE"), backstory_abi::READABLE_IN_SIMULATOR);
        assert_eq!(number("RETURNS"), backstory_abi::RETURNS_IN_SIMULATOR);
        assert_eq!(number("STUBS"), backstory_abi::RETURN_STUBS);
        assert_eq!(number("DISTANCE"), backstory_abi::RETURN_DISTANCE);
    }

    #[test]
    fn the_arguments_of_the_command_stand_behind_those_of_the_engine() {
        let words = [b"/e/launch".to_vec(), b"-q".to_vec()];
        let simulator = Simulator::new(&words, Path::new("/e/launch"), b"/bin/sort", &[]);
        let list = |bytes: &[u8], count| StringList {
            bytes: bytes.to_vec(),
            count,
            whole: true,
        };
        let own = simulator.behind_words(&list(b"/e/launch\0-q\0sort\0in\0", 4));
        let own = own.unwrap();
        assert_eq!((&own.bytes[..], own.count), (&b"sort\0in\0"[..], 2));
        assert!(
            simulator
                .behind_words(&list(b"/e/launch\0sort\0", 2))
                .is_none()
        );
        assert!(simulator.owns(b"/e/bytes-amd64-linux") && !simulator.owns(b"/elsewhere"));
    }
}
