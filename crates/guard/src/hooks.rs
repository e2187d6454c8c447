//! What the guard asks of the supervisor, and what the supervisor tells the guard.

use super::shared::SharedMap;
use backstory_eventlog::Reason;
use backstory_files::Ident;
use backstory_sys::kernel as sys;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the receivers have to know.
#[derive(Debug, Default)]
pub struct Watch {
    /// Address after the gate's `syscall` instruction; none if no recorder is used.
    pub gate: Option<u64>,
    /// The gate is not trusted: what comes from it is logged, too.
    pub strict: bool,
    /// Look-ups are watched: also those that a ring is given.
    pub lookups: bool,
    /// The arena's path as recorders open it. An open that comes to us is one whose gate does not pass, and fails.
    pub arena_path: Vec<u8>,
    /// The arena, for who can't reach its path.
    pub arena: Option<OwnedFd>,
    /// Beginnings of paths whose opening is our own doing (the recorder's library), and is not logged.
    pub hidden: Vec<Vec<u8>>,
}

/// What the supervisor does for the guard. Called by receivers: none of these may block.
pub trait Hooks: Send + Sync {
    /// The owner of a chunk of the arena, as we see it.
    fn announce(&self, chunk: u32, pid: u32, tid: u32);
    /// A recorder waits for a free chunk.
    fn drain(&self, waiting: Waiting);
    /// Some process is about to be in another pid namespace.
    fn pid_namespace(&self);
    /// The ends of this process's children are told by somebody else; nobody here has to wait for them.
    fn tells_end(&self, _parent: u32) -> bool {
        false
    }
    /// Something that the run must tell its reader.
    fn note(&self, note: Reason);
    /// Who keeps contents before they change, if the run wants that.
    fn keep(&self) -> Option<&dyn Keep> {
        None
    }
}

/// How much may be done for a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// All file systems are local. A few look-ups, a link or the copy of a small file, and no waiting for who keeps contents, too.
    Little,
    /// Whatever it takes, by a thread that may wait.
    Any,
}

/// A little effort is not enough; nothing has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

/// Looks for a file; none if it is not there.
pub type Find<'a> = &'a mut dyn FnMut() -> Result<Option<Found>, TooMuch>;

/// Keeps contents, while the call that will change the file waits.
pub trait Keep: Send + Sync {
    /// Keeps a content, if it has to be. `find` looks for the file, if that is asked for; it may find another.
    fn keep(
        &self,
        change: &Change<'_>,
        effort: Effort,
        find: Find<'_>,
    ) -> Result<Option<Kept>, TooMuch>;
    /// A call that no recorder knows of will change this file; it has not been answered yet. False if somebody did before.
    fn changes(&self, device: u32, inode: u64) -> bool;
    /// What names lead to is about to change.
    fn names_change(&self);
    /// A call that the guard has seen and logged, or counted as queued, may read something or change what names mean; it has not been
    /// answered yet.
    fn may_have_read(&self);
    /// A program with a recorder begins in a process, in this directory.
    fn starts(&self, time: u64, pid: u32, directory: Option<Vec<u8>>);
}

/// How a file is about to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is written to or truncated, in place, by someone who can't read it first.
    Write,
    /// The same, by the first who does so in the run, and some of what it holds may stay: it is needed to do that again.
    Part,
    /// It is opened for reading and writing.
    Update,
    /// It loses a name, perhaps its last.
    Remove,
}

/// A change that is about to happen.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Its kind.
    pub kind: ChangeKind,
    /// The file's device: the low half of its number.
    pub device: u32,
    /// The file's inode.
    pub inode: u64,
    /// Calls that the guard has seen and not logged yet.
    pub queued: &'a AtomicUsize,
}

impl Change<'_> {
    /// Every read that the guard has seen has been logged.
    pub fn all_logged(&self) -> bool {
        self.queued.load(Ordering::Acquire) == 0
    }
}

/// A file that is about to change.
#[derive(Debug)]
pub struct Found {
    /// How its changer calls it: absolute, unless the directory could not be found.
    pub path: Vec<u8>,
    /// The file, opened with `O_PATH`.
    pub file: OwnedFd,
}

/// What became of a content that had to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The file as it was.
    pub ident: Ident,
    /// The kept file's number; -1 if there is none.
    pub number: i32,
    /// `KEPT_*`, or 0.
    pub how: u32,
    /// 0, or why it could not be kept.
    pub error: i32,
}

/// A call that waits for an answer; it goes on when this is dropped, or when the keeper takes over.
pub struct Waiting {
    id: u64,
    listener: Arc<OwnedFd>,
    shared: Arc<SharedMap>,
    /// It is made, as the program asked for; else it returns 0.
    goes_on: bool,
}

impl Waiting {
    pub(super) fn new(id: u64, listener: Arc<OwnedFd>, shared: Arc<SharedMap>) -> Waiting {
        Waiting {
            id,
            listener,
            shared,
            goes_on: false,
        }
    }

    /// The same, of a call that the program asked for.
    pub(super) fn going_on(mut self) -> Waiting {
        self.goes_on = true;
        self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // An error means that the caller has been killed meanwhile.
        let _ = match self.goes_on {
            true => sys::answer_continue(self.listener.as_fd(), self.id),
            false => sys::answer_value(self.listener.as_fd(), self.id, 0),
        };
        self.shared.unpark(self.id);
    }
}
