//! Files have the names they have outside, however a process is shown them.
#![allow(dead_code, clippy::unwrap_used)]

mod common;

use backstory_eventlog::event::{CWD, Meta, Op};
use common::*;

const BIND: u32 = 0x1000;

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

/// Another root, as container tools make it: the old one is shown in it, then all of it is bound to where the new root will be.
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
            what: Meta::Times,
            link: true,
        },
    );
    let told = told(&s.graph());
    assert!(told.contains("Meta l@") && !told.contains("Meta a@"), "{told}");
}
