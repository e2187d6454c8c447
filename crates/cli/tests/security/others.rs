//! Other users of the machine see nothing and change nothing.

use crate::oracle::common;
use backstory_testkit::need::{needs, skipped};
use backstory_testkit::oracle::{Bench, Case, program, sh, watch};
use backstory_testkit::user::{User, suite_is_root};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Every file and directory below, the top included.
fn all(top: &Path) -> Vec<PathBuf> {
    let mut found = vec![top.to_owned()];
    if fs::symlink_metadata(top).unwrap().is_dir() {
        for entry in fs::read_dir(top).unwrap() {
            found.extend(all(&entry.unwrap().path()));
        }
    }
    found
}

/// Paths in a store that other users may access in any way. The library is exempt, because anyone
/// may run it.
fn open_to_others(top: &Path) -> Vec<(PathBuf, u32)> {
    let mode = |path: &PathBuf| fs::symlink_metadata(path).unwrap();
    let library = top.join("lib");
    let bits = |path: &PathBuf| {
        if path.starts_with(&library) && *path != library {
            0o022
        } else {
            0o077
        }
    };
    all(top)
        .into_iter()
        .filter(|path| !mode(path).is_symlink() && mode(path).mode() & bits(path) != 0)
        .map(|path| (path.clone(), mode(&path).mode() & 0o7777))
        .collect()
}

#[test]
fn all_files_of_a_store_are_private_whatever_the_umask() {
    let bench = common::bench(User::ordinary());
    for mask in ["000", "077"] {
        let directory = bench.stage().directory("work").unwrap();
        let store = bench.stage().store().join(mask);
        let line = format!(
            "umask {mask}; $FIX/backstory record -- sh -c 'umask >mask; find /dev/shm -maxdepth 1 -name backstory-\\*.arena -user $(id -u) -printf \\%m\\\\n | sort -u >arenas' \
             && $FIX/backstory of mask >/dev/null && $FIX/backstory note latest x 2>/dev/null || $FIX/backstory log >/dev/null"
        );
        let mut command = bench.stage().command("sh");
        command.args(["-c", &line]).env("BACKSTORY_STORE", &store);
        let outcome = watch(&mut command, &directory).unwrap();
        assert_eq!(
            outcome.code(),
            0,
            "{}",
            String::from_utf8_lossy(&outcome.stderr)
        );
        assert_eq!(
            fs::read_to_string(directory.join("mask")).unwrap().trim(),
            format!("0{mask}")
        );
        assert_eq!(
            fs::read_to_string(directory.join("arenas")).unwrap().trim(),
            "600"
        );
        assert_eq!(open_to_others(&store), [], "umask {mask}");
    }
}

#[test]
fn another_user_reads_neither_store_nor_arena_and_reaches_no_process() {
    if !suite_is_root() {
        skipped("another user", "the suite was not started as root");
        return;
    }
    let bench = common::bench(User::ordinary());
    const WAITS: Case = sh(
        "waits",
        "touch started; while [ ! -e go ]; do sleep 0.01; done",
    );
    let (mut child, directory, store) = bench.started(&WAITS).unwrap();
    let patience = std::time::Duration::from_secs(120);
    assert!(backstory_testkit::procs::eventually(patience, || directory
        .join("started")
        .exists()));
    let launcher = child.id();
    let keeper = backstory_testkit::procs::children(launcher)[0];
    let supervisor = backstory_testkit::procs::children(keeper)[0];
    let other = User::Other {
        uid: 65_533,
        gid: 65_533,
    };
    let line = format!(
        "for f in {store}/runs/* /dev/shm/backstory-*.arena {store}; do cat \"$f\" >/dev/null 2>&1 && echo \"reads $f\"; \
         dd if=/dev/null of=\"$f\" conv=notrunc,nocreat 2>/dev/null && echo \"writes $f\"; done; ls {store} 2>/dev/null; \
         for p in {launcher} {keeper} {supervisor}; do ls /proc/$p/fd /proc/$p/map_files 2>/dev/null; \
         cat /proc/$p/environ /proc/$p/maps 2>/dev/null; kill -0 $p 2>/dev/null && echo \"signals $p\"; done; true",
        store = store.display()
    );
    let mut command = std::process::Command::new("sh");
    other.runs(
        command
            .args(["-c", &line])
            .env_clear()
            .env("PATH", "/usr/bin:/bin"),
    );
    let output = command.output().unwrap();
    fs::write(directory.join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

/// The line about a socket in the kernel's list of local sockets. `None` for a socket of another
/// kind.
fn local_socket(pid: u32, inode: &str) -> Option<String> {
    let listed = fs::read_to_string(format!("/proc/{pid}/net/unix")).unwrap();
    let found = listed
        .lines()
        .find(|line| line.split_whitespace().nth(6) == Some(inode));
    found.map(str::to_owned)
}

#[test]
fn recording_processes_have_no_socket_or_pipe_that_others_can_reach() {
    let bench = common::bench(User::ordinary());
    const WAITS: Case = sh(
        "reached",
        "touch started; while [ ! -e go ]; do sleep 0.01; done",
    );
    let (mut child, directory, store) = bench.started(&WAITS).unwrap();
    let patience = std::time::Duration::from_secs(120);
    let started = || directory.join("started").exists();
    assert!(backstory_testkit::procs::eventually(patience, started));
    let launcher = child.id();
    let keeper = backstory_testkit::procs::children(launcher)[0];
    let supervisor = backstory_testkit::procs::children(keeper)[0];
    let mut sockets = 0;
    for pid in [keeper, supervisor] {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
            let path = entry.unwrap().path();
            let Ok(led) = fs::read_link(&path) else {
                continue;
            };
            let led = led.to_string_lossy().into_owned();
            if let Some(inode) = led
                .strip_prefix("socket:[")
                .and_then(|rest| rest.strip_suffix(']'))
            {
                let line = local_socket(pid, inode)
                    .unwrap_or_else(|| panic!("{led} of {pid} is of no local kind"));
                let words: Vec<&str> = line.split_whitespace().collect();
                // It has no name, in the file system or without one, and does not listen.
                assert_eq!(
                    (words.len(), words[3], words[5]),
                    (7, "00000000", "03"),
                    "{led} of {pid}: {line}"
                );
                sockets += 1;
                continue;
            }
            let inside = Path::new(&led).starts_with(&store);
            let kind = fs::metadata(&path)
                .map(|meta| meta.mode() & 0o170_000)
                .unwrap_or_default();
            let named_pipe = kind == 0o010_000 && !led.starts_with("pipe:[");
            assert!(!named_pipe, "{led} of {pid}");
            let arena = led.starts_with("/dev/shm/backstory-") || led.starts_with("/memfd:");
            let known = inside
                || arena
                || led == "/dev/null"
                || !led.starts_with('/')
                || led == "/proc"
                || led == "/";
            assert!(known, "{pid} holds {led}");
        }
    }
    fs::write(directory.join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(sockets > 0, "how supervisor and keeper talk was not seen");
}

#[test]
fn no_process_of_ours_binds_listens_or_connects() {
    if !needs("calls of sockets", &["strace"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    let directory = bench.stage().directory("work").unwrap();
    let store = bench.stage().store().join("traced");
    let trace = directory.join("trace");
    for question in [
        "record --name it -- cp mine copy",
        "index --wait",
        "of copy",
        "log",
        "replay it",
        "store verify",
    ] {
        fs::write(directory.join("mine"), "x").unwrap();
        bench.stage().user().owns(&directory.join("mine")).unwrap();
        let line =
            format!("strace -f -qq -o trace -e trace=%network,execve $FIX/backstory {question}");
        let mut command = bench.stage().command("sh");
        command.args(["-c", &line]).env("BACKSTORY_STORE", &store);
        let outcome = watch(&mut command, &directory).unwrap();
        assert_eq!(
            outcome.code(),
            0,
            "{question}: {}",
            String::from_utf8_lossy(&outcome.stderr)
        );
        let calls = fs::read_to_string(&trace).unwrap();
        assert!(calls.contains("execve("), "nothing was traced");
        // A replay talks to the kernel to set up its own network.
        let reaches = |line: &&str| {
            let calls = ["bind(", "listen(", "connect(", "accept", " socket("];
            calls.iter().any(|call| line.contains(call)) && !line.contains("AF_NETLINK")
        };
        let reached: Vec<&str> = calls.lines().filter(reaches).collect();
        assert_eq!(reached, [""; 0], "{question}");
    }
}

/// The directory of the library if loaders cannot use the store's own path.
fn stand_in() -> PathBuf {
    let uid = match User::ordinary() {
        User::Myself => rustix::process::geteuid().as_raw(),
        User::Other { uid, .. } => uid,
    };
    PathBuf::from(format!("/tmp/backstory-{uid}"))
}

#[test]
fn a_store_of_another_user_is_not_recorded_into() {
    if !suite_is_root() {
        skipped("somebody else's store", "the suite was not started as root");
        return;
    }
    let bench = common::bench(User::ordinary());
    const TRUE: Case = program("true", &["true"]);
    let foreign = bench.stage().path().join("foreign");
    fs::create_dir_all(foreign.join("runs")).unwrap();
    for part in [&foreign, &foreign.join("runs")] {
        fs::set_permissions(part, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let before = all(&foreign);
    let (code, said) = recorded_in(&bench, &TRUE, &foreign);
    assert_eq!(code, 125, "{said}");
    assert!(said.contains("belongs to"), "{said}");
    assert_eq!(all(&foreign), before);
}

fn recorded_in(bench: &Bench, case: &Case, store: &Path) -> (i32, String) {
    let store = store.to_str().unwrap();
    let directory = bench.stage().directory("work").unwrap();
    let mut command = bench.stage().backstory(&["record", "--store", store, "--"]);
    command.arg(case.name);
    let outcome = watch(&mut command, &directory).unwrap();
    (
        outcome.code(),
        String::from_utf8_lossy(&outcome.stderr).into_owned(),
    )
}

#[test]
fn a_link_or_a_strangers_directory_in_the_librarys_place_is_refused() {
    let place = stand_in();
    if !suite_is_root() || place.symlink_metadata().is_ok() {
        skipped("a planted library", "needs root, and nothing at the place");
        return;
    }
    let bench = common::bench(User::ordinary());
    const TRUE: Case = program("true", &["true"]);
    let odd = bench.stage().store().join("a:b");
    let victim = bench.stage().directory("victim").unwrap();
    symlink(&victim, &place).unwrap();
    let linked = recorded_in(&bench, &TRUE, &odd);
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    let foreign = recorded_in(&bench, &TRUE, &odd);
    let planted = all(&place).len();
    fs::remove_dir_all(&place).unwrap();
    for (code, said) in [&linked, &foreign] {
        assert_eq!(*code, 125, "{said}");
        assert!(said.contains(place.to_str().unwrap()), "{said}");
    }
    assert_eq!(
        (all(&victim).len(), planted),
        (1, 1),
        "nothing was written there"
    );
}
