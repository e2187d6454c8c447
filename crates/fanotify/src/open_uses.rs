//! Which process has which file open, and how.
//!
//! A notification of an open does not tell whether the program reads or writes. The close tells
//! whether it could write, and notifications of reads and writes tell the rest. So the record of an
//! open waits for the first of these. In the records, a program that reads and writes a file has
//! two descriptors of it.
//!
//! A process may use a file that another process opened. At its first use, a record says that it
//! opened the file, too.

use backstory_abi::op;
use backstory_callers::{Caller, OpenNumbers, Operation, OperationLog};
use backstory_files::Ident;
use backstory_sys::FileHandle;
use std::collections::HashMap;

/// A file, with its path and identity at the time of a notification.
#[derive(Debug, Clone)]
pub(crate) struct UsedFile {
    pub(crate) handle: FileHandle,
    pub(crate) path: Vec<u8>,
    /// The identity, if it is known to be that of the notification.
    pub(crate) ident: Option<Ident>,
}

/// A use of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// An open whose record waits.
#[derive(Debug)]
struct UnrecordedOpen {
    caller: Caller,
    time: u64,
    path: Vec<u8>,
    ident: Option<Ident>,
    made: bool,
}

/// A recorded open.
#[derive(Debug)]
struct RecordedOpen {
    caller: Caller,
    number: i32,
    /// The program that has last used it.
    epoch: Option<u64>,
}

/// The open files of one process that have the same inode.
#[derive(Debug, Default)]
struct FileUse {
    opens: u32,
    waiting: Vec<UnrecordedOpen>,
    reading: Option<RecordedOpen>,
    writing: Option<RecordedOpen>,
}

impl FileUse {
    /// The open that a use at this time belongs to: one that waits, or one that was not seen.
    fn waiting_open(&mut self, file: &UsedFile, caller: Caller, time: u64) -> UnrecordedOpen {
        self.waiting.pop().unwrap_or_else(|| UnrecordedOpen {
            caller,
            time,
            path: file.path.clone(),
            ident: None,
            made: false,
        })
    }

    fn descriptor(&mut self, access: Access) -> &mut Option<RecordedOpen> {
        match access {
            Access::Read => &mut self.reading,
            Access::Write => &mut self.writing,
        }
    }
}

/// All open files.
#[derive(Default)]
pub(crate) struct OpenUses {
    files: HashMap<FileHandle, HashMap<u32, FileUse>>,
    numbers: OpenNumbers,
}

impl OpenUses {
    /// Whether a process opened the file, and has it open.
    pub(crate) fn has_opened(&self, file: &FileHandle, pid: u32) -> bool {
        let uses = self.files.get(file).and_then(|uses| uses.get(&pid));
        uses.is_some_and(|used| used.opens > 0)
    }

    /// Takes an open. `made` says that it made the file.
    pub(crate) fn opened(&mut self, file: &UsedFile, caller: Caller, time: u64, made: bool) {
        let uses = self.files.entry(file.handle.clone()).or_default();
        let used = uses.entry(caller.ids.pid).or_default();
        used.opens += 1;
        used.waiting.push(UnrecordedOpen {
            caller,
            time,
            path: file.path.clone(),
            ident: file.ident,
            made,
        });
    }

    /// Takes a read or a write, and records the first one of each program.
    pub(crate) fn used(
        &mut self,
        log: &OperationLog,
        file: &UsedFile,
        (caller, time): (Caller, u64),
        access: Access,
    ) {
        let uses = self.files.entry(file.handle.clone()).or_default();
        let used = uses.entry(caller.ids.pid).or_default();
        if used.descriptor(access).is_none() {
            let open = used.waiting_open(file, caller, time);
            *used.descriptor(access) = Some(record_open(log, &self.numbers, open, access));
        }
        let Some(open) = used.descriptor(access) else {
            return;
        };
        if open.epoch.replace(caller.epoch) != Some(caller.epoch) {
            let op = match access {
                Access::Read => op::READ,
                Access::Write => op::WRITE,
            };
            log.operation(caller.ids, time, &Operation::through(op, open.number));
        }
    }

    /// Takes a use of a file that begins and ends at once in the records: `READ` of a script, or
    /// `LIST` of a directory.
    pub(crate) fn used_once(
        &self,
        log: &OperationLog,
        file: &UsedFile,
        (caller, time): (Caller, u64),
        op: u16,
    ) {
        let number = self.numbers.next();
        let open = Operation {
            arg: match op {
                op::LIST => libc::O_RDONLY | libc::O_DIRECTORY,
                _ => libc::O_RDONLY,
            },
            result: number,
            ident: file.ident,
            ..Operation::on(op::OPEN, &file.path)
        };
        log.operation(caller.ids, time, &open);
        for op in [op, op::CLOSE] {
            log.operation(caller.ids, time, &Operation::through(op, number));
        }
    }

    /// Takes the end of an open file, which could write if `access` says so. It was opened by the
    /// caller, or by a process that passed it on.
    pub(crate) fn closed(
        &mut self,
        log: &OperationLog,
        file: &UsedFile,
        (caller, time): (Caller, u64),
        access: Access,
    ) {
        let uses = self.files.entry(file.handle.clone()).or_default();
        let own = caller.ids.pid;
        let opener = match uses.get(&own).is_some_and(|used| used.opens > 0) {
            true => Some(own),
            false => {
                let open = uses.iter().filter(|(_, used)| used.opens > 0);
                open.map(|(pid, _)| *pid).min()
            }
        };
        if opener.is_none() && access == Access::Write && !uses.contains_key(&own) {
            // It was opened before the watch began.
            uses.insert(own, FileUse::default());
        }
        let ended = [Some(own), opener.filter(|pid| *pid != own)];
        for pid in ended.into_iter().flatten() {
            let Some(used) = uses.get_mut(&pid) else {
                continue;
            };
            let resolves = Some(pid) == opener || opener.is_none() && access == Access::Write;
            if resolves && used.descriptor(access).is_none() {
                let open = used.waiting_open(file, caller, time);
                *used.descriptor(access) = Some(record_open(log, &self.numbers, open, access));
            }
            used.opens = used.opens.saturating_sub(1);
            if used.opens == 0
                && let Some(used) = uses.remove(&pid)
            {
                record_close(log, &used, file.ident, time);
            }
        }
        if uses.is_empty() {
            self.files.remove(&file.handle);
        }
    }

    /// Forgets what processes had open that have ended.
    pub(crate) fn forget(&mut self, log: &OperationLog, pids: &[u32]) {
        let numbers = &self.numbers;
        self.files.retain(|_, uses| {
            for used in pids.iter().filter_map(|pid| uses.remove(pid)) {
                record_unexplained(log, numbers, &used);
            }
            !uses.is_empty()
        });
    }

    /// Records the opens that no later notification explained.
    pub(crate) fn end(&mut self, log: &OperationLog) {
        for used in self.files.drain().flat_map(|(_, uses)| uses.into_values()) {
            record_unexplained(log, &self.numbers, &used);
        }
    }
}

/// Records opens whose kind nothing tells: reads and writes are possible.
fn record_unexplained(log: &OperationLog, numbers: &OpenNumbers, used: &FileUse) {
    for open in &used.waiting {
        log_open(log, open, libc::O_RDWR, numbers.next());
    }
}

fn record_open(
    log: &OperationLog,
    numbers: &OpenNumbers,
    open: UnrecordedOpen,
    access: Access,
) -> RecordedOpen {
    let flags = match access {
        Access::Read => libc::O_RDONLY,
        Access::Write => libc::O_WRONLY,
    };
    let number = numbers.next();
    log_open(log, &open, flags, number);
    RecordedOpen {
        caller: open.caller,
        number,
        epoch: None,
    }
}

fn log_open(log: &OperationLog, open: &UnrecordedOpen, flags: i32, number: i32) {
    let made = match open.made {
        true => libc::O_CREAT | libc::O_EXCL,
        false => 0,
    };
    let operation = Operation {
        arg: flags | made,
        result: number,
        ident: open.ident.filter(|_| !open.made),
        ..Operation::on(op::OPEN, &open.path)
    };
    log.operation(open.caller.ids, open.time, &operation);
}

fn record_close(log: &OperationLog, used: &FileUse, ident: Option<Ident>, time: u64) {
    let ends = [(&used.reading, None), (&used.writing, ident)];
    for (open, ident) in ends {
        if let Some(open) = open {
            let operation = Operation {
                ident,
                ..Operation::through(op::CLOSE, open.number)
            };
            log.operation(open.caller.ids, time, &operation);
        }
    }
}
