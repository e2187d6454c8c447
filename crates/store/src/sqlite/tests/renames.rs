//! Runs whose renames an earlier program did not list, and removed runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Deletes what a program without lists of renames does not write.
const UNLISTED: &str = "
    DELETE FROM touched WHERE dir IN (SELECT dir FROM paths WHERE path >= x'00' AND path < x'01');
    DELETE FROM paths WHERE path >= x'00' AND path < x'01'";

/// A directory at a path, or one that a run has made.
fn directory(id: u32, path: &str, version: u32) -> Entity {
    Entity {
        id: EntityId(id),
        kind: EntityKind::Directory,
        path: path.as_bytes().into(),
        aliases: Vec::new(),
        by_name: Vec::new(),
        version,
        previous: None,
        ident: Some(Ident {
            ino: 7,
            ..Ident::default()
        }),
        last: false,
    }
}

/// A run that renames `/w/a` to `/w/b`, or that only uses both.
fn append(store: &mut SqliteStore, id: &str, renames: bool) -> [EntityKey; 2] {
    append_at(store, id, ["/w/a", "/w/b"], renames)
}

/// A run that renames the first path to the second, or that only uses both.
fn append_at(
    store: &mut SqliteStore,
    id: &str,
    [from, to]: [&str; 2],
    renames: bool,
) -> [EntityKey; 2] {
    let edge = |entity, relation| Edge {
        activity: ActivityId(0),
        entity: EntityId(entity),
        relation,
        interval: Interval { start: 1, end: 2 },
        certainty: Certainty::Seen,
        via: Via::Kernel,
    };
    let run = store.append(&header(id), &RunEnd::default(), 0, &mut |sink| {
        sink.activity(&activity(0, b"mv"))?;
        sink.entity(&directory(0, from, 0))?;
        sink.entity(&directory(1, to, u32::from(renames)))?;
        if !renames {
            sink.edge(&edge(0, Relation::List))?;
            return sink.edge(&edge(1, Relation::List));
        }
        sink.derived(&Derived {
            entity: EntityId(1),
            from: EntityId(0),
            activity: ActivityId(0),
            time: 2,
        })?;
        sink.edge(&edge(0, Relation::Delete))?;
        sink.edge(&edge(1, Relation::Rename))
    });
    let run = run.unwrap();
    [0, 1].map(|id| EntityKey::new(run, EntityId(id)))
}

#[test]
fn runs_of_an_earlier_program_are_found_beside_those_with_lists() {
    let tmp = tempfile::tempdir().unwrap();
    let mut store = store(&tmp);
    let old_rename = append(&mut store, "old", true);
    let old_use = append(&mut store, "old-use", false);
    store.conn.execute_batch(UNLISTED).unwrap();
    *store.cache.get_mut() = Cache::default();
    let found = |store: &SqliteStore, path: &str| store.rename_candidates(path.as_bytes()).unwrap();
    for end in 0..2 {
        let path = ["/w/a", "/w/b"][end];
        assert_eq!(found(&store, path), [old_use[end], old_rename[end]]);
    }
    append(&mut store, "new-use", false);
    let new_rename = append(&mut store, "new", true);
    for end in 0..2 {
        let path = ["/w/a", "/w/b"][end];
        let all = [new_rename[end], old_use[end], old_rename[end]];
        assert_eq!(found(&store, path), all);
    }
    for old in ["old", "old-use"] {
        assert!(store.remove(old).unwrap());
    }
    assert_eq!(found(&store, "/w/a"), [new_rename[0]]);
}

#[test]
fn a_run_that_an_earlier_program_removed_is_no_candidate() {
    let tmp = tempfile::tempdir().unwrap();
    let mut store = store(&tmp);
    let removed = append(&mut store, "removed", true);
    let left = append(&mut store, "left", true);
    assert_eq!(
        store.rename_candidates(b"/w/a").unwrap(),
        [left[0], removed[0]]
    );
    let entries = "SELECT dir, members FROM touched WHERE members >> 32 = ?1 \
                   AND dir IN (SELECT dir FROM paths WHERE path >= x'00' AND path < x'01')";
    let kept: Vec<(i64, i64)> = store
        .all(entries, [removed[0].run().0], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(kept.len(), 3, "the run, and both paths");
    assert!(store.remove("removed").unwrap());
    store.begin().unwrap();
    store.add_pairs(PairTable::Touched, &kept).unwrap();
    store.commit().unwrap();
    *store.cache.get_mut() = Cache::default();
    assert_eq!(store.rename_candidates(b"/w/a").unwrap(), [left[0]]);
}

#[test]
fn a_rename_that_another_process_appends_is_found() {
    let tmp = tempfile::tempdir().unwrap();
    let (asking, mut appending) = (store(&tmp), store(&tmp));
    let first = append(&mut appending, "first", true);
    assert_eq!(asking.rename_candidates(b"/w/a").unwrap(), [first[0]]);
    let second = append(&mut appending, "second", true);
    let both = [second[0], first[0]];
    assert_eq!(asking.rename_candidates(b"/w/a").unwrap(), both);
}

/// The operations of SQLite's virtual machine that the removal of a run takes. So many other runs
/// renamed directories of their own.
fn operations_of_removal(others: u32) -> u64 {
    let tmp = tempfile::tempdir().unwrap();
    let mut store = store(&tmp);
    let [_, made] = append(&mut store, "removed", true);
    for other in 0..others {
        let [from, to] = ["a", "b"].map(|name| format!("/other/{other}/{name}"));
        append_at(&mut store, &format!("other{other}"), [&from, &to], true);
    }
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let look = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    store.conn.progress_handler(1, Some(look));
    assert!(store.remove("removed").unwrap());
    store.conn.progress_handler(0, None::<fn() -> bool>);
    for (table, key) in [("touched", "members"), ("made", "entity")] {
        let of_run = format!("SELECT count(*) FROM {table} WHERE {key} >> 32 = ?1");
        let left: Option<u32> = store
            .one(&of_run, [made.run().0], |row| row.get(0))
            .unwrap();
        assert_eq!(left, Some(0), "{table}");
    }
    count.load(Ordering::Relaxed)
}

#[test]
fn the_removal_of_a_run_looks_at_no_rows_of_runs_with_other_paths() {
    let (alone, among_others) = (operations_of_removal(0), operations_of_removal(200));
    assert!(
        among_others < alone + 100,
        "{alone} operations, with 200 other runs {among_others}"
    );
}
