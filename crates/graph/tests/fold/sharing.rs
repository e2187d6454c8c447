//! The state that processes and threads share and stop sharing: the current directory and the
//! descriptor table. Also the paths of `/proc` that lead into both.
#![allow(dead_code, clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::event::{CWD, Op, Outcome, Pid};

const CLONE_FS: u32 = 0x200;
const CLONE_FILES: u32 = 0x400;
const O_PATH: i32 = 0o10_000_000;

fn clone(s: &mut Scene, pid: Pid, child: Pid, flags: u32) {
    let spawn = None;
    s.push(pid, Outcome::Done(child as i32), Op::Fork { flags, spawn });
}

fn chdir(s: &mut Scene, pid: Pid, path: &str) {
    let (path, now) = (bytes(path), bytes(""));
    s.done(pid, Op::Chdir { fd: CWD, path, now });
}

/// Asserts that the graph as text contains all of `true_ones` and none of `wrong`.
fn holds(s: &Scene, true_ones: &[&str], wrong: &[&str]) {
    let told = told(&s.graph());
    for one in true_ones {
        assert!(told.contains(one), "{one} is not in {told}");
    }
    for one in wrong {
        assert!(!told.contains(one), "{one} is in {told}");
    }
}

#[test]
fn a_child_that_shares_its_parents_directory_moves_it() {
    let mut s = Scene::new(&["tool"]);
    clone(&mut s, 2, 3, CLONE_FS);
    chdir(&mut s, 3, "d");
    s.reads(2, "x");
    holds(&s, &["Read d/x@0"], &["Read x"]);
}

#[test]
fn a_child_with_a_copy_of_its_parents_directory_moves_only_its_own() {
    let mut s = Scene::new(&["tool"]);
    clone(&mut s, 2, 3, 0);
    chdir(&mut s, 3, "d");
    s.reads(2, "x");
    s.reads(3, "y");
    holds(&s, &["Read x@0", "Read d/y@0"], &[]);
}

#[test]
fn a_thread_that_unshares_its_directory_has_its_own() {
    let mut s = Scene::new(&["tool"]);
    chdir(&mut s, 2, "d");
    s.done(2, Op::Namespace { flags: CLONE_FS }).tid = 7;
    let (path, now) = (bytes(".."), bytes(""));
    s.done(2, Op::Chdir { fd: CWD, path, now }).tid = 7;
    s.reads(2, "first");
    s.open(2, "other", RDONLY, 8).tid = 7;
    s.read(2, 8).tid = 7;
    holds(&s, &["Read d/first@0", "Read other@0"], &["Read first"]);
}

#[test]
fn a_thread_that_executes_takes_its_directory_with_it() {
    let mut s = Scene::new(&["tool"]);
    s.done(2, Op::Namespace { flags: CLONE_FS }).tid = 7;
    let (path, now) = (bytes("d"), bytes(""));
    s.done(2, Op::Chdir { fd: CWD, path, now }).tid = 7;
    s.exec(2, "/bin/cat", &["cat"]).tid = 7;
    s.start(2, 1, false);
    s.reads(2, "x");
    holds(&s, &["Read d/x@0"], &["Read x"]);
}

#[test]
fn a_shared_working_directory_is_moved_once_by_a_rename() {
    let mut s = Scene::new(&["tool"]);
    chdir(&mut s, 2, "/w/d");
    clone(&mut s, 2, 3, CLONE_FS);
    s.rename(2, "/w/d", "/w/e");
    s.reads(3, "x");
    holds(&s, &["Read e/x@0"], &[]);
}

#[test]
fn a_descriptor_is_usable_by_all_threads_that_share_the_table() {
    let mut s = Scene::new(&["tool"]);
    clone(&mut s, 2, 3, CLONE_FILES);
    s.open(3, "in", RDONLY, 5);
    s.read(2, 5);
    s.close(2, 5);
    // The descriptor is closed for both, so the next one with its number is another.
    s.open(2, "other", RDONLY, 5);
    s.read(3, 5);
    let told = told(&s.graph());
    let readers = |name: &str| {
        told.lines()
            .filter(|l| l.contains(&format!("Read {name}@0")))
            .count()
    };
    assert_eq!((readers("in"), readers("other")), (2, 2), "{told}");
}

#[test]
fn a_file_reopened_by_its_descriptor_is_the_same_file() {
    let mut s = Scene::new(&["tool"]);
    s.open(2, "a", O_PATH, 3);
    s.open(2, "/proc/self/fd/3", RDONLY, 4);
    s.read(2, 4);
    s.open(2, "d", O_PATH | 0o200_000, 5);
    s.open(2, "/proc/thread-self/fd/5/x", OUT, 6);
    s.write(2, 6);
    s.reads(2, "/dev/fd/5/y");
    chdir(&mut s, 2, "/w/e");
    s.reads(2, "/proc/self/cwd/z");
    let right = ["Read a@0", "Write d/x@", "Read d/y@0", "Read e/z@0"];
    holds(&s, &right, &["/proc/", "/dev/fd"]);
}

#[test]
fn a_link_that_is_read_by_its_descriptor_is_a_link() {
    let mut s = Scene::new(&["tool"]);
    s.open(2, "soft", O_PATH | 0o400_000, 3);
    let path = bytes("");
    s.push(2, Outcome::Done(1), Op::Readlink { dir: 3, path });
    holds(&s, &["Link soft"], &[]);
}
