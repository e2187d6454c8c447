//! Turns notifications into the records of operations.
//!
//! | notification | records |
//! | --- | --- |
//! | open, read, write, close of a file | see [`open_uses`](crate::open_uses) |
//! | open, read, close of a directory | OPEN, LIST, CLOSE |
//! | creation of a file that its maker opens next | part of that OPEN |
//! | other creation | MKDIR, SYMLINK, MKNOD, LINK |
//! | deletion, rename | UNLINK, RENAME |
//! | open for an exec | OPEN, READ, CLOSE of a script; the EXEC comes from the process |
//!
//! The kernel may merge notifications of one process and file. They are then taken in the order of
//! this table.

use crate::directory_table::{DirectoryTable, PresentFile};
use crate::event_batch::EventBatch;
use crate::open_uses::{Access, OpenUses, UsedFile};
use backstory_abi::op;
use backstory_callers::{Caller, CallerTable, EndedProcesses, Operation, OperationLog};
use backstory_files::Ident;
use backstory_sys as sys;
use backstory_sys::clock::counter;
use backstory_sys::{
    DirectoryEntry, FAN_ACCESS, FAN_CLOSE_NOWRITE, FAN_CLOSE_WRITE, FAN_CREATE, FAN_DELETE,
    FAN_MODIFY, FAN_ONDIR, FAN_OPEN, FAN_OPEN_EXEC, FAN_Q_OVERFLOW, FAN_RENAME, FileHandle,
    Notification,
};
use rustix::fs::RenameFlags;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Notifications that are wanted.
pub(crate) const WANTED: u64 = FAN_ACCESS
    | FAN_MODIFY
    | FAN_CLOSE_WRITE
    | FAN_CLOSE_NOWRITE
    | FAN_OPEN
    | FAN_OPEN_EXEC
    | FAN_CREATE
    | FAN_DELETE
    | FAN_RENAME
    | FAN_ONDIR;
/// Most files whose last known name is kept, for hard links.
const NAMES: usize = 1 << 16;

/// A creation that may belong to the next open of its process.
#[derive(Debug)]
struct Creation {
    caller: Caller,
    time: u64,
    file: UsedFile,
    /// The former name of a file that has several.
    linked: Option<Vec<u8>>,
}

/// A notification whose caller and path are known.
#[derive(Debug)]
struct PlacedEvent<'a> {
    event: &'a Notification,
    caller: Caller,
    time: u64,
    /// The file, with its identity if that is older than the event.
    file: UsedFile,
    /// The identity after the event.
    after: Option<Ident>,
}

impl PlacedEvent<'_> {
    fn has(&self, mask: u64) -> bool {
        self.event.mask & mask != 0
    }

    fn by(&self) -> (Caller, u64) {
        (self.caller, self.time)
    }
}

/// Gaps of the notifications.
#[derive(Debug, Default)]
pub(crate) struct MissingEvents {
    /// The times between which the kernel dropped notifications.
    pub(crate) dropped: Vec<(i64, i64)>,
    /// Notifications of files whose path is not known.
    pub(crate) unplaced: u64,
}

/// Records notifications.
pub(crate) struct EventRecorder {
    log: OperationLog,
    callers: Arc<CallerTable>,
    directories: DirectoryTable,
    ignored: Vec<Vec<u8>>,
    uses: OpenUses,
    created: Vec<Creation>,
    executed: HashSet<(u32, FileHandle)>,
    names: HashMap<FileHandle, Vec<u8>>,
    /// The queue was empty at this time of the file systems' clock.
    emptied: i64,
    pub(crate) missing: MissingEvents,
}

impl EventRecorder {
    /// A recorder that takes no events below the `ignored` paths.
    pub(crate) fn new(
        log: OperationLog,
        callers: Arc<CallerTable>,
        directories: DirectoryTable,
        ignored: Vec<Vec<u8>>,
    ) -> EventRecorder {
        EventRecorder {
            log,
            callers,
            directories,
            ignored,
            uses: OpenUses::default(),
            created: Vec::new(),
            executed: HashSet::new(),
            names: HashMap::new(),
            emptied: sys::clock::files(),
            missing: MissingEvents::default(),
        }
    }

    /// Records a batch that was taken at `now`. `emptied`: the queue was empty after it.
    pub(crate) fn take(&mut self, batch: &EventBatch, now: i64, emptied: bool) {
        self.learn_directories(batch);
        let mut done = HashSet::new();
        for (at, event) in batch.events.iter().enumerate() {
            if event.mask & FAN_Q_OVERFLOW != 0 {
                self.missing.dropped.push((self.emptied, now));
                self.directories.forget();
            } else if event.pid != std::process::id() && !done.contains(&at) {
                let exchange = match event.mask & FAN_RENAME {
                    0 => None,
                    _ => batch.exchange_of(at),
                };
                done.extend(exchange);
                self.take_one(batch, at, exchange.is_some());
            }
        }
        if emptied {
            self.emptied = now;
        }
    }

    /// Takes the places of directories that later notifications of a batch move or remove.
    fn learn_directories(&mut self, batch: &EventBatch) {
        let moved = FAN_DELETE | FAN_RENAME;
        for event in &batch.events {
            if event.mask & FAN_ONDIR != 0
                && event.mask & moved != 0
                && let (Some(file), Some(entry)) = (&event.file, &event.entry)
            {
                self.directories.was_at(file, entry);
            }
        }
    }

    fn take_one(&mut self, batch: &EventBatch, at: usize, exchange: bool) {
        let Some(event) = batch.events.get(at) else {
            return;
        };
        let place = |entry: &DirectoryEntry| self.directories.path(entry);
        let Some(path) = event.entry.as_ref().and_then(place) else {
            self.missing.unplaced += 1;
            return;
        };
        if self.is_ignored(&path) {
            return;
        }
        let Some(handle) = event.file.clone().or_else(|| of_itself(event)) else {
            self.missing.unplaced += 1;
            return;
        };
        if event.mask & FAN_OPEN_EXEC != 0 {
            self.take_exec(event, handle, path);
            return;
        }
        let later = batch.executes_after(at, event.pid);
        let caller = self.callers.past_caller(event.pid, !event.ended, later);
        let changes = batch.changes_after(at, &handle);
        let used = event.mask & (FAN_OPEN | FAN_CLOSE_WRITE) != 0;
        let ident = match used && !changes {
            true => self.directories.present(&handle).map(|file| file.ident),
            false => None,
        };
        let event = PlacedEvent {
            event,
            caller,
            time: counter(),
            file: UsedFile {
                handle,
                path,
                ident: ident.filter(|ident| ident.changed_before(self.emptied)),
            },
            after: ident,
        };
        self.record_creations(|made| {
            let opens = event.has(FAN_OPEN) && made.file.handle == event.file.handle;
            made.caller.ids.pid == caller.ids.pid && !opens
        });
        match event.has(FAN_ONDIR) {
            true => self.take_directory(&event),
            false => self.take_file(&event),
        }
        if event.has(FAN_RENAME) {
            self.take_rename(&event, exchange);
        }
        if event.has(FAN_DELETE) {
            let operation = Operation {
                arg: match event.has(FAN_ONDIR) {
                    true => libc::AT_REMOVEDIR,
                    false => 0,
                },
                ..Operation::on(op::UNLINK, &event.file.path)
            };
            self.record_creations(|made| made.file.handle == event.file.handle);
            self.log.operation(caller.ids, counter(), &operation);
        }
    }

    /// Takes the open of a program file. A script is read by its interpreter.
    fn take_exec(&mut self, event: &Notification, handle: FileHandle, path: Vec<u8>) {
        self.callers.opened_program(event.pid, &path);
        self.executed.insert((event.pid, handle.clone()));
        let present = self.directories.present(&handle);
        if let Some(present) = present.filter(PresentFile::is_script) {
            let caller = self.callers.past_caller(event.pid, !event.ended, false);
            let older = present.ident.changed_before(self.emptied);
            let script = UsedFile {
                handle,
                path,
                ident: older.then_some(present.ident),
            };
            self.uses
                .used_once(&self.log, &script, (caller, counter()), op::READ);
        }
    }

    fn is_ignored(&self, path: &[u8]) -> bool {
        let below = |of: &Vec<u8>| {
            let rest = path.strip_prefix(&of[..]);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        self.ignored.iter().any(below)
    }

    fn take_directory(&mut self, event: &PlacedEvent<'_>) {
        let path = &event.file.path;
        if event.has(FAN_CREATE) {
            if let (Some(file), Some(entry)) = (&event.event.file, &event.event.entry) {
                self.directories.now_at(file, entry);
            }
            let operation = Operation {
                aux: libc::S_IFDIR,
                ..Operation::on(op::MKDIR, path)
            };
            self.log.operation(event.caller.ids, event.time, &operation);
        }
        if event.has(FAN_ACCESS) {
            self.uses
                .used_once(&self.log, &event.file, event.by(), op::LIST);
        }
    }

    fn take_file(&mut self, event: &PlacedEvent<'_>) {
        let file = &event.file;
        if event.has(FAN_CREATE) {
            self.take_creation(event);
        }
        if event.has(FAN_OPEN) {
            let is_made = |made: &Creation| {
                made.file.handle == file.handle && made.caller.ids.pid == event.caller.ids.pid
            };
            let made = self.created.iter().position(is_made);
            let made = made.map(|at| self.created.swap_remove(at)).is_some();
            self.uses.opened(file, event.caller, event.time, made);
            self.remember_name(file);
        }
        let own = event.caller.ids.pid;
        let executed = self
            .executed
            .contains(&(event.event.pid, file.handle.clone()))
            && !self.uses.has_opened(&file.handle, own);
        if event.has(FAN_ACCESS) && !executed {
            self.uses.used(&self.log, file, event.by(), Access::Read);
        }
        if event.has(FAN_MODIFY) {
            self.uses.used(&self.log, file, event.by(), Access::Write);
        }
        let ended = (event.caller, counter());
        if event.has(FAN_CLOSE_NOWRITE) && !executed {
            self.uses.closed(&self.log, file, ended, Access::Read);
        }
        if event.has(FAN_CLOSE_WRITE) {
            let file = UsedFile {
                ident: event.after,
                ..file.clone()
            };
            self.uses.closed(&self.log, &file, ended, Access::Write);
        }
    }

    fn remember_name(&mut self, file: &UsedFile) {
        if self.names.len() >= NAMES {
            self.names.clear();
        }
        self.names.insert(file.handle.clone(), file.path.clone());
    }

    fn take_creation(&mut self, event: &PlacedEvent<'_>) {
        let (file, ids) = (&event.file, event.caller.ids);
        let present = self.directories.present(&file.handle);
        let mode = present.as_ref().map_or(0, |of| of.ident.mode);
        let linked = present.as_ref().is_some_and(|of| of.ident.nlink > 1);
        match mode & libc::S_IFMT {
            libc::S_IFREG | 0 => self.created.push(Creation {
                caller: event.caller,
                time: event.time,
                file: file.clone(),
                linked: self.names.get(&file.handle).cloned().filter(|_| linked),
            }),
            libc::S_IFLNK => {
                let text = present.and_then(|of| of.link_text()).unwrap_or_default();
                let operation = Operation {
                    op: op::SYMLINK,
                    fd: libc::AT_FDCWD,
                    strings: [Some(&text), Some(&file.path)],
                    ..Operation::default()
                };
                self.log.operation(ids, event.time, &operation);
            }
            _ => {
                let operation = Operation {
                    aux: mode,
                    ..Operation::on(op::MKNOD, &file.path)
                };
                self.log.operation(ids, event.time, &operation);
            }
        }
    }

    /// Records creations that no open follows.
    fn record_creations(&mut self, is_ready: impl Fn(&Creation) -> bool) {
        let all = std::mem::take(&mut self.created);
        let (ready, waiting): (Vec<Creation>, Vec<Creation>) = all.into_iter().partition(is_ready);
        self.created = waiting;
        for made in ready {
            let (path, ids) = (&made.file.path, made.caller.ids);
            let operation = match &made.linked {
                Some(old) => Operation::between(op::LINK, old, path),
                None => Operation {
                    aux: libc::S_IFREG,
                    ..Operation::on(op::MKNOD, path)
                },
            };
            self.log.operation(ids, made.time, &operation);
        }
    }

    fn take_rename(&mut self, event: &PlacedEvent<'_>, exchange: bool) {
        let Some(entry) = &event.event.new_entry else {
            return;
        };
        let Some(new) = self.directories.path(entry) else {
            self.missing.unplaced += 1;
            return;
        };
        let operation = Operation {
            aux: match exchange {
                true => RenameFlags::EXCHANGE.bits(),
                false => 0,
            },
            ..Operation::between(op::RENAME, &event.file.path, &new)
        };
        self.log.operation(event.caller.ids, event.time, &operation);
        if event.has(FAN_ONDIR) {
            self.directories.now_at(&event.file.handle, entry);
        }
        let file = UsedFile {
            path: new,
            ..event.file.clone()
        };
        self.remember_name(&file);
    }

    /// Forgets processes all of whose events were taken. Creations that wait are recorded.
    pub(crate) fn forget(&mut self, ended: EndedProcesses) {
        self.record_creations(|_| true);
        let pids = self.callers.forget_ended(ended);
        self.uses.forget(&self.log, &pids);
        self.executed.retain(|(pid, _)| !pids.contains(pid));
    }

    /// Records what still waits, because the watch ends.
    pub(crate) fn end(&mut self) -> MissingEvents {
        self.record_creations(|_| true);
        self.uses.end(&self.log);
        OperationLog::end_thread();
        std::mem::take(&mut self.missing)
    }
}

/// The directory of a notification about a directory itself.
fn of_itself(event: &Notification) -> Option<FileHandle> {
    let entry = event.entry.as_ref()?;
    (entry.name == b".").then(|| entry.directory.clone())
}
