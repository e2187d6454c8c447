//! The interfaces that recording notices but does not decode, by their names.

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
/// Writes into the memory of another process.
pub const WRITES_MEMORY: &str = backstory_abi::OPAQUE_MEMORY;
/// The memory of another process, through a file.
pub const MEMORY_FILE: &str = "/proc/PID/mem";
/// Takes a descriptor of another process.
pub const TAKES_DESCRIPTOR: &str = backstory_abi::OPAQUE_DESCRIPTOR;
/// Descriptors that the kernel opens for a watching process.
pub const FANOTIFY: &str = backstory_abi::OPAQUE_FANOTIFY;
/// A process whose arguments cannot be read: reported as [`super::Reason::Unreadable`].
pub const PROTECTED: &str = "memory of a protected process";
/// Stands before the path of a program that ran outside: reported as
/// [`super::Reason::RanOutside`].
pub const OUTSIDE: &str = backstory_abi::OPAQUE_OUTSIDE;
/// No guard reads the submitted operations.
pub const RING_UNSEEN: &str = backstory_abi::OPAQUE_RING;
/// No filter could be installed, or a recorder stayed silent.
pub const UNGUARDED: &str = backstory_abi::OPAQUE_UNGUARDED;
/// A program without the recorder.
pub const FILTERED_UNSEEN: &str = backstory_abi::OPAQUE_FILTERED;
/// A kernel thread takes the submitted operations.
pub const RING_POLLED: &str = "io_uring with kernel-side polling";
/// The ring is not mapped where the guard could read it.
pub const RING_HIDDEN: &str = "an io_uring that can't be read";
/// A ring of a later kernel.
pub const RING_FORM: &str = "an io_uring of an unknown form";
/// Passes descriptors in messages.
pub const RING_PASSES: &str = "an io_uring that passes descriptors";
/// More files than the guard looks at.
pub const RING_FILES: &str = "an io_uring with very many files";
/// A file goes from ring to ring.
pub const RING_SENDS: &str = "a file sent from one io_uring to another";
/// `IORING_OP_URING_CMD`
pub const RING_COMMAND: &str = "a command to a device through io_uring";
/// An operation of a later kernel.
pub const RING_OPERATION: &str = "an unknown operation of io_uring";

/// All names of this module, with the facts that are unknown if they were used.
pub const UNDECODED: &[(&str, &str)] = &[
    (
        TRACER_MEMORY,
        "what the tracer wrote into its tracee (`PTRACE_POKETEXT`, `PTRACE_POKEDATA`, `PTRACE_SETSIGINFO`). The calls of the \
         tracee are known, but a path may be another than the kernel used",
    ),
    (
        TRACER_REGISTERS,
        "which registers the tracer changed (`PTRACE_SETREGS` and its like). It may have changed, added or skipped system calls of \
         the tracee, or changed their results",
    ),
    (
        TRACER_EMULATION,
        "which system calls the tracer carried out instead of the kernel (`PTRACE_SYSEMU`)",
    ),
    (ACCT, "that the kernel writes into an accounting file"),
    (SWAPON, "that the kernel writes into a file it swaps to"),
    (MESSAGE_QUEUE, "which process sent what to which through it"),
    (OPEN_BY_HANDLE, "which file it opened"),
    (WRITES_MEMORY, "what was written into another process"),
    (
        MEMORY_FILE,
        "what was written into another process through this file, which was opened for writing (debuggers do)",
    ),
    (
        TAKES_DESCRIPTOR,
        "which file the descriptor of the other process refers to; its use counts for the process that opened it",
    ),
    (
        FANOTIFY,
        "what it read of files that the kernel opened for it because other processes used them",
    ),
    (
        PROTECTED,
        "the files of that process; the reason says *protected from being read*",
    ),
    (
        RING_UNSEEN,
        "what was submitted through a ring with `--guard=off`: only the guard reads rings",
    ),
    (
        UNGUARDED,
        "what a program did with `--guard=auto` without the filter that it needed. Its file was replaced while it was executed, \
         or no descriptor was left",
    ),
    (
        FILTERED_UNSEEN,
        "what a program did with `--guard=off` that a process with its own seccomp filter executed: the recorder does not enter it",
    ),
    (
        RING_POLLED,
        "what a thread of the kernel took from the ring before the guard could look (`IORING_SETUP_SQPOLL`)",
    ),
    (
        RING_HIDDEN,
        "what was submitted through a ring that its process does not map",
    ),
    (
        RING_FORM,
        "what was submitted through a ring that was set up by flags of a later kernel",
    ),
    (RING_PASSES, "which descriptors came and went in messages"),
    (
        RING_FILES,
        "the files beyond 1,024 that a ring was given at once",
    ),
    (RING_SENDS, "which file it was"),
    (RING_COMMAND, "what the device did"),
    (RING_OPERATION, "what a later kernel's operation does"),
];
