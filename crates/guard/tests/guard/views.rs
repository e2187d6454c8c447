//! A path means what it means to the caller: under another root, or in another mount namespace.

use crate::stage::{available, call, command, static_busybox, watch};
use backstory_abi::op;
use std::ffi::CString;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A directory to be used as a root, with a static shell, and an absolute link that leads to
/// another file than outside.
fn jail() -> Option<tempfile::TempDir> {
    let busybox = static_busybox()?;
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    backstory_testkit::program::copy(busybox.as_ref(), &dir.path().join("bin/busybox")).unwrap();
    std::fs::write(dir.path().join("etc/target"), "inside").unwrap();
    symlink("/etc/target", dir.path().join("etc/link")).unwrap();
    Some(dir)
}

#[test]
fn in_a_chroot_an_absolute_link_stays_inside() {
    let Some(dir) = jail() else { return };
    let root = std::fs::canonicalize(dir.path()).unwrap();
    let root = root.to_str().unwrap();
    let busybox = static_busybox().unwrap();
    if !available(&[busybox, "chroot", root, "/bin/busybox", "true"]) {
        return;
    }
    let script =
        "/bin/busybox cat /etc/link; cd /etc; /bin/busybox cat target /missing ../../etc/target";
    let seen = command(&[busybox, "chroot", root, "/bin/busybox", "sh", "-c", script]);
    assert!(seen.result.1.contains("insideinside"), "{}", seen.result.1);
    assert_eq!(
        seen.one(op::OPEN, &format!("{root}/etc/link")).predicted(),
        Some(0)
    );
    assert_eq!(
        seen.one(op::OPEN, &format!("{root}/etc/target"))
            .predicted(),
        Some(0)
    );
    assert_eq!(
        seen.one(op::OPEN, &format!("{root}/missing")).predicted(),
        Some(-libc::ENOENT)
    );
    assert_eq!(
        seen.one(op::OPEN, &format!("{root}/etc/../../etc/target"))
            .predicted(),
        Some(0)
    );
}

#[test]
fn in_a_sandbox_files_are_identified_as_the_sandbox_sees_them() {
    let Some(dir) = jail() else { return };
    let root = dir.path().to_str().unwrap();
    let inside = [
        "bwrap",
        "--bind",
        root,
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "/bin/busybox",
    ];
    if !available(&[&inside[..], &["true"]].concat()) {
        return;
    }
    let seen = command(&[&inside[..], &["cat", "/etc/link", "/etc/hostname"]].concat());
    let ino = std::fs::metadata(dir.path().join("etc/target"))
        .unwrap()
        .ino();
    let link = seen.one(op::OPEN, "/etc/link");
    assert_eq!(link.predicted(), Some(0));
    assert_eq!(link.ident.map(|i| i.ino), Some(ino));
    // The file exists outside of the sandbox only.
    assert!(std::path::Path::new("/etc/hostname").exists());
    assert_eq!(
        seen.one(op::OPEN, "/etc/hostname").predicted(),
        Some(-libc::ENOENT)
    );
}

#[test]
fn a_mount_in_a_new_namespace_hides_what_lies_under_it() {
    let Some(dir) = jail() else { return };
    let etc = dir.path().join("etc").to_str().unwrap().to_owned();
    let busybox = static_busybox().unwrap();
    let script =
        format!("mount -t tmpfs none {etc} && {busybox} cat {etc}/target; echo x >{etc}/new; true");
    let words = ["unshare", "-Urm", "/bin/sh", "-c", &script];
    if !available(&["unshare", "-Urm", "true"]) {
        return;
    }
    let seen = command(&words);
    assert_eq!(seen.result.0, Some(0));
    assert_eq!(
        seen.one(op::OPEN, &format!("{etc}/target")).predicted(),
        Some(-libc::ENOENT)
    );
    let made = seen.one(op::OPEN, &format!("{etc}/new"));
    assert_eq!((made.predicted(), made.resolved()), (Some(0), true));
}

#[test]
fn a_read_only_mount_makes_a_write_fail() {
    let Some(dir) = jail() else { return };
    let root = dir.path().to_str().unwrap();
    let inside = ["bwrap", "--ro-bind", root, "/", "/bin/busybox"];
    if !available(&[&inside[..], &["true"]].concat()) {
        return;
    }
    let seen = command(
        &[
            &inside[..],
            &[
                "sh",
                "-c",
                "echo x >/etc/target; echo x >/etc/new; rm -f /etc/link; true",
            ],
        ]
        .concat(),
    );
    let erofs = Some(-libc::EROFS);
    assert_eq!(seen.one(op::OPEN, "/etc/target").predicted(), erofs);
    assert_eq!(seen.one(op::OPEN, "/etc/new").predicted(), erofs);
    assert_eq!(seen.one(op::UNLINK, "/etc/link").predicted(), erofs);
}

/// Changes of a mount, each to the opposite of what it was.
const REMOUNTS: usize = 12;

/// The facts that a child process needs. It makes system calls and nothing else.
struct Remounter {
    base: CString,
    file: CString,
    link: CString,
    /// The mount's other flags, which the owner of a namespace may not remove.
    flags: usize,
}

impl Remounter {
    fn new(base: &Path) -> Remounter {
        let c = |path: &Path| CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        let flags = rustix::fs::statvfs(base).unwrap().f_flag.bits() as usize;
        Remounter {
            base: c(base),
            file: c(&base.join("file")),
            link: c(&base.join("link")),
            flags: flags & (libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC) as usize,
        }
    }

    fn mount(&self, source: &CString, flags: usize) -> bool {
        let [source, target] = [source, &self.base].map(|text| text.as_ptr() as usize);
        call(libc::SYS_mount, [source, target, 0, flags, 0]) == 0
    }

    /// Makes a mount that no other process sees.
    fn ready(&self) -> bool {
        let alone = (libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize;
        call(libc::SYS_unshare, [alone, 0, 0, 0, 0]) == 0
            && self.mount(&self.base, libc::MS_BIND as usize)
    }

    fn remount(&self, readonly: bool) -> bool {
        let flags = (libc::MS_REMOUNT | libc::MS_BIND) as usize | self.flags;
        let readonly = if readonly {
            libc::MS_RDONLY as usize
        } else {
            0
        };
        self.mount(&self.base, flags | readonly)
    }

    /// The results of some calls that change a file: 0 or the errno of each.
    fn try_all(&self) -> [u8; 5] {
        let [file, link] = [&self.file, &self.link].map(|text| text.as_ptr() as usize);
        let opened = call(libc::SYS_open, [file, libc::O_WRONLY as usize, 0, 0, 0]);
        if opened >= 0 {
            // A mount in which a file is open for writing cannot become read-only.
            call(libc::SYS_close, [opened as usize, 0, 0, 0, 0]);
        }
        [
            opened,
            call(libc::SYS_chmod, [file, 0o600, 0, 0, 0]),
            call(libc::SYS_truncate, [file, 1, 0, 0, 0]),
            call(libc::SYS_unlink, [link, 0, 0, 0, 0]),
            call(
                libc::SYS_symlink,
                [c"file".as_ptr() as usize, link, 0, 0, 0],
            ),
        ]
        .map(|result| if result < 0 { -result as u8 } else { 0 })
    }

    fn run(&self, out: i32) {
        for round in 0..if self.ready() { REMOUNTS } else { 0 } {
            if !self.remount(round % 2 == 0) {
                return;
            }
            let came = self.try_all();
            call(
                libc::SYS_write,
                [out as usize, came.as_ptr() as usize, came.len(), 0, 0],
            );
        }
    }
}

/// Compares the conclusions about a mount that changes with the results. False if the machine does
/// not allow it.
fn conclusions_are_right_while_a_mount_changes() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(dir.path()).unwrap();
    std::fs::write(base.join("file"), "").unwrap();
    symlink("file", base.join("link")).unwrap();
    let seen = watch(move || {
        let remounter = Remounter::new(&base);
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        // SAFETY: the child makes system calls and ends, without unwinding.
        let child = match unsafe { libc::fork() } {
            0 => {
                remounter.run(theirs.as_raw_fd());
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) }
            }
            child => child,
        };
        drop(theirs);
        let mut came = Vec::new();
        ours.read_to_end(&mut came).unwrap();
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        (child as u32, came)
    });
    let (child, came) = &seen.result;
    if came.is_empty() {
        backstory_testkit::need::skipped("remounts in namespaces", "may not remount here");
        return false;
    }
    assert_eq!(came.len(), REMOUNTS * 5);
    assert_eq!(came[..2], [libc::EROFS as u8; 2], "{came:?}");
    assert_eq!(came[5..7], [0; 2], "{came:?}");
    let ops = [op::OPEN, op::META, op::TRUNCATE, op::UNLINK, op::SYMLINK];
    let of_child = seen.seen.iter().filter(|s| s.caller.pid == *child);
    let predicted = of_child
        .filter(|s| ops.contains(&s.record.op))
        .map(|s| s.predicted());
    let happened = came.iter().map(|errno| Some(-i32::from(*errno)));
    assert_eq!(predicted.collect::<Vec<_>>(), happened.collect::<Vec<_>>());
    true
}

#[test]
fn a_conclusion_uses_the_read_only_state_of_the_mount_at_the_call() {
    conclusions_are_right_while_a_mount_changes();
}

/// Mounts and unmounts as fast as it can in a namespace of its own, until it is dropped.
struct Mounter {
    child: libc::pid_t,
    _place: tempfile::TempDir,
}

impl Mounter {
    fn start() -> Mounter {
        let dir = tempfile::tempdir().unwrap();
        let place = Remounter::new(dir.path());
        // SAFETY: the child makes system calls and ends, without unwinding.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: the kernel ends this child with its parent.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let target = place.base.as_ptr() as usize;
                if place.ready() && call(libc::SYS_umount2, [target, 0, 0, 0, 0]) == 0 {
                    while place.mount(&place.base, libc::MS_BIND as usize) {
                        call(libc::SYS_umount2, [target, 0, 0, 0, 0]);
                    }
                }
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) }
            }
            child => Mounter { child, _place: dir },
        }
    }
}

impl Drop for Mounter {
    fn drop(&mut self) {
        // SAFETY: ends our own child and waits for it.
        unsafe {
            libc::kill(self.child, libc::SIGKILL);
            libc::waitpid(self.child, std::ptr::null_mut(), 0);
        }
    }
}

#[test]
fn a_mount_elsewhere_leaves_no_outcome_unknown() {
    let _mounter = Mounter::start();
    for _ in 0..20 {
        if !conclusions_are_right_while_a_mount_changes() {
            return;
        }
    }
}

#[test]
fn a_path_below_proc_self_is_the_callers() {
    let seen = command(&["/bin/cat", "/proc/self/comm"]);
    assert_eq!(seen.result.1, "cat\n");
    let open = seen.one(op::OPEN, "/proc/self/comm");
    assert_eq!(open.predicted(), Some(0));
    assert!(
        open.ident.is_some(),
        "the name alone would mean someone else's"
    );
}
