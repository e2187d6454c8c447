//! The shape of lineages: their nodes, their limits and their output.

use std::path::Path;

use backstory_graph::model::*;
use backstory_query::answer::{Flow, Lineage, Scope};
use backstory_query::{Error, ancestry, influence};
use backstory_store::Store;

use crate::graph::*;

/// a → cc → o → ld → out, both started by make, which read mk; tmp is read by cc after it wrote o.
fn build(store: &mut dyn Store) {
    let mut graph = Graph::default();
    let make = graph.activity(None, 1, "/bin/make", 0);
    let cc = graph.activity(Some(make), 2, "/bin/cc", 10);
    let ld = graph.activity(Some(make), 3, "/bin/ld", 50);
    let [mk, a, late, h] = ["mk", "a", "late", "h"].map(|name| graph.file(&nowhere(name), 0, None));
    let (o, out) = (
        graph.file(&nowhere("o"), 1, None),
        graph.file(&nowhere("out"), 1, None),
    );
    graph.edge(make, mk, Relation::Read, 1, 2);
    graph.edge(cc, a, Relation::Read, 11, 12);
    graph.edge(cc, o, Relation::Write, 15, 16);
    graph.edge(cc, late, Relation::Read, 20, 21);
    graph.edge(cc, h, Relation::Stat, 11, 11);
    graph.edge(ld, o, Relation::Read, 51, 52);
    graph.edge(ld, out, Relation::Write, 53, 54);
    graph.append(store, "run00001", 0);
}

fn all() -> Scope {
    Scope {
        possible: true,
        ..Scope::default()
    }
}

fn of(store: &dyn Store, name: &str, scope: &Scope) -> Lineage {
    ancestry(store, Path::new(&nowhere(name)), scope).unwrap()
}

#[test]
fn ancestry_respects_time_and_names_what_was_asked_first() {
    every_store(|store| {
        build(store);
        let lineage = of(store, "out", &all());
        assert_eq!(names(&lineage), ["a", "cc", "ld", "make", "mk", "o", "out"]);
        assert_eq!(
            (lineage.roots, name(&lineage.nodes[0]), lineage.cut),
            (1, "out".into(), false)
        );
        // Links point in the direction of the flow: a used entity stands before its user.
        let read = lineage
            .links
            .iter()
            .find(|l| name(&lineage.nodes[l.from]) == "a")
            .unwrap();
        assert_eq!(
            (name(&lineage.nodes[read.to]), read.flow),
            ("cc".into(), Flow::Used(Relation::Read))
        );
        assert_eq!(lineage.links.len(), 7);
    });
}

#[test]
fn influence_is_the_mirror() {
    every_store(|store| {
        build(store);
        let uses =
            |name: &str| names(&influence(store, Path::new(&nowhere(name)), &all()).unwrap());
        assert_eq!(uses("a"), ["a", "cc", "ld", "o", "out"]);
        assert_eq!(uses("late"), ["cc", "late"]);
        assert_eq!(uses("out"), ["out"]);
    });
}

#[test]
fn lookups_are_followed_when_asked_for() {
    every_store(|store| {
        build(store);
        assert!(
            names(&of(
                store,
                "out",
                &Scope {
                    lookups: true,
                    ..all()
                }
            ))
            .contains(&"h".into())
        );
    });
}

#[test]
fn excluded_paths_are_left_out_and_not_followed() {
    every_store(|store| {
        build(store);
        let lineage = of(
            store,
            "out",
            &Scope {
                exclude: vec!["o".into()],
                ..all()
            },
        );
        assert_eq!(names(&lineage), ["ld", "make", "mk", "out"]);
    });
}

#[test]
fn depth_counts_activities() {
    every_store(|store| {
        build(store);
        let lineage = of(
            store,
            "out",
            &Scope {
                depth: Some(1),
                ..all()
            },
        );
        assert_eq!(
            (names(&lineage), lineage.cut),
            (vec!["ld".into(), "o".into(), "out".into()], true)
        );
        let lineage = of(
            store,
            "out",
            &Scope {
                depth: Some(3),
                ..all()
            },
        );
        assert_eq!((names(&lineage).len(), lineage.cut), (7, false));
    });
}

#[test]
fn possible_edges_are_dropped_on_demand() {
    every_store(|store| {
        let mut graph = Graph::default();
        let p = graph.activity(None, 1, "/bin/p", 0);
        let (a, b) = (
            graph.file(&nowhere("a"), 0, None),
            graph.file(&nowhere("b"), 1, None),
        );
        graph.edge(p, a, Relation::Read, 1, 2);
        graph.edge(p, b, Relation::Write, 3, 4);
        graph.only_possible();
        graph.append(store, "run00001", 0);
        assert_eq!(names(&of(store, "b", &all())), ["a", "b", "p"]);
        assert_eq!(names(&of(store, "b", &Scope::default())), ["b"]);
    });
}

#[test]
fn a_path_never_seen_is_not_found_and_one_only_missed_says_so() {
    every_store(|store| {
        let mut graph = Graph::default();
        let p = graph.activity(None, 1, "/bin/p", 0);
        let gone = graph.entity(EntityKind::Missing, &nowhere("gone"), 0, None);
        graph.edge(p, gone, Relation::Missing, 1, 1);
        graph.append(store, "run00001", 0);
        let ask = |name: &str| ancestry(store, Path::new(&nowhere(name)), &all());
        assert!(
            matches!(ask("never"), Err(Error::NotFound(path)) if path == Path::new(&nowhere("never")))
        );
        assert!(matches!(ask("gone"), Err(Error::OnlyMissing(_))));
        let scope = Scope {
            lookups: true,
            ..all()
        };
        assert_eq!(
            names(&influence(store, Path::new(&nowhere("gone")), &scope).unwrap()),
            ["gone", "p"]
        );
    });
}

#[test]
fn a_bad_pattern_is_an_error() {
    every_store(|store| {
        build(store);
        let scope = Scope {
            exclude: vec!["[".into()],
            ..all()
        };
        assert!(matches!(
            ancestry(store, Path::new(&nowhere("out")), &scope),
            Err(Error::BadPattern(..))
        ));
    });
}

#[test]
fn a_device_of_a_driver_is_a_source_and_passes_nothing_from_one_program_to_another() {
    for (device, passes) in [
        ("/dev/nvidia0", false),
        ("/dev/dri/card0", false),
        ("/dev/sdb", true),
    ] {
        every_store(|store| {
            let mut graph = Graph::default();
            let shell = graph.activity(None, 1, "/bin/sh", 0);
            for generic in ["/dev/null", "/dev/pts/1", "/proc/self/maps", "/dev/dri"] {
                let entity = graph.entity(EntityKind::Device, generic, 0, None);
                graph.edge(shell, entity, Relation::Read, 1, 2);
            }
            let card = graph.entity(EntityKind::Device, device, 0, None);
            for (pid, start, name) in [(2, 10, "first"), (3, 50, "second")] {
                let program = graph.activity(Some(shell), pid, name, start);
                let input = graph.file(&nowhere(&format!("{name}.in")), 0, None);
                let output = graph.file(&nowhere(&format!("{name}.out")), 1, None);
                graph.edge(program, input, Relation::Read, start + 1, start + 2);
                graph.edge(program, card, Relation::Write, start + 3, start + 4);
                graph.edge(program, card, Relation::Read, start + 3, start + 4);
                graph.edge(program, output, Relation::Write, start + 5, start + 6);
            }
            graph.append(store, "run00001", 0);
            let found = names(&of(store, "second.out", &all()));
            assert!(found.iter().any(|name| device.ends_with(name)), "{found:?}");
            assert_eq!(found.contains(&"first.in".into()), passes, "{device}");
            let details = backstory_query::details(store, "run00001").unwrap();
            // A directory is named only if no device in it is.
            let named = match device {
                "/dev/dri/card0" => vec![bytes(device)],
                _ => vec![bytes("/dev/dri"), bytes(device)],
            };
            assert_eq!(details.devices, named);
        });
    }
}
