//! A file has the name that it has outside, whichever mounts a process sees.
#![allow(dead_code, clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::event::{CWD, MetadataPart, Op, Outcome};

const BIND: u32 = 0x1000;
/// `O_PATH`.
const PATH: i32 = 0o10_000_000;

fn mount(s: &mut Scene, pid: u32, source: &str, target: &str, flags: u32) {
    s.done(
        pid,
        Op::Mount {
            source: bytes(source),
            target: bytes(target),
            unmounted: false,
            flags,
        },
    );
}

/// Changes the root as container tools do. The old root is shown in the new one, and then the whole
/// is bound to the future position of the new root.
fn contained(s: &mut Scene, pid: u32) {
    s.done(pid, Op::Namespace { flags: 0x20000 });
    mount(s, pid, "tmpfs", "/tmp", 0);
    s.done(
        pid,
        Op::Pivot {
            new_root: bytes("/tmp"),
            put_old: bytes("/tmp/oldroot"),
        },
    );
    mount(s, pid, "/oldroot/", "/newroot/", BIND);
    s.done(
        pid,
        Op::Pivot {
            new_root: bytes("/newroot"),
            put_old: bytes("/newroot"),
        },
    );
}

#[test]
fn a_file_read_in_a_container_is_the_file_outside() {
    let mut s = Scene::new(&["tool"]);
    s.fork(2, 3);
    contained(&mut s, 3);
    s.reads(3, "/data/a");
    let told = told(&s.graph());
    assert!(
        told.contains("Read /data/a@0") && !told.contains("newroot"),
        "{told}"
    );
}

/// bubblewrap does so since version 0.11: it binds `/proc/self/fd/6` to `/proc/self/fd/5`, in a
/// root where `/proc` is a bind itself.
#[test]
fn a_bind_between_open_descriptors_joins_their_directories() {
    let mut s = Scene::new(&["tool"]);
    s.fork(2, 3);
    s.done(3, Op::Namespace { flags: 0x20000 });
    mount(&mut s, 3, "tmpfs", "/tmp", 0);
    s.done(
        3,
        Op::Pivot {
            new_root: bytes("/tmp"),
            put_old: bytes("/tmp/oldroot"),
        },
    );
    mount(&mut s, 3, "/oldroot/proc", "/proc", BIND);
    s.open(3, "/newroot", PATH, 5);
    s.open(3, "/oldroot/", PATH, 6);
    mount(&mut s, 3, "/proc/self/fd/6", "/proc/self/fd/5", BIND);
    s.done(
        3,
        Op::Pivot {
            new_root: bytes("/newroot"),
            put_old: bytes("/newroot"),
        },
    );
    s.reads(3, "/data/a");
    let told = told(&s.graph());
    assert!(told.contains("Read /data/a@0"), "{told}");
}

#[test]
fn a_bind_counts_only_in_its_own_namespace() {
    let mut s = Scene::new(&["tool"]);
    s.fork(2, 3);
    s.done(3, Op::Namespace { flags: 0x20000 });
    mount(&mut s, 3, "/data", "/shown", BIND);
    s.reads(3, "/shown/a");
    s.reads(2, "/shown/b");
    let told = told(&s.graph());
    assert!(
        told.contains("Read /data/a@0") && told.contains("Read /shown/b@0"),
        "{told}"
    );
}

#[test]
fn an_undone_bind_shows_nothing() {
    let mut s = Scene::new(&["tool"]);
    mount(&mut s, 2, "/data", "/shown", BIND);
    s.done(
        2,
        Op::Mount {
            source: bytes(""),
            target: bytes("/shown"),
            unmounted: true,
            flags: 0,
        },
    );
    s.reads(2, "/shown/a");
    let told = told(&s.graph());
    assert!(told.contains("Read /shown/a@0"), "{told}");
}

#[test]
fn a_links_own_times_are_not_those_of_its_target() {
    let mut s = Scene::new(&["cp"]);
    s.symlink(2, "a", "l");
    s.done(
        2,
        Op::Meta {
            dir: CWD,
            path: bytes("l"),
            what: MetadataPart::Times,
            link: true,
        },
    );
    let told = told(&s.graph());
    assert!(
        told.contains("Meta l@") && !told.contains("Meta a@"),
        "{told}"
    );
}

/// runc changes the root in this manner, with paths that only the kernel resolves. The new root is
/// put over the old one, which is then unmounted below it.
#[test]
fn kernel_facts_in_a_container_are_named_as_outside() {
    let mut s = Scene::new(&["tool"]);
    s.fork(2, 3);
    let (path, now) = (bytes("/w/rootfs"), bytes("/w/rootfs"));
    s.kernel(3, Outcome::Done(0), Op::Chdir { fd: CWD, path, now });
    let (new_root, put_old) = (bytes("/w/rootfs"), bytes("/w/rootfs"));
    s.kernel(3, Outcome::Unknown, Op::Pivot { new_root, put_old });
    let (path, now) = (bytes("/"), bytes("/"));
    s.kernel(3, Outcome::Done(0), Op::Chdir { fd: CWD, path, now });
    let (source, target) = (bytes(""), bytes("/"));
    let (unmounted, flags) = (true, 0);
    let gone = Op::Mount {
        source,
        target,
        unmounted,
        flags,
    };
    s.kernel(3, Outcome::Unknown, gone);
    s.kernel_open(3, "/in", RDONLY);
    s.kernel_open(3, "/made", OUT);
    s.kernel_open(2, "/w/other", RDONLY);
    s.fork(3, 4);
    s.kernel_open(4, "/deeper/in", RDONLY);
    let held = |fd, flags, target| Op::HeldDescriptor {
        fd,
        flags: Some(flags),
        target: bytes(target),
    };
    s.kernel(4, Outcome::Done(1), held(-1, 0, ""));
    s.kernel(4, Outcome::Done(0), held(1, WRONLY, "/made"));
    let told = told(&s.graph());
    for name in [
        "Read rootfs/in@0",
        "Write rootfs/made@",
        "Read rootfs/deeper/in@0",
        "Read other@0",
    ] {
        assert!(told.contains(name), "{name}: {told}");
    }
    assert!(!told.contains(" /made"), "{told}");
}
