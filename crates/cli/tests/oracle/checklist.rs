//! The table of adversaries and the proof against each, compared with the tests that exist. Neither
//! an adversary nor its proof can be forgotten.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use backstory_testkit::fixtures;
use backstory_testkit::oracle::How;

use super::{corpus, rings, stated};

/// The proof that an adversary can hide nothing and is not disturbed.
#[derive(Clone, Copy)]
enum By {
    /// A case of the corpus: files, processes and behaviour are compared with strace's account.
    Case(&'static str),
    /// A case of `rings.rs`, compared with the program's own statement.
    Ring(&'static str),
    /// A case of `stated.rs`.
    Stated(&'static str),
    /// A case of `scripts/foreign.d`: native and recorded behaviour are compared.
    Foreign(&'static str),
    /// A test: its file below the repository, its name.
    Test(&'static str, &'static str),
}
use By::{Case, Foreign, Ring, Stated, Test};

const ADVERSARIES: &[(&str, &[By])] = &[
    (
        "static musl",
        &[
            Case("static-files"),
            Case("static-spawn"),
            Foreign("static"),
        ],
    ),
    (
        "static glibc",
        &[Case("static-glibc"), Case("storm-static")],
    ),
    ("static PIE, musl loaded dynamically", &[Foreign("static")]),
    (
        "BusyBox as a whole userland",
        &[
            Case("busybox-sh"),
            Case("busybox-tar"),
            Case("static-inherits"),
        ],
    ),
    (
        "Go",
        &[
            Case("go-files"),
            Foreign("go"),
            Foreign("go-std"),
            Foreign("go-net"),
            Test("crates/guard/tests/guard/main.rs", "a_go_program_is_seen"),
        ],
    ),
    ("syscall instructions of one's own", &[Case("raw-syscalls")]),
    (
        "calls by number, with libc's syscall",
        &[
            Case("by-number"),
            Test(
                "crates/cli/tests/cli/record.rs",
                "a_call_by_number_is_recorded_once_in_every_guard_mode",
            ),
            Test(
                "crates/recorder/tests/recorder/files.rs",
                "every_change_of_a_name_is_logged",
            ),
        ],
    ),
    ("calls before any library has begun", &[Case("early-calls")]),
    ("calls from code made at run time", &[Case("made-code")]),
    ("env -i", &[Case("nice-env"), Case("no-environment")]),
    (
        "environments made by hand",
        &[
            Case("own-environment"),
            Case("own-preload"),
            Case("bare-exec"),
        ],
    ),
    ("vfork", &[Case("vfork"), Case("spawn")]),
    ("clone, clone3", &[Case("clone-child"), Case("clone3")]),
    (
        "CLONE_FILES and CLONE_FS, threads that change directory under each other",
        &[Case("shared-directory"), Case("clone3")],
    ),
    (
        "exec from a thread that is not the first",
        &[Case("thread-exec")],
    ),
    (
        "threads at the same time",
        &[Case("threads"), Foreign("crowds")],
    ),
    (
        "descriptors passed over sockets",
        &[Case("passed-descriptors"), Ring("ring-passes")],
    ),
    ("pidfd_getfd", &[Case("taken-descriptor")]),
    (
        "descriptors duplicated, closed, numbered anew",
        &[Case("descriptor-games"), Case("descriptors")],
    ),
    ("/proc/self/fd, O_PATH", &[Case("opened-again")]),
    ("O_TMPFILE and linkat", &[Case("tmpfile-link")]),
    ("openat2 with every way to resolve", &[Case("open-how")]),
    (
        "renameat2: exchange, no-replace, whiteout",
        &[Case("exchange"), Case("whiteout")],
    ),
    ("file handles", &[Case("handles")]),
    (
        "names that are not text, or too long",
        &[Case("odd-names"), Case("deep-directory")],
    ),
    ("mappings only", &[Case("mmap-writer")]),
    ("copy_file_range, sendfile, reflink", &[Case("kernel-copy")]),
    ("splice, tee, vmsplice", &[Case("no-copies")]),
    (
        "inotify, fanotify, scanners that are asked about every open",
        &[
            Case("watchers"),
            Test(
                "crates/cli/tests/cli/reasons/programs.rs",
                "a_fanotify_scanner_is_reported_and_works_as_alone",
            ),
        ],
    ),
    (
        "shared memory",
        &[Case("shared-memory"), Case("memory-files")],
    ),
    (
        "message queues",
        &[Case("shared-memory"), Case("message-queue")],
    ),
    ("pipes and sockets", &[Case("channels")]),
    ("programs executed from memory", &[Case("memory-files")]),
    (
        "daemons that outlive the command",
        &[
            Case("daemon"),
            Foreign("daemons"),
            Test(
                "crates/session/tests/daemons.rs",
                "daemons_are_recorded_until_they_end",
            ),
            Test(
                "crates/session/tests/daemons.rs",
                "the_prompt_does_not_wait_for_a_daemon",
            ),
        ],
    ),
    (
        "--detach-after",
        &[Test(
            "crates/session/tests/daemons.rs",
            "detaching_ends_the_record_not_the_daemon",
        )],
    ),
    (
        "sessions of their own",
        &[Case("setsid"), Foreign("terminals")],
    ),
    (
        "user, mount and pid namespaces",
        &[
            Case("unshared"),
            Case("unshared-pids"),
            Case("unshared-all"),
        ],
    ),
    (
        "bubblewrap, containers",
        &[
            Case("bubblewrap"),
            Foreign("sandboxes"),
            Foreign("containers"),
        ],
    ),
    (
        "chroot, pivot_root",
        &[
            Stated("other-roots"),
            Test(
                "crates/guard/tests/guard/views.rs",
                "in_a_chroot_an_absolute_link_stays_inside",
            ),
        ],
    ),
    (
        "seccomp filters that kill",
        &[Case("sandboxed"), Foreign("manuals"), Foreign("chromium")],
    ),
    (
        "seccomp strict mode",
        &[Test(
            "crates/cli/tests/identity.rs",
            "a_program_in_strict_seccomp_mode_works_with_the_recorder_alone",
        )],
    ),
    (
        "calls dispatched to the program itself",
        &[Case("dispatched")],
    ),
    ("seccomp filters that trap", &[Stated("trap-handler")]),
    (
        "seccomp listeners of their own",
        &[Stated("own-listener"), Stated("own-listener-unguarded")],
    ),
    (
        "tracers",
        &[
            Stated("ptracer"),
            Stated("strace-of-program"),
            Stated("gdb-of-program"),
            Foreign("tracers"),
        ],
    ),
    (
        "io_uring: files, names, contents, links between entries, registered files",
        &[
            Ring("ring"),
            Ring("ring-wide"),
            Ring("ring-own-memory"),
            Ring("ring-without-array"),
            Ring("ring-by-place"),
        ],
    ),
    ("io_uring polled by the kernel", &[Ring("ring-polled")]),
    (
        "io_uring: descriptors and files sent to others",
        &[Ring("ring-passes"), Ring("ring-sends")],
    ),
    (
        "i386, int 0x80, x32",
        &[Case("32-bit"), Case("int80"), Case("x32-calls")],
    ),
    (
        "set-user-id, as a user",
        &[Test(
            "crates/cli/tests/cli/bad_input/privileges.rs",
            "a_program_that_loses_its_privilege_is_named",
        )],
    ),
    (
        "set-user-id, as root",
        &[Test(
            "crates/cli/tests/cli/bad_input/privileges.rs",
            "as_root_no_privilege_is_lost_and_no_program_named",
        )],
    ),
    (
        "storms of signals",
        &[
            Case("timer-storm"),
            Case("storm-static"),
            Case("storm-calls"),
            Case("signals"),
            Foreign("shells"),
            Foreign("storms"),
        ],
    ),
    (
        "who lies at the recorder's address",
        &[Case("displaced"), Case("reserves")],
    ),
    (
        "other address layouts: setarch, wine",
        &[Foreign("layouts"), Foreign("wine")],
    ),
    (
        "who jumps to the gate",
        &[
            Stated("jumps-strict"),
            Test(
                "crates/guard/tests/guard/recorder.rs",
                "calls_from_the_gate_are_logged_only_in_strict_mode",
            ),
        ],
    ),
    ("valgrind", &[Case("valgrind"), Foreign("valgrind")]),
    ("qemu-user", &[Case("qemu-user"), Foreign("valgrind")]),
    (
        "FUSE servers with their clients",
        &[Test(
            "crates/guard/tests/guard/file_server.rs",
            "a_recorded_file_server_is_not_waited_for",
        )],
    ),
    (
        "names in memory that is filled when somebody reads it",
        &[
            Test(
                "crates/cli/tests/cli/reasons/lacks.rs",
                "memory_that_is_filled_too_late_is_reported_and_delays_no_process",
            ),
            Test(
                "crates/guard/tests/guard/slow_memory.rs",
                "a_receiver_that_waits_for_a_page_does_not_delay_the_end",
            ),
        ],
    ),
    (
        "who forbids new code",
        &[Test(
            "crates/recorder/tests/recorder/unchanged.rs",
            "forbidden_executable_mappings_leave_libc_unchanged",
        )],
    ),
    ("sanitizers", &[Case("sanitized"), Foreign("sanitizers")]),
    ("perf", &[Case("perf-stat"), Foreign("perf")]),
    (
        "Java with a large heap",
        &[Foreign("java"), Foreign("java-heap")],
    ),
    (
        "who scribbles over the recorder's memory",
        &[Test(
            "crates/cli/tests/security/hostile.rs",
            "a_program_that_overwrites_the_arena_kills_and_hangs_no_process",
        )],
    ),
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl By {
    /// True if the named proof exists.
    fn exists(self) -> bool {
        match self {
            Case(name) => corpus::all().any(|case| case.name == name),
            Ring(name) => rings::RINGS.iter().any(|case| case.name == name),
            Stated(name) => stated::STATED.iter().any(|stated| stated.case.name == name),
            Foreign(name) => repository()
                .join(format!("scripts/foreign.d/{name}.sh"))
                .is_file(),
            Test(file, name) => {
                let text = fs::read_to_string(repository().join(file)).unwrap_or_default();
                let mut tests = text.split("#[test]\n").skip(1);
                tests.any(|test| {
                    test.lines()
                        .next()
                        .is_some_and(|l| l.contains(&format!("fn {name}(")))
                })
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Case(name) | Ring(name) | Stated(name) | Foreign(name) | Test(_, name) => name,
        }
    }
}

#[test]
fn every_adversary_has_a_witness() {
    let missing: Vec<String> = ADVERSARIES
        .iter()
        .flat_map(|(who, by)| by.iter().map(move |by| (who, *by)))
        .filter(|(_, by)| !by.exists())
        .map(|(who, by)| format!("{who}: {} is not there", by.name()))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(ADVERSARIES.iter().all(|(_, by)| !by.is_empty()));
}

#[test]
fn every_case_of_a_foe_is_in_the_list() {
    let named: HashSet<&str> = ADVERSARIES
        .iter()
        .flat_map(|(_, by)| by.iter().map(|by| by.name()))
        .collect();
    let all = corpus::foes::FOES.iter().chain(rings::RINGS);
    let all = all
        .map(|case| case.name)
        .chain(stated::STATED.iter().map(|stated| stated.case.name));
    let forgotten: Vec<&str> = all.filter(|name| !named.contains(name)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

/// A program that no test runs proves nothing.
#[test]
fn every_fixture_is_run_by_a_test() {
    let mut text = String::new();
    let commands = corpus::all()
        .chain(rings::RINGS)
        .chain(stated::STATED.iter().map(|stated| &stated.case));
    for case in commands {
        match case.how {
            How::Program(argv) => text.extend(argv.iter().copied().chain([" "])),
            How::Sh(line) | How::Bash(line) => text.push_str(line),
        }
    }
    let mut places = vec![
        repository().join("crates"),
        repository().join("scripts"),
        repository().join("bench"),
    ];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            let path = entry.path();
            let ours = path
                .extension()
                .is_some_and(|e| e == "rs" || e == "sh" || e == "py");
            if path.is_dir() {
                places.push(path);
            } else if ours && !path.ends_with("oracle/checklist.rs") {
                text.push_str(&fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    let unused: Vec<String> = fs::read_dir(fixtures::sources())
        .expect("fixtures")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "c" || e == "go"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !text.contains(name.as_str()))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}
