//! Directories that are renamed while descriptors and current directories lead to them.
#![allow(clippy::unwrap_used)]

use crate::common::{OUT, RDONLY, Scene, bytes, text};
use backstory_eventlog::event::{CWD, Event, Op, Outcome, Pid};

const O_PATH: i32 = 0o10_000_000;
const EXCHANGE: u32 = 2;

/// `openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC)`, which returns 9; then a write and a close.
fn writes_at(s: &mut Scene, pid: Pid, dir: i32, path: &str) {
    let open = Op::Open {
        dir,
        path: bytes(path),
        flags: OUT,
        mode: 0,
    };
    s.push(pid, Outcome::Done(9), open);
    s.write(pid, 9);
    s.close(pid, 9);
}

fn rename_with<'s>(s: &'s mut Scene, pid: Pid, from: &str, to: &str, flags: u32) -> &'s mut Event {
    let rename = Op::Rename {
        from_dir: CWD,
        from: bytes(from),
        to_dir: CWD,
        to: bytes(to),
        flags,
    };
    s.done(pid, rename)
}

/// The paths of the files that the graph has a written version of.
fn written(s: &Scene) -> Vec<String> {
    let graph = s.graph();
    let written = |relation| relation == backstory_graph::model::Relation::Write;
    let edges = graph.edges.iter().filter(|edge| written(edge.relation));
    let mut paths: Vec<String> = edges
        .map(|edge| text(&graph.entities[&edge.entity].path))
        .collect();
    paths.retain(|path| path.starts_with('/'));
    paths.sort();
    paths.dedup();
    paths
}

#[test]
fn a_file_opened_at_a_descriptor_of_a_renamed_directory_has_the_new_path() {
    for flags in [O_PATH, RDONLY] {
        let mut s = Scene::new(&["sh"]);
        s.open(2, "moved", flags, 3);
        s.rename(2, "moved", "moved2");
        writes_at(&mut s, 2, 3, "late");
        assert_eq!(written(&s), ["/w/moved2/late"]);
    }
}

#[test]
fn the_rename_of_a_parent_moves_the_directory_of_a_descriptor() {
    let mut s = Scene::new(&["sh"]);
    s.open(2, "top/sub", O_PATH, 3);
    s.rename(2, "top", "top2");
    writes_at(&mut s, 2, 3, "late");
    assert_eq!(written(&s), ["/w/top2/sub/late"]);
}

#[test]
fn an_exchange_moves_the_descriptors_of_both_directories() {
    let mut s = Scene::new(&["sh"]);
    s.open(2, "a", O_PATH, 3);
    s.open(2, "b", O_PATH, 4);
    rename_with(&mut s, 2, "a", "b", EXCHANGE);
    writes_at(&mut s, 2, 3, "of-a");
    writes_at(&mut s, 2, 4, "of-b");
    assert_eq!(written(&s), ["/w/a/of-b", "/w/b/of-a"]);
}

#[test]
fn a_current_directory_moves_when_another_process_renames_it() {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["worker"]);
    s.open(3, "moved", O_PATH, 3);
    let fchdir = Op::Chdir {
        fd: 3,
        path: bytes(""),
        now: bytes(""),
    };
    s.done(3, fchdir);
    s.rename(2, "moved", "moved2");
    writes_at(&mut s, 3, CWD, "late");
    assert_eq!(written(&s), ["/w/moved2/late"]);
}

#[test]
fn a_descriptor_passed_over_fork_and_exec_moves_with_its_directory() {
    let mut s = Scene::new(&["sh"]);
    s.open(2, "moved", O_PATH, 3);
    s.runs(2, 3, &["worker"]);
    s.rename(2, "moved", "moved2");
    writes_at(&mut s, 3, 3, "late");
    assert_eq!(written(&s), ["/w/moved2/late"]);
}

#[test]
fn fchdir_to_a_renamed_directory_leads_to_its_new_path() {
    let mut s = Scene::new(&["sh"]);
    s.open(2, "moved", O_PATH, 3);
    s.rename(2, "moved", "moved2");
    let fchdir = Op::Chdir {
        fd: 3,
        path: bytes(""),
        now: bytes(""),
    };
    s.done(2, fchdir);
    writes_at(&mut s, 2, CWD, "late");
    assert_eq!(written(&s), ["/w/moved2/late"]);
}

#[test]
fn a_descriptor_opened_through_a_link_moves_with_the_directory_behind_it() {
    let mut s = Scene::new(&["sh"]);
    s.symlink(2, "moved", "link");
    s.open(2, "link", O_PATH, 3);
    s.rename(2, "moved", "moved2");
    writes_at(&mut s, 2, 3, "late");
    assert_eq!(written(&s), ["/w/moved2/late"]);
}

#[test]
fn a_renamed_directory_is_reached_through_proc_by_its_new_path() {
    let mut s = Scene::new(&["sh"]);
    s.open(2, "moved", O_PATH, 3);
    s.rename(2, "moved", "moved2");
    writes_at(&mut s, 2, CWD, "/proc/self/fd/3/late");
    s.open(2, "/proc/self/fd/3", RDONLY, 4);
    writes_at(&mut s, 2, 4, "later");
    assert_eq!(written(&s), ["/w/moved2/late", "/w/moved2/later"]);
}

#[test]
fn a_descriptor_in_flight_over_a_socket_moves_with_its_directory() {
    let mut s = Scene::new(&["sh"]);
    let pair = Op::SocketPair {
        a: 5,
        b: 6,
        kind: 1,
    };
    s.done(2, pair);
    s.runs(2, 3, &["worker"]);
    s.open(2, "moved", O_PATH, 3);
    let pass = |socket, fd, received| Op::Pass {
        socket,
        fd,
        received,
    };
    s.done(2, pass(5, 3, false));
    s.rename(2, "moved", "moved2");
    s.done(3, pass(6, 7, true));
    writes_at(&mut s, 3, 7, "late");
    assert_eq!(written(&s), ["/w/moved2/late"]);
}

#[test]
fn a_directory_that_only_the_guard_saw_opened_was_possibly_listed() {
    const O_DIRECTORY: i32 = 0o200_000;
    for (flags, expected) in [(RDONLY | O_DIRECTORY, 1), (O_PATH | O_DIRECTORY, 0)] {
        let mut s = Scene::new(&["ls"]);
        s.kernel_open(2, "listed", flags);
        let graph = s.graph();
        let listings: Vec<_> = graph
            .edges
            .iter()
            .filter(|edge| edge.relation == backstory_graph::model::Relation::List)
            .map(|edge| edge.certainty)
            .collect();
        let possible = backstory_graph::model::Certainty::Possible;
        assert_eq!(listings, vec![possible; expected], "flags {flags:#o}");
    }
}

/// A directory that the run made had no files before. An open that may create a file created it.
#[test]
fn a_file_opened_first_in_a_directory_of_the_run_has_no_version_from_before_it() {
    for (made, versions) in [(true, vec![1]), (false, vec![0, 1])] {
        let mut s = Scene::new(&["sh"]);
        if made {
            let path = bytes("new");
            s.done(2, Op::Mkdir { dir: CWD, path });
        }
        const RDWR_CREAT: i32 = 0o102;
        s.open(2, "new/x", RDWR_CREAT, 3);
        s.read(2, 3);
        s.write(2, 3);
        s.close(2, 3);
        let graph = s.graph();
        let files = graph.entities.values();
        let mut found: Vec<u32> = files
            .filter(|entity| &*entity.path == b"/w/new/x")
            .map(|entity| entity.version)
            .collect();
        found.sort_unstable();
        assert_eq!(found, versions, "{made}");
    }
}

#[test]
fn a_path_below_a_descriptor_that_no_call_opened_is_reported_as_a_gap() {
    let reasons = |opened: bool| {
        let mut s = Scene::new(&["sh"]);
        if opened {
            s.open(2, "there", RDONLY, 3);
        }
        writes_at(&mut s, 2, 3, "file");
        s.graph().unknown
    };
    assert_eq!(reasons(true), Vec::<String>::new());
    let missing = reasons(false);
    assert!(
        missing.len() == 1 && missing[0].contains("directory descriptor that is not in the record"),
        "{missing:?}"
    );
}

#[test]
fn a_path_below_a_bad_descriptor_is_no_gap() {
    let mut s = Scene::new(&["sh"]);
    let open = Op::Open {
        dir: 3,
        path: bytes("file"),
        flags: RDONLY,
        mode: 0,
    };
    const EBADF: i32 = -9;
    s.push(2, Outcome::Done(EBADF), open);
    assert_eq!(s.graph().unknown, Vec::<String>::new());
}
