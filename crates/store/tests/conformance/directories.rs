//! Questions about directories: what lies below a path, what runs made there, and where they were.

use backstory_graph::model::*;
use backstory_store::{EntityKey, RunKey, Store};

use crate::engines::every_store;
use crate::graph::*;

use EntityKind::{Directory, File, Missing, Pipe, Socket};

fn key(run: RunKey, local: u32) -> EntityKey {
    EntityKey::new(run, EntityId(local))
}

/// Appends a run with these entities: path, version and kind.
fn append(store: &mut dyn Store, id: &str, entities: &[(&str, u32, EntityKind)]) -> RunKey {
    let append = store.append(&header(id, 1), &end(), 0, &mut |sink| {
        for (at, (path, version, kind)) in (0..).zip(entities) {
            let mut one = entity(at, path, *version, None);
            one.kind = *kind;
            sink.entity(&one)?;
        }
        Ok(())
    });
    append.unwrap()
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

#[test]
fn the_entities_below_a_path_are_found_by_any_name_and_a_missing_path_is_none() {
    every_store(|store| {
        let paths = [
            ("/w/a", 0, File),
            ("/w/ab/c", 1, File),
            ("/w/ab", 0, Directory),
            ("/w/abc", 0, Missing),
            ("/x/a", 0, File),
            ("pipe:[7]", 0, Pipe),
        ];
        let first = append(store, "one", &paths);
        let mut linked = entity(0, "/z/other", 0, None);
        linked.aliases = vec![bytes("/w/ab/link")];
        let second = store.append(&header("two", 2), &end(), 0, &mut |sink| {
            sink.entity(&linked)
        });
        let second = second.unwrap();
        let below = |store: &dyn Store, prefix: &[u8], last: u8| {
            let wanted = |path: &[u8]| last == b'*' || path.last() == Some(&last);
            sorted(store.below(prefix, &wanted).unwrap())
        };
        let ab = [key(first, 1), key(first, 2), key(second, 0)];
        assert_eq!(below(store, b"/w/ab", b'*'), sorted(ab.to_vec()));
        assert_eq!(below(store, b"/w/ab", b'c'), [key(first, 1)]);
        assert_eq!(below(store, b"/w/ab/", b'k'), [key(second, 0)]);
        assert_eq!(below(store, b"/w/a/", b'*'), []);
        assert_eq!(
            below(store, b"/", b'a'),
            sorted(vec![key(first, 0), key(first, 4)])
        );
        assert_eq!(below(store, b"pipe:", b'*'), [key(first, 5)]);
    });
}

#[test]
fn what_runs_made_in_a_directory_has_the_names_it_had_there() {
    every_store(|store| {
        let paths = [
            ("/w/a", 0, File),
            ("/w/b", 1, File),
            ("/w/b", 2, File),
            ("/w/sub", 1, Directory),
            ("/w/sub/c", 1, File),
            ("/top", 1, File),
        ];
        let first = append(store, "one", &paths);
        let mut linked = entity(0, "/w/sub/d", 1, None);
        linked.aliases = vec![bytes("/w/d")];
        let second = store.append(&header("two", 2), &end(), 0, &mut |sink| {
            sink.entity(&linked)
        });
        let second = second.unwrap();
        let made = |store: &dyn Store, directory: &[u8]| sorted(store.made_in(directory).unwrap());
        let of = |name: &str, key| (bytes(name), key);
        assert_eq!(
            made(store, b"/w/"),
            [
                of("b", key(first, 1)),
                of("b", key(first, 2)),
                of("d", key(second, 0)),
                of("sub", key(first, 3))
            ]
        );
        assert_eq!(
            made(store, b"/w/sub/"),
            [of("c", key(first, 4)), of("d", key(second, 0))]
        );
        assert_eq!(made(store, b"/"), [of("top", key(first, 5))]);
        assert_eq!(made(store, b"/nowhere/"), []);
        assert!(store.remove("one").unwrap());
        assert_eq!(made(store, b"/w/"), [of("d", key(second, 0))]);
    });
}

#[test]
fn the_directories_below_a_path_are_those_that_the_runs_touched_sorted() {
    every_store(|store| {
        let paths = [
            ("/w/b/x", 0, File),
            ("/w/a/y", 0, Missing),
            ("/w/a/z", 1, File),
            ("/w.old/x", 0, File),
            ("/wide/x", 0, File),
            ("/x", 0, File),
            ("tcp:127.0.0.1:80", 0, Socket),
        ];
        append(store, "one", &paths);
        let mut linked = entity(0, "/v/x", 0, None);
        linked.aliases = vec![bytes("/w/c/link")];
        let second = store.append(&header("two", 2), &end(), 0, &mut |sink| {
            sink.entity(&linked)
        });
        second.unwrap();
        let below = |store: &dyn Store, top: &[u8]| -> Vec<String> {
            let found = store.directories_below(top).unwrap().into_iter();
            found
                .map(|path| String::from_utf8(path.to_vec()).unwrap())
                .collect()
        };
        assert_eq!(below(store, b"/w/"), ["/w/a/", "/w/b/", "/w/c/"]);
        assert_eq!(below(store, b"/w/b/"), ["/w/b/"]);
        assert_eq!(
            below(store, b"/"),
            ["/", "/v/", "/w.old/", "/w/a/", "/w/b/", "/w/c/", "/wide/"]
        );
        assert_eq!(below(store, b"/none/"), [""; 0]);
        assert!(store.remove("one").unwrap());
        assert_eq!(below(store, b"/"), ["/v/", "/w/c/"]);
    });
}
