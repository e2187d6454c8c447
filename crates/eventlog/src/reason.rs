//! What is known not to be known: every reason why a record is not complete, and every way in which recording changed what a program did.
//!
//! Invariant: this is the only list. Who finds that something is missing says so with a [`Reason`]; the sentence, its name and what it
//! means for the record stand here, and `docs/reasons.md` is made from that. A log keeps the sentences.

use std::fmt;

/// One line of `docs/reasons.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The reason's name.
    pub name: &'static str,
    /// Its sentence, with what is different each time in braces.
    pub sentence: &'static str,
    /// What is not known then, and what can be done.
    pub meaning: &'static str,
}

/// The variants, their sentences and their meanings, each written once.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $field:ident : $kind:ty),* } says $sentence:literal means $meaning:literal;)*) => {
        /// Something that a run's reader must know.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Reason {
            $($(#[$doc])* $name { $($(#[$of])* $field: $kind),* },)*
        }

        /// All reasons, in the order of the page.
        pub const ROWS: &[Row] = &[$(Row { name: stringify!($name), sentence: $sentence, meaning: $meaning }),*];

        impl Reason {
            /// Its name in [`ROWS`].
            pub fn name(&self) -> &'static str {
                match self {
                    $(Reason::$name { .. } => stringify!($name),)*
                }
            }
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Reason::$name { $($field),* } => write!(f, $sentence),)*
                }
            }
        }
    };
}

reasons! {
    /// No filter could be installed.
    NoFilter { /** What the kernel said. */ why: String }
        says "{why}; only what the recorder sees was logged"
        means "the guard could not be had: an outer listener (a container's runtime, another recording around this one), a kernel before \
            5.19, or one that refuses filters. Static programs, Go programs, direct system calls and programs of other machines are missing.";
    /// No thread for the filter.
    NoGuard { /** Why. */ error: String }
        says "cannot start the guard: {error}; only what the recorder sees was logged"
        means "as above, because no thread or descriptor was left for it (`ulimit -u`, `ulimit -n`).";
    /// The guard answers, but does not log.
    GuardSilent { /** Why. */ error: String }
        says "the guard's calls were not logged: {error}"
        means "as above: the guard lets every call through, but could not be started to log them.";
    /// The keeper can't stand in.
    KeeperEmptyHanded { /** Why. */ error: String }
        says "the keeper could not be given the guard: {error}"
        means "nothing is missing yet; had the supervisor died, nobody could have answered its calls.";
    /// The supervisor was killed.
    SupervisorDied {}
        says "the supervisor died; from then on only what the recorder saw was logged"
        means "somebody killed the process that logs what goes past the recorder. The keeper ended the log.";
    /// The keeper was killed.
    KeeperDied {}
        says "the keeper died"
        means "nothing is missing: a process that would have stood in for the supervisor was killed.";
    /// Both were killed.
    BothDied {}
        says "supervisor and keeper died"
        means "as when the supervisor died; `record` itself ended the log.";
    /// No thread for the drainer.
    NotDrained { /** Why. */ error: String }
        says "the arena was not drained while the command ran: {error}"
        means "no thread was left to move operations into the log (`ulimit -u`): those that did not fit into shared memory are lost.";
    /// Nobody watched the command end.
    EndUnseen {}
        says "the command's end was not observed"
        means "its exit status is not known: whoever watched it was killed before it began.";
    /// Daemons go on.
    Detached { /** How many, with their verb. */ processes: String }
        says "{processes} still running when recording stopped"
        means "what daemons of the command do after `--detach-after`, or after supervisor and keeper died, is not known.";
    /// The log could not be written.
    LogFailed { /** What failed. */ error: String }
        says "{error}"
        means "the log could not be written or read back (`cannot append to log …`): mostly the disk is full. What did not fit is missing.";
    /// The log could not be given its name.
    NotFinalized { /** The log. */ path: String, /** Why. */ error: String }
        says "cannot finalize the log {path}: {error}; the next command that may write the store does it"
        means "*a warning*: the log is whole. Only `record` itself prints this, and its summary leaves the verdict open (`null`).";
    /// The shared memory was truncated.
    CutShort {}
        says "a program cut the recording's shared memory short, so operations are lost"
        means "some program of the run truncated a file that is not its own. What it held is missing.";
    /// Operations were counted, not logged.
    Lost { /** How many. */ operations: u64 }
        says "{operations} operations could not be logged"
        means "shared memory or disk were full, or a program that limits its own system calls could not be given memory. Which operations \
            is not known.";
    /// Programs that need the guard ran without it.
    Unwatched { /** Up to three, and how many more. */ programs: String }
        says "without the guard nothing is known of what {programs} did"
        means "`--guard=off` was asked for, or the guard could not be had, and programs ran that no recorder gets into: static ones, other \
            machines', set-user-id ones; or Go's, which make their calls past the C library.";
    /// A process may not be read.
    Unreadable { /** Which. */ pid: u32 }
        says "process {pid} is protected from being read, so its files are unknown"
        means "its program may be executed but not read (mode 0111), or it made itself non-dumpable (`ssh-agent`): the names of the \
            files that it opens past the recorder could not be read from its memory.";
    /// What a call was given could not be read in time.
    Unread {}
        says "memory that system calls were given could not be read in time, so some of them are unknown"
        means "the names lay in memory that is filled only when it is touched (`userfaultfd`, a mapped file of a FUSE server) by somebody who \
            made calls to fill it, and more of them at once than there are threads of the guard: they were made unseen.";
    /// Outcomes were not found out in time.
    SlowFileSystem {}
        says "a file system did not answer in time, so some outcomes are unknown"
        means "a network or FUSE file system hung for 2 s when the command had ended: calls on it are `possible`.";
    /// The recording was killed.
    Killed {}
        says "the recording was killed; what came after that is not known"
        means "all of its processes died at once, or the machine did; the next command has ended the log with what was left.";
    /// The recording was killed, and its memory with it.
    ArenaDamaged {}
        says "its shared memory was damaged, so its last operations are lost"
        means "said beside the one before: nothing was left but the log.";
    /// The log's last frame is missing.
    NoEnd {}
        says "the log has no end: recording was cut off"
        means "a log that was copied or cut; how the command ended is not known.";
    /// The log is damaged.
    LogDamaged { /** What of it. */ what: String }
        says "the log is damaged: {what}"
        means "bytes of the log were changed or lost on disk; what could be read is told.";
    /// Something that can't be decoded was used.
    Undecoded { /** A name in [`UNDECODED`]. */ what: String }
        says "{what} was used, which cannot be decoded"
        means "what the program did by it, or through it, is not known; the names are below.";
    /// A warning: the machine's clock was set.
    ClockSet { /** `back` or `forward`. */ which: &'static str, /** How far. */ seconds: u64 }
        says "the machine's clock was set {which} by {seconds} s while this was recorded: its times are by the clock as it was before"
        means "*a warning*: nothing is missing. Files written after that have other times than the calls that wrote them; what was read \
            may be `possible` where it would be `seen`.";
    /// A warning: a program ran without what its file would have given it.
    PrivilegeLost { /** Which program. */ program: String, /** What it lost. */ privilege: &'static str }
        says "{program} ran without its {privilege}: recording takes that from users who are not root, --guard=off does not"
        means "*a warning*: the record is complete, but the program may have failed where it would not have. As root, or with \
            `--guard=off`, nothing is taken.";
    /// A warning: a program wanted a listener, which we have.
    ListenerRefused { /** Which program. */ program: String }
        says "{program} was refused a seccomp listener of its own (EBUSY), for recording has one: --guard=off needs none"
        means "*a warning*: another recording, or a container's runtime, inside this one; the kernel lets only one listen.";
}

impl Reason {
    /// Daemons that are still there.
    pub fn detached(count: usize) -> Reason {
        let processes = match count {
            1 => "1 process was".to_owned(),
            _ => format!("{count} processes were"),
        };
        Reason::Detached { processes }
    }

    /// Of an interface of this name in [`UNDECODED`] that a process used.
    pub fn undecoded(pid: u32, name: &[u8]) -> Reason {
        // The guard may not have lived to report a protected process itself.
        match name == undecoded::PROTECTED.as_bytes() {
            true => Reason::Unreadable { pid },
            false => Reason::Undecoded {
                what: String::from_utf8_lossy(name).into_owned(),
            },
        }
    }

    /// The record is as complete as it would be without it: it is the program that may have done something else.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Reason::NotFinalized { .. }
                | Reason::ClockSet { .. }
                | Reason::PrivilegeLost { .. }
                | Reason::ListenerRefused { .. }
        )
    }
}

/// True if a file that is opened by this path and with these flags is the memory of a process, to be written: `/proc/PID/mem` or
/// `/proc/PID/task/TID/mem`. `/proc/self/mem` is the opener's own memory.
pub fn opens_memory(path: &[u8], flags: i32) -> bool {
    const O_ACCMODE: i32 = 3;
    if flags & O_ACCMODE == 0 || !path.starts_with(b"/proc/") || !path.ends_with(b"/mem") {
        return false;
    }
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    match parts[..] {
        [_, _, process, _] => is_number(process),
        [_, _, process, b"task", thread, _] => is_number(process) && is_number(thread),
        _ => false,
    }
}

/// What is noticed but not decoded, by name.
pub mod undecoded {
    /// A tracer changed the memory of its tracee.
    pub const TRACER_MEMORY: &str = backstory_abi::OPAQUE_TRACER_MEMORY;
    /// A tracer changed the registers of its tracee.
    pub const TRACER_REGISTERS: &str = backstory_abi::OPAQUE_TRACER_REGISTERS;
    /// A tracer made the kernel skip system calls of its tracee.
    pub const TRACER_EMULATION: &str = backstory_abi::OPAQUE_TRACER_EMULATION;
    /// Accounting.
    pub const ACCT: &str = backstory_abi::OPAQUE_ACCT;
    /// Swapping.
    pub const SWAPON: &str = backstory_abi::OPAQUE_SWAPON;
    /// Message queues.
    pub const MESSAGE_QUEUE: &str = backstory_abi::OPAQUE_QUEUE;
    /// Files by handle.
    pub const OPEN_BY_HANDLE: &str = backstory_abi::OPAQUE_HANDLE;
    /// Another's memory.
    pub const WRITES_MEMORY: &str = backstory_abi::OPAQUE_MEMORY;
    /// Another's memory, through a file.
    pub const MEMORY_FILE: &str = "/proc/PID/mem";
    /// Another's descriptors.
    pub const TAKES_DESCRIPTOR: &str = backstory_abi::OPAQUE_DESCRIPTOR;
    /// Descriptors that the kernel opens for who watches.
    pub const FANOTIFY: &str = backstory_abi::OPAQUE_FANOTIFY;
    /// Whose arguments can't be read: told as [`super::Reason::Unreadable`].
    pub const PROTECTED: &str = "memory of a protected process";
    /// Nobody reads what is submitted.
    pub const RING_UNSEEN: &str = backstory_abi::OPAQUE_RING;
    /// A kernel thread submits.
    pub const RING_POLLED: &str = "io_uring with kernel-side polling";
    /// Not mapped where it could be read.
    pub const RING_HIDDEN: &str = "an io_uring that can't be read";
    /// Newer than we.
    pub const RING_FORM: &str = "an io_uring of an unknown form";
    /// Descriptors in messages.
    pub const RING_PASSES: &str = "an io_uring that passes descriptors";
    /// More than are looked at.
    pub const RING_FILES: &str = "an io_uring with very many files";
    /// From ring to ring.
    pub const RING_SENDS: &str = "a file sent from one io_uring to another";
    /// `IORING_OP_URING_CMD`
    pub const RING_COMMAND: &str = "a command to a device through io_uring";
    /// Newer than we.
    pub const RING_OPERATION: &str = "an unknown operation of io_uring";
}

/// All names of [`undecoded`], with what is not known when they were used.
pub const UNDECODED: &[(&str, &str)] = &[
    (
        undecoded::TRACER_MEMORY,
        "what the tracer wrote into its tracee (`PTRACE_POKETEXT`, `PTRACE_POKEDATA`, `PTRACE_SETSIGINFO`). The calls of the \
         tracee are known, but a path may be another than the kernel used",
    ),
    (
        undecoded::TRACER_REGISTERS,
        "which registers the tracer changed (`PTRACE_SETREGS` and its like). It may have changed, added or skipped system calls of \
         the tracee, or changed their results",
    ),
    (
        undecoded::TRACER_EMULATION,
        "which system calls the tracer carried out instead of the kernel (`PTRACE_SYSEMU`)",
    ),
    (
        undecoded::ACCT,
        "that the kernel writes into an accounting file",
    ),
    (
        undecoded::SWAPON,
        "that the kernel writes into a file it swaps to",
    ),
    (undecoded::MESSAGE_QUEUE, "who sent what to whom through it"),
    (undecoded::OPEN_BY_HANDLE, "which file it opened"),
    (
        undecoded::WRITES_MEMORY,
        "what was written into another process",
    ),
    (
        undecoded::MEMORY_FILE,
        "what was written into another process through this file, which was opened for writing (debuggers do)",
    ),
    (
        undecoded::TAKES_DESCRIPTOR,
        "which file another process's descriptor was of; its use counts for who opened it",
    ),
    (
        undecoded::FANOTIFY,
        "what it read of files that the kernel opened for it because others used them",
    ),
    (
        undecoded::PROTECTED,
        "the files of that process: told as *protected from being read*",
    ),
    (
        undecoded::RING_UNSEEN,
        "what was submitted through a ring with `--guard=off`: only the guard reads rings",
    ),
    (
        undecoded::RING_POLLED,
        "what a thread of the kernel took from the ring before anybody could look (`IORING_SETUP_SQPOLL`)",
    ),
    (
        undecoded::RING_HIDDEN,
        "what was submitted through a ring that its process does not map",
    ),
    (
        undecoded::RING_FORM,
        "what was submitted through a ring that was set up by flags of a later kernel",
    ),
    (
        undecoded::RING_PASSES,
        "which descriptors came and went in messages",
    ),
    (
        undecoded::RING_FILES,
        "the files beyond 1,024 that a ring was given at once",
    ),
    (undecoded::RING_SENDS, "which file it was"),
    (undecoded::RING_COMMAND, "what the device did"),
    (
        undecoded::RING_OPERATION,
        "what a later kernel's operation does",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_their_objects() {
        let path = "/x".to_owned();
        let finalized = Reason::NotFinalized {
            path,
            error: "no".into(),
        };
        assert_eq!(
            finalized.to_string(),
            "cannot finalize the log /x: no; the next command that may write the store does it"
        );
        assert_eq!(
            Reason::detached(1).to_string(),
            "1 process was still running when recording stopped"
        );
        assert_eq!(finalized.name(), "NotFinalized");
    }

    #[test]
    fn the_memory_of_another_process_is_opened_by_its_number_and_for_writing() {
        for path in ["/proc/7/mem", "/proc/71/task/72/mem"] {
            assert!(opens_memory(path.as_bytes(), 1) && opens_memory(path.as_bytes(), 2));
            assert!(!opens_memory(path.as_bytes(), 0), "{path} is only read");
        }
        for path in [
            "/proc/self/mem",
            "/proc/7/maps",
            "/proc/7/fd/mem",
            "/proc//mem",
            "/x/7/mem",
        ] {
            assert!(!opens_memory(path.as_bytes(), 2), "{path}");
        }
    }

    #[test]
    fn every_name_and_sentence_is_there_once() {
        let mut sentences: Vec<&str> = ROWS.iter().map(|row| row.sentence).collect();
        sentences.extend(UNDECODED.iter().map(|of| of.0));
        let all = sentences.len();
        sentences.sort_unstable();
        sentences.dedup();
        assert_eq!(sentences.len(), all);
    }
}
