//! The promises of the guard: every watched call is seen, each concluded outcome is the real one,
//! and no call hangs.

// clippy allows these in test functions only, but the functions that the tests share need them too.
#![allow(unsafe_code, clippy::unwrap_used)]

mod file_server;
mod first;
mod handover;
mod held;
mod holds;
mod listeners;
mod recorder;
mod slow_memory;
mod stage;
mod syscall_page;
mod truth;
mod views;

use backstory_abi::op;
use backstory_testkit::need::{find, skipped};
use stage::{available, command, executor, static_busybox, watch};

#[test]
fn a_static_program_is_seen_from_its_exec_to_its_exit() {
    let Some(busybox) = static_busybox() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("text").to_str().unwrap().to_owned();
    std::fs::write(&file, "hello").unwrap();
    let seen = command(&[busybox, "cat", &file]);
    assert_eq!(seen.result, (Some(0), "hello".to_owned()));
    let pid = executor(&seen, busybox);
    assert_eq!(seen.list(op::ARGS, pid), [busybox, "cat", &file]);
    assert!(
        seen.list(op::ENV, pid)
            .iter()
            .any(|v| v.starts_with("PATH="))
    );
    let exec = seen.one(op::EXEC, busybox);
    assert_eq!((exec.record.arg, exec.predicted()), (3, None));
    let open = seen.one(op::OPEN, &file);
    assert_eq!(
        (open.caller.pid, open.predicted(), open.resolved()),
        (pid, Some(0), true)
    );
    let born = seen
        .seen
        .iter()
        .find(|s| s.record.op == op::BORN && s.caller.pid == pid)
        .unwrap();
    assert_eq!(
        (born.record.fd as u32, born.record.arg as u32),
        (pid, std::process::id())
    );
    let gone = seen
        .seen
        .iter()
        .find(|s| s.record.op == op::GONE && s.caller.pid == pid)
        .unwrap();
    assert_eq!((gone.record.aux, gone.record.arg), (1, 0));
}

#[test]
fn the_exit_status_of_a_grandchild_is_exact() {
    let Some(busybox) = static_busybox() else {
        return;
    };
    let seen = command(&[
        busybox,
        "sh",
        "-c",
        &format!("{busybox} sh -c 'exit 7'; {busybox} sh -c 'kill -9 $$'; true"),
    ]);
    assert_eq!(seen.result.0, Some(0));
    let mut statuses: Vec<i32> = seen
        .seen
        .iter()
        .filter(|s| s.record.op == op::GONE && s.record.aux == 1)
        .map(|s| s.record.arg)
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [0, 9, 7 << 8]);
}

#[test]
fn a_dynamic_program_is_seen_without_a_recorder() {
    let seen = command(&["/bin/cat", "/etc/hostname"]);
    let pid = executor(&seen, "/bin/cat");
    assert_eq!(seen.one(op::OPEN, "/etc/ld.so.cache").caller.pid, pid);
    assert_eq!(seen.one(op::OPEN, "/etc/hostname").predicted(), Some(0));
}

#[test]
fn a_go_program_is_seen() {
    let go = find("go").unwrap_or("go".into());
    if !available(&[go.to_str().unwrap(), "version"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("a.go"), dir.path().join("a"));
    let text = "package main\nimport (\"os\"; \"fmt\")\nfunc main() { b, _ := os.ReadFile(os.Args[1]); \
                os.WriteFile(os.Args[2], b, 0o644); fmt.Print(len(b)) }\n";
    std::fs::write(&source, text).unwrap();
    let built = std::process::Command::new(go)
        .args(["build", "-o"])
        .args([&program, &source])
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"))
        .env("GO111MODULE", "off")
        .status();
    assert!(built.unwrap().success());
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    std::fs::write(&from, "12345").unwrap();
    let [program, from, to] = [&program, &from, &to].map(|p| p.to_str().unwrap().to_owned());
    let seen = command(&[&program, &from, &to]);
    assert_eq!(seen.result, (Some(0), "5".to_owned()));
    assert_eq!(seen.one(op::OPEN, &from).predicted(), Some(0));
    let written = seen.one(op::OPEN, &to);
    assert_eq!(written.predicted(), Some(0));
    assert_ne!(written.record.arg & libc::O_CREAT, 0);
}

#[test]
fn an_execvp_search_records_which_programs_were_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (empty, forbidden) = (dir.path().join("empty"), dir.path().join("forbidden"));
    std::fs::create_dir_all(&empty).unwrap();
    std::fs::create_dir_all(&forbidden).unwrap();
    std::fs::write(forbidden.join("true"), "not executable").unwrap();
    let path = format!("{}:{}:/bin", empty.display(), forbidden.display());
    let script = format!("import os; os.execvpe('true', ['true'], {{'PATH': '{path}'}})");
    if !available(&["python3", "-c", ""]) {
        return;
    }
    let seen = command(&["/usr/bin/python3", "-c", &script]);
    assert_eq!(seen.result.0, Some(0));
    let of = |dir: &std::path::Path| {
        seen.one(op::EXEC, dir.join("true").to_str().unwrap())
            .predicted()
    };
    assert_eq!(of(&empty), Some(-libc::ENOENT));
    assert_eq!(of(&forbidden), Some(-libc::EACCES));
    assert_eq!(seen.one(op::EXEC, "/bin/true").predicted(), None);
}

#[test]
fn an_argument_list_of_any_length_arrives_whole() {
    let words: Vec<String> = (0..5_000).map(|i| format!("word number {i}")).collect();
    let given = words.clone();
    let seen = watch(move || {
        std::process::Command::new("/bin/true")
            .args(&given)
            .status()
            .unwrap()
            .success()
    });
    assert!(seen.result);
    let pid = executor(&seen, "/bin/true");
    let listed = seen.list(op::ARGS, pid);
    assert_eq!(listed[1..], words[..]);
}

#[test]
fn many_threads_and_processes_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().to_str().unwrap().to_owned();
    let seen = watch(move || {
        let threads: Vec<_> = (0..12)
            .map(|t| {
                let base = base.clone();
                std::thread::spawn(move || {
                    for i in 0..200 {
                        std::fs::write(format!("{base}/{t}-{i}"), "x").unwrap();
                        std::fs::read(format!("{base}/{t}-{i}")).unwrap();
                    }
                    assert!(
                        std::process::Command::new("/bin/true")
                            .status()
                            .unwrap()
                            .success()
                    );
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        base
    });
    for t in 0..12 {
        for i in 0..200 {
            let opens = seen.of(op::OPEN, &format!("{}/{t}-{i}", seen.result));
            assert_eq!(opens.len(), 2, "{t}-{i}");
            assert!(opens.iter().all(|o| o.predicted() == Some(0)));
        }
    }
    assert_eq!(seen.of(op::EXEC, "/bin/true").len(), 12);
}

/// Compiles a freestanding program for this machine's kernel: it needs no libc.
fn freestanding(dir: &std::path::Path, flags: &[&str], source: &str) -> Option<String> {
    let (text, program) = (dir.join("program.c"), dir.join("program"));
    std::fs::write(&text, source).unwrap();
    let compiler = std::process::Command::new("cc")
        .args(flags)
        .args([
            "-O1",
            "-nostdlib",
            "-static",
            "-fno-stack-protector",
            "-fno-pie",
            "-no-pie",
            "-o",
        ])
        .args([&program, &text])
        .output();
    let program = program.to_str().unwrap().to_owned();
    if !compiler.is_ok_and(|c| c.status.success())
        || std::process::Command::new(&program).status().is_err()
    {
        let why = format!("cannot make or run what cc {flags:?} makes");
        skipped("a program without libc", &why);
        return None;
    }
    Some(program)
}

#[test]
fn a_32_bit_program_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
        static int call(int nr, const void *a, int b, int c) {
            int r;
            __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
            return r;
        }
        void _start(void) {
            static const char *argv[] = {"/bin/true", "narrow", 0}, *envp[] = {"A=1", 0};
            call(5, "/etc/hostname", 0, 0);
            call(10, "/no/such/file", 0, 0);
            call(11, argv[0], (int)argv, (int)envp);
            call(1, 0, 0, 0);
        }"#;
    let Some(program) = freestanding(dir.path(), &["-m32"], source) else {
        return;
    };
    let seen = command(&[&program]);
    assert_eq!(seen.result.0, Some(0));
    let open = seen.one(op::OPEN, "/etc/hostname");
    assert_eq!(
        (open.predicted(), open.caller.arch, open.caller.nr),
        (Some(0), 0x4000_0003, 5)
    );
    assert_eq!(
        seen.one(op::UNLINK, "/no/such/file").predicted(),
        Some(-libc::ENOENT)
    );
    let exec = seen.one(op::EXEC, "/bin/true");
    assert_eq!(exec.record.arg, 2);
    assert!(
        seen.list(op::ARGS, exec.caller.pid)
            .ends_with(&["/bin/true".to_owned(), "narrow".to_owned()])
    );
}

#[test]
fn int_80_of_a_64_bit_program_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
        void _start(void) {
            long r;
            __asm__ volatile("int $0x80" : "=a"(r) : "a"(5L), "b"("/etc/hostname"), "c"(0L), "d"(0L) : "memory");
            __asm__ volatile("syscall" : : "a"(231L), "D"(r > 0 ? 0L : 1L));
        }"#;
    let Some(program) = freestanding(dir.path(), &["-m64"], source) else {
        return;
    };
    let seen = command(&[&program]);
    assert_eq!(seen.result.0, Some(0));
    assert_eq!(seen.one(op::OPEN, "/etc/hostname").caller.arch, 0x4000_0003);
}

#[test]
fn look_ups_are_logged_where_all_are_watched() {
    use backstory_guard::{FilterSpec, GuardSettings};
    let ask = || {
        let missing = std::fs::metadata("/no/such/file").is_err();
        missing
            && std::fs::read_link("/proc/self/exe").is_ok()
            && std::fs::exists("/etc/hostname").unwrap()
    };
    assert!(watch(ask).of(op::STAT, "/no/such/file").is_empty());
    let all = FilterSpec {
        lookups: true,
        ..stage::spec()
    };
    let seen = stage::watch_with(
        all,
        GuardSettings::default(),
        std::sync::Arc::default(),
        ask,
    );
    assert!(seen.result);
    assert_eq!(
        seen.one(op::STAT, "/no/such/file").predicted(),
        Some(-libc::ENOENT)
    );
    assert_eq!(seen.one(op::STAT, "/etc/hostname").predicted(), Some(0));
    assert_eq!(
        seen.one(op::READLINK, "/proc/self/exe").predicted(),
        Some(0)
    );
}
