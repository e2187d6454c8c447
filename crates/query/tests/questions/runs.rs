//! Runs, their files and their processes.

use backstory_eventlog::event::{UNNUMBERED, Via};
use backstory_eventlog::run::RunEnd;
use backstory_graph::model::*;
use backstory_query::answer::Access;
use backstory_query::{ContentRole, Error, contents, details, files, processes, resolve, runs};
use backstory_vocabulary::RowsMode;

use crate::graph::*;

#[test]
fn a_run_is_found_by_id_name_and_beginning() {
    every_store(|store| {
        assert!(matches!(resolve(store, None), Err(Error::NoRuns)));
        for (id, at) in [("aaaa1111", 10), ("aaaa2222", 30), ("bbbb3333", 20)] {
            Graph::default().append(store, id, at);
        }
        store
            .set_label("aaaa1111", backstory_store::Label::Name, Some("nightly"))
            .unwrap();
        store
            .set_label("bbbb3333", backstory_store::Label::Name, Some("nightly"))
            .unwrap();
        assert_eq!(resolve(store, None).unwrap(), "aaaa2222");
        assert_eq!(resolve(store, Some("nightly")).unwrap(), "bbbb3333");
        assert_eq!(resolve(store, Some("aaaa2")).unwrap(), "aaaa2222");
        assert!(matches!(
            resolve(store, Some("aaaa")),
            Err(Error::Ambiguous(..))
        ));
        for no in ["", "zz"] {
            assert!(matches!(resolve(store, Some(no)), Err(Error::NoRun(_))));
        }
        let ids: Vec<_> = runs(store).unwrap().into_iter().map(|run| run.id).collect();
        assert_eq!(ids, ["aaaa2222", "bbbb3333", "aaaa1111"]);
    });
}

#[test]
fn loss_and_doubt_make_a_run_incomplete() {
    every_store(|store| {
        let mut append = |id: &str, end: RunEnd, reason: Option<&str>| {
            store
                .append(&header(id, 1), &end, 5, &mut |sink| {
                    reason.map_or(Ok(()), |r| sink.unknown(r))
                })
                .unwrap();
        };
        append("whole", end(), None);
        append("lost", RunEnd { lost: 3, ..end() }, None);
        append(
            "log",
            RunEnd {
                incomplete_because: vec!["a".into()],
                ..end()
            },
            Some("a"),
        );
        append("graph", end(), Some("b"));
        let summary = |id: &str| details(store, id).unwrap().summary;
        assert!(summary("whole").complete);
        assert_eq!((summary("lost").complete, summary("lost").lost), (false, 3));
        assert_eq!(
            (summary("log").complete, summary("log").incomplete_because),
            (false, vec!["a".into()])
        );
        assert_eq!(
            (
                summary("graph").complete,
                summary("graph").incomplete_because
            ),
            (false, vec!["b".into()])
        );
        assert!(matches!(details(store, "no"), Err(Error::NoRun(_))));
    });
}

#[test]
fn details_name_peers_and_processes_with_unknown_lookups() {
    every_store(|store| {
        let mut graph = Graph::default();
        let p = graph.activity(None, 1, "/bin/p", 0);
        let q = graph.activity(Some(p), 2, "/bin/static", 5);
        graph.activities[1].lookups_known = false;
        for (name, sides) in [
            ("tcp:10.0.0.1:80", 1),
            ("tcp:10.0.0.1:80 (reply)", 2),
            ("unix:/in", 3),
            ("socket:4", 1),
        ] {
            let socket = graph.entity(EntityKind::Socket, name, 0, None);
            if sides & 1 != 0 {
                graph.edge(p, socket, Relation::Write, 1, 2);
            }
            if sides & 2 != 0 {
                graph.edge(q, socket, Relation::Read, 1, 2);
            }
        }
        graph.append(store, "run00001", 0);
        let details = details(store, "run00001").unwrap();
        assert_eq!(details.peers, ["tcp:10.0.0.1:80"]);
        assert_eq!(
            details.lookups_unknown,
            [((1 << 32) + 1, Some(bytes("/bin/static")))]
        );
        assert_eq!(
            (details.log_bytes, details.environment),
            (5, vec![bytes("A=1")])
        );
    });
}

#[test]
fn files_has_the_promised_words_once_per_path_and_certainty() {
    every_store(|store| {
        let mut graph = Graph::default();
        let p = graph.activity(None, 1, "/bin/p", 0);
        let q = graph.activity(Some(p), 2, "/bin/q", 0);
        let b = graph.file("/b", 0, None);
        let next = graph.file("/b", 1, None);
        graph.entities[1].aliases = vec![bytes("/alias")];
        let pipe = graph.entity(EntityKind::Pipe, "pipe:1", 0, None);
        let dir = graph.entity(EntityKind::Directory, "/a", 1, None);
        graph.edge(p, b, Relation::Read, 1, 2);
        graph.edge(q, b, Relation::Read, 1, 2);
        graph.only_possible();
        graph.edge(q, b, Relation::Link, 1, 2);
        graph.edges.last_mut().unwrap().via = Via::Kernel;
        graph.edge(p, next, Relation::Write, 1, 2);
        graph.only_possible();
        graph.edges.last_mut().unwrap().via = Via::Kernel;
        graph.edge(p, pipe, Relation::Write, 1, 2);
        graph.edge(p, dir, Relation::Make, 1, 1);
        graph.edge(p, dir, Relation::List, 1, 1);
        graph.append(store, "run00001", 0);
        let told: Vec<_> = files(store, "run00001")
            .unwrap()
            .into_iter()
            .map(|f| {
                (
                    String::from_utf8(f.path.into()).unwrap(),
                    f.access,
                    f.via,
                    f.certainty,
                )
            })
            .collect();
        use Access::*;
        let wanted = [
            (
                "/a".to_owned(),
                vec![Write, Dir],
                Via::Library,
                Certainty::Seen,
            ),
            (
                "/alias".to_owned(),
                vec![Write],
                Via::Kernel,
                Certainty::Possible,
            ),
            (
                "/b".to_owned(),
                vec![Read, Link],
                Via::Library,
                Certainty::Seen,
            ),
            (
                "/b".to_owned(),
                vec![Write],
                Via::Kernel,
                Certainty::Possible,
            ),
        ];
        assert_eq!(told, wanted);
    });
}

#[test]
fn each_name_of_a_file_has_its_own_words() {
    every_store(|store| {
        let mut graph = Graph::default();
        let p = graph.activity(None, 1, "/bin/p", 0);
        let file = graph.file("/a", 1, None);
        graph.entities[0].aliases = vec![bytes("/hard"), bytes("/unused")];
        let by = |seen: &[Relation], possible: &[Relation]| {
            let [seen, possible] =
                [seen, possible].map(|set| set.iter().fold(0, |all, one| all | one.bit()));
            ByName { seen, possible }
        };
        graph.entities[0].by_name = vec![
            by(&[Relation::Write], &[]),
            by(&[Relation::Read], &[Relation::Write]),
            by(&[], &[]),
        ];
        for relation in [Relation::Write, Relation::Read, Relation::Meta] {
            graph.edge(p, file, relation, 1, 2);
        }
        graph.append(store, "run00001", 0);
        let told: Vec<_> = files(store, "run00001")
            .unwrap()
            .into_iter()
            .map(|f| (f.path, f.access, f.certainty))
            .collect();
        use Access::*;
        let wanted = [
            (bytes("/a"), vec![Write, Meta], Certainty::Seen),
            (bytes("/hard"), vec![Read], Certainty::Seen),
            (bytes("/hard"), vec![Write], Certainty::Possible),
        ];
        assert_eq!(told, wanted, "what is of no name was done by the first");
    });
}

#[test]
fn a_file_that_lost_one_name_is_an_output_by_the_other() {
    every_store(|store| {
        let mut graph = Graph::default();
        let p = graph.activity(None, 1, "/bin/p", 0);
        let by = |set: &[Relation]| ByName {
            seen: set.iter().fold(0, |all, one| all | one.bit()),
            possible: 0,
        };
        use Relation::{Delete, Make, Write};
        let (written, removed) = (by(&[Write]), by(&[Write, Delete]));
        let (made, gone) = (by(&[Make]), by(&[Make, Delete]));
        for (at, (path, alias, by_name)) in [
            ("/a", "/b", vec![removed, made]),
            ("/c", "/d", vec![written, gone]),
            ("/e", "/f", vec![removed, gone]),
            ("/g", "/h", Vec::new()),
            // Another way to the first name, by a symbolic link.
            ("/i", "/j", vec![removed, written]),
            ("/k", "/l", vec![written, made]),
        ]
        .into_iter()
        .enumerate()
        {
            let file = graph.file(path, 1, None);
            graph.entities[at].aliases = vec![bytes(alias)];
            graph.entities[at].by_name = by_name;
            for relation in [Write, Make, Delete] {
                graph.edge(p, file, relation, 1, 2);
            }
        }
        graph.append(store, "run00001", 0);
        let files = contents(store, "run00001").unwrap().files;
        let told: Vec<_> = files
            .iter()
            .map(|file| (file.path.clone(), file.role))
            .collect();
        let wanted = [
            (bytes("/b"), ContentRole::Output),
            (bytes("/c"), ContentRole::Output),
            (bytes("/e"), ContentRole::Intermediate),
            (bytes("/g"), ContentRole::Intermediate),
            (bytes("/i"), ContentRole::Intermediate),
            (bytes("/k"), ContentRole::Output),
        ];
        assert_eq!(told, wanted);
        assert_eq!(
            (&files[0].aliases, &files[0].stayed),
            (&vec![bytes("/a")], &vec![bytes("/b")])
        );
        assert_eq!(files[5].stayed, [bytes("/k"), bytes("/l")]);
    });
}

#[test]
fn a_processs_parent_is_another_process_and_its_epoch_before_is_its_parent_activity() {
    every_store(|store| {
        let mut graph = Graph::default();
        let sh = graph.activity(None, 1, "/bin/sh", 0);
        let forked = graph.activity(Some(sh), 2, "/bin/sh", 5);
        graph.activity(Some(forked), 2, "/bin/ls", 6);
        graph.append(store, "run00001", 0);
        let lines = processes(store, "run00001").unwrap();
        let told: Vec<_> = lines
            .iter()
            .map(|l| (l.id & 0xff, l.parent_id.map(|p| p & 0xff), l.parent_pid))
            .collect();
        assert_eq!(
            told,
            [
                (0, None, None),
                (1, Some(0), Some(1)),
                (2, Some(1), Some(1))
            ]
        );
    });
}

#[test]
fn the_details_of_a_watch_have_its_transactions_and_the_tables_that_they_changed() {
    let mut graph = Graph::default();
    graph.activity(None, 7, "transaction psql", 0);
    let session = graph.activity(None, UNNUMBERED + 1, "postgres session", 0);
    for (number, name, version) in [
        (2, "postgres://h:1/bank/public.rates", 0),
        (3, "postgres://h:1/bank/public.accounts", 1),
        (4, "postgres://h:1/bank/public.accounts", 2),
        (5, "postgres://h:1/bank/public.notes?id=1", 1),
    ] {
        let what = format!("transaction {number}");
        let work = graph.activity(Some(session), UNNUMBERED + number, &what, 0);
        let table = graph.entity(EntityKind::Resource, name, version, None);
        graph.edge(work, table, Relation::Write, 1, 2);
    }
    every_store(|store| {
        let mut watch = header("watch", 0);
        watch.modes.rows = Some(RowsMode::On);
        let other = header("other", 0);
        for header in [&watch, &other] {
            graph.append_as(store, header);
        }
        let of = |id: &str| details(store, id).unwrap().database;
        let found = of("watch").unwrap();
        assert_eq!(found.transactions, 4);
        assert_eq!(Vec::from_iter(found.changed_tables), ["public.accounts"]);
        assert_eq!(of("other"), None);
    });
}
