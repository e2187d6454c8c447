//! The promises about facts. Every engine keeps them.

use backstory_files::Digest;
use backstory_store::facts::{
    Availability, DirectorySnapshot, Fact, JournalPosition, JournalRecord,
};
use backstory_store::{ContentFacts, GraphStore, Home, SqliteStore, Store};

use backstory_vocabulary::ContentsMode;

use crate::engines::every_store;
use crate::graph::*;

fn fact(ino: u64, digest: u8, availability: Availability) -> Fact {
    Fact {
        ident: ident(ino, 50),
        digest: Some(Digest([digest; 32])),
        availability,
    }
}

fn missing() -> Availability {
    Availability::Missing("it was removed".to_owned())
}

fn position(offset: u64) -> JournalPosition {
    JournalPosition {
        journal: [3; 16],
        offset,
    }
}

fn learn(store: &mut dyn Store, facts: &[Fact]) {
    let records: Vec<_> = facts.iter().cloned().map(JournalRecord::Fact).collect();
    store.learn(&records, position(9), false).unwrap();
}

#[test]
fn facts_that_are_asked_for_at_once_are_those_that_are_asked_for_one_by_one() {
    every_store(|store| {
        let idents: Vec<_> = (0..100).map(|ino| ident(ino % 90, 50)).collect();
        let digests: Vec<_> = (0..40).map(|digest| Digest([digest; 32])).collect();
        let compare = |store: &dyn Store| {
            let one_by_one = idents.iter().map(|ident| store.fact(ident).unwrap());
            let one_by_one: Vec<_> = one_by_one.collect();
            assert_eq!(store.facts_of(&idents).unwrap(), one_by_one);
            let at_once = store.with_contents(&digests).unwrap();
            assert_eq!(at_once.len(), digests.len());
            for (digest, mut found) in digests.iter().zip(at_once) {
                let mut wanted = store.with_content(digest).unwrap();
                found.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(found, wanted);
            }
        };
        compare(&*store);
        let facts: Vec<_> = (0..80)
            .map(|ino| fact(ino, (ino % 37) as u8, Availability::Stored))
            .collect();
        learn(store, &facts);
        compare(&*store);
        assert_eq!(
            store.facts_of(&idents).unwrap().iter().flatten().count(),
            90
        );
        assert_eq!(store.facts_of(&[]).unwrap(), []);
    });
}

#[test]
fn a_fact_is_found_by_its_version_and_by_its_digest() {
    every_store(|store| {
        assert_eq!(store.fact(&ident(1, 50)).unwrap(), None);
        let facts = [
            fact(1, 7, Availability::Stored),
            fact(2, 7, missing()),
            fact(3, 8, Availability::Stored),
        ];
        learn(store, &facts);
        assert_eq!(store.learned().unwrap(), position(9));
        let mut moved = facts[0].ident;
        (moved.ctime, moved.nlink, moved.mode) = (999, 2, 0o100755);
        let found = store.fact(&moved).unwrap().unwrap();
        assert_eq!(found.digest, facts[0].digest);
        assert_eq!(store.fact(&ident(1, 51)).unwrap(), None);
        let mut alike: Vec<u64> = store
            .with_content(&Digest([7; 32]))
            .unwrap()
            .iter()
            .map(|ident| ident.ino)
            .collect();
        alike.sort_unstable();
        assert_eq!(alike, [1, 2]);
        assert_eq!(store.facts().unwrap().len(), 3);
    });
}

#[test]
fn a_missing_content_does_not_replace_an_available_one() {
    every_store(|store| {
        learn(store, &[fact(1, 7, missing())]);
        learn(store, &[fact(1, 7, Availability::Stored)]);
        learn(store, &[fact(1, 7, missing())]);
        let facts = store.facts().unwrap();
        assert_eq!(facts.len(), 1);
        assert_eq!(facts[0].availability, Availability::Stored);
    });
}

#[test]
fn facts_that_are_learned_at_once_are_as_those_that_came_one_after_the_other() {
    let stored = |ino, digest| fact(ino, digest, Availability::Stored);
    let all = [
        fact(1, 7, missing()),
        stored(1, 7),
        fact(1, 7, missing()),
        stored(300, 8),
        stored(2, 9),
        stored(300, 6),
    ];
    every_store(|store| {
        // With an inode between them that is known already, and without.
        for known in [None, Some(stored(20, 5))] {
            store.learn(&[], position(1), true).unwrap();
            learn(store, known.as_slice());
            learn(store, &all);
            let facts = store.facts().unwrap();
            assert_eq!(facts.len(), 3 + known.iter().count());
            let said = |fact: Option<Fact>| fact.map(|fact| (fact.digest, fact.availability));
            for one in [stored(1, 7), stored(2, 9), stored(300, 6)]
                .into_iter()
                .chain(known)
            {
                let found = store.fact(&one.ident).unwrap();
                assert_eq!(said(found), said(Some(one)));
            }
        }
    });
}

#[test]
fn a_new_journal_replaces_all_facts_of_the_old_one() {
    every_store(|store| {
        learn(store, &[fact(1, 7, Availability::Stored)]);
        let snapshot = DirectorySnapshot {
            run: "r".to_owned(),
            entries: Vec::new(),
        };
        let run = JournalRecord::Run(snapshot.clone());
        store.learn(&[run], position(20), true).unwrap();
        assert_eq!(store.facts().unwrap(), []);
        assert_eq!(store.directory_snapshot("r").unwrap(), Some(snapshot));
        assert_eq!(store.learned().unwrap(), position(20));
        store.learn(&[], position(30), true).unwrap();
        assert_eq!(store.directory_snapshot("r").unwrap(), None);
    });
}

#[test]
fn runs_whose_contents_were_not_looked_at_are_listed_oldest_first() {
    every_store(|store| {
        for (id, started, contents) in [
            ("d", 9, Some(ContentsMode::Lazy)),
            ("a", 1, Some(ContentsMode::Off)),
            ("b", 5, Some(ContentsMode::All)),
            ("c", 7, Some(ContentsMode::Lazy)),
            ("e", 3, None),
        ] {
            let mut header = header(id, started);
            header.modes.contents = contents;
            store.append(&header, &end(), 0, &mut |_| Ok(())).unwrap();
        }
        let waiting = |store: &dyn Store| -> Vec<String> {
            let runs = store.runs_without_contents().unwrap();
            runs.into_iter().map(|run| run.header.id).collect()
        };
        assert_eq!(waiting(store), ["b", "c", "d"]);
        let looked = DirectorySnapshot {
            run: "c".to_owned(),
            entries: Vec::new(),
        };
        let mark = store.learned().unwrap();
        store
            .learn(&[JournalRecord::Run(looked)], mark, false)
            .unwrap();
        assert_eq!(waiting(store), ["b", "d"]);
        let mark = store.learned().unwrap();
        store
            .learn(&[JournalRecord::Forgotten("c".to_owned())], mark, false)
            .unwrap();
        assert_eq!(waiting(store), ["b", "c", "d"]);
    });
}

#[test]
fn an_open_store_sees_the_facts_that_another_process_learns() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    let asking = SqliteStore::open(&home).unwrap();
    assert_eq!(asking.fact(&ident(1, 50)).unwrap(), None);
    let mut other = SqliteStore::open(&home).unwrap();
    // These are the first facts of the store.
    learn(&mut other, &[fact(1, 7, Availability::Stored)]);
    let digest = || {
        let found = asking.fact(&ident(1, 50)).unwrap();
        found.and_then(|fact| fact.digest)
    };
    assert_eq!(digest(), Some(Digest([7; 32])));
    let _one_state = asking.reading().unwrap();
    assert_eq!(digest(), Some(Digest([7; 32])));
}
