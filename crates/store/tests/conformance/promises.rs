//! The promises of a store, one test each. Every engine keeps them.

use backstory_graph::model::*;
use backstory_store::{ActivityKey, EntityKey, Error, Label, RunKey, VersionMatch};

use crate::engines::every_store;
use crate::graph::*;

fn key(run: RunKey, local: u32) -> EntityKey {
    EntityKey::new(run, EntityId(local))
}

#[test]
fn a_run_comes_back_as_it_was_appended() {
    every_store(|store| {
        let mut long = entity(2, "/work/\u{e9}/\n", 0, None);
        long.kind = EntityKind::Missing;
        long.aliases = vec![bytes("/other/name"), bytes("pipe:3")];
        let mut next = entity(1, "/work/b", 1, Some(ident(9, 60)));
        next.previous = Some(EntityId(0));
        let entities = [entity(0, "/work/b", 0, Some(ident(9, 50))), next, long];
        let activities = [activity(0, None), activity(1, Some(0))];
        let edges = [
            edge(0, 0, Relation::Read, 1, 5),
            edge(1, 1, Relation::Write, 6, 6),
            edge(1, 2, Relation::Missing, 3, 4),
        ];
        let inform = Inform {
            from: ActivityId(0),
            to: ActivityId(1),
            why: Informed::Fork,
            time: 2,
        };
        let derived = Derived {
            entity: EntityId(1),
            from: EntityId(0),
            activity: ActivityId(1),
            time: 6,
        };
        let head = header("run00001", 0);
        let run = store
            .append(&head, &end(), 77, &mut |sink| {
                activities.iter().try_for_each(|a| sink.activity(a))?;
                entities.iter().try_for_each(|e| sink.entity(e))?;
                edges.iter().try_for_each(|e| sink.edge(e))?;
                sink.inform(&inform)?;
                sink.derived(&derived)?;
                sink.extended(ActivityId(1), 8, b"kind", b"pay\0load")?;
                sink.unknown("something")?;
                sink.unknown("something")
            })
            .unwrap();

        let record = store.run("run00001").unwrap().unwrap();
        assert_eq!(
            (record.key, &record.header, &record.end, record.log_bytes),
            (run, &head, &end(), 77)
        );
        assert_eq!(record.unknown, ["something"]);
        assert_eq!(
            (
                record.counts.activities,
                record.counts.entities,
                record.counts.edges
            ),
            (2, 3, 5)
        );
        assert_eq!(
            (record.counts.files_read, record.counts.files_written),
            (1, 1)
        );
        assert_eq!(store.run_by_key(run).unwrap().unwrap(), record);
        assert_eq!(store.activities(run).unwrap(), activities);
        assert_eq!(store.entities(run).unwrap(), entities);
        assert_eq!(
            store
                .activity(ActivityKey::new(run, ActivityId(1)))
                .unwrap(),
            activities[1]
        );
        assert_eq!(store.entity(key(run, 2)).unwrap(), entities[2]);
        let second = store.stream(ActivityKey::new(run, ActivityId(1))).unwrap();
        assert_eq!(
            (
                &second.edges[..],
                &second.informed_by[..],
                &second.derived[..]
            ),
            (&edges[1..], &[inform][..], &[derived][..])
        );
        assert_eq!(
            store
                .stream(ActivityKey::new(run, ActivityId(0)))
                .unwrap()
                .informs,
            [inform]
        );
        let mut touching = store.touching(key(run, 0)).unwrap();
        touching.sort();
        assert_eq!(touching, [(ActivityId(0), false), (ActivityId(1), false)]);
        assert_eq!(
            store.touching(key(run, 1)).unwrap(),
            [(ActivityId(1), true)]
        );
        assert_eq!(
            store.extended(run).unwrap(),
            [(ActivityId(1), 8, bytes("kind"), bytes("pay\0load"))]
        );
    });
}

#[test]
fn an_empty_run_is_a_run() {
    every_store(|store| {
        let run = store
            .append(&header("empty", 1), &end(), 0, &mut |_| Ok(()))
            .unwrap();
        assert!(store.activities(run).unwrap().is_empty());
        assert!(store.entities(run).unwrap().is_empty());
        assert_eq!(store.stats().unwrap().runs, 1);
    });
}

#[test]
fn the_last_announcement_wins() {
    every_store(|store| {
        let mut done = activity(0, None);
        done.exit = Some(3);
        let run = store
            .append(&header("twice", 1), &end(), 0, &mut |sink| {
                sink.activity(&activity(0, None))?;
                sink.entity(&entity(0, "/first", 0, None))?;
                sink.edge(&edge(0, 0, Relation::Read, 1, 2))?;
                sink.entity(&entity(0, "/second", 1, Some(ident(1, 2))))?;
                sink.activity(&done)
            })
            .unwrap();
        assert_eq!(store.activities(run).unwrap(), [done.clone()]);
        assert_eq!(
            store.entities(run).unwrap(),
            [entity(0, "/second", 1, Some(ident(1, 2)))]
        );
        assert!(store.at_path(b"/first").unwrap().is_empty());
    });
}

#[test]
fn a_graph_that_names_what_it_did_not_announce_is_refused() {
    every_store(|store| {
        let none = &mut |sink: &mut backstory_store::Appender<'_>| {
            sink.activity(&activity(0, None))?;
            sink.edge(&edge(0, 4, Relation::Read, 1, 2))
        };
        assert!(matches!(
            store.append(&header("bad", 1), &end(), 0, none),
            Err(Error::Unannounced {
                what: "entity",
                id: 4,
                ..
            })
        ));
        let hole =
            &mut |sink: &mut backstory_store::Appender<'_>| sink.activity(&activity(1, None));
        assert!(matches!(
            store.append(&header("bad", 1), &end(), 0, hole),
            Err(Error::Unannounced {
                what: "activity",
                id: 0,
                ..
            })
        ));
        assert!(store.run_ids().unwrap().is_empty());
    });
}

#[test]
fn a_failed_append_leaves_the_store_as_it_was() {
    every_store(|store| {
        copy(store, "first", 1, ("/a", ident(1, 1)), ("/b", ident(2, 2)));
        let before = (store.runs().unwrap(), store.stats().unwrap().counts);
        let failed = store.append(&header("second", 1), &end(), 0, &mut |sink| {
            sink.extended(ActivityId(0), 0, b"", b"").unwrap_err();
            copy_body(sink, 5, ("/c", ident(3, 3)), ("/d", ident(4, 4)))?;
            sink.extended(ActivityId(0), 0, b"kind", b"")?;
            Err(Error::source_failed("the log ended"))
        });
        assert!(matches!(failed, Err(Error::Source(_))));
        assert_eq!(
            (store.runs().unwrap(), store.stats().unwrap().counts),
            before
        );
        assert!(store.at_path(b"/d").unwrap().is_empty());
        copy(store, "second", 1, ("/c", ident(3, 3)), ("/d", ident(4, 4)));
        assert_eq!(store.at_path(b"/d").unwrap().len(), 1);
    });
}

#[test]
fn a_run_is_appended_once() {
    every_store(|store| {
        copy(store, "one", 1, ("/a", ident(1, 1)), ("/b", ident(2, 2)));
        let again = store.append(&header("one", 1), &end(), 0, &mut |_| Ok(()));
        assert!(matches!(again, Err(Error::Exists(id)) if id == "one"));
    });
}

#[test]
fn entities_are_found_by_path_and_alias_latest_run_first() {
    every_store(|store| {
        let first = copy(
            store,
            "one",
            1,
            ("/w/a", ident(1, 1)),
            ("/w/b", ident(2, 2)),
        );
        let second = copy(
            store,
            "two",
            9,
            ("/w/b", ident(2, 2)),
            ("/w/a", ident(3, 9)),
        );
        assert_eq!(
            store.at_path(b"/w/a").unwrap(),
            [key(second, 1), key(first, 0)]
        );
        assert_eq!(
            store.at_path(b"/w/b").unwrap(),
            [key(second, 0), key(first, 1)]
        );
        assert!(store.at_path(b"/w/").unwrap().is_empty());
        assert!(store.at_path(b"/v/a").unwrap().is_empty());
        let mut linked = entity(0, "/w/a", 0, None);
        linked.aliases = vec![bytes("/z/link")];
        let third = store
            .append(&header("three", 20), &end(), 0, &mut |sink| {
                sink.entity(&linked)
            })
            .unwrap();
        assert_eq!(store.at_path(b"/z/link").unwrap(), [key(third, 0)]);
        assert_eq!(
            store.at_path(b"/w/a").unwrap(),
            [key(third, 0), key(second, 1), key(first, 0)]
        );
    });
}

#[test]
fn a_version_is_found_by_identity_not_by_name_or_status_change() {
    every_store(|store| {
        let made = ident(7, 70);
        let first = copy(store, "one", 1, ("/a", ident(1, 1)), ("/old/name", made));
        let mut moved = made;
        (moved.ctime, moved.nlink, moved.mode) = (999, 2, 0o100755);
        let second = copy(store, "two", 50, ("/new/name", moved), ("/c", ident(8, 80)));
        let mut other_size = made;
        other_size.size = 11;
        let mut reborn = made;
        reborn.birth = 69;
        let mut unknown_birth = made;
        unknown_birth.birth = 0;
        assert_eq!(
            store.same(&moved, VersionMatch::Made).unwrap(),
            [key(first, 1)]
        );
        let mut any = store.same(&made, VersionMatch::Any).unwrap();
        any.sort();
        assert_eq!(any, [key(first, 1), key(second, 0)]);
        assert_eq!(
            store.same(&unknown_birth, VersionMatch::Made).unwrap(),
            [key(first, 1)]
        );
        assert!(
            store
                .same(&other_size, VersionMatch::Any)
                .unwrap()
                .is_empty()
        );
        assert!(store.same(&reborn, VersionMatch::Any).unwrap().is_empty());
        // A run that is appended after a question is found, too.
        let third = copy(
            store,
            "three",
            60,
            ("/new/name", moved),
            ("/d", ident(9, 90)),
        );
        assert_eq!(store.same(&made, VersionMatch::Any).unwrap().len(), 3);
        assert!(
            store
                .same(&made, VersionMatch::Any)
                .unwrap()
                .contains(&key(third, 0))
        );
    });
}

#[test]
fn a_removed_run_is_gone_and_the_others_stay() {
    every_store(|store| {
        copy(store, "one", 1, ("/a", ident(1, 1)), ("/b", ident(2, 2)));
        let second = copy(store, "two", 9, ("/b", ident(2, 2)), ("/c", ident(3, 9)));
        assert!(store.remove("one").unwrap());
        assert!(!store.remove("one").unwrap());
        assert!(store.run("one").unwrap().is_none());
        assert!(store.at_path(b"/a").unwrap().is_empty());
        assert_eq!(store.at_path(b"/b").unwrap(), [key(second, 0)]);
        assert!(
            store
                .same(&ident(2, 2), VersionMatch::Made)
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            store.same(&ident(2, 2), VersionMatch::Any).unwrap(),
            [key(second, 0)]
        );
        let again = copy(store, "one", 1, ("/a", ident(1, 1)), ("/b", ident(2, 2)));
        assert!(again > second, "numbers are never used again");
    });
}

#[test]
fn names_and_notes_can_be_changed() {
    every_store(|store| {
        copy(store, "one", 1, ("/a", ident(1, 1)), ("/b", ident(2, 2)));
        copy(store, "two", 9, ("/a", ident(1, 1)), ("/b", ident(2, 2)));
        for id in ["one", "two"] {
            store.set_label(id, Label::Name, Some("nightly")).unwrap();
        }
        store.set_label("one", Label::Note, Some("good")).unwrap();
        let ids: Vec<_> = store
            .runs_named("nightly")
            .unwrap()
            .into_iter()
            .map(|r| r.header.id)
            .collect();
        assert_eq!(ids, ["two", "one"]);
        assert_eq!(
            store.run("one").unwrap().unwrap().note.as_deref(),
            Some("good")
        );
        store.set_label("two", Label::Name, None).unwrap();
        assert_eq!(store.runs_named("nightly").unwrap().len(), 1);
        assert!(matches!(
            store.set_label("no", Label::Note, None),
            Err(Error::NoRun(_))
        ));
    });
}

#[test]
fn runs_are_listed_newest_first() {
    every_store(|store| {
        for (id, started) in [("b", 5), ("c", 9), ("a", 1)] {
            store
                .append(&header(id, started), &end(), 0, &mut |_| Ok(()))
                .unwrap();
        }
        let runs = store.runs().unwrap();
        let ids: Vec<_> = runs.iter().map(|run| &run.header.id).collect();
        assert_eq!(ids, ["c", "b", "a"]);
        let keys: Vec<_> = runs.iter().map(|run| run.key).collect();
        assert_eq!(store.runs_in_order().unwrap(), keys);
        assert_eq!(store.newest_run().unwrap().unwrap().header.id, "c");
        for run in &runs {
            let started = store.run_started(run.key).unwrap();
            assert_eq!(started, Some(run.header.started));
        }
        assert_eq!(store.run_started(RunKey(99)).unwrap(), None);
    });
}
