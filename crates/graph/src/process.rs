//! Processes and their descriptors, as the kernel had them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use backstory_eventlog::event::{Pid, Time, Via};

use crate::activity::Serial;
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};

/// What is shown where in a mount namespace: from the place to what it shows.
pub type BindMounts = Rc<RefCell<Vec<(PathId, PathId)>>>;

/// An open file description: what `open`, `pipe`, `accept` … made, shared by `dup` and `fork`.
#[derive(Debug)]
pub struct OpenFile {
    /// What reading takes from.
    pub source: ObjectId,
    /// What writing goes to; another object only for sockets.
    pub target: ObjectId,
    pub reads: bool,
    pub writes: bool,
    /// It was opened to write without truncation: what was there stays.
    pub keeps: bool,
    /// The name it was opened by: relative paths start here if it is a directory.
    pub path: PathId,
    /// Who saw it opened.
    pub via: Via,
    /// The open itself looked at nothing but the name (`O_PATH`), or it is a directory.
    pub looked: bool,
}

/// A descriptor of one process in one epoch.
#[derive(Debug, Clone)]
pub struct Descriptor {
    /// `None` for what carries no data (eventfd, epoll …).
    pub what: Option<Rc<OpenFile>>,
    pub cloexec: bool,
    /// Since when this epoch has it.
    pub since: Time,
    /// This epoch opened it (or the short epoch 0 that led to it did).
    pub own: bool,
    /// First read seen.
    pub read: Option<Time>,
    /// First write seen.
    pub written: Option<Time>,
    /// First listing seen.
    pub listed: Option<Time>,
    /// The versions of source and target when it was opened.
    pub source_from: u32,
    pub target_from: u32,
    /// The name it was opened by; for a directory that was renamed since, its present one.
    pub path: PathId,
    /// The same with links followed, and moved by every later rename. If it is a directory,
    /// relative paths start here.
    pub location: PathId,
    /// Whether the open succeeded is not known.
    pub doubtful: bool,
    /// A directory that was opened for reading where nothing would see it listed.
    pub may_be_listed: bool,
}

/// Numbers below this stand for descriptors whose number is not known: opened behind the recorder's back, or memory mappings.
pub const NAMELESS: i32 = -1000;

/// A process keeps at most this many descriptors without a number; a process that has closed them is not told from one that has not.
pub const NAMELESS_MAX: usize = 1024;

/// A pipe that a process made where nobody saw it.
#[derive(Debug, Clone, Copy)]
pub struct UnseenPipe {
    pub object: ObjectId,
    /// When it was first found.
    pub since: Time,
    pub epoch: Serial,
}

/// A current directory and a root, and who shares them changes them for all others: a process's threads, and who was made with
/// `CLONE_FS`.
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

/// A process.
#[derive(Debug)]
pub struct ProcessState {
    pub pid: Pid,
    /// Its parent when it began.
    pub parent: Pid,
    pub epoch: Serial,
    pub epoch_number: u32,
    pub descriptors: BTreeMap<i32, Descriptor>,
    /// Where its threads' paths start, but for those in `apart`.
    pub fs: Rc<FsContext>,
    /// Threads that have left the others (`unshare`), and where theirs start.
    pub own_fs: BTreeMap<u32, Rc<FsContext>>,
    /// Its table of descriptors: the same for all who share it.
    pub table: Rc<()>,
    /// What its mount namespace shows elsewhere than where it lies.
    pub binds: BindMounts,
    /// Its mount namespace is its own: the kernel's paths of it begin at its own root, not at ours.
    pub own_mounts: bool,
    /// A recorder has announced itself in the present epoch.
    pub started: bool,
    /// Its end was seen: what comes under this pid next may be another.
    pub ended: bool,
    /// How it came to be known: by its parent's fork, or only by itself.
    pub forked: bool,
    /// Descriptors may have been duplicated before its exec where nobody could see it (`posix_spawn`, `popen`).
    pub spawned: bool,
    /// What it holds was found out from outside.
    pub listed: bool,
    /// Pipes it made where nobody saw it.
    pub made: Vec<UnseenPipe>,
    /// It is the run's command.
    pub command: bool,
    /// How it ended, as `wait` reports it.
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
            status: None,
        }
    }

    /// Where the paths of one of its threads start.
    pub fn fs(&self, tid: u32) -> &Rc<FsContext> {
        self.own_fs.get(&tid).unwrap_or(&self.fs)
    }

    /// A number for a descriptor that has none.
    pub fn nameless(&self) -> i32 {
        self.descriptors
            .keys()
            .next()
            .map_or(NAMELESS, |&first| first.min(NAMELESS) - 1)
    }

    /// How many descriptors have no number.
    pub fn nameless_count(&self) -> usize {
        self.descriptors.range(..=NAMELESS).count()
    }
}
