//! The operations of events, with their arguments.

use crate::described::Described;

/// A process id in the supervisor's pid namespace. Ids are reused, so only id and time together
/// identify a process.
pub type Pid = u32;

/// A byte string: a path, an argument, a name.
pub type Bytes = Box<[u8]>;

/// `AT_FDCWD`: a relative path starts at the current directory.
pub const CWD: i32 = -100;

/// The call by which a child came to run on its parent's memory.
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

/// The kind of metadata that changed.
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

/// An operation of a thread on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadStep {
    /// A thread created it.
    Create,
    /// It starts.
    Start,
    /// A thread waited for its end.
    Join,
}

/// A use of a thing that a source names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceAccess {
    /// Its content was read.
    Read,
    /// All of its content was written.
    Write,
    /// Content was added, or changed in part.
    Change,
    /// It was removed.
    Delete,
}

/// The method by which a content was preserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreserveMethod {
    /// A hard link to the file. A process that has the file open may still write to it, which its
    /// size and modification time show.
    Link,
    /// A copy that shares its blocks.
    Clone,
    /// A copy.
    Copy,
    /// A link as above, made by the process that removes the file. It did not know whether the run
    /// has read the content.
    OwnLink,
}

/// An operation. `dir` is the directory descriptor from which a relative path starts, or [`CWD`].
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Op {
    /// A recorder started in this process: the first event of an exec epoch or of a fork child.
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
    /// The first read from a descriptor since it was opened.
    Read {
        fd: i32,
    },
    /// The first write to a descriptor since it was opened.
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
    /// An empty `path` means `dir` itself. With `link`, a final symbolic link is not followed.
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
    /// The outcome is the child's pid. Follows every event of the parent before the fork, and
    /// precedes every event of the child.
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
    /// The outcome is the child's pid.
    Wait {
        status: i32,
        looked: bool,
    },
    /// `processor_time` of the process so far, in ns, if the recorder could ask for it.
    Exit {
        status: i32,
        processor_time: Option<i64>,
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
        /// `SO_TYPE` of the socket; 0 if unknown.
        kind: i32,
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
    /// A name was looked up. The address is 4 or 16 bytes; empty if there was no answer.
    Resolve {
        name: Bytes,
        address: Bytes,
    },
    /// A TCP connection is about to be closed, or its process to end.
    Traffic {
        fd: i32,
        /// Bytes that the process sent.
        sent: u64,
        /// Bytes that the other end sent.
        received: u64,
    },
    /// A TCP connection began.
    Ends {
        fd: i32,
        /// The process accepted it.
        accepted: bool,
        /// The cookie of the network namespace, which tells those of one boot apart. 0 if unknown.
        network: u64,
        /// The address of the process's own end.
        own: Bytes,
        other: Bytes,
    },
    /// The first datagram of a socket to an address or from it.
    Datagram {
        fd: i32,
        received: bool,
        address: Bytes,
    },
    Lost {
        count: u32,
        why: i32,
    },
    Opaque {
        name: Bytes,
    },
    /// The identity of `path` (absolute), looked up after the run.
    Ident {
        path: Bytes,
    },
    /// A process ended. `status` is as wait(2) reports it, if known.
    Gone {
        status: Option<i32>,
    },
    /// A process whose start only the supervisor saw.
    Born {
        parent: Pid,
        exe: Bytes,
        cwd: Bytes,
    },
    /// A process without a recorder holds a descriptor, as the supervisor saw it in `/proc`. The
    /// event has its target and, if known, how it is open (`O_ACCMODE`, `O_PATH`, `O_CLOEXEC`).
    ///
    /// An event with `fd` -1 comes first: its outcome is the number of the process's descriptors,
    /// which follow. With flags 1, they are the descriptors that the next exec leaves open.
    HeldDescriptor {
        fd: i32,
        flags: Option<i32>,
        target: Bytes,
    },
    /// The content of `path` before the process changed it, in the version that the event's
    /// identity names. It is the file `number` in the run's directory of preserved contents. If the
    /// outcome is an error, the content could not be preserved.
    Preserved {
        path: Bytes,
        number: i32,
        how: Option<PreserveMethod>,
    },
    /// A source's own activity begins. The event's process is its number.
    Work {
        /// The process that it is a part of, if one is known.
        inside: Option<Pid>,
        /// What it is: `transaction 742`.
        what: Bytes,
        /// Its text: a statement.
        text: Bytes,
    },
    /// A use of a thing that a source itself names, as `postgres://host/db/public.accounts`.
    Resource {
        /// Tells things of one name apart.
        number: i32,
        access: ResourceAccess,
        name: Bytes,
    },
    /// A fact from a source or an inspector: typed, application-specific, with any payload. The
    /// graph stores it unchanged.
    Extended {
        kind: Bytes,
        payload: Bytes,
    },
    /// A statement of an imported description.
    Described(Described),
    /// A function whose calls are recorded: its number in the run, its name, and its file and line.
    /// If arguments are recorded, its type follows, as `i32(ptr,?)`.
    Function {
        number: u32,
        name: Bytes,
        location: Bytes,
        kind: Bytes,
    },
    /// Calls of functions in the thread, up to its next operation.
    Calls(Box<[FunctionStep]>),
    /// Arguments of the last call of a function in the thread, or its result.
    Values {
        /// The function.
        number: u32,
        /// The result, not the arguments.
        returned: bool,
        /// Each as `NAME=VALUE`. A text is in quotes.
        values: Vec<Bytes>,
        /// Where those that point to data lead.
        pointers: Vec<ValuePointer>,
    },
}

/// The data that a parameter or a result points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePointer {
    /// The parameter.
    pub name: Bytes,
    /// Where the data begins.
    pub address: u64,
    /// Its bytes, as far as they are known. At least 1.
    pub bytes: u64,
    /// The type of the parameter says that the function does not change the data.
    pub is_constant: bool,
}

/// A call of a function in a thread, or a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionStep {
    /// The function with this number is called.
    Call {
        /// The number.
        number: u32,
        /// Counts of the time-stamp counter since the event.
        after: u64,
    },
    /// The last function that was called and has not returned returns.
    Return {
        /// Counts of the time-stamp counter since the event.
        after: u64,
    },
}
