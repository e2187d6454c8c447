//! The identities of files that were moved after the run had read them.

use super::exchange;
use crate::common::{After, OUT, START, STEP, Scene, ident};
use backstory_eventlog::event::Event;
use backstory_files::Ident;

/// A process reads a file by one name. `moves` then rename it several times, one after the other.
/// After the run it has the identity `left`. Returns the identity of the version that was read.
fn read_and_moved(
    name: &str,
    moves: &[(&str, &str)],
    left: impl FnOnce(i64) -> (String, Ident),
) -> Option<Ident> {
    let mut s = Scene::new(&["sh"]);
    s.reads(2, name);
    for (from, to) in moves {
        s.rename(2, from, to);
    }
    let (path, left) = left(s.time);
    let mut after = After::default();
    after.files.insert(format!("/w/{path}").into_bytes(), left);
    s.after = Some(after);
    let graph = s.graph();
    let path = format!("/w/{name}");
    let read = |e: &&backstory_graph::model::Entity| *e.path == *path.as_bytes() && e.version == 0;
    graph.entities.values().find(read).unwrap().ident
}

#[test]
fn a_file_that_was_moved_after_it_was_read_is_still_the_one_that_was_read() {
    let old = START - 9 * STEP;
    let to_e = |mtime: i64, after: i64| {
        read_and_moved("d", &[("d", "e")], |moved| {
            let ident = Ident {
                ctime: moved + after,
                ..ident(7, old, mtime)
            };
            ("e".to_owned(), ident)
        })
    };
    assert_eq!(
        to_e(old, 1_000_000).map(|i| (i.ino, i.mtime)),
        Some((7, old))
    );
    assert_eq!(
        to_e(START + 5 * STEP, 1_000_000),
        None,
        "changed before it was moved"
    );
    assert_eq!(to_e(old, 3_000_000_000), None, "changed after it was moved");
    let below = read_and_moved("s/d", &[("s", "t")], |_| {
        ("t/d".to_owned(), ident(7, old, old))
    });
    assert_eq!(below.map(|i| i.ino), Some(7), "with its directory");
    let another = read_and_moved("d", &[("d", "e")], |moved| {
        let ident = Ident {
            mtime: old,
            ..ident(8, moved, moved)
        };
        ("e".to_owned(), ident)
    });
    assert_eq!(another, None, "replaced by another");
}

#[test]
fn a_file_that_was_moved_several_times_is_still_the_one_that_was_read() {
    let old = START - 9 * STEP;
    let twice = [("d", "e"), ("e", "f")];
    let to_f = |mtime: i64, after: i64| {
        read_and_moved("d", &twice, |moved| {
            let ctime = moved + after;
            (
                "f".to_owned(),
                Ident {
                    ctime,
                    ..ident(7, old, mtime)
                },
            )
        })
    };
    assert_eq!(
        to_f(old, 1_000_000).map(|i| (i.ino, i.mtime)),
        Some((7, old))
    );
    assert_eq!(
        to_f(START + 5 * STEP, 1_000_000),
        None,
        "changed on its way"
    );
    assert_eq!(to_f(old, 3_000_000_000), None, "changed after it was moved");
    let below = read_and_moved("s/d", &[("s", "t"), ("t", "u")], |_| {
        ("u/d".to_owned(), ident(7, old, old))
    });
    assert_eq!(below.map(|i| i.ino), Some(7), "with its directory");
    let both = read_and_moved("d", &[("d", "s/d"), ("s", "t")], |moved| {
        let ctime = moved - STEP;
        (
            "t/d".to_owned(),
            Ident {
                ctime,
                ..ident(7, old, old)
            },
        )
    });
    assert_eq!(
        both.map(|i| i.ino),
        Some(7),
        "itself, then with its directory"
    );
}

/// The file is gone after the run. Its identity comes from the call that changed or removed it.
#[test]
fn a_file_that_was_moved_and_then_changed_is_still_the_one_that_was_read() {
    let old = START - 9 * STEP;
    let read =
        |between: fn(&mut Scene), change: fn(&mut Scene) -> &mut Event, ctime: Option<i64>| {
            let mut s = Scene::new(&["sh"]);
            s.reads(2, "d");
            s.rename(2, "d", "e");
            between(&mut s);
            s.rename(2, "e", "f");
            let ctime = ctime.unwrap_or(s.time + 1_000_000);
            change(&mut s).ident = Some(Ident {
                ctime,
                ..ident(7, old, old)
            });
            s.after = Some(After::default());
            let graph = s.graph();
            let first = |e: &&backstory_graph::model::Entity| *e.path == *b"/w/d" && e.version == 0;
            graph
                .entities
                .values()
                .find(first)
                .unwrap()
                .ident
                .map(|i| i.ino)
        };
    let nothing: fn(&mut Scene) = |_| {};
    let removed: fn(&mut Scene) -> &mut Event = |s| s.unlink(2, "f");
    assert_eq!(read(nothing, removed, None), Some(7), "removed");
    assert_eq!(
        read(nothing, |s| s.open(2, "f", OUT, 3), None),
        Some(7),
        "emptied"
    );
    assert_eq!(
        read(nothing, |s| s.rename(2, "g", "f"), None),
        Some(7),
        "replaced"
    );
    assert_eq!(
        read(|s| s.writes(2, "e", OUT), removed, None),
        None,
        "written in between"
    );
    assert_eq!(
        read(nothing, removed, Some(START + 99 * STEP)),
        None,
        "its status changed otherwise"
    );
}

/// A process reads a file, and then `goes` gives the name to another file of the same age. That
/// file is preserved by the name before it is changed. Returns the identity of the version that was
/// read.
fn read_before_another_was_kept(goes: impl FnOnce(&mut Scene)) -> Option<u64> {
    let old = START - 9 * STEP;
    let mut s = Scene::new(&["sh"]);
    s.reads(2, "s/d");
    goes(&mut s);
    s.open(2, "s/d", OUT, 3).ident = Some(ident(8, old, old));
    let kept = (b"/w/s/d".to_vec(), s.time + 1, ident(8, old, old));
    s.after = Some(After {
        kept: vec![kept],
        ..After::default()
    });
    let graph = s.graph();
    let first = |e: &&backstory_graph::model::Entity| *e.path == *b"/w/s/d" && e.version == 0;
    graph
        .entities
        .values()
        .find(first)
        .unwrap()
        .ident
        .map(|i| i.ino)
}

#[test]
fn a_content_preserved_by_name_is_not_the_former_file_of_that_name() {
    let old = START - 9 * STEP;
    assert_eq!(
        read_before_another_was_kept(|_| ()),
        Some(8),
        "nothing else had it"
    );
    let moved = read_before_another_was_kept(|s| {
        s.rename(2, "s/d", "x");
        s.rename(2, "y", "s/d");
    });
    assert_eq!(moved, None, "moved away");
    let below = read_before_another_was_kept(|s| {
        s.rename(2, "s", "x");
        s.rename(2, "y", "s");
    });
    assert_eq!(below, None, "moved away with its directory");
    let removed = read_before_another_was_kept(|s| {
        let two = Ident {
            nlink: 2,
            ..ident(7, old, old)
        };
        s.unlink(2, "s/d").ident = Some(two);
        s.rename(2, "y", "s/d");
    });
    assert_eq!(removed, Some(7), "removed");
    let replaced = read_before_another_was_kept(|s| {
        s.rename(2, "y", "s/d").ident = Some(ident(7, old, old));
    });
    assert_eq!(replaced, Some(7), "replaced");
    let exchanged = read_before_another_was_kept(|s| {
        exchange(s, "s", "y");
    });
    assert_eq!(exchanged, None, "exchanged with its directory");
}
