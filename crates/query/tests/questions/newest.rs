//! `uses` of a file that many runs used is answered from the newest runs.

use std::cell::Cell;
use std::path::Path;

use backstory_graph::model::Relation;
use backstory_query::answer::{Lineage, Scope};
use backstory_query::{influence_of, influence_while, newest_runs, subject};
use backstory_store::{EntityKey, Store};

use crate::graph::*;

/// Five runs; in each, two compilers read one header and make an object each.
fn five_builds(store: &mut dyn Store) -> Vec<EntityKey> {
    for run in 0..5_i64 {
        let mut graph = Graph::default();
        let header = graph.file(&nowhere("h"), 0, Some(ident(7, 50)));
        for (at, name) in ["a", "b"].into_iter().enumerate() {
            let start = 1000 * (run + 1) + at as i64 * 10;
            let compiler = graph.activity(None, at as u32 + 1, "/bin/cc", start);
            let object = graph.file(&nowhere(&format!("{name}{run}.o")), 1, None);
            graph.edge(compiler, header, Relation::Read, start + 1, start + 2);
            graph.edge(compiler, object, Relation::Write, start + 3, start + 4);
        }
        graph.append(store, &format!("run0000{run}"), 0);
    }
    subject::all(store, Path::new(&nowhere("h")), None).unwrap()
}

fn objects(lineage: &Lineage) -> Vec<String> {
    let mut found = names(lineage);
    found.retain(|name| name.ends_with(".o"));
    found
}

#[test]
fn a_file_that_many_processes_used_is_followed_in_the_newest_runs_only() {
    every_store(|store| {
        let versions = five_builds(store);
        assert_eq!(versions.len(), 5);
        let newest = newest_runs(store, &versions, 4).unwrap().unwrap();
        assert_eq!((newest.all, newest.versions.len()), (5, 2));
        let scope = Scope {
            since: Some(newest.since),
            ..Scope::default()
        };
        let found = influence_of(store, &newest.versions, &scope).unwrap();
        assert_eq!(objects(&found), ["a3.o", "a4.o", "b3.o", "b4.o"]);
        // A run is shown whole, even if it has more processes.
        let one = newest_runs(store, &versions, 1).unwrap().unwrap();
        assert_eq!(one.versions.len(), 1);
    });
}

#[test]
fn a_file_that_few_processes_used_is_followed_in_all_runs() {
    every_store(|store| {
        let versions = five_builds(store);
        assert_eq!(newest_runs(store, &versions, 10).unwrap(), None);
        let found = influence_of(store, &versions, &Scope::default()).unwrap();
        assert_eq!(objects(&found).len(), 10);
    });
}

#[test]
fn a_search_that_runs_out_of_time_answers_with_what_it_has_found_and_says_so() {
    every_store(|store| {
        let versions = five_builds(store);
        let scope = Scope::default();
        let asked = Cell::new(0);
        let count = |most: usize| {
            asked.set(0);
            let goes_on = || {
                asked.set(asked.get() + 1);
                asked.get() <= most
            };
            let found = influence_while(store, &versions, &scope, &goes_on).unwrap();
            (objects(&found).len(), found.cut)
        };
        assert_eq!(count(usize::MAX), (10, false));
        let all = asked.get();
        // The last node has nothing behind it, but the search cannot know that.
        assert_eq!(count(all - 1), (10, true));
        let (some, is_cut) = count(all / 2);
        assert!(some < 10 && is_cut, "{some} {is_cut}");
        assert_eq!(count(0), (0, true));
    });
}
