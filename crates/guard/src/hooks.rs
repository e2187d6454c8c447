//! The interface between the guard and the supervisor: the settings of a run, and the services of
//! the supervisor.

use crate::mounts::MountFacts;
use crate::parked_call::ParkedCall;
use crate::simulator::Simulator;
use backstory_eventlog::Reason;
use backstory_files::Ident;
use backstory_vocabulary::DurabilityMode;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The settings of a run.
#[derive(Debug, Default)]
pub struct GuardSettings {
    /// Address after the gate's `syscall` instruction. `None` if no recorder is used.
    pub gate: Option<u64>,
    /// The gate is not trusted: calls from it are logged too.
    pub strict: bool,
    /// The filter was installed by a process that had run without it. Several such filters can
    /// exist in a run, each with receivers of its own.
    pub joins_later: bool,
    /// Look-ups are watched, also those that a ring is given.
    pub lookups: bool,
    /// The arena's path as recorders open it. Such an open is notified only where the gate does not
    /// pass, and fails.
    pub arena_path: Vec<u8>,
    /// The arena, for recorders that cannot reach its path.
    pub arena: Option<OwnedFd>,
    /// Which calls wait until the log is durable.
    pub durability: DurabilityMode,
    /// Prefixes of paths whose opens are not logged: they belong to the recorder's library.
    pub hidden: Vec<Vec<u8>>,
    /// The byte engine that executes the programs of the run.
    pub simulator: Option<Simulator>,
    /// Calls that were deferred below any filter of the run, and are not logged yet.
    pub deferred: Arc<AtomicUsize>,
    /// Facts about mounts that the receivers of all filters of the run share.
    pub mounts: Arc<MountFacts>,
}

/// The services of the supervisor for the guard. Receivers call these methods, so none may block.
pub trait Hooks: Send + Sync {
    /// A chunk of the arena belongs to this thread, by the supervisor's numbering of processes.
    fn announce_chunk(&self, chunk: u32, pid: u32, tid: u32);
    /// A recorder waits for a free chunk. Dropping `parked` lets it go on.
    fn request_chunk(&self, parked: ParkedCall);
    /// A call waits until everything logged so far is durable. Dropping `parked` lets it go on.
    fn commit(&self, parked: ParkedCall) {
        drop(parked);
    }
    /// A process of the run is about to be in another pid namespace.
    fn pid_namespace_created(&self);
    /// True if the supervisor writes the exits of this process's children: the guard does not await
    /// them.
    fn collects_children_of(&self, _parent: u32) -> bool {
        false
    }
    /// A thread made a mark of a shell's command line, and waits until `parked` is dropped.
    fn line_mark(&self, _tid: u32, _mark: Vec<u8>, _parked: ParkedCall) {}
    /// A recorder requests the table of functions of the file that is mapped at an address of a
    /// process. Dropping `parked` answers ENOENT.
    fn function_table(&self, _pid: u32, _address: u64, _parked: ParkedCall) {}
    /// A program begins, or has loaded a library. Its instructions that are to be recorded are to
    /// lead to this address of its process. Dropping `parked` answers that not all of them do.
    fn redirect_instructions(&self, _pid: u32, _to: u64, _parked: ParkedCall) {}
    /// A thread is about to restrict itself in a way that no other process can see later. It still
    /// waits.
    fn restricts_itself(&self, _tid: u32) {}
    /// True if the broker may execute a program for this thread, which waits.
    fn may_use_broker(&self, _tid: u32) -> bool {
        false
    }
    /// Gives the broker one end of a socket, and returns the other, if the broker may execute a
    /// program for this thread. `waits`: the thread has waited until now.
    fn broker_socket(&self, _tid: u32, _waits: &dyn Fn() -> bool) -> Option<OwnedFd> {
        None
    }
    /// A program is about to be executed that another recording records, into the arena of this
    /// path.
    fn other_recording(&self, _arena: &[u8]) {}
    /// Reports a reason or a warning of the run.
    fn report(&self, reason: Reason);
    /// The preserver of contents, if the run preserves them.
    fn preserver(&self) -> Option<&dyn ContentPreserver> {
        None
    }
}

/// How much may be done to preserve a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// All file systems are local. A few look-ups and a link or the copy of a small file are
    /// allowed; waiting for another thread is not.
    Little,
    /// Any effort, by a thread that may wait.
    Any,
}

/// A little effort does not suffice. Nothing has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffortExceeded;

/// Looks for a file. `None` if it is not there.
pub type FindFile<'a> = &'a mut dyn FnMut() -> Result<Option<FoundFile>, EffortExceeded>;

/// Preserves contents while the call that will change the file waits.
pub trait ContentPreserver: Send + Sync {
    /// Preserves a content, if it has to be. `find` looks for the file if that is needed, and may
    /// find another file.
    ///
    /// # Errors
    /// `effort` does not suffice.
    fn preserve(
        &self,
        change: &ContentChange<'_>,
        effort: Effort,
        find: FindFile<'_>,
    ) -> Result<Option<PreservedContent>, EffortExceeded>;
    /// A call that no recorder reports will change this file; it still waits. False if the file was
    /// noted before.
    fn note_change(&self, device: u32, inode: u64) -> bool;
    /// A call is about to change what names lead to.
    fn names_will_change(&self);
    /// A call that still waits may read a file or change what names mean. It has been logged, or
    /// counted as deferred.
    fn note_possible_read(&self);
    /// A program with a recorder starts in a process, in this directory.
    fn program_starts(&self, time: u64, pid: u32, directory: Option<Vec<u8>>);
}

/// How a file is about to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The file is written to or truncated in place, by a process that cannot read it first.
    Write,
    /// As `Write`, by the first such call of the run, and part of the content may stay. Repeating
    /// the call needs that part.
    Part,
    /// It is opened for reading and writing.
    Update,
    /// The file loses a name, perhaps its last.
    Remove,
}

/// A change that is about to happen.
#[derive(Debug, Clone, Copy)]
pub struct ContentChange<'a> {
    /// How the file changes.
    pub kind: ChangeKind,
    /// The file's device: the low half of its number.
    pub device: u32,
    /// The file's inode.
    pub inode: u64,
    /// Calls that were seen below any filter of the run, and are not logged yet.
    pub deferred: &'a AtomicUsize,
}

impl ContentChange<'_> {
    /// True if every read that the guard has seen has been logged.
    pub fn all_logged(&self) -> bool {
        self.deferred.load(Ordering::Acquire) == 0
    }
}

/// A file that is about to change.
#[derive(Debug)]
pub struct FoundFile {
    /// The path as the caller names it: absolute, unless its directory could not be found.
    pub path: Vec<u8>,
    /// The file, opened with `O_PATH`, or by the process that is about to change it. In the second
    /// case it may be open for writing alone.
    pub file: OwnedFd,
}

/// The outcome for a content that had to be preserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreservedContent {
    /// The file's identity before the change.
    pub ident: Ident,
    /// The number of the preserved file; -1 without one.
    pub number: i32,
    /// `KEPT_*`, or 0.
    pub how: u32,
    /// 0, or the errno that says why it was not preserved.
    pub error: i32,
}
