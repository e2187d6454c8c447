//! Paths mean what they mean to the caller: under another root, in another mount namespace.

use crate::stage::{available, command};
use backstory_abi::op;
use std::os::unix::fs::{MetadataExt, symlink};

/// A directory to be used as a root: a static shell, and an absolute link that leads elsewhere than in ours.
fn jail() -> Option<tempfile::TempDir> {
    if !available(&["/bin/busybox", "true"]) {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    std::fs::copy("/bin/busybox", dir.path().join("bin/busybox")).unwrap();
    std::fs::write(dir.path().join("etc/target"), "inside").unwrap();
    symlink("/etc/target", dir.path().join("etc/link")).unwrap();
    Some(dir)
}

#[test]
fn in_a_chroot_an_absolute_link_stays_inside() {
    let Some(dir) = jail() else { return };
    let root = std::fs::canonicalize(dir.path()).unwrap();
    let root = root.to_str().unwrap();
    if !available(&["/bin/busybox", "chroot", root, "/bin/busybox", "true"]) {
        return;
    }
    let script = "/bin/busybox cat /etc/link; cd /etc; /bin/busybox cat target /missing ../../etc/target";
    let seen = command(&["/bin/busybox", "chroot", root, "/bin/busybox", "sh", "-c", script]);
    assert!(seen.result.1.contains("insideinside"), "{}", seen.result.1);
    assert_eq!(
        seen.one(op::OPEN, &format!("{root}/etc/link")).predicted(),
        Some(0)
    );
    assert_eq!(
        seen.one(op::OPEN, &format!("{root}/etc/target")).predicted(),
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
    let ino = std::fs::metadata(dir.path().join("etc/target")).unwrap().ino();
    let link = seen.one(op::OPEN, "/etc/link");
    assert_eq!(link.predicted(), Some(0));
    assert_eq!(link.ident.map(|i| i.ino), Some(ino));
    // Ours has that file, the sandbox has not.
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
    let script =
        format!("mount -t tmpfs none {etc} && /bin/busybox cat {etc}/target; echo x >{etc}/new; true");
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

#[test]
fn proc_self_is_the_callers() {
    let seen = command(&["/bin/cat", "/proc/self/comm"]);
    assert_eq!(seen.result.1, "cat\n");
    let open = seen.one(op::OPEN, "/proc/self/comm");
    assert_eq!(open.predicted(), Some(0));
    assert!(open.ident.is_some(), "the name alone would mean someone else's");
}
