//! What happened, one event at a time, whoever saw it.
//!
//! An event is the decoded form of one record of the log: who, when, what, and what came of it. Paths and arguments are bytes
//! as the program gave them. Nothing here knows how an event was captured beyond [`Via`].

use backstory_files::Ident;

/// Nanoseconds since 1970-01-01 UTC, converted from the log's time-stamp counter with the run's clock frames.
pub type Time = i64;

/// A process id as the supervisor's pid namespace numbers it. Reused over time: who it is follows from when.
pub type Pid = u32;

/// Ids above this stand for processes whose numbers nobody saw: no kernel gives such, and each means one process of one log.
pub const UNNUMBERED: Pid = 1 << 30;

/// Which way an event was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Via {
    /// By the recorder in the process.
    Library,
    /// By the guard's supervisor (a notified system call).
    Kernel,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It returned this: at least 0, or `-errno`.
    Done(i32),
    /// The supervisor concluded this from the file system; it did not see the call return.
    Predicted(i32),
    /// Not known: the process died in the call, or only the attempt was seen. A successful `exec` never returns.
    Unknown,
}

impl Outcome {
    /// The return value, seen or predicted.
    pub fn value(self) -> Option<i32> {
        match self {
            Outcome::Done(v) | Outcome::Predicted(v) => Some(v),
            Outcome::Unknown => None,
        }
    }

    /// True if the call is known (or predicted) to have failed.
    pub fn failed(self) -> bool {
        self.value().is_some_and(|v| v < 0)
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When the call began.
    pub time: Time,
    /// Process that did it.
    pub pid: Pid,
    /// Thread that did it.
    pub tid: Pid,
    /// Who saw it.
    pub via: Via,
    /// What came of it.
    pub outcome: Outcome,
    /// What the log says of the file concerned; its meaning is the operation's (see `backstory_abi.h`).
    pub ident: Option<Ident>,
    /// Path strings are absolute and resolved in the caller's view already (the guard did it).
    pub resolved: bool,
    /// What was done.
    pub op: Op,
}

/// A byte string: a path, an argument, a name.
pub type Bytes = Box<[u8]>;

/// `AT_FDCWD`: a relative path starts at the current directory.
pub const CWD: i32 = -100;

/// How a child came to run on its parent's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spawn {
    /// `vfork`
    Vfork,
    /// `posix_spawn`
    Posix,
    /// `system`
    System,
    /// `popen`
    Popen,
    /// `clone` with shared memory
    Clone,
}

/// What a change of metadata touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataPart {
    /// Permission bits.
    Mode,
    /// Owner or group.
    Owner,
    /// Time stamps.
    Times,
    /// Extended attributes.
    Attributes,
}

/// What a thread did about a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadStep {
    /// Made it.
    Create,
    /// Is it, and starts.
    Start,
    /// Waited for its end.
    Join,
}

/// How a content was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreserveMethod {
    /// By another name of the file: who has it open may still write to it, which its size and modification time tell.
    Link,
    /// By a copy that shares its blocks.
    Clone,
    /// By a copy.
    Copy,
}

/// An operation. `dir` is the directory descriptor a relative path starts at, or [`CWD`].
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Op {
    /// A recorder started in this process (first event of an exec epoch or of a fork child).
    Start {
        ppid: Pid,
        forked: bool,
    },
    Open {
        dir: i32,
        path: Bytes,
        flags: i32,
        mode: u32,
    },
    Close {
        fd: i32,
    },
    CloseRange {
        first: i32,
        last: u32,
        flags: i32,
    },
    /// First read from a descriptor since it was opened.
    Read {
        fd: i32,
    },
    /// First write to a descriptor since it was opened.
    Write {
        fd: i32,
    },
    Map {
        fd: i32,
        prot: i32,
        flags: u32,
    },
    /// `replaced`: the new number was closed first (`dup2`).
    Dup {
        fd: i32,
        cloexec: bool,
        replaced: bool,
    },
    Cloexec {
        fd: i32,
        on: bool,
    },
    /// `fd` is used when `path` is empty.
    Truncate {
        fd: i32,
        path: Bytes,
    },
    Copy {
        from: i32,
        to: i32,
    },
    Stat {
        dir: i32,
        path: Bytes,
        flags: i32,
    },
    Access {
        dir: i32,
        path: Bytes,
        mode: i32,
    },
    Readlink {
        dir: i32,
        path: Bytes,
    },
    List {
        fd: i32,
    },
    Rename {
        from_dir: i32,
        from: Bytes,
        to_dir: i32,
        to: Bytes,
        flags: u32,
    },
    Link {
        from_dir: i32,
        from: Bytes,
        to_dir: i32,
        to: Bytes,
        flags: u32,
    },
    Symlink {
        target: Bytes,
        dir: i32,
        path: Bytes,
    },
    /// The text of a symbolic link that the thread's next call removes or replaces.
    LinkText {
        dir: i32,
        path: Bytes,
        text: Bytes,
    },
    /// `directory`: `rmdir`.
    Unlink {
        dir: i32,
        path: Bytes,
        directory: bool,
    },
    Mkdir {
        dir: i32,
        path: Bytes,
    },
    Mknod {
        dir: i32,
        path: Bytes,
        mode: u32,
    },
    /// `dir` itself is meant when `path` is empty; `link`: a symbolic link at the end of the path is not followed.
    Meta {
        dir: i32,
        path: Bytes,
        what: MetadataPart,
        link: bool,
    },
    /// `now` is the absolute directory after the call.
    Chdir {
        fd: i32,
        path: Bytes,
        now: Bytes,
    },
    Chroot {
        path: Bytes,
    },
    /// `flags`: `MS_*`.
    Mount {
        source: Bytes,
        target: Bytes,
        unmounted: bool,
        flags: u32,
    },
    Pivot {
        new_root: Bytes,
        put_old: Bytes,
    },
    Namespace {
        flags: u32,
    },
    /// Outcome: the child's pid. Follows every event of the parent before the fork; precedes every event of the child.
    Fork {
        flags: u32,
        spawn: Option<Spawn>,
    },
    /// `args` and `env` as given; `env` is `None` if it could not be read.
    Exec {
        dir: i32,
        path: Bytes,
        flags: u32,
        args: Vec<Bytes>,
        env: Option<std::sync::Arc<[Bytes]>>,
    },
    /// Outcome: the child's pid.
    Wait {
        status: i32,
        looked: bool,
    },
    Exit {
        status: i32,
    },
    Thread {
        handle: u64,
        what: ThreadStep,
    },
    Kill {
        pid: i32,
        signal: i32,
    },
    Pipe {
        read: i32,
        write: i32,
        flags: u32,
    },
    Socket {
        domain: i32,
        kind: i32,
    },
    SocketPair {
        a: i32,
        b: i32,
        kind: u32,
    },
    Connect {
        fd: i32,
        address: Bytes,
    },
    Bind {
        fd: i32,
        address: Bytes,
    },
    Accept {
        fd: i32,
        address: Bytes,
    },
    Listen {
        fd: i32,
    },
    Pass {
        socket: i32,
        fd: i32,
        received: bool,
    },
    Memfd {
        name: Bytes,
    },
    Eventfd {
        kind: i32,
    },
    Load {
        path: Bytes,
    },
    Lost {
        count: u32,
        why: i32,
    },
    Opaque {
        name: Bytes,
    },
    /// What the file system said of `path` (absolute) after the fact.
    Ident {
        path: Bytes,
    },
    /// A process ended; `status` as `wait` reports it, if known.
    Gone {
        status: Option<i32>,
    },
    /// A process that only the supervisor saw begin.
    Born {
        parent: Pid,
        exe: Bytes,
        cwd: Bytes,
    },
    /// A process that has no recorder holds a descriptor, as the supervisor saw it: where it leads in the words of `/proc`, and how
    /// it is open (`O_ACCMODE`, `O_PATH`, `O_CLOEXEC`), if that is known. `fd` -1 comes first: the process holds only as many as the
    /// outcome says, and they follow; with flags 1 they are what the exec that comes next leaves it.
    Hold {
        fd: i32,
        flags: Option<i32>,
        target: Bytes,
    },
    /// The content of `path`, in the version that the event's identity names, before the process changed it: file `number` in the
    /// run's directory of kept contents, unless the outcome is an error: then it could not be kept.
    Kept {
        path: Bytes,
        number: i32,
        how: Option<PreserveMethod>,
    },
    /// A fact from a source or an inspector: typed, application-specific, any payload. The graph stores it untouched.
    Extended {
        kind: Bytes,
        payload: Bytes,
    },
}
