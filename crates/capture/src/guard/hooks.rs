//! What the guard asks of the supervisor, and what the supervisor tells the guard.

use super::shared::SharedMap;
use super::sys;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// What the receivers have to know.
#[derive(Debug, Default)]
pub struct Watch {
    /// Address after the gate's `syscall` instruction; none if no recorder is used.
    pub gate: Option<u64>,
    /// The gate is not trusted: what comes from it is logged, too.
    pub strict: bool,
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
    fn note(&self, note: Note);
}

/// Something that makes the run incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A process whose memory may not be read: what it opens is not known.
    Unreadable {
        /// Which.
        pid: u32,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Unreadable { pid } => write!(
                f,
                "process {pid} is protected from being read, so its files are unknown"
            ),
        }
    }
}

/// A call that waits for an answer; it goes on when this is dropped, or when the keeper takes over.
pub struct Waiting {
    id: u64,
    listener: Arc<OwnedFd>,
    shared: Arc<SharedMap>,
}

impl Waiting {
    pub(super) fn new(id: u64, listener: Arc<OwnedFd>, shared: Arc<SharedMap>) -> Waiting {
        Waiting { id, listener, shared }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // An error means that the caller has been killed meanwhile.
        let _ = sys::answer_value(self.listener.as_fd(), self.id, 0);
        self.shared.unpark(self.id);
    }
}
