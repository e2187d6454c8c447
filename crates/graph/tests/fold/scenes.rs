//! Small named scenes and the graph of each. Those here are about the versions of files.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod channels;
mod links;
mod processes;

use crate::common::*;
use backstory_eventlog::Reason;
use backstory_eventlog::event::{CWD, MetadataPart, Op, Outcome};
use backstory_files::Ident;
use backstory_graph::lineage::Follow;

fn check(scene: &Scene, expected: &str) {
    let graph = scene.graph();
    let expected: Vec<&str> = expected
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let told = told(&graph);
    assert_eq!(told.lines().collect::<Vec<_>>(), expected, "\n{told}\n");
}

#[test]
fn cp_reads_one_file_and_writes_the_other() {
    let mut s = Scene::new(&["cp", "a", "b"]);
    s.open(2, "a", RDONLY, 3);
    s.open(2, "b", OUT, 4);
    s.read(2, 3);
    s.write(2, 4);
    s.close(2, 3);
    s.close(2, 4);
    check(
        &s,
        "cp#1 Read a@0
         cp#1 Write b@1",
    );
    let graph = s.graph();
    assert_eq!(
        graph.activities.len(),
        1,
        "the command is one activity: {:?}",
        graph.activities
    );
    let cp = graph.activities.values().next().unwrap();
    assert_eq!(cp.exec_path.as_deref(), Some(&b"/bin/cp"[..]));
    assert_eq!((cp.epoch, cp.exit, cp.parent), (1, Some(0), None));
}

#[test]
fn a_replaced_file_comes_from_the_temporary_one() {
    let mut s = Scene::new(&["sed", "-i"]);
    s.reads(2, "a");
    s.writes(2, "tmp", WRONLY | CREAT | EXCL);
    s.rename(2, "tmp", "a");
    s.runs(2, 3, &["cat"]);
    s.reads(3, "a");
    check(
        &s,
        "a@2 from tmp@1
         cat#1 Read a@2
         sed#1 Delete tmp@1
         sed#1 Fork cat#1
         sed#1 Read a@0
         sed#1 Rename a@2
         sed#1 Write tmp@1",
    );
    assert_eq!(
        came_from(&s.graph(), "/w/a", Follow::default()),
        ["a@0", "tmp@1"]
    );
}

#[test]
fn an_appended_file_derives_from_its_former_version() {
    let mut s = Scene::new(&["tee", "-a"]);
    s.writes(2, "log", WRONLY | CREAT | APPEND);
    check(
        &s,
        "log@1 from log@0
         tee#1 Write log@1",
    );
}

#[test]
fn a_truncated_file_does_not_derive_from_its_former_version() {
    let mut s = Scene::new(&["sh"]);
    s.reads(2, "log");
    s.writes(2, "log", OUT);
    let graph = s.graph();
    assert!(graph.derived.is_empty());
    let newest = graph.newest(b"/w/log").unwrap();
    assert_eq!(newest.version, 1);
    assert_eq!(entity(&graph, newest.previous.unwrap()), "log@0");
}

#[test]
fn a_file_truncated_without_o_creat_existed_before() {
    let mut s = Scene::new(&["dd"]);
    s.writes(2, "there", WRONLY | TRUNC);
    s.writes(2, "made", OUT);
    let graph = s.graph();
    assert!(graph.derived.is_empty(), "nothing comes from what it held");
    let before = |path: &str| {
        let newest = graph.newest(path.as_bytes()).unwrap();
        newest.previous.map(|id| entity(&graph, id))
    };
    assert_eq!(
        (before("/w/there").as_deref(), before("/w/made")),
        (Some("there@0"), None)
    );
}

#[test]
fn a_read_after_a_write_did_not_flow_into_it() {
    // A writes g, B reads g and writes h, A reads h. The programs form a cycle, but no path in time
    // does.
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["A"]);
    s.runs(2, 4, &["B"]);
    s.reads(3, "x");
    s.writes(3, "g", OUT);
    s.reads(4, "g");
    s.writes(4, "h", OUT);
    s.reads(3, "h");
    let graph = s.graph();
    assert_eq!(came_from(&graph, "/w/g", Follow::default()), ["x@0"]);
    assert_eq!(came_from(&graph, "/w/h", Follow::default()), ["g@1", "x@0"]);
}

#[test]
fn the_only_possible_writer_of_a_changed_file_wrote_it() {
    let mut s = Scene::new(&["prog"]);
    let before = ident(7, START - STEP, START - STEP);
    s.open(2, "db", RDWR, 3).ident = Some(before);
    let changed = s.time;
    s.close(2, 3).ident = Some(ident(7, START - STEP, changed));
    let same = ident(8, START - STEP, START - STEP);
    s.open(2, "idle", RDWR, 3).ident = Some(same);
    s.close(2, 3).ident = Some(same);
    check(
        &s,
        "db@1 from db@0
         idle@1 from idle@0
         prog#1 Read? db@0
         prog#1 Read? db@1
         prog#1 Read? idle@0
         prog#1 Read? idle@1
         prog#1 Write db@1
         prog#1 Write? idle@1",
    );
}

#[test]
fn a_file_that_did_not_change_until_the_end_was_not_written() {
    let mut s = Scene::new(&["prog"]);
    let idle = ident(7, START - STEP, START - STEP);
    s.open(2, "idle", RDWR, 3).ident = Some(idle);
    s.close(2, 3).ident = Some(idle);
    // Another file is at this path after the run.
    let moved = ident(8, START - STEP, START - STEP);
    s.open(2, "moved", RDWR, 3).ident = Some(moved);
    s.close(2, 3).ident = Some(moved);
    let other = ident(9, START - STEP, START - STEP);
    // A call that was seen counts, whatever the file system says.
    let still = ident(10, START - STEP, START - STEP);
    s.open(2, "still", RDWR, 3).ident = Some(still);
    s.write(2, 3);
    s.close(2, 3).ident = Some(still);
    let files = [("idle", idle), ("moved", other), ("still", still)];
    let files = files.map(|(name, ident)| (format!("/w/{name}").into_bytes(), ident));
    s.after = Some(After {
        files: files.into(),
        ..After::default()
    });
    check(
        &s,
        "moved@1 from moved@0
         prog#1 Read? idle@0
         prog#1 Read? moved@0
         prog#1 Read? moved@1
         prog#1 Read? still@0
         prog#1 Read? still@1
         prog#1 Write still@1
         prog#1 Write? moved@1
         still@1 from still@0",
    );
}

/// A file in memory (tmpfs) keeps its times.
#[test]
fn a_mapping_writes_another_version_although_the_times_stay() {
    let mut s = Scene::new(&["prog"]);
    let still = ident(7, START - STEP, START - STEP);
    s.open(2, "still", RDWR, 3).ident = Some(still);
    let (fd, prot, flags) = (3, 3, 1);
    s.done(2, Op::Map { fd, prot, flags });
    s.close(2, 3).ident = Some(still);
    s.after = Some(After {
        files: [(b"/w/still".to_vec(), still)].into(),
        ..After::default()
    });
    let told = told(&s.graph());
    assert!(told.contains("prog#1 Write still@1"), "{told}");
    assert!(told.contains("still@1 from still@0"), "{told}");
    assert!(!told.contains("Write still@0"), "{told}");
}

#[test]
fn a_program_without_a_recorder_may_have_written_a_file_that_did_not_change() {
    let mut s = Scene::new(&["sh"]);
    let still = ident(7, START - STEP, START - STEP);
    s.fork(2, 3);
    s.exec(3, "/bin/static", &["static"]);
    s.kernel_open(3, "/w/still", RDWR).ident = Some(still);
    s.after = Some(After {
        files: [(b"/w/still".to_vec(), still)].into(),
        ..After::default()
    });
    let told = told(&s.graph());
    assert!(told.contains("static#1 Write? still@"), "{told}");
}

/// `fdatasync` makes a content durable, and not always the times of its file.
#[test]
fn a_file_with_the_times_of_before_may_be_written_if_the_machine_crashed() {
    let mut s = Scene::new(&["prog"]);
    let idle = ident(7, START - STEP, START - STEP);
    s.open(2, "idle", RDWR, 3).ident = Some(idle);
    s.close(2, 3).ident = Some(idle);
    s.after = Some(After {
        files: [(b"/w/idle".to_vec(), idle)].into(),
        ..After::default()
    });
    let mut end = s.end();
    end.incomplete_because = vec![Reason::NoEnd {}.to_string()];
    let graph = folded(&s.header, &end, &s.events, s.after.as_ref());
    let told = told(&graph);
    assert!(told.contains("prog#1 Write? idle@1"), "{told}");
}

/// Adds `utimensat(path)`. `before` is the identity that the file had before the call.
fn dates(s: &mut Scene, path: &str, before: Option<Ident>) {
    let op = Op::Meta {
        dir: CWD,
        path: bytes(path),
        what: MetadataPart::Times,
        link: false,
    };
    s.done(2, op).ident = before;
}

#[test]
fn new_times_of_a_file_from_before_the_run_make_another_version() {
    let mut s = Scene::new(&["sh"]);
    dates(&mut s, "a", None);
    s.reads(2, "a");
    check(
        &s,
        "a@1 from a@0
         sh#1 Meta a@1
         sh#1 Read a@1",
    );
}

#[test]
fn new_times_of_a_file_that_the_run_wrote_belong_to_the_written_version() {
    let mut s = Scene::new(&["sh"]);
    s.writes(2, "a", WRONLY | CREAT | TRUNC);
    dates(&mut s, "a", None);
    check(
        &s,
        "sh#1 Meta a@1
         sh#1 Write a@1",
    );
}

#[test]
fn two_writers_at_once_share_a_version() {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["A"]);
    s.runs(2, 4, &["B"]);
    s.open(3, "f", OUT, 3);
    s.open(4, "f", WRONLY, 3);
    s.write(4, 3);
    s.write(3, 3);
    s.close(3, 3);
    s.close(4, 3);
    s.writes(2, "f", WRONLY);
    check(
        &s,
        "A#1 Write f@1
         B#1 Write f@1
         f@2 from f@1
         sh#1 Fork A#1
         sh#1 Fork B#1
         sh#1 Write f@2",
    );
}

#[test]
fn a_file_that_does_not_exist_is_missing() {
    let mut s = Scene::new(&["cc"]);
    let open = Op::Open {
        dir: CWD,
        path: bytes("inc/../x.h"),
        flags: RDONLY,
        mode: 0,
    };
    s.push(2, Outcome::Done(-2), open);
    s.push(
        2,
        Outcome::Done(-2),
        Op::Stat {
            dir: CWD,
            path: bytes("y.h"),
            flags: 0,
        },
    );
    s.push(
        2,
        Outcome::Done(-13),
        Op::Access {
            dir: CWD,
            path: bytes("z.h"),
            mode: 4,
        },
    );
    check(
        &s,
        "cc#1 Missing x.h@0
         cc#1 Missing y.h@0
         cc#1 Stat z.h@0",
    );
}

#[test]
fn the_final_state_is_read_once_and_only_for_paths_that_content_flows_through() {
    struct Listener(std::cell::RefCell<Vec<(String, bool)>>);
    impl backstory_graph::FinalState for Listener {
        fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
            self.0.borrow_mut().push((text(path), follow));
            None
        }
    }
    let mut s = Scene::new(&["cp"]);
    for path in ["looked", "a"] {
        let (dir, path, flags) = (CWD, bytes(path), 0);
        s.push(2, Outcome::Done(0), Op::Stat { dir, path, flags });
    }
    s.reads(2, "a");
    s.reads(2, "/w/./a");
    let listener = Listener(Default::default());
    let (mut sink, end) = (backstory_graph::memory::NullSink, s.end());
    let Ok(()) = backstory_graph::fold(
        &s.header,
        Some(&end),
        s.events.iter().cloned(),
        &listener,
        &mut sink,
    );
    let asked = listener.0.into_inner();
    assert!(!asked.iter().any(|(p, _)| p == "/w/looked"), "{asked:?}");
    let a: Vec<_> = asked
        .iter()
        .filter(|(p, follow)| p == "/w/a" && *follow)
        .collect();
    assert_eq!(a.len(), 1, "{asked:?}");
    let mut unique = asked.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), asked.len());
}
