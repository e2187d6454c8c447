//! Names that are made and removed, and the identities of the files that they led to.
#![allow(clippy::unwrap_used)]

mod aliases;
mod moved;
mod unfollowed_links;

use crate::common::{self, After, OUT, START, STEP, Scene, ident, told};
use backstory_eventlog::event::{CWD, MetadataPart, Op, Outcome};
use backstory_files::Ident;

/// A file has two names, `d` and `e`. A process reads `d` and removes `e`. After that the file's
/// status change time is as `changed` says.
fn loses_its_other_name(changed: impl FnOnce(&Scene) -> i64) -> Scene {
    let mut s = Scene::new(&["sh"]);
    s.reads(2, "d");
    let two = Ident {
        nlink: 2,
        ..ident(7, START - 9 * STEP, START - 9 * STEP)
    };
    s.unlink(2, "e").ident = Some(two);
    let mut after = After::default();
    let left = Ident {
        nlink: 1,
        ctime: changed(&s),
        ..two
    };
    after.files.insert(b"/w/d".to_vec(), left);
    s.after = Some(after);
    s
}

#[test]
fn a_file_that_lost_another_name_is_still_the_one_that_was_read() {
    let s = loses_its_other_name(|s| s.time + 1_000_000);
    let graph = s.graph();
    let read = graph.newest(b"/w/d").unwrap();
    assert_eq!(
        (read.version, read.ident.map(|i| i.ino), read.last),
        (0, Some(7), true)
    );
    assert!(!told(&graph).contains("d@1"), "{}", told(&graph));
}

#[test]
fn a_file_that_was_moved_right_after_the_run_is_what_the_run_left() {
    let left = |in_private_mount: bool, removed: bool| {
        let mut s = Scene::new(&["sh"]);
        s.open(2, "sub/made", OUT, 3);
        s.write(2, 3);
        let closed = ident(7, s.time, s.time);
        s.close(2, 3).ident = Some(closed);
        if removed {
            s.unlink(2, "sub/made");
        }
        let mut after = After::default();
        let dev = if in_private_mount { 2 } else { closed.dev };
        let directory = Ident {
            dev,
            mode: 0o40_755,
            ..ident(1, START - STEP, START - STEP)
        };
        after.files.insert(b"/w".to_vec(), directory);
        s.after = Some(after);
        let graph = s.graph();
        let made = graph.newest(b"/w/sub/made").unwrap();
        assert_eq!(made.version, 1);
        (made.last, made.ident.map(|ident| ident.ino))
    };
    assert_eq!(left(false, false), (true, Some(7)));
    assert!(!left(true, false).0, "another file system");
    assert!(!left(false, true).0, "removed by the run");
}

#[test]
fn a_file_that_was_replaced_or_changed_right_after_the_run_is_what_the_run_left() {
    let left = |inode: u64, changed: fn(&Scene) -> i64| {
        let mut s = Scene::new(&["sh"]);
        s.open(2, "made", OUT, 3);
        s.write(2, 3);
        let closed = ident(7, s.time, s.time);
        s.close(2, 3).ident = Some(closed);
        let now = Ident {
            size: closed.size + 1,
            ..ident(inode, closed.birth, changed(&s))
        };
        let mut after = After::default();
        after.files.insert(b"/w/made".to_vec(), now);
        s.after = Some(after);
        let graph = s.graph();
        let made = graph.newest(b"/w/made").unwrap();
        assert_eq!(made.ident.map(|ident| ident.ino), Some(7));
        made.last
    };
    let later = |s: &Scene| s.end().ended + 1_000_000_000;
    assert!(left(8, later), "replaced by another file");
    assert!(left(7, later), "changed in place");
    let before = |s: &Scene| s.end().ended;
    assert!(!left(8, before), "replaced during the run");
}

/// The files of a program that makes a file, removes a file there, and makes it again. `birth`: the
/// file system has times of birth. `removed` gives the removed file, from the one that was made. Of
/// each, its version, its inode, and whether it is there at the end.
fn removed_and_made_again(
    birth: bool,
    removed: fn(Ident) -> Ident,
) -> Vec<(u32, Option<u64>, bool)> {
    /// Programs that start one after the other.
    const SOON: i64 = 2_000_000;
    let mut s = Scene::new(&["sh"]);
    let soon = |s: &mut Scene| s.time -= STEP - SOON;
    let file = |ino, time| ident(ino, if birth { time } else { 0 }, time);
    s.open(2, "marker", OUT, 3);
    let first = file(7, s.time);
    soon(&mut s);
    s.close(2, 3).ident = Some(first);
    soon(&mut s);
    s.unlink(2, "marker").ident = Some(removed(first));
    soon(&mut s);
    s.open(2, "marker", OUT, 3);
    let second = file(8, s.time);
    soon(&mut s);
    s.close(2, 3).ident = Some(second);
    let mut after = After::default();
    after.files.insert(b"/w/marker".to_vec(), second);
    s.after = Some(after);
    let graph = s.graph();
    let files = graph.entities.values();
    let files = files.filter(|entity| *entity.path == *b"/w/marker");
    let known = files.map(|file| (file.version, file.ident.map(|i| i.ino), file.last));
    known.collect()
}

#[test]
fn a_file_that_is_removed_and_made_again_at_once_was_made_both_times() {
    for birth in [true, false] {
        let known = removed_and_made_again(birth, |first| first);
        let expected = [(1, Some(7), false), (1, Some(8), true)];
        assert_eq!(known, expected, "{birth}");
    }
}

#[test]
fn an_older_file_that_another_process_moved_there_is_not_taken_for_that_of_the_run() {
    for birth in [true, false] {
        // A move changes the time of status, and not that of modification.
        let known = removed_and_made_again(birth, |first| Ident {
            ino: 9,
            mtime: first.mtime - 10 * STEP,
            birth: if first.birth == 0 {
                0
            } else {
                first.birth - 10 * STEP
            },
            ..first
        });
        let is_older =
            |(version, _, last): &(u32, Option<u64>, bool)| (*version, *last) == (0, false);
        assert!(known.iter().any(is_older), "{birth}: {known:?}");
    }
}

#[test]
fn a_file_that_another_process_changed_later_has_no_known_identity() {
    let s = loses_its_other_name(|s| s.time + STEP / 2);
    let graph = s.graph();
    let first = graph
        .entities
        .values()
        .find(|e| *e.path == *b"/w/d" && e.version == 0)
        .unwrap();
    assert_eq!(first.ident, None);
}

#[test]
fn a_file_that_lost_several_names_is_still_the_one_that_was_read() {
    let mut s = Scene::new(&["sh"]);
    s.reads(2, "d");
    let old = START - 9 * STEP;
    let mut now = Ident {
        nlink: 3,
        ..ident(7, old, old)
    };
    for name in ["e", "f"] {
        s.unlink(2, name).ident = Some(now);
        (now.nlink, now.ctime) = (now.nlink - 1, s.time);
    }
    let mut after = After::default();
    after.files.insert(b"/w/d".to_vec(), now);
    s.after = Some(after);
    let graph = s.graph();
    assert_eq!(
        graph.newest(b"/w/d").unwrap().ident.map(|i| i.ino),
        Some(7),
        "{}",
        told(&graph)
    );
}

#[test]
fn a_name_through_an_older_symbolic_link_is_no_further_hard_link() {
    let mut s = Scene::new(&["sh"]);
    for name in ["lib/c", "usr/lib/c", "elsewhere/c", "lib/c"] {
        s.reads(2, name);
    }
    let old = START - 9 * STEP;
    let file = Ident {
        nlink: 2,
        ..ident(7, old, old)
    };
    let mut link = ident(8, old, old);
    link.mode = 0o120_777;
    let names: [&[u8]; 3] = [b"/w/lib/c", b"/w/usr/lib/c", b"/w/elsewhere/c"];
    s.after = Some(After {
        files: names.into_iter().map(|n| (n.to_vec(), file)).collect(),
        links: [(b"/w/lib".to_vec(), link)].into(),
        ..After::default()
    });
    let graph = s.graph();
    let read = graph.newest(b"/w/lib/c").unwrap();
    assert_eq!(&*read.aliases[0], b"/w/usr/lib/c", "{}", told(&graph));
    let told = told(&graph);
    assert_eq!(told.matches(" from ").count(), 1, "{told}");
    assert!(told.contains("elsewhere/c@0 from "), "{told}");
}

/// A process reads a file, then `change` changes the status of the file, and nothing else happens.
/// The event carries the identity that the file had before the change.
fn read_and_then(change: impl FnOnce(&mut Scene, Ident)) -> (Scene, Ident) {
    let mut s = Scene::new(&["sh"]);
    s.reads(2, "d");
    let before = ident(7, START - 9 * STEP, START - 9 * STEP);
    change(&mut s, before);
    let mut after = After::default();
    let left = Ident {
        ctime: s.time + 1_000_000,
        ..before
    };
    after.files.insert(b"/w/d".to_vec(), left);
    after.files.insert(b"/w/e".to_vec(), left);
    s.after = Some(after);
    (s, before)
}

#[test]
fn a_file_whose_status_the_run_changed_is_still_the_one_that_was_read() {
    let meta = |path: &[u8], what| Op::Meta {
        dir: CWD,
        path: path.into(),
        what,
        link: false,
    };
    for what in [
        MetadataPart::Mode,
        MetadataPart::Owner,
        MetadataPart::Attributes,
    ] {
        let (s, before) = read_and_then(|s, before| {
            s.push(2, Outcome::Done(0), meta(b"d", what)).ident = Some(before);
        });
        let graph = s.graph();
        let read = graph.newest(b"/w/d").unwrap();
        let known = read.ident.map(|i| (i.ino, i.mtime));
        assert_eq!(
            (read.version, known),
            (0, Some((7, before.mtime))),
            "{what:?}"
        );
    }
    let (s, before) = read_and_then(|s, before| {
        s.push(2, Outcome::Done(0), meta(b"d", MetadataPart::Times))
            .ident = Some(before);
    });
    let graph = s.graph();
    let known = graph
        .entities
        .values()
        .find(|e| *e.path == *b"/w/d" && e.version == 0);
    let known = known.and_then(|e| e.ident).map(|i| (i.ino, i.mtime));
    assert_eq!(known, Some((7, before.mtime)), "Times");
    let (s, _) = read_and_then(|s, before| s.link(2, "d", "e").ident = Some(before));
    let read = s.graph().newest(b"/w/d").unwrap().ident;
    assert_eq!(read.map(|i| i.ino), Some(7), "a further name");
    let (s, _) = read_and_then(|s, _| {
        s.push(2, Outcome::Done(0), meta(b"d", MetadataPart::Mode));
    });
    assert_eq!(
        s.graph().newest(b"/w/d").unwrap().ident,
        None,
        "nobody looked before"
    );
}

fn exchange(s: &mut Scene, from: &str, to: &str) {
    let names = Op::Rename {
        from_dir: CWD,
        from: from.as_bytes().into(),
        to_dir: CWD,
        to: to.as_bytes().into(),
        flags: 2,
    };
    s.push(2, Outcome::Done(0), names);
}

#[test]
fn files_below_two_exchanged_directories_change_places() {
    let mut s = Scene::new(&["sh"]);
    for name in ["s/d", "t/d", "t/e"] {
        s.writes(2, name, OUT);
    }
    exchange(&mut s, "s", "t");
    for name in ["s/d", "t/d", "s/e"] {
        s.reads(2, name);
    }
    let told = told_of(&s);
    for way in ["t/d@2 from s/d@1", "s/d@2 from t/d@1", "s/e@2 from t/e@1"] {
        assert!(told.contains(way), "no {way} in {told}");
    }
}

fn told_of(s: &Scene) -> String {
    told(&s.graph())
}

const MS: i64 = 1_000_000;

/// The identity of a file that is read 2 ms after the start of a run. The file's last change was at
/// `changed` ms. The file systems' clock was at `quiet` ms when the command began.
fn changed_shortly_before(quiet: Option<i64>, changed: i64) -> Option<u64> {
    let mut s = Scene::new(&["cat"]);
    let began = s.time;
    s.header.started = began;
    s.time += 2 * MS - STEP;
    s.open(2, "/w/d", common::RDONLY, 3);
    s.time -= STEP;
    s.read(2, 3);
    let mut after = After::default();
    after.files.insert(
        b"/w/d".to_vec(),
        ident(7, START - 9 * STEP, began + changed * MS),
    );
    s.after = Some(after);
    s.quiet = quiet.map_or(0, |at| began + at * MS);
    let graph = s.graph();
    let read = graph.newest(b"/w/d").unwrap();
    read.ident.map(|ident| ident.ino)
}

#[test]
fn a_file_changed_just_before_the_run_is_identified_by_the_file_systems_clock() {
    assert_eq!(
        changed_shortly_before(Some(1), -1),
        Some(7),
        "an earlier tick"
    );
    assert_eq!(
        changed_shortly_before(Some(1), 0),
        Some(7),
        "an earlier tick, before the command began"
    );
    assert_eq!(
        changed_shortly_before(Some(-1), -1),
        None,
        "the same tick: perhaps after it was read"
    );
    assert_eq!(changed_shortly_before(Some(-1), 1), None, "a later one");
    assert_eq!(
        changed_shortly_before(None, -1),
        None,
        "nothing is known of the clock"
    );
}

/// Adds `open("d", O_TMPFILE | O_WRONLY)`, which returns 9.
fn opens_unnamed(s: &mut Scene, flags: i32) {
    const O_TMPFILE: i32 = 0o20_200_000;
    s.open(2, "d", O_TMPFILE | flags, 9);
}

/// Adds `linkat(AT_FDCWD, "/proc/self/fd/9", AT_FDCWD, to, AT_SYMLINK_FOLLOW)`.
fn links_descriptor(s: &mut Scene, to: &str) {
    let link = Op::Link {
        from_dir: CWD,
        from: common::bytes("/proc/self/fd/9"),
        to_dir: CWD,
        to: common::bytes(to),
        flags: 0x400,
    };
    s.done(2, link);
}

#[test]
fn an_unnamed_file_that_gets_a_name_is_made_by_that_name() {
    let mut s = Scene::new(&["sh"]);
    opens_unnamed(&mut s, common::WRONLY);
    s.write(2, 9);
    links_descriptor(&mut s, "d/named");
    s.close(2, 9);
    assert_eq!(
        told(&s.graph()),
        "sh#1 Make d/named@1\nsh#1 Write d/named@1"
    );
}

#[test]
fn a_write_after_the_naming_goes_to_the_same_version() {
    let mut s = Scene::new(&["sh"]);
    opens_unnamed(&mut s, common::WRONLY);
    links_descriptor(&mut s, "d/named");
    s.write(2, 9);
    s.close(2, 9);
    s.runs(2, 3, &["cat"]);
    s.reads(3, "d/named");
    let lines = told(&s.graph());
    assert!(lines.contains("cat#1 Read d/named@1"), "{lines}");
    assert!(
        !lines.contains("named@2") && !lines.contains("d/#"),
        "{lines}"
    );
}

#[test]
fn an_unnamed_file_can_get_two_names() {
    let mut s = Scene::new(&["sh"]);
    opens_unnamed(&mut s, common::WRONLY);
    s.write(2, 9);
    links_descriptor(&mut s, "d/named");
    s.close(2, 9);
    s.link(2, "d/named", "d/again");
    let lines = told(&s.graph());
    assert!(lines.contains("sh#1 Make d/again@1"), "{lines}");
    assert!(lines.contains("d/again@1 from d/named@1"), "{lines}");
    assert!(!lines.contains("Rename"), "{lines}");
}
