//! Renames of directories above a file: a store that lists them answers as one that reads all runs.

use std::path::Path;

use backstory_graph::model::*;
use backstory_query::{PathChange, PathEvent, history};
use backstory_store::{Home, MemoryStore, SqliteStore, Store};
use proptest::prelude::*;

use crate::graph::*;

/// Directories that random runs use and rename.
const DIRECTORIES: [&str; 8] = ["w", "v", "w/a", "w/b", "w/a/x", "w/b/x", "v/a", "w/a/x/y"];

/// The knowledge about a renamed path.
#[derive(Debug, Clone, Copy)]
enum Renamed {
    /// It is a directory.
    Directory,
    /// Nothing: it is taken for a file.
    Unknown,
    /// It is a regular file.
    Regular,
}

/// An operation of a random run on directories with these indexes.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Writes the file `f` there.
    Write(usize),
    /// Lists the directory.
    List(usize),
    /// Renames the first to the second.
    Rename(usize, usize, Renamed),
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0..DIRECTORIES.len();
    let renamed = prop_oneof![
        3 => Just(Renamed::Directory),
        2 => Just(Renamed::Unknown),
        1 => Just(Renamed::Regular),
    ];
    prop_oneof![
        2 => index.clone().prop_map(Step::Write),
        2 => index.clone().prop_map(Step::List),
        3 => (index.clone(), index, renamed)
            .prop_filter("a directory is not renamed to itself", |(from, to, _)| from != to)
            .prop_map(|(from, to, renamed)| Step::Rename(from, to, renamed)),
    ]
}

/// The graph of a run with these steps, which begins at a time.
fn run_of(steps: &[Step], started: i64) -> Graph {
    let mut graph = Graph::default();
    let doer = graph.activity(None, 1, "/bin/mv", started);
    for (number, step) in (1..).zip(steps) {
        let at = started + 10 * number;
        match *step {
            Step::Write(directory) => {
                let path = format!("{}/f", nowhere(DIRECTORIES[directory]));
                let file = graph.file(&path, 1, Some(ident(at as u64, at)));
                graph.edge(doer, file, Relation::Write, at - 1, at);
            }
            Step::List(directory) => {
                let path = nowhere(DIRECTORIES[directory]);
                let listed = graph.entity(EntityKind::Directory, &path, 0, None);
                graph.edge(doer, listed, Relation::List, at - 1, at);
            }
            Step::Rename(from, to, renamed) => {
                let [from, to] = [from, to].map(|index| nowhere(DIRECTORIES[index]));
                rename(&mut graph, doer, [&from, &to], renamed, at);
            }
        }
    }
    graph
}

/// Adds the rename of a path of which only this is known.
fn rename(graph: &mut Graph, doer: ActivityId, [from, to]: [&str; 2], renamed: Renamed, at: i64) {
    let (kind, known) = match renamed {
        Renamed::Directory => (EntityKind::Directory, None),
        Renamed::Unknown => (EntityKind::File, None),
        Renamed::Regular => (EntityKind::File, Some(ident(at as u64, at))),
    };
    let before = graph.entity(kind, from, 0, known);
    let after = graph.entity(kind, to, 1, known);
    graph.edge(doer, before, Relation::Delete, at - 1, at);
    graph.edge(doer, after, Relation::Rename, at - 1, at);
    graph.derived(doer, before, after, at);
}

/// Deletes the entries of the run with this number in lists of renames, which an earlier program
/// does not make.
fn unlist(home: &Home, run: i64) {
    let unlist = "DELETE FROM touched WHERE members >> 32 = ?1 \
                  AND dir IN (SELECT dir FROM paths WHERE path >= x'00' AND path < x'01')";
    let database = rusqlite::Connection::open(home.database_path()).unwrap();
    assert!(database.execute(unlist, [run]).unwrap() > 0);
}

/// The histories of the file `f` in each directory. No event has the time of the question.
fn histories(store: &dyn Store) -> Vec<Result<Vec<PathEvent>, String>> {
    let of = |directory: &&str| -> Result<Vec<PathEvent>, String> {
        let path = format!("{}/f", nowhere(directory));
        let mut events = history(store, Path::new(&path)).map_err(|error| error.to_string())?;
        let gone = |event: &&mut PathEvent| event.change == PathChange::GoneUnseen;
        let of_now = events.iter_mut().filter(gone);
        of_now.for_each(|event| event.time = 0);
        Ok(events)
    };
    DIRECTORIES.iter().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn listed_renames_give_the_histories_that_reading_all_runs_gives(
        runs in prop::collection::vec(prop::collection::vec(step(), 1..5), 1..6),
    ) {
        let (new, mixed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let homes = [&new, &mixed].map(|dir| Home::open(dir.path()).unwrap());
        // A store in memory has no lists. Every second run of the last store has none.
        let mut reading_all = MemoryStore::default();
        let [mut listing, mut mixing] = homes.each_ref().map(|home| SqliteStore::open(home).unwrap());
        for (number, steps) in (1i64..).zip(&runs) {
            let started = number * 1000;
            let graph = run_of(steps, started);
            let stores: [&mut dyn Store; 3] = [&mut reading_all, &mut listing, &mut mixing];
            for store in stores {
                graph.append(store, &format!("run{number:05}"), started);
            }
            if number % 2 == 1 {
                unlist(&homes[1], number);
            }
        }
        let right = histories(&reading_all);
        prop_assert_eq!(&histories(&listing), &right);
        prop_assert_eq!(&histories(&mixing), &right);
    }
}

/// The recorded changes of a file, each with its time.
fn changes(store: &dyn Store, name: &str) -> Vec<(i64, PathChange)> {
    let events = history(store, Path::new(&nowhere(name))).unwrap();
    let seen = events
        .into_iter()
        .filter(|event| !event.change.is_inferred());
    seen.map(|event| (event.time, event.change)).collect()
}

/// Appends the run of one rename. Another run uses both directories, and renames none.
fn append_rename(store: &mut dyn Store, names: [&str; 2], renamed: Renamed, at: i64) {
    let [from, to] = names.map(nowhere);
    let mut graph = Graph::default();
    let mv = graph.activity(None, 1, "/bin/mv", at - 1);
    rename(&mut graph, mv, [&from, &to], renamed, at);
    graph.append(store, &format!("run{at:05}"), at - 1);
    let mut graph = Graph::default();
    let ls = graph.activity(None, 1, "/bin/ls", at + 1);
    for path in [from, to] {
        let listed = graph.entity(EntityKind::Directory, &path, 0, None);
        graph.edge(ls, listed, Relation::List, at + 1, at + 2);
    }
    graph.append(store, &format!("run{:05}", at + 1), at + 1);
}

/// Appends a run that writes the file `w/a/x/f`.
fn append_write(store: &mut dyn Store) {
    let index = DIRECTORIES.iter().position(|name| *name == "w/a/x");
    let graph = run_of(&[Step::Write(index.unwrap())], 0);
    graph.append(store, "run00000", 0);
}

#[test]
fn a_file_follows_nested_and_repeated_renames_of_its_directories() {
    every_store(|store| {
        append_write(store);
        append_rename(store, ["w/a/x", "w/a/y"], Renamed::Directory, 100);
        // The kind of this path is not known.
        append_rename(store, ["w/a", "w/b"], Renamed::Unknown, 200);
        append_rename(store, ["w/b", "w/a"], Renamed::Directory, 300);
        append_rename(store, ["w/a", "v/c"], Renamed::Directory, 400);
        let from = |name: &str| PathChange::RenamedFrom(bytes(&nowhere(name)));
        let to = |name: &str| PathChange::RenamedTo(bytes(&nowhere(name)));
        let wrote = (10, PathChange::Made);
        let found = changes(store, "w/a/x/f");
        assert_eq!(found, [wrote.clone(), (100, to("w/a/y/f"))]);
        let found = changes(store, "v/c/y/f");
        assert_eq!(found.first(), Some(&wrote));
        assert_eq!(found.last(), Some(&(400, from("w/a/y/f"))));
        let times: Vec<i64> = found.iter().map(|(time, _)| *time).collect();
        for renamed in [200, 300, 400] {
            assert!(times.contains(&renamed), "{found:?}");
        }
    });
}

#[test]
fn the_rename_of_a_regular_file_is_none_of_the_paths_below_its_name() {
    every_store(|store| {
        append_write(store);
        append_rename(store, ["w/a/x", "w/a/y"], Renamed::Regular, 100);
        assert_eq!(changes(store, "w/a/x/f"), [(10, PathChange::Made)]);
    });
}
