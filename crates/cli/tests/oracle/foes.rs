//! Adversaries: programs that use other ways into the kernel, other views of the file system, and
//! other channels for data than most of the corpus. `checklist.rs` says which adversary each case
//! represents.

use backstory_testkit::oracle::{Case, program, sh};

/// The kernel does the work itself: the interface cannot be decoded, and the run says so.
const TAKEN: &[&str] = &["pidfd_getfd was used"];
const QUEUE: &[&str] = &["POSIX message queue was used"];
const HANDLE: &[&str] = &["open_by_handle_at was used"];

/// The same tables as in `corpus.rs`.
pub const FOES: &[Case] = &[
    program("static-glibc", &["$FIX/static_glibc"]),
    program("early-calls", &["$FIX/early_syscalls"]),
    program("made-code", &["$FIX/jit_syscalls"]),
    program("by-number", &["$FIX/by_number"]),
    program("own-environment", &["$FIX/own_environment"]),
    sh(
        "no-environment",
        "env -i /bin/sh -c 'cat a >n1; /bin/cat b >n2; env -i ./made'",
    )
    .after("printf '#!/bin/sh\\nenv -u PATH /bin/cp a n3\\n' >made; chmod +x made"),
    program("shared-directory", &["$FIX/shared_directory"]),
    program("clone3", &["$FIX/clone3_child"]),
    program("passed-descriptors", &["$FIX/passed_descriptors"]),
    program("taken-descriptor", &["$FIX/taken_descriptor"]).marked(TAKEN),
    program("opened-again", &["$FIX/proc_fd"]),
    program("open-how", &["$FIX/open_how"]),
    program("whiteout", &["$FIX/whiteout"]),
    program("handles", &["$FIX/handles"]).marked(HANDLE),
    program("no-copies", &["$FIX/no_copies"]),
    program("watchers", &["$FIX/watchers"]),
    program("shared-memory", &["$FIX/shared_memory"]),
    program("message-queue", &["$FIX/message_queue"]).marked(QUEUE),
    program("storm-static", &["$FIX/storm_static"]),
    program("storm-calls", &["$FIX/storm_calls"]),
    program("dispatched", &["$FIX/dispatched"]),
    program("displaced", &["$FIX/displaced"]),
    program("reserves", &["$FIX/reserves"]),
    program(
        "unshared-all",
        &[
            "unshare",
            "-Umipnr",
            "sh",
            "-c",
            "cat a >all; mount --bind d d && cp d/x d/z; hostname",
        ],
    )
    .restless(),
    program(
        "valgrind",
        &["valgrind.bin", "-q", "--vgdb=no", "cat", "a", "d/x"],
    )
    .needs(&["valgrind.bin"]),
    program("qemu-user", &["qemu-x86_64", "/bin/cat", "a", "nothing"]).needs(&["qemu-x86_64"]),
    program(
        "perf-stat",
        &[
            "perf",
            "stat",
            "-o",
            "counted",
            "-e",
            "task-clock",
            "cp",
            "a",
            "by-perf",
        ],
    )
    .needs(&["perf"])
    .restless(),
];
