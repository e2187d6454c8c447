//! Questions about directories: what lies below a path, what runs made there, and where they were.

use backstory_graph::model::*;
use backstory_store::{EntityKey, RunKey, Store};

use crate::engines::{durable, every_store, open};
use crate::graph::*;

use EntityKind::{Directory, File, Missing, Pipe, Socket, Symlink};

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

#[test]
fn the_directories_of_a_run_are_those_of_its_names_and_of_no_other_run() {
    every_store(|store| {
        let paths = [
            ("/w/b/x", 0, File),
            ("/w/a/y", 0, Missing),
            ("/w/a/z", 1, File),
            ("/x", 0, File),
            ("tcp:127.0.0.1:80", 0, Socket),
        ];
        let first = append(store, "one", &paths);
        let mut linked = entity(0, "/w/b/x", 0, None);
        linked.aliases = vec![bytes("/v/link")];
        let second = store.append(&header("two", 2), &end(), 0, &mut |sink| {
            sink.entity(&linked)
        });
        let second = second.unwrap();
        let of = |store: &dyn Store, run: RunKey| -> Vec<String> {
            let found = store.directories_of(run).unwrap().into_iter();
            found
                .map(|path| String::from_utf8(path.to_vec()).unwrap())
                .collect()
        };
        assert_eq!(of(store, first), ["", "/", "/w/a/", "/w/b/"]);
        assert_eq!(of(store, second), ["/v/", "/w/b/"]);
        assert!(store.remove("one").unwrap());
        assert_eq!(of(store, second), ["/v/", "/w/b/"]);
    });
}

/// A rename in a run: the version before, and the renamed one.
type RenamedPair = [Entity; 2];

/// The rename of a path of this kind, whose identity is not known.
fn rename(kind: EntityKind, from: &str, to: &str) -> RenamedPair {
    let [mut before, mut after] = [entity(0, from, 0, None), entity(0, to, 1, None)];
    (before.kind, after.kind) = (kind, kind);
    [before, after]
}

/// Appends a run in which one process does these renames. The versions of rename N have the ids 2 N
/// and 2 N + 1.
fn append_renames(store: &mut dyn Store, id: &str, renames: &[RenamedPair]) -> RunKey {
    let append = store.append(&header(id, 1), &end(), 0, &mut |sink| {
        sink.activity(&activity(0, None))?;
        for (number, pair) in (0..).zip(renames) {
            let (from, to) = (2 * number, 2 * number + 1);
            for (id, one) in [from, to].into_iter().zip(pair) {
                let mut one = one.clone();
                one.id = EntityId(id);
                sink.entity(&one)?;
            }
            let at = i64::from(number);
            sink.derived(&Derived {
                entity: EntityId(to),
                from: EntityId(from),
                activity: ActivityId(0),
                time: at,
            })?;
            sink.edge(&edge(0, from, Relation::Delete, at, at))?;
            sink.edge(&edge(0, to, Relation::Rename, at, at))?;
        }
        Ok(())
    });
    append.unwrap()
}

#[test]
fn the_runs_that_renamed_a_directory_are_found_without_those_that_used_it() {
    for engine in durable() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(engine, dir.path()).unwrap();
        let store = &mut *store;
        let used = [("/w/a", 0, Directory), ("/w/b", 0, Directory)];
        append(store, "before", &used);
        let first = append_renames(store, "first", &[rename(Directory, "/w/a", "/w/b")]);
        append(store, "between", &used);
        // The kind of the renamed path is not known: it is taken for a file.
        let moves = [
            rename(File, "/w/b", "/w/a"),
            rename(Directory, "/w/a/x", "/w/y"),
        ];
        let second = append_renames(store, "second", &moves);
        append(store, "after", &used);
        let found =
            |store: &dyn Store, path: &str| store.rename_candidates(path.as_bytes()).unwrap();
        assert_eq!(found(store, "/w/a"), [key(second, 1), key(first, 0)]);
        assert_eq!(found(store, "/w/b"), [key(second, 0), key(first, 1)]);
        assert_eq!(found(store, "/w/a/x"), [key(second, 2)]);
        assert_eq!(found(store, "/w/y"), [key(second, 3)]);
        for none in ["/w", "/w/", "/w/a/", "", "/", "/w/none"] {
            assert_eq!(found(store, none), [], "{none:?}");
        }
        assert!(store.remove("second").unwrap());
        assert_eq!(found(store, "/w/a"), [key(first, 0)]);
        assert_eq!(found(store, "/w/a/x"), []);
        store.forget_unreferred().unwrap();
        assert_eq!(found(store, "/w/b"), [key(first, 1)]);
        let again = append_renames(store, "second", &moves);
        assert_eq!(found(store, "/w/a"), [key(again, 1), key(first, 0)]);
        assert_eq!(found(store, "/w/y"), [key(again, 3)]);
    }
}

#[test]
fn a_directory_that_was_renamed_has_all_its_names_in_the_lists() {
    for engine in durable() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(engine, dir.path()).unwrap();
        let mut pair = rename(Directory, "/w/a", "/w/b");
        pair[1].aliases = vec![bytes("/v/b")];
        let run = append_renames(&mut *store, "one", &[pair]);
        for name in ["/w/b", "/v/b"] {
            let found = store.rename_candidates(name.as_bytes()).unwrap();
            assert_eq!(found, [key(run, 1)], "{name}");
        }
    }
}

#[test]
fn renamed_files_and_links_are_not_listed_as_directories() {
    for engine in durable() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(engine, dir.path()).unwrap();
        let mut renames = [
            rename(File, "/w/before", "/w/1"),
            rename(File, "/w/after", "/w/2"),
            rename(Symlink, "/w/link", "/w/3"),
        ];
        renames[0][0].ident = Some(ident(1, 1));
        renames[1][1].ident = Some(ident(2, 1));
        append_renames(&mut *store, "one", &renames);
        for path in renames.iter().flatten().map(|one| &one.path) {
            assert_eq!(store.rename_candidates(path).unwrap(), []);
        }
    }
}

#[test]
fn lists_of_renames_are_no_directories() {
    every_store(|store| {
        append_renames(store, "one", &[rename(Directory, "/w/a", "/w/b")]);
        let directories = store.directories_below(b"/").unwrap();
        assert_eq!(directories, [bytes("/w/")]);
        let all = store.below(b"", &|_| true).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(store.made_in(b"/w/").unwrap().len(), 1);
    });
}

#[test]
fn the_lists_of_renames_have_no_entries_of_a_removed_run() {
    for engine in durable() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(engine, dir.path()).unwrap();
        let store = &mut *store;
        let mut linked = rename(Directory, "/w/c", "/w/d");
        linked[1].aliases = vec![bytes("/v/d")];
        let renames = [
            rename(Directory, "/w/a", "/w/b"),
            linked,
            rename(File, "/w/e", "/w/f"),
            rename(Missing, "/w/g", "/w/h"),
        ];
        append_renames(store, "removed", &renames);
        append_renames(store, "left", &[rename(Directory, "/w/a", "/w/i")]);
        // The path of a list begins with a zero byte.
        let lists = |store: &dyn Store| store.directories_below(b"\0").unwrap();
        assert_eq!(lists(store).len(), 11, "{engine}: ten paths, and the runs");
        assert!(store.remove("removed").unwrap());
        let left = [bytes("\0"), bytes("\0/w/a\0"), bytes("\0/w/i\0")];
        assert_eq!(lists(store), left, "{engine}");
    }
}
