//! Facts about versions with one inode, which the file system used again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::facts::Availability;

/// A version with the same inode as all others.
fn version(number: i64) -> Ident {
    Ident {
        ino: 7,
        size: 100,
        mtime: number,
        ..Ident::default()
    }
}

fn learn(store: &mut SqliteStore, versions: Range<i64>) {
    let fact = |number| {
        JournalRecord::Fact(Fact {
            ident: version(number),
            digest: None,
            availability: Availability::Stored,
        })
    };
    let facts: Vec<JournalRecord> = versions.map(fact).collect();
    let mark = JournalPosition::default();
    store.learn(&facts, mark, false).unwrap();
}

#[test]
fn a_question_reads_the_facts_about_an_inode_once() {
    const VERSIONS: u64 = 200;
    let tmp = tempfile::tempdir().unwrap();
    let mut store = store(&tmp);
    learn(&mut store, 0..VERSIONS as i64);
    let operations = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&operations);
    let look = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    let _one_state = store.reading().unwrap();
    store.conn.progress_handler(1, Some(look));
    for number in 0..VERSIONS as i64 {
        let found = store.fact(&version(number)).unwrap();
        assert_eq!(found.map(|fact| fact.ident.mtime), Some(number));
    }
    store.conn.progress_handler(0, None::<fn() -> bool>);
    assert_eq!(store.fact(&version(-1)).unwrap(), None);
    // A search for each version would look at half of all, and take some operations for each.
    let operations = operations.load(Ordering::Relaxed);
    assert!(operations < 50 * VERSIONS, "{operations} operations");
}

#[test]
fn a_fact_that_was_added_since_the_last_question_is_found() {
    let tmp = tempfile::tempdir().unwrap();
    let (mut store, mut other) = (store(&tmp), store(&tmp));
    let known = |store: &SqliteStore| {
        let _one_state = store.reading().unwrap();
        [0, 1, 2].map(|number| store.fact(&version(number)).unwrap().is_some())
    };
    learn(&mut store, 0..1);
    assert_eq!(known(&store), [true, false, false]);
    learn(&mut other, 1..2);
    assert_eq!(known(&store), [true, true, false]);
    learn(&mut store, 2..3);
    assert_eq!(known(&store), [true; 3]);
}
