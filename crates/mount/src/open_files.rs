//! Open files and directories, and which processes have used them.
//!
//! A request names an open file by a number of this table. In the records this number is the
//! descriptor. It is unique in the run. A file system does not learn the descriptors of processes.
//!
//! A process may use a file that another process opened, or that it opened before an exec. At its
//! first use, a record says that it opened the file, too.
//!
//! Pages of a mapping reach the file without the process that changed them. A fork shares the
//! mapping, and changes pages in memory without a request. It is met when it closes its descriptor
//! of the file. So the end of the open file tells whether one program alone can have written.

use crate::descriptor_budget::DescriptorSlot;
use crate::inode_table::{Inode, ident};
use crate::writer_count::CountedWriter;
use backstory_abi::op;
use backstory_callers::Caller;
use backstory_callers::{Operation, OperationLog};
use backstory_files::Ident;
use backstory_sys::clock::counter;
use fuser::BackingId;
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// Flags of an open that only the first open of a file has.
const FIRST_ONLY: i32 = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC | libc::O_CLOEXEC;

/// A use of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentUse {
    /// Data were read.
    Read,
    /// Data were written, or the size was set.
    Write,
}

/// A program that has used an open file.
#[derive(Debug)]
struct FileUser {
    caller: Caller,
    read: bool,
    written: bool,
}

impl FileUser {
    fn new(caller: Caller) -> FileUser {
        FileUser {
            caller,
            read: false,
            written: false,
        }
    }
}

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    pub(crate) inode: Arc<Inode>,
    number: i32,
    flags: i32,
    /// The file as it was at the last look, if it can be written to.
    before: Mutex<Option<Ident>>,
    /// Its place among the open files that can write to the inode, if it can.
    writer: Option<CountedWriter>,
    /// Pages of a mapping reached the file while no other open file could write to it.
    mapped_alone: AtomicBool,
    /// The kernel reads and writes without asking.
    pub(crate) backing: Option<Arc<BackingId>>,
    /// Set once the content before the first change through this file is preserved, or need not be.
    pub(crate) changes: OnceLock<()>,
    /// It counts among those of its inode whose reads and writes are requests.
    pub(crate) served: bool,
    users: Mutex<Vec<FileUser>>,
    _slot: DescriptorSlot,
}

/// Whether the file has the set-user-ID or the set-group-ID bit now.
pub(crate) fn sets_id(file: &File) -> bool {
    let bits = libc::S_ISUID | libc::S_ISGID;
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_mode & bits != 0)
}

/// A descriptor of an open file, and its slot.
#[derive(Debug)]
pub(crate) struct HeldFile(pub(crate) File, pub(crate) DescriptorSlot);

impl OpenedFile {
    /// A file that was just opened with these flags. The caller is `None` if no record says so yet.
    pub(crate) fn new(
        HeldFile(file, slot): HeldFile,
        inode: Arc<Inode>,
        number: i32,
        flags: i32,
        caller: Option<Caller>,
    ) -> OpenedFile {
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        OpenedFile {
            before: Mutex::new(writes.then(|| ident(&file)).flatten()),
            writer: writes.then(|| inode.writers.begin()),
            mapped_alone: AtomicBool::new(false),
            file,
            inode,
            number,
            flags,
            backing: None,
            changes: OnceLock::new(),
            served: false,
            users: Mutex::new(caller.map(FileUser::new).into_iter().collect()),
            _slot: slot,
        }
    }

    /// The descriptor in the records.
    pub(crate) fn number(&self) -> i32 {
        self.number
    }

    /// Whether it was opened for writing.
    pub(crate) fn writes(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY
    }

    fn users(&self) -> MutexGuard<'_, Vec<FileUser>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a program among the users. Of a new one, a record says that it opened the file.
    fn place_of(&self, users: &mut Vec<FileUser>, log: &OperationLog, caller: Caller) -> usize {
        let found = users
            .iter()
            .position(|user| user.caller.epoch == caller.epoch);
        found.unwrap_or_else(|| {
            self.record_open(log, caller);
            users.push(FileUser::new(caller));
            users.len() - 1
        })
    }

    /// Records that a program has the file open, unless a record says so already.
    pub(crate) fn held_by(&self, log: &OperationLog, caller: Caller) {
        self.place_of(&mut self.users(), log, caller);
    }

    /// Records the first use of each kind by each program.
    pub(crate) fn used(&self, log: &OperationLog, caller: Caller, by: ContentUse) {
        let mut users = self.users();
        let at = self.place_of(&mut users, log, caller);
        let Some(user) = users.get_mut(at) else {
            return;
        };
        let (first, op) = match by {
            ContentUse::Read => (&mut user.read, op::READ),
            ContentUse::Write => (&mut user.written, op::WRITE),
        };
        if !std::mem::replace(first, true) {
            let operation = Operation::through(op, self.number);
            log.operation(caller.ids, counter(), &operation);
        }
    }

    fn record_open(&self, log: &OperationLog, caller: Caller) {
        let path = self.inode.path();
        if path.is_empty() {
            return log.lose();
        }
        let operation = Operation {
            arg: self.flags & !FIRST_ONLY,
            result: self.number,
            ident: ident(&self.file),
            ..Operation::on(op::OPEN, &path)
        };
        log.operation(caller.ids, counter(), &operation);
    }

    /// Notes that pages of a mapping reached the file. The kernel does not say which process
    /// changed them. It is known at the end of the open file, if one program alone used it.
    pub(crate) fn mapped_pages_written(&self) {
        let writers = &self.inode.writers;
        writers.note_mapped();
        if writers.is_one() {
            self.mapped_alone.store(true, Ordering::Release);
        }
    }

    /// Whether a process that has the file open can have changed pages of it through a mapping.
    fn may_be_mapped(&self) -> bool {
        self.flags & libc::O_ACCMODE == libc::O_RDWR && self.inode.writers.is_mapped()
    }

    /// Whether no other open file could write to the inode since this one was opened.
    fn was_alone(&self) -> bool {
        let writers = &self.inode.writers;
        self.writer.is_some_and(|own| writers.was_alone(own))
    }

    /// The program that has used the file, if it is one alone.
    fn only_user(&self) -> Option<Caller> {
        match &self.users()[..] {
            [user] => Some(user.caller),
            _ => None,
        }
    }

    /// Whether the content has changed since the last look.
    fn has_changed(&self) -> bool {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(then) = *before else {
            return false;
        };
        *before = ident(&self.file);
        before.is_some_and(|now| (now.size, now.mtime) != (then.size, then.mtime))
    }

    /// Records what the kernel wrote without asking, when a program closes the file. If no other
    /// open file could write, the program did. It may have got the file from another program.
    ///
    /// Of a file with mapped pages, it records that the program has the file open.
    pub(crate) fn flushed(&self, log: &OperationLog, caller: impl FnOnce() -> Option<Caller>) {
        let by_kernel = self.backing.is_some();
        // In this order: a program that opens the file after the look did not cause the change.
        let written = by_kernel && self.has_changed() && self.was_alone();
        let shared = !by_kernel && self.may_be_mapped();
        if (written || shared)
            && let Some(caller) = caller()
        {
            match written {
                true => self.used(log, caller, ContentUse::Write),
                false => self.held_by(log, caller),
            }
        }
    }

    /// The program that has used the file last.
    pub(crate) fn last_user(&self) -> Option<Caller> {
        self.users().last().map(|user| user.caller)
    }

    /// Records the end of the open file for every process that used it.
    pub(crate) fn close(&self, log: &OperationLog) {
        if self.served {
            let access = self.inode.access.lock();
            access.unwrap_or_else(PoisonError::into_inner).served -= 1;
        }
        let unseen = self.backing.is_some() && self.has_changed() && self.was_alone();
        if self.writer.is_some() {
            self.inode.writers.end();
        }
        let writer = match self.mapped_alone.load(Ordering::Acquire) {
            true => self.only_user(),
            false => self.last_user().filter(|_| unseen),
        };
        if let Some(caller) = writer {
            self.used(log, caller, ContentUse::Write);
        }
        let after = self.writes().then(|| ident(&self.file)).flatten();
        let mut closed: Vec<u32> = Vec::new();
        for user in self.users().iter() {
            let ids = user.caller.ids;
            if closed.contains(&ids.pid) {
                continue;
            }
            closed.push(ids.pid);
            let operation = Operation {
                ident: after,
                ..Operation::through(op::CLOSE, self.number)
            };
            log.operation(ids, counter(), &operation);
        }
    }
}

/// An open directory.
#[derive(Debug)]
pub(crate) struct OpenedDirectory {
    pub(crate) file: File,
    pub(crate) inode: Arc<Inode>,
    number: i32,
    caller: Caller,
    /// The position of a listing is shared state of the descriptor. True after the first listing.
    listed: Mutex<bool>,
    _slot: DescriptorSlot,
}

impl OpenedDirectory {
    /// A directory that a caller has just opened.
    pub(crate) fn new(
        HeldFile(file, slot): HeldFile,
        inode: Arc<Inode>,
        number: i32,
        caller: Caller,
    ) -> Self {
        OpenedDirectory {
            file,
            inode,
            number,
            caller,
            listed: Mutex::new(false),
            _slot: slot,
        }
    }

    /// Holds the position for one request, and records the first listing.
    pub(crate) fn list(&self, log: &OperationLog) -> MutexGuard<'_, bool> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *listed, true) {
            let operation = Operation::through(op::LIST, self.number);
            log.operation(self.caller.ids, counter(), &operation);
        }
        listed
    }

    /// Records the end.
    pub(crate) fn close(&self, log: &OperationLog) {
        let operation = Operation::through(op::CLOSE, self.number);
        log.operation(self.caller.ids, counter(), &operation);
    }
}

/// Open files or directories, by number.
#[derive(Debug)]
pub(crate) struct OpenTable<T> {
    entries: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> Default for OpenTable<T> {
    fn default() -> Self {
        OpenTable {
            entries: RwLock::default(),
        }
    }
}

impl<T> OpenTable<T> {
    /// Adds an entry under its number.
    pub(crate) fn insert(&self, number: i32, entry: Arc<T>) -> u64 {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(number as u64, entry);
        number as u64
    }

    /// The entry of a number.
    pub(crate) fn get(&self, number: u64) -> Result<Arc<T>, Errno> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(&number).map(Arc::clone).ok_or(Errno::BADF)
    }

    /// Takes an entry out.
    pub(crate) fn remove(&self, number: u64) -> Option<Arc<T>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&number)
    }

    /// All entries, taken out.
    pub(crate) fn drain(&self) -> Vec<Arc<T>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.drain().map(|(_, entry)| entry).collect()
    }
}
