//! Each concluded outcome is the real one.

use crate::stage::{Outcome, Seen, call, watch};
use backstory_abi::op;
use std::ffi::CString;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap()
}

/// A call on one or two paths of a test directory.
struct Try {
    nr: i64,
    op: u16,
    first: &'static str,
    second: &'static str,
    rest: [usize; 2],
    /// The outcome may stay unknown.
    open_end: bool,
}

fn one(nr: i64, op: u16, path: &'static str, rest: [usize; 2]) -> Try {
    Try {
        nr,
        op,
        first: path,
        second: "",
        rest,
        open_end: false,
    }
}

fn two(nr: i64, op: u16, first: &'static str, second: &'static str) -> Try {
    Try {
        nr,
        op,
        first,
        second,
        rest: [0, 0],
        open_end: false,
    }
}

fn tries() -> Vec<Try> {
    use libc::{
        O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_PATH, O_RDWR, O_TMPFILE, O_TRUNC, O_WRONLY,
    };
    use libc::{
        SYS_chmod, SYS_link, SYS_mkdir, SYS_open, SYS_rename, SYS_rmdir, SYS_truncate, SYS_unlink,
    };
    let open = |path, flags: i32| one(SYS_open, op::OPEN, path, [flags as usize, 0o644]);
    let unknown = |t: Try| Try {
        open_end: true,
        ..t
    };
    vec![
        open("file", 0),
        open("missing", 0),
        open("missing/below", 0),
        open("file/below", 0),
        open("file", O_DIRECTORY),
        open("dir", O_WRONLY),
        open("dir", 0),
        open("dir", O_TMPFILE | O_RDWR),
        open("file", O_CREAT | O_EXCL),
        open("new", O_CREAT | O_WRONLY),
        open("new", O_CREAT | O_WRONLY | O_TRUNC),
        open("missing/new", O_CREAT | O_WRONLY),
        open("link", 0),
        open("link", O_NOFOLLOW),
        open("link", O_NOFOLLOW | O_PATH),
        open("dangling", 0),
        open("dangling", O_CREAT | O_WRONLY),
        open("loop", 0),
        open("secret", 0),
        open("secret", O_WRONLY),
        open("socket", O_RDWR),
        one(SYS_mkdir, op::MKDIR, "made", [0o755, 0]),
        one(SYS_mkdir, op::MKDIR, "made", [0o755, 0]),
        one(SYS_mkdir, op::MKDIR, "missing/made", [0o755, 0]),
        unknown(one(SYS_rmdir, op::UNLINK, "made", [0, 0])),
        one(SYS_rmdir, op::UNLINK, "file", [0, 0]),
        one(SYS_rmdir, op::UNLINK, "missing", [0, 0]),
        two(SYS_rename, op::RENAME, "new", "newer"),
        two(SYS_rename, op::RENAME, "new", "newer"),
        two(SYS_rename, op::RENAME, "newer", "file"),
        two(SYS_rename, op::RENAME, "file", "dir"),
        two(SYS_rename, op::RENAME, "dir", "file"),
        two(SYS_rename, op::RENAME, "file", "missing/x"),
        two(SYS_rename, op::RENAME, "file", "/proc/x"),
        two(SYS_link, op::LINK, "file", "hard"),
        two(SYS_link, op::LINK, "file", "hard"),
        two(SYS_link, op::LINK, "missing", "harder"),
        two(SYS_link, op::LINK, "dir", "harder"),
        one(SYS_chmod, op::META, "hard", [0o600, 0]),
        one(SYS_chmod, op::META, "missing", [0o600, 0]),
        one(SYS_truncate, op::TRUNCATE, "hard", [1, 0]),
        one(SYS_truncate, op::TRUNCATE, "dir", [1, 0]),
        one(SYS_truncate, op::TRUNCATE, "missing", [1, 0]),
        one(SYS_unlink, op::UNLINK, "hard", [0, 0]),
        one(SYS_unlink, op::UNLINK, "hard", [0, 0]),
        one(SYS_unlink, op::UNLINK, "dir", [0, 0]),
        one(SYS_unlink, op::UNLINK, "link", [0, 0]),
    ]
}

fn prepare(dir: &Path) {
    std::fs::write(dir.join("file"), "contents").unwrap();
    std::fs::create_dir(dir.join("dir")).unwrap();
    symlink("file", dir.join("link")).unwrap();
    symlink("created-through-a-link", dir.join("dangling")).unwrap();
    symlink("loop", dir.join("loop")).unwrap();
    std::fs::write(dir.join("secret"), "").unwrap();
    std::fs::set_permissions(dir.join("secret"), std::fs::Permissions::from_mode(0o0)).unwrap();
    drop(std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap());
}

/// Makes all calls on a guarded thread, and compares each conclusion with the result.
fn compare(before: impl FnOnce() + Send + 'static, dir: &Path) {
    let base = dir.to_owned();
    let outcome = watch(move || {
        before();
        let run = |t: &Try| {
            let (first, second) = (c(&base.join(t.first)), c(&base.join(t.second)));
            let args = if t.second.is_empty() {
                [first.as_ptr() as usize, t.rest[0], t.rest[1], 0, 0]
            } else {
                [first.as_ptr() as usize, second.as_ptr() as usize, 0, 0, 0]
            };
            call(t.nr, args)
        };
        tries().iter().map(run).collect::<Vec<_>>()
    });
    let ops: Vec<u16> = tries().iter().map(|t| t.op).collect();
    let mut seen = outcome
        .seen
        .iter()
        .filter(|s| ops.contains(&s.record.op) && s.string(0).starts_with(&path(dir, "")));
    for (t, happened) in tries().iter().zip(&outcome.result) {
        let what = format!("{} {} {} flags {:o}", t.nr, t.first, t.second, t.rest[0]);
        let seen = seen.next().expect(&what);
        assert_eq!(
            (seen.record.op, seen.string(0)),
            (t.op, path(dir, t.first).as_str()),
            "{what}"
        );
        let happened = if *happened > 0 { 0 } else { *happened as i32 };
        match seen.predicted() {
            None => assert!(t.open_end, "{what} was not concluded"),
            Some(predicted) => assert_eq!(predicted, happened, "{what}"),
        }
    }
    assert!(seen.next().is_none());
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

#[test]
fn predictions_come_true() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    compare(|| {}, dir.path());
}

#[test]
fn predictions_come_true_in_memory_where_missing_names_are_not_cached() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        backstory_testkit::need::skipped("predictions in memory", "needs /dev/shm");
        return;
    };
    prepare(dir.path());
    compare(|| {}, dir.path());
}

/// Gives this thread alone the ids of an ordinary user.
fn change_to_user_nobody() {
    assert_eq!(call(libc::SYS_setgroups, [0; 5]), 0);
    assert_eq!(call(libc::SYS_setresgid, [65534, 65534, 65534, 0, 0]), 0);
    assert_eq!(call(libc::SYS_setresuid, [65534, 65534, 65534, 0, 0]), 0);
}

fn root() -> bool {
    // SAFETY: takes nothing.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        backstory_testkit::need::skipped("predictions for another user", "needs root");
    }
    root
}

#[test]
fn predictions_come_true_for_a_user_without_rights() {
    if !root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    prepare(dir.path());
    compare(change_to_user_nobody, dir.path());
}

#[test]
fn predictions_come_true_for_an_owner_other_than_root() {
    if !root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let own = |path: &Path| std::os::unix::fs::lchown(path, Some(65534), Some(65534)).unwrap();
    own(dir.path());
    std::fs::read_dir(dir.path())
        .unwrap()
        .for_each(|entry| own(&entry.unwrap().path()));
    compare(change_to_user_nobody, dir.path());
}

fn ident_of(outcome: &Outcome<(u64, u64)>, op: u16, path: &str) -> (u64, u64) {
    let ident = outcome.one(op, path).ident.expect(path);
    (ident.dev, ident.ino)
}

#[test]
fn a_file_is_identified_before_a_change_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().to_owned();
    let outcome = watch(move || {
        std::fs::write(base.join("old"), "old").unwrap();
        std::fs::write(base.join("new"), "new").unwrap();
        let meta = std::fs::metadata(base.join("old")).unwrap();
        std::fs::rename(base.join("new"), base.join("old")).unwrap();
        std::fs::remove_file(base.join("old")).unwrap();
        (meta.dev(), meta.ino())
    });
    assert_eq!(
        ident_of(&outcome, op::RENAME, &path(dir.path(), "new")),
        outcome.result
    );
    assert_ne!(
        ident_of(&outcome, op::UNLINK, &path(dir.path(), "old")),
        outcome.result
    );
}

#[test]
fn a_path_is_joined_to_the_directory_it_starts_at() {
    let dir = tempfile::tempdir().unwrap();
    let real = std::fs::canonicalize(dir.path()).unwrap();
    let base = real.clone();
    let outcome = watch(move || {
        let fd = call(
            libc::SYS_open,
            [c(&base).as_ptr() as usize, libc::O_PATH as usize, 0, 0, 0],
        );
        let flags = (libc::O_CREAT | libc::O_WRONLY) as usize;
        let made = call(
            libc::SYS_openat,
            [fd as usize, c"./made".as_ptr() as usize, flags, 0o640, 0],
        );
        assert!(made > 0);
        // fchmod and utimensat name the file by its descriptor.
        assert_eq!(call(libc::SYS_fchmod, [made as usize, 0o600, 0, 0, 0]), 0);
        assert_eq!(call(libc::SYS_utimensat, [made as usize, 0, 0, 0, 0]), 0);
        // The thread has its own current directory, so that other tests keep theirs.
        assert_eq!(
            call(libc::SYS_unshare, [libc::CLONE_FS as usize, 0, 0, 0, 0]),
            0
        );
        assert_eq!(
            call(libc::SYS_chdir, [c(&base).as_ptr() as usize, 0, 0, 0, 0]),
            0
        );
        call(libc::SYS_open, [c"made".as_ptr() as usize, 0, 0, 0, 0]) > 0
    });
    assert!(outcome.result);
    let made = path(&real, "made");
    let opens = outcome.of(op::OPEN, &made);
    assert_eq!(opens.len(), 2);
    assert!(
        opens
            .iter()
            .all(|o| o.resolved() && o.predicted() == Some(0))
    );
    let meta: Vec<i32> = outcome
        .of(op::META, &made)
        .iter()
        .map(|m| m.record.arg)
        .collect();
    assert_eq!(meta, [backstory_abi::META_MODE, backstory_abi::META_TIMES]);
    let chdir = outcome.one(op::CHDIR, real.to_str().unwrap());
    assert_eq!(chdir.string(1), real.to_str().unwrap());
}

#[test]
fn a_call_that_a_signal_restarts_is_logged_once() {
    extern "C" fn nothing(_: i32) {}
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    let name = c(&fifo);
    assert_eq!(
        call(
            libc::SYS_mknod,
            [
                name.as_ptr() as usize,
                (libc::S_IFIFO | 0o600) as usize,
                0,
                0,
                0
            ]
        ),
        0
    );
    let outcome = watch(move || {
        // SAFETY: a handler that does nothing, on a signal that no other test uses.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut());
        }
        // SAFETY: takes nothing.
        let me = unsafe { libc::gettid() };
        let path = name.clone();
        let other = std::thread::spawn(move || {
            for _ in 0..20 {
                wait_until_in(me, libc::SYS_open);
                // SAFETY: takes no pointers.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), me, libc::SIGUSR2) };
            }
            wait_until_in(me, libc::SYS_open);
            call(
                libc::SYS_open,
                [path.as_ptr() as usize, libc::O_WRONLY as usize, 0, 0, 0],
            )
        });
        let read = call(libc::SYS_open, [name.as_ptr() as usize, 0, 0, 0, 0]);
        (read > 0, other.join().unwrap() > 0)
    });
    assert_eq!(outcome.result, (true, true));
    let opens = outcome.of(op::OPEN, fifo.to_str().unwrap());
    let mut flags: Vec<i32> = opens.iter().map(|o| o.record.arg).collect();
    flags.sort_unstable();
    assert_eq!(flags, [libc::O_RDONLY, libc::O_WRONLY]);
}

/// Waits until a thread of this process is in a call, if the kernel shows that.
fn wait_until_in(tid: i32, number: i64) {
    let path = format!("/proc/self/task/{tid}/syscall");
    let begins = format!("{number} ");
    while std::fs::read_to_string(&path).is_ok_and(|shown| !shown.starts_with(&begins)) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Connects a stream socket to a path: 0 or `-errno`.
fn connect(path: &Path) -> i32 {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => 0,
        Err(error) => -error.raw_os_error().unwrap(),
    }
}

#[test]
fn a_connect_to_a_path_without_a_socket_is_concluded_to_fail() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("file"), "").unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    let names = ["missing", "file", "file/below", "socket"].map(path);
    let seen = watch({
        let names = names.clone();
        move || names.map(|name| connect(&name))
    });
    assert_eq!(
        seen.result,
        [-libc::ENOENT, -libc::ECONNREFUSED, -libc::ENOTDIR, 0]
    );
    for (name, result) in names.iter().zip(seen.result) {
        let address = [&[1, 0][..], name.as_os_str().as_encoded_bytes()].concat();
        let record = seen
            .seen
            .iter()
            .find(|s| {
                s.record.op == op::CONNECT
                    && s.body[..s.record.aux as usize].strip_suffix(b"\0") == Some(&address)
            })
            .unwrap();
        // Whether a process listens cannot be looked up.
        assert_eq!(
            record.predicted(),
            (result != 0).then_some(result),
            "{name:?}"
        );
    }
}

#[test]
fn connect_and_bind_carry_the_address() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let outcome = watch(move || {
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        drop(std::os::unix::net::UnixStream::connect(&socket).unwrap());
        drop(listener);
        socket
    });
    let path = outcome.result.as_os_str().as_encoded_bytes();
    for op in [op::BIND, op::CONNECT] {
        let found: Vec<&Seen> = outcome.seen.iter().filter(|s| s.record.op == op).collect();
        assert_eq!(found.len(), 1);
        let address = &found[0].body[..found[0].record.aux as usize];
        assert_eq!(address[..2], [1, 0], "AF_UNIX");
        assert_eq!(&address[2..2 + path.len()], path);
    }
}
