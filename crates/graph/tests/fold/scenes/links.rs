//! Scenes of symbolic links, hard links and renamed directories.

use super::check;
use crate::common::*;
use backstory_eventlog::event::{CWD, MetadataPart, Op, Outcome};
use backstory_files::Ident;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{ByName, Entity, EntityKind, Relation};

#[test]
fn a_symbolic_link_is_another_name_for_its_target() {
    let mut s = Scene::new(&["sh"]);
    s.symlink(2, "real", "alias");
    s.writes(2, "alias", OUT);
    s.reads(2, "real");
    check(
        &s,
        "sh#1 Make alias@1
         sh#1 Read real@1
         sh#1 Write real@1",
    );
    let graph = s.graph();
    assert_eq!(&*graph.newest(b"/w/real").unwrap().aliases[0], b"/w/alias");
}

#[test]
fn an_older_link_is_known_by_the_identity_behind_it() {
    let mut s = Scene::new(&["sh"]);
    s.writes(2, "real", WRONLY);
    s.reads(2, "alias");
    let file = ident(7, START - STEP, s.at(4));
    let mut link = ident(8, START - STEP, START - STEP);
    link.mode = 0o120_777;
    let files = [(b"/w/real".to_vec(), file), (b"/w/alias".to_vec(), file)];
    s.after = Some(After {
        files: files.into(),
        links: [(b"/w/alias".to_vec(), link)].into(),
        ..After::default()
    });
    check(
        &s,
        "real@1 from real@0
         sh#1 Read real@1
         sh#1 Write real@1",
    );
}

#[test]
fn hard_links_share_the_written_content() {
    let mut s = Scene::new(&["sh"]);
    s.link(2, "a", "b");
    s.writes(2, "b", WRONLY | APPEND);
    s.reads(2, "a");
    check(
        &s,
        "a@1 from b@1
         b@0 from a@0
         b@1 from a@0
         sh#1 Make b@0
         sh#1 Meta a@0
         sh#1 Read a@1
         sh#1 Write b@1",
    );
}

#[test]
fn a_renamed_directory_takes_files_and_directories_in_use_along() {
    let mut s = Scene::new(&["sh"]);
    s.done(
        2,
        Op::Mkdir {
            dir: CWD,
            path: bytes("d"),
        },
    );
    s.open(2, "d", RDONLY, 3);
    s.writes(2, "d/x", OUT);
    s.rename(2, "d", "e");
    s.push(
        2,
        Outcome::Done(4),
        Op::Open {
            dir: 3,
            path: bytes("x"),
            flags: RDONLY,
            mode: 0,
        },
    );
    s.close(2, 4);
    check(
        &s,
        "e/x@2 from d/x@1
         e@2 from d@1
         sh#1 Delete d@1
         sh#1 Make d@1
         sh#1 Read e/x@2
         sh#1 Rename e@2
         sh#1 Stat e@2
         sh#1 Write d/x@1",
    );
}

/// The state after a run that left a link at `e`, with this time stamp. The link's target is older
/// than the run.
fn link_at_e(stamp: i64) -> Option<After> {
    let mut after = After::default();
    let link = ident(8, stamp, stamp);
    let mode = 0o120_777;
    after.links.insert(b"/w/e".to_vec(), Ident { mode, ..link });
    let old = START - 9 * STEP;
    after.files.insert(b"/w/e".to_vec(), ident(9, old, old));
    Some(after)
}

/// The only version of `e` that is older than the run.
fn first_e(graph: &MemorySink) -> &Entity {
    let is_first = |e: &&Entity| *e.path == *b"/w/e" && e.version == 0;
    let mut all = graph.entities.values().filter(is_first);
    let (first, other) = (all.next().unwrap(), all.next());
    assert!(other.is_none(), "{other:?}");
    first
}

/// The clock of the file system's times is behind. So the link seems to be older than the last use
/// of the file at its place.
#[test]
fn a_link_that_replaces_a_file_in_the_same_tick_tells_nothing_of_the_file() {
    let mut s = Scene::new(&["sh"]);
    s.reads(2, "e");
    let opened = s.time - 2 * STEP;
    s.symlink(2, "c", "new");
    s.rename(2, "new", "e");
    s.after = link_at_e(opened - 1_000_000);
    assert_eq!(first_e(&s.graph()).ident, None, "not that of the target");
    let mut s = Scene::new(&["sh"]);
    s.reads(2, "e");
    s.unlink(2, "e");
    s.after = link_at_e(s.time - 1_000_000);
    s.symlink(2, "c", "e");
    let graph = s.graph();
    assert_eq!(
        first_e(&graph).kind,
        EntityKind::File,
        "the file was removed, no link"
    );
}

/// The run takes less than a tick, so the link seems to be older than the run.
#[test]
fn a_file_that_was_read_through_one_link_and_replaced_by_another_was_read_by_both_names() {
    let mut s = Scene::new(&["sh"]);
    s.symlink(2, "e", "c");
    s.reads(2, "c");
    s.symlink(2, "c", "new");
    s.rename(2, "new", "e");
    s.after = link_at_e(START + 1);
    s.quiet = START + 1;
    let graph = s.graph();
    let by_name = &first_e(&graph).by_name;
    let is_read = |by: &ByName| by.seen & Relation::Read.bit() != 0;
    assert!(
        by_name.len() == 2 && by_name.iter().all(is_read),
        "{by_name:?}"
    );
}

/// The time stamp of the link is that of the call, so the link seems to be a new one.
#[test]
fn a_file_is_read_through_an_older_link_that_the_run_changed_or_linked() {
    let old = START - 9 * STEP;
    let mode = 0o120_777;
    let link = ident(8, old, old);
    let dates = |s: &mut Scene| {
        let op = Op::Meta {
            dir: CWD,
            path: bytes("e"),
            what: MetadataPart::Times,
            link: true,
        };
        s.done(2, op).ident = Some(Ident { mode, ..link });
    };
    let links = |s: &mut Scene| s.link(2, "e", "f").ident = Some(Ident { mode, ..link });
    for change in [&dates as &dyn Fn(&mut Scene), &links] {
        let mut s = Scene::new(&["sh"]);
        change(&mut s);
        let mut after = link_at_e(s.time).unwrap();
        after.links.get_mut(b"/w/e".as_slice()).unwrap().birth = old;
        s.after = Some(after);
        s.reads(2, "e");
        let graph = s.graph();
        let reads = graph.edges.iter();
        let reads = reads.filter(|edge| edge.relation == Relation::Read);
        let read: Vec<_> = reads
            .map(|edge| &graph.entities[&edge.entity])
            .map(|entity| (entity.kind, entity.ident.map(|ident| ident.ino)))
            .collect();
        assert_eq!(read, [(EntityKind::File, Some(9))]);
    }
}
