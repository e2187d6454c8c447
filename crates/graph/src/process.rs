//! Processes and their descriptors, as the kernel had them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Pid, Time, Via};

use crate::model::{ActivityId, EntityId};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use crate::serial::Serial;

/// The bind mounts of a mount namespace: from the mount point to the directory that it shows.
pub type BindMounts = Rc<RefCell<Vec<(PathId, PathId)>>>;

/// An open file description (open(2)): `dup` and `fork` share it.
#[derive(Debug)]
pub struct OpenFile {
    /// The object that a read takes data from.
    pub source: ObjectId,
    /// The object that a write changes. It differs from the source only for sockets.
    pub target: ObjectId,
    pub reads: bool,
    pub writes: bool,
    /// The file was opened for writing without truncation, so its content stays.
    pub keeps: bool,
    /// The path by which it was opened.
    pub path: PathId,
    /// The part of backstory that saw the open.
    pub via: Via,
    /// The open used the file only as a location (`O_PATH`), or the file is a directory.
    pub looked: bool,
}

/// A descriptor of one process in one epoch.
#[derive(Debug, Clone)]
pub struct Descriptor {
    /// `None` for a descriptor that carries no data (eventfd, epoll …).
    pub what: Option<Rc<OpenFile>>,
    pub cloexec: bool,
    /// When this epoch got it.
    pub since: Time,
    /// This epoch opened it, or the short epoch 0 before it did.
    pub own: bool,
    /// The first read that was seen.
    pub read: Option<Time>,
    /// The first write that was seen.
    pub written: Option<Time>,
    /// The first listing that was seen.
    pub listed: Option<Time>,
    /// The versions of source and target when it was opened.
    pub source_from: u32,
    pub target_from: u32,
    /// The path by which it was opened. For a directory that was renamed since: its present path.
    pub path: PathId,
    /// The same path with links followed, moved by every later rename. Relative paths start here if
    /// the descriptor leads to a directory.
    pub location: PathId,
    /// It is not known whether the open succeeded, or whether all uses are in the log.
    pub doubtful: bool,
    /// A directory that was opened for reading, and whose listing nothing would see.
    pub may_be_listed: bool,
    /// A connection on which the kernel counted no byte in either direction until its close.
    pub carried_nothing: bool,
}

/// Numbers below this stand for descriptors whose number is not known, and for memory mappings.
pub const NAMELESS: i32 = -1000;

/// The most descriptors without a number that a process has. The fold does not see when a process
/// closes one.
pub const NAMELESS_MAX: usize = 1024;

/// A pipe that a process made unseen.
#[derive(Debug, Clone, Copy)]
pub struct UnseenPipe {
    pub object: ObjectId,
    /// When a descriptor of it was first found.
    pub since: Time,
    pub epoch: Serial,
}

/// A current directory and a root (clone(2): `CLONE_FS`). Threads and processes that share it see
/// each other's changes.
#[derive(Debug, Clone)]
pub struct FsContext {
    pub cwd: Cell<PathId>,
    pub root: Cell<PathId>,
}

impl Default for FsContext {
    fn default() -> FsContext {
        FsContext {
            cwd: Cell::new(ROOT),
            root: Cell::new(ROOT),
        }
    }
}

/// An activity around those that the program has marked.
#[derive(Debug, Clone)]
pub struct OuterActivity {
    pub id: ActivityId,
    pub argv: Vec<Bytes>,
    /// The program marked it, too.
    pub is_nested: bool,
    /// It is a call of a function.
    pub is_function: bool,
    /// The version of the memory that it left to the activity inside of it.
    pub memory: Option<EntityId>,
    /// Something came in since the activity inside of it began.
    pub brought_in: bool,
}

/// A process.
#[derive(Debug, Clone)]
pub struct ProcessState {
    pub pid: Pid,
    /// Its parent when it began.
    pub parent: Pid,
    pub epoch: Serial,
    pub epoch_number: u32,
    pub descriptors: BTreeMap<i32, Descriptor>,
    /// Where the paths of its threads start, apart from the threads in `own_fs`.
    pub fs: Rc<FsContext>,
    /// Threads that no longer share the process's directory (`unshare`), and their own.
    pub own_fs: BTreeMap<u32, Rc<FsContext>>,
    /// Its descriptor table. Processes that share a table hold the same `Rc`.
    pub table: Rc<()>,
    /// The bind mounts in its mount namespace.
    pub binds: BindMounts,
    /// It has a mount namespace of its own, in which the kernel's paths begin at another root than
    /// the supervisor's.
    pub own_mounts: bool,
    /// A recorder has announced itself in the present epoch.
    pub started: bool,
    /// Its end was seen. A later event with this pid may be of another process.
    pub ended: bool,
    /// Its parent's fork was seen.
    pub forked: bool,
    /// It may have duplicated descriptors unseen before its exec (`posix_spawn`, `popen`).
    pub spawned: bool,
    /// The supervisor listed its descriptors from outside.
    pub listed: bool,
    /// Pipes that it made unseen.
    pub made: Vec<UnseenPipe>,
    /// It is the run's command.
    pub command: bool,
    /// The activities that the present one is inside of, because the program marked it.
    pub outer: Vec<OuterActivity>,
    /// The version of its memory that its next activity reads.
    pub memory: Option<EntityId>,
    /// The last version, and the number of versions.
    pub last_memory: Option<EntityId>,
    pub memories: u32,
    /// The connection to another machine that its next program is the client of, and the arguments
    /// that the user gave the client.
    pub connects: Option<(Bytes, Vec<Bytes>)>,
    /// Its status as `wait` reports it.
    pub status: Option<i32>,
}

impl ProcessState {
    /// A process with nothing open, at the root.
    pub fn new(pid: Pid, epoch: Serial, forked: bool) -> ProcessState {
        ProcessState {
            pid,
            parent: 0,
            epoch,
            epoch_number: 0,
            descriptors: BTreeMap::new(),
            fs: Rc::default(),
            own_fs: BTreeMap::new(),
            table: Rc::default(),
            binds: BindMounts::default(),
            own_mounts: false,
            started: false,
            ended: false,
            forked,
            spawned: false,
            listed: false,
            made: Vec::new(),
            command: false,
            outer: Vec::new(),
            memory: None,
            last_memory: None,
            memories: 0,
            connects: None,
            status: None,
        }
    }

    /// True if it may be a copy of its parent that has done nothing yet, and no list says what it
    /// has open.
    pub fn can_be_a_copy(&self) -> bool {
        self.epoch_number == 0 && !self.forked && !self.listed && !self.command
    }

    /// Where the paths of one of its threads start.
    pub fn fs(&self, tid: u32) -> &Rc<FsContext> {
        self.own_fs.get(&tid).unwrap_or(&self.fs)
    }

    /// A free number for a descriptor whose number is not known.
    pub fn nameless(&self) -> i32 {
        self.descriptors
            .keys()
            .next()
            .map_or(NAMELESS, |&first| first.min(NAMELESS) - 1)
    }

    /// How many of its descriptors have no known number.
    pub fn nameless_count(&self) -> usize {
        self.descriptors.range(..=NAMELESS).count()
    }
}
