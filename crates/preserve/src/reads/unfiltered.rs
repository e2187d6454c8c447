//! Programs that start without the guard's filter (`--guard=auto`), and what their loader reads.
//!
//! With the filter, the guard is notified of what the loader opens, and looks at the directory in
//! which the program starts. Without it, both follow from the record about the execution: the
//! recorder writes it before it executes the program.
//!
//! - The program is plain, so the libraries that its loader can take are known. All of them count
//!   as read from then on. The recorder in the program logs later which ones were.
//! - The program starts in the directory in which its process was.
//! - A library that the process loads later is announced by a record before it is loaded. All files
//!   that the loader can read for it count as read from then on, too.

use super::{ReadSet, Reads, Taken, ThreadKey, lock};
use backstory_abi::{F_CHILD, LOAD_ANNOUNCED, LOADER_CACHE, Record, op};
use backstory_eventlog::record::RawRecord;
use backstory_files::Ident;
use backstory_sys::clock;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Counts of the clock by which the clocks of two processors may differ.
const CLOCKS_DIFFER: u64 = 4096;

/// Finds the files that the loader can take for the program or the library at a path. `None`: the
/// file there is not plain, or is missing.
pub type LoadedFiles = Box<dyn Fn(&Path) -> Option<Vec<Ident>> + Send + Sync>;

/// The start of a command without the filter.
pub struct UnfilteredStart {
    /// The process id of the supervisor, which starts the command.
    pub supervisor: u32,
    /// The directory in which the command starts. `None`: it has no name.
    pub directory: Option<OsString>,
    /// The path of the command's program.
    pub program: Vec<u8>,
    /// Finds what the loader reads for a program.
    pub loaded: LoadedFiles,
    /// Finds what the loader reads for a library that a process loads.
    pub loaded_later: LoadedFiles,
}

impl Reads {
    /// The command is about to start without the guard's filter.
    pub(crate) fn starts_without_filter(&self, start: UnfilteredStart) {
        let mut known = lock(&self.known);
        known.loaded = Some(start.loaded);
        known.loaded_later = Some(start.loaded_later);
        let Some(directory) = &start.directory else {
            known.everything = true;
            return;
        };
        let (directory, program) = (directory.as_encoded_bytes(), &start.program[..]);
        known.paths.expect_command(start.supervisor, directory);
        let path = match program.starts_with(b"/") {
            true => program.to_vec(),
            false => [directory, b"/", program].concat(),
        };
        known.read(&path, false);
        known.read_interpreter(&path);
        known.loads(path);
        known.forget_places();
    }
}

impl ReadSet {
    /// The time until which operations are examined now. Chunks are copied one after the other. So
    /// the record of a process could be copied, and one that its parent had written before could
    /// not. The directory in which a program starts follows from both, unless the guard sees it.
    pub(super) fn present(&self) -> u64 {
        match self.loaded {
            Some(_) => clock::counter().saturating_add(CLOCKS_DIFFER),
            None => u64::MAX,
        }
    }

    /// A process executes a plain program without the filter. `path` is that of the program;
    /// `None`: it is not there. The call is about to fail, or the program has another name by now.
    pub(super) fn starts_unfiltered(
        &mut self,
        record: &Taken<'_>,
        raw: &RawRecord<'_>,
        pid: u32,
        path: Option<Vec<u8>>,
    ) {
        let Some(path) = path else {
            let child = raw.head.flags & F_CHILD != 0;
            self.missing.insert(record.thread, child);
            return;
        };
        self.starts_in(record, raw, pid);
        self.loads(path);
    }

    /// Takes from a record whether an earlier call by which a process executed a missing program
    /// has failed. If the program was executed nevertheless, it may have read anything.
    pub(super) fn settle(&mut self, thread: ThreadKey, head: &Record) {
        if self.missing.is_empty() {
            return;
        }
        let child = head.flags & F_CHILD != 0;
        let no_child = head.op == op::VFORKED && head.result <= 0;
        // The program that made the call goes on.
        if self.missing.get(&thread) == Some(&child) || no_child {
            self.missing.remove(&thread);
        }
        let was_executed = |(other, by_child): (&ThreadKey, &bool)| match head.op {
            op::VFORKED => *by_child && *other == thread,
            op::START => !by_child && other.pid == thread.pid && head.aux != 1,
            op::GONE => !by_child && other.pid == head.fd.cast_unsigned(),
            _ => false,
        };
        self.everything |= self.missing.iter().any(was_executed);
    }

    /// The program starts in the directory in which the process is. A child that shares its
    /// parent's memory has its process id in the record.
    fn starts_in(&mut self, record: &Taken<'_>, raw: &RawRecord<'_>, pid: u32) {
        let child = (raw.head.flags & F_CHILD != 0).then_some(record.thread);
        let directory = self.paths.directory(pid, child, libc::AT_FDCWD);
        let directory = directory.map(|directory| directory.to_vec());
        let started = match child {
            Some(_) => raw.head.result.cast_unsigned(),
            None => pid,
        };
        // The recorder may be about to write the process id.
        self.everything |= started == 0;
        self.paths.starts(started, directory);
    }

    /// A process without the filter is about to load the library at `path`, if the record says so.
    pub(super) fn loads_later(&mut self, raw: &RawRecord<'_>, path: Vec<u8>) {
        if raw.head.aux & LOAD_ANNOUNCED != 0 && raw.caller.is_none() {
            self.loads_files(path, |known| known.loaded_later.as_ref());
        }
    }

    /// The loader can take these files for the program at `path`. The guard is not notified of what
    /// it opens.
    fn loads(&mut self, path: Vec<u8>) {
        self.loads_files(path, |known| known.loaded.as_ref());
    }

    fn loads_files(
        &mut self,
        path: Vec<u8>,
        finder: impl FnOnce(&ReadSet) -> Option<&LoadedFiles>,
    ) {
        if self.executed.contains(&path) {
            return;
        }
        self.read(LOADER_CACHE.as_bytes(), false);
        let file = Path::new(OsStr::from_bytes(&path));
        let loaded = match crate::is_interface(&path) {
            true => None, // it would be this process's own
            false => finder(self).and_then(|loaded| loaded(file)),
        };
        self.executed.insert(path);
        let Some(loaded) = loaded else {
            self.everything = true;
            return;
        };
        for file in loaded.iter().map(crate::key) {
            self.add(file);
        }
    }
}
