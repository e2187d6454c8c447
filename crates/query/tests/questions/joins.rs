//! Lineage over several runs, and finding the file that a path means.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use backstory_eventlog::run::RunHeader;
use backstory_files::{Digest, Ident};
use backstory_graph::model::*;
use backstory_query::answer::{Flow, Node, Scope};
use backstory_query::{ancestry, influence};
use backstory_store::Store;
use backstory_store::facts::{Availability, Fact, JournalPosition, JournalRecord};

use crate::graph::*;

fn all() -> Scope {
    Scope {
        possible: true,
        ..Scope::default()
    }
}

/// A run of `program` that reads and writes one file.
fn copy(
    store: &mut dyn Store,
    run: &str,
    at: i64,
    program: &str,
    from: (&str, Ident),
    to: (&str, Ident),
) {
    copied(at, program, from, to).append(store, run, at);
}

fn copied(at: i64, program: &str, from: (&str, Ident), to: (&str, Ident)) -> Graph {
    let mut graph = Graph::default();
    let p = graph.activity(None, 1, program, at);
    let (a, b) = (
        graph.file(from.0, 0, Some(from.1)),
        graph.file(to.0, 1, Some(to.1)),
    );
    graph.edge(p, a, Relation::Read, at + 1, at + 2);
    graph.edge(p, b, Relation::Write, at + 3, at + 4);
    graph
}

#[test]
fn a_clock_that_was_set_back_between_two_runs_parts_them_not() {
    const SECOND: i64 = 1_000_000_000;
    every_store(|store| {
        let (a, b, c) = (nowhere("a"), nowhere("b"), nowhere("c"));
        let made = 100 * SECOND + 4;
        let mut append = |run: &str, at: i64, since_boot, graph: Graph| {
            let header = RunHeader {
                since_boot,
                ..header(run, at)
            };
            graph.append_as(store, &header);
        };
        let (made, read) = (ident(2, made), 40 * SECOND);
        let one = copied(100 * SECOND, "/bin/one", (&a, ident(1, 50)), (&b, made));
        append("run00001", 100 * SECOND, 10 * SECOND, one);
        let two = copied(read, "/bin/two", (&b, made), (&c, ident(3, read + 4)));
        append("run00002", read, 20 * SECOND, two);
        let whole = ["a", "b", "b", "c", "one", "two"];
        assert_eq!(
            names(&ancestry(store, Path::new(&c), &all()).unwrap()),
            whole
        );
        assert_eq!(
            names(&influence(store, Path::new(&a), &all()).unwrap()),
            whole
        );
        let newest = backstory_query::runs(store).unwrap();
        assert_eq!(
            newest[0].id, "run00002",
            "the later one, whatever its clock said"
        );
    });
}

#[test]
fn a_version_read_in_one_run_is_the_one_written_in_another() {
    every_store(|store| {
        let (a, b, c) = (nowhere("a"), nowhere("b"), nowhere("c"));
        copy(
            store,
            "run00001",
            100,
            "/bin/one",
            (&a, ident(1, 50)),
            (&b, ident(2, 104)),
        );
        // Its status changed since, and an unrecorded process moved it.
        let moved = Ident {
            ctime: 150,
            nlink: 2,
            ..ident(2, 104)
        };
        copy(
            store,
            "run00002",
            200,
            "/bin/two",
            (&nowhere("moved"), moved),
            (&c, ident(3, 204)),
        );
        let lineage = ancestry(store, Path::new(&c), &all()).unwrap();
        assert_eq!(names(&lineage), ["a", "b", "c", "moved", "one", "two"]);
        let same = lineage.links.iter().find(|l| l.flow == Flow::Same).unwrap();
        assert_eq!(
            (
                name(&lineage.nodes[same.from]),
                name(&lineage.nodes[same.to])
            ),
            ("b".into(), "moved".into())
        );
        assert_eq!(
            names(&influence(store, Path::new(&a), &all()).unwrap()),
            names(&lineage)
        );
        let inside = Scope {
            run: Some("run00002".into()),
            ..all()
        };
        assert_eq!(
            names(&ancestry(store, Path::new(&c), &inside).unwrap()),
            ["c", "moved", "two"]
        );
    });
}

#[test]
fn another_version_of_the_same_inode_is_not_joined() {
    every_store(|store| {
        let (a, b, c) = (nowhere("a"), nowhere("b"), nowhere("c"));
        copy(
            store,
            "run00001",
            100,
            "/bin/one",
            (&a, ident(1, 50)),
            (&b, ident(2, 104)),
        );
        copy(
            store,
            "run00002",
            200,
            "/bin/two",
            (&b, ident(2, 150)),
            (&c, ident(3, 204)),
        );
        assert_eq!(
            names(&ancestry(store, Path::new(&c), &all()).unwrap()),
            ["b", "c", "two"]
        );
    });
}

#[test]
fn a_later_version_is_no_origin() {
    every_store(|store| {
        let (a, b, c) = (nowhere("a"), nowhere("b"), nowhere("c"));
        copy(
            store,
            "run00001",
            100,
            "/bin/one",
            (&b, ident(2, 50)),
            (&c, ident(3, 104)),
        );
        // The same identity, claimed by a run that wrote it after it was read.
        copy(
            store,
            "run00002",
            200,
            "/bin/two",
            (&a, ident(1, 40)),
            (&nowhere("late"), ident(2, 50)),
        );
        let lineage = ancestry(store, Path::new(&c), &all()).unwrap();
        assert!(
            !names(&lineage).contains(&"two".into()),
            "{:?}",
            names(&lineage)
        );
    });
}

/// The fact that a version has the content of this number.
fn has_content(ident: Ident, number: u64) -> JournalRecord {
    JournalRecord::Fact(Fact {
        ident,
        digest: Some(Digest([number as u8; 32])),
        availability: Availability::Missing(String::new()),
    })
}

/// A run makes ten files. Twelve later runs read copies of them, which no run made, and what the
/// run before has written. Every other run has copies that are older than the files.
#[test]
fn contents_that_many_runs_found_come_from_the_run_that_made_them_before() {
    const FILES: u64 = 10;
    const RUNS: u64 = 12;
    let large = |ino: u64, mtime: i64| Ident {
        size: 100,
        ..ident(ino, mtime)
    };
    let started = |run: u64| 2000 + 100 * run as i64;
    let output = |run: u64| ident(5000 + run, started(run) + 4);
    every_store(|store| {
        let (mut facts, mut expected) = (Vec::new(), BTreeSet::new());
        let mut graph = Graph::default();
        let maker = graph.activity(None, 1, "/bin/maker", 1000);
        for file in 0..FILES {
            let version = large(file + 1, 1004);
            let made = graph.file(&nowhere(&format!("made{file}")), 1, Some(version));
            graph.edge(maker, made, Relation::Write, 1003, 1004);
            facts.push(has_content(version, file));
        }
        graph.append(store, "maker", 1000);
        for run in 0..RUNS {
            let at = started(run);
            let mut graph = Graph::default();
            let user = graph.activity(None, 1, "/bin/user", at);
            if let Some(before) = run.checked_sub(1) {
                let path = nowhere(&format!("out{before}"));
                let read = graph.file(&path, 0, Some(output(before)));
                graph.edge(user, read, Relation::Read, at + 1, at + 2);
            }
            let modified = [500, 1500][run as usize % 2] + run as i64;
            for file in 0..FILES {
                let version = large(100 * (run + 1) + file, modified);
                let name = format!("copy{run}-{file}");
                let copy = graph.file(&nowhere(&name), 0, Some(version));
                graph.edge(user, copy, Relation::Read, at + 1, at + 2);
                facts.push(has_content(version, file));
                if modified > 1004 {
                    expected.insert((format!("made{file}"), name));
                }
            }
            let path = nowhere(&format!("out{run}"));
            let written = graph.file(&path, 1, Some(output(run)));
            graph.edge(user, written, Relation::Write, at + 3, at + 4);
            graph.append(store, &format!("run{run:05}"), at);
        }
        store
            .learn(&facts, JournalPosition::default(), false)
            .unwrap();
        let last = nowhere(&format!("out{}", RUNS - 1));
        let lineage = ancestry(store, Path::new(&last), &all()).unwrap();
        let alike = lineage.links.iter().filter(|link| link.flow == Flow::Alike);
        let found: BTreeSet<(String, String)> = alike
            .map(|link| {
                let [from, to] = [link.from, link.to].map(|node| name(&lineage.nodes[node]));
                (from, to)
            })
            .collect();
        assert_eq!(found, expected);
        assert!(names(&lineage).contains(&"maker".into()));
    });
}

#[test]
fn the_newest_version_of_a_path_is_meant() {
    every_store(|store| {
        let (a, b, c) = (nowhere("a"), nowhere("b"), nowhere("c"));
        copy(
            store,
            "run00001",
            100,
            "/bin/one",
            (&a, ident(1, 50)),
            (&c, ident(3, 104)),
        );
        copy(
            store,
            "run00002",
            200,
            "/bin/two",
            (&b, ident(2, 50)),
            (&c, ident(3, 204)),
        );
        assert_eq!(
            names(&ancestry(store, Path::new(&c), &all()).unwrap()),
            ["b", "c", "two"]
        );
        let older = Scope {
            run: Some("run00001".into()),
            ..all()
        };
        assert_eq!(
            names(&ancestry(store, Path::new(&c), &older).unwrap()),
            ["a", "c", "one"]
        );
    });
}

#[test]
fn uses_reports_results_of_all_runs() {
    every_store(|store| {
        let a = nowhere("a");
        copy(
            store,
            "run00001",
            100,
            "/bin/one",
            (&a, ident(1, 50)),
            (&nowhere("b"), ident(2, 104)),
        );
        copy(
            store,
            "run00002",
            200,
            "/bin/two",
            (&a, ident(1, 50)),
            (&nowhere("c"), ident(3, 204)),
        );
        let lineage = influence(store, Path::new(&a), &all()).unwrap();
        assert_eq!(names(&lineage), ["a", "a", "b", "c", "one", "two"]);
        assert_eq!(lineage.roots, 2);
        assert!(matches!(&lineage.nodes[0], Node::Entity { run, .. } if run == "run00002"));
    });
}

fn real(path: &Path) -> Ident {
    let m = fs::metadata(path).unwrap();
    Ident {
        dev: m.dev(),
        ino: m.ino(),
        size: m.size() as i64,
        mtime: m.mtime() * 1_000_000_000 + m.mtime_nsec(),
        ctime: m.ctime() * 1_000_000_000 + m.ctime_nsec(),
        birth: 0,
        mode: m.mode(),
        nlink: m.nlink() as u32,
    }
}

#[test]
fn a_file_that_was_moved_or_is_reached_by_a_link_is_still_known() {
    every_store(|store| {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().canonicalize().unwrap();
        let (old, new, link) = (dir.join("old"), dir.join("new"), dir.join("link"));
        fs::write(&old, "content").unwrap();
        let known = real(&old);
        let input = nowhere("input");
        copy(
            store,
            "run00001",
            1,
            "/bin/one",
            (&input, ident(1, 0)),
            (old.to_str().unwrap(), known),
        );
        fs::rename(&old, &new).unwrap();
        std::os::unix::fs::symlink("new", &link).unwrap();
        for path in [&new, &link] {
            assert_eq!(
                names(&ancestry(store, path, &all()).unwrap()),
                ["input", "old", "one"],
                "{path:?}"
            );
        }
        // The path has no file any more, but the last file there is known by its name.
        fs::remove_file(&new).unwrap();
        assert_eq!(
            names(&ancestry(store, &old, &all()).unwrap()),
            ["input", "old", "one"]
        );
    });
}
