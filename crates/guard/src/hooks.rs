//! What the guard asks of the supervisor, and what the supervisor tells the guard.

use crate::parked_call::ParkedCall;
use backstory_eventlog::Reason;
use backstory_files::Ident;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the receivers have to know.
#[derive(Debug, Default)]
pub struct GuardSettings {
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
    fn announce_chunk(&self, chunk: u32, pid: u32, tid: u32);
    /// A recorder waits for a free chunk.
    fn request_chunk(&self, parked: ParkedCall);
    /// Some process is about to be in another pid namespace.
    fn pid_namespace_created(&self);
    /// The ends of this process's children are told by somebody else; nobody here has to wait for them.
    fn collects_children_of(&self, _parent: u32) -> bool {
        false
    }
    /// Something that the run must tell its reader.
    fn report(&self, reason: Reason);
    /// Who keeps contents before they change, if the run wants that.
    fn preserver(&self) -> Option<&dyn ContentPreserver> {
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
pub struct EffortExceeded;

/// Looks for a file; none if it is not there.
pub type FindFile<'a> = &'a mut dyn FnMut() -> Result<Option<FoundFile>, EffortExceeded>;

/// Keeps contents, while the call that will change the file waits.
pub trait ContentPreserver: Send + Sync {
    /// Keeps a content, if it has to be. `find` looks for the file, if that is asked for; it may find another.
    fn preserve(
        &self,
        change: &ContentChange<'_>,
        effort: Effort,
        find: FindFile<'_>,
    ) -> Result<Option<PreservedContent>, EffortExceeded>;
    /// A call that no recorder knows of will change this file; it has not been answered yet. False if somebody did before.
    fn note_change(&self, device: u32, inode: u64) -> bool;
    /// What names lead to is about to change.
    fn names_will_change(&self);
    /// A call that the guard has seen and logged, or counted as deferred, may read something or change what names mean; it has not been
    /// answered yet.
    fn note_possible_read(&self);
    /// A program with a recorder begins in a process, in this directory.
    fn program_starts(&self, time: u64, pid: u32, directory: Option<Vec<u8>>);
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
pub struct ContentChange<'a> {
    /// Its kind.
    pub kind: ChangeKind,
    /// The file's device: the low half of its number.
    pub device: u32,
    /// The file's inode.
    pub inode: u64,
    /// Calls that the guard has seen and not logged yet.
    pub deferred: &'a AtomicUsize,
}

impl ContentChange<'_> {
    /// Every read that the guard has seen has been logged.
    pub fn all_logged(&self) -> bool {
        self.deferred.load(Ordering::Acquire) == 0
    }
}

/// A file that is about to change.
#[derive(Debug)]
pub struct FoundFile {
    /// How its changer calls it: absolute, unless the directory could not be found.
    pub path: Vec<u8>,
    /// The file, opened with `O_PATH`.
    pub file: OwnedFd,
}

/// What became of a content that had to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreservedContent {
    /// The file as it was.
    pub ident: Ident,
    /// The kept file's number; -1 if there is none.
    pub number: i32,
    /// `KEPT_*`, or 0.
    pub how: u32,
    /// 0, or why it could not be kept.
    pub error: i32,
}
