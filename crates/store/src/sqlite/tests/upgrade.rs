//! Databases of a former schema are upgraded, and give the same answers.

use std::collections::HashMap;

use rusqlite::params;

use super::*;
use crate::block_tables::environment;
use crate::codec::schema2::tests::{encode, text_id};
use crate::codec::{RecordWriter, block, stream};

/// The tables that schema 3 replaced, as schemas 1 and 2 have them.
const FORMER: &str = "
    CREATE TABLE dirs (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE) STRICT;
    INSERT INTO dirs SELECT dir, path FROM paths; DROP TABLE paths; DROP TABLE directories;
    DROP TABLE texts; DROP TABLE text_keys; DROP TABLE activities; DROP TABLE extended; DROP TABLE edge_lists;
    CREATE TABLE texts (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE activities (id INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT;
    CREATE TABLE extended (id INTEGER PRIMARY KEY, activity INTEGER NOT NULL, time INTEGER NOT NULL,
        kind BLOB NOT NULL, payload BLOB NOT NULL) STRICT;";

type Extended = Vec<(ActivityId, i64, Bytes, Bytes)>;

/// All that the store says about a run.
fn answers(
    store: &SqliteStore,
    id: &str,
) -> (RunRecord, Vec<Activity>, Vec<Entity>, Vec<Stream>, Extended) {
    let run = store.run(id).unwrap().unwrap();
    let activities = store.activities(run.key).unwrap();
    let stream = |one: &Activity| store.stream(ActivityKey::new(run.key, one.id)).unwrap();
    let streams = activities.iter().map(stream).collect();
    let entities = store.entities(run.key).unwrap();
    let extended = store.extended(run.key).unwrap();
    (run, activities, entities, streams, extended)
}

/// Writes the edges of an activity as a chain of two segments of schema 2. Returns the newest.
fn former_segments(store: &SqliteStore, key: ActivityKey, base: i64) -> Option<u32> {
    let stream = store.stream(key).unwrap();
    let mut newest: Option<u32> = None;
    for half in 0..2 {
        let mut builder = stream::Builder::new(key.local(), base);
        let middle = stream.edges.len() / 2;
        let (first, second) = stream.edges.split_at(middle);
        match half {
            0 => first.iter().for_each(|edge| builder.edge(edge)),
            _ => {
                second.iter().for_each(|edge| builder.edge(edge));
                stream.informs.iter().for_each(|one| builder.informs(one));
                stream
                    .informed_by
                    .iter()
                    .for_each(|one| builder.informed_by(one));
                stream.derived.iter().for_each(|one| builder.derived(one));
            }
        }
        let list = builder.finish(None);
        let mut row = Vec::new();
        row.number(newest.map_or(0, |number| u64::from(number) + 1));
        block::put(&mut row, &list[1..]);
        let number = 1 << 20 | key.local().0 << 1 | half;
        let id = i64::from(key.run().0) << 32 | i64::from(number);
        store.add_row(BlockTable::Segments, id, &row).unwrap();
        newest = Some(number);
    }
    newest
}

/// Gives the database the tables and rows of schema 2.
fn make_former(store: &SqliteStore, runs: &[&str]) {
    let mut texts: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut rows = Vec::new();
    for id in runs {
        let (run, activities, _, _, extended) = answers(store, id);
        let mut text = |bytes: &[u8]| {
            texts.insert(text_id(bytes), bytes.to_vec());
            Ok(text_id(bytes))
        };
        let environment = text(&environment::encode(&run.header.environment)).unwrap();
        let mut records = Vec::new();
        for activity in &activities {
            let key = ActivityKey::new(run.key, activity.id);
            let segment = former_segments(store, key, run.header.started);
            records.push((
                key.0,
                encode(activity, segment, run.header.started, &mut text).unwrap(),
            ));
        }
        rows.push((run.key.0, environment, records, extended));
    }
    store.conn.execute_batch(FORMER).unwrap();
    let add = |sql: &str, row: &[&dyn rusqlite::ToSql]| {
        assert_eq!(store.conn.execute(sql, row).unwrap(), 1);
    };
    for (id, bytes) in &texts {
        add(
            "INSERT INTO texts VALUES (?, ?)",
            params![*id as i64, bytes],
        );
    }
    for (run, environment, records, extended) in &rows {
        let update = "UPDATE runs SET environment = ?2 WHERE number = ?1";
        add(update, params![run, *environment as i64]);
        for (key, record) in records {
            add(
                "INSERT INTO activities VALUES (?, ?)",
                params![*key as i64, record],
            );
        }
        for (number, (activity, time, kind, payload)) in extended.iter().enumerate() {
            let key = i64::from(*run) << 32 | number as i64;
            let row = params![key, activity.0, time, &**kind, &**payload];
            add("INSERT INTO extended VALUES (?, ?, ?, ?, ?)", row);
        }
    }
    store.conn.pragma_update(None, "user_version", 2).unwrap();
}

/// Processes with long arguments, some of them the same, and extended records of several blocks.
fn many(id: u32, sink: &mut Appender<'_>) -> Result<()> {
    turns(sink)?;
    for number in 3..200 {
        let argument = format!("an argument of process {} that is long", number % (20 + id));
        sink.activity(&activity(number, argument.as_bytes()))?;
    }
    (0..3000).try_for_each(|n| {
        let kind = if n % 3 == 0 { b"kind" } else { b"king" };
        sink.extended(ActivityId(n % 200), i64::from(n) * 1000, kind, &[7; 40])
    })
}

#[test]
fn a_database_of_schema_2_is_upgraded_and_gives_the_same_answers() {
    let tmp = tempfile::tempdir().unwrap();
    let runs = ["one", "two"];
    let before: Vec<_> = {
        let mut store = store(&tmp);
        for (number, id) in (0..).zip(runs) {
            let header = RunHeader {
                environment: vec![format!("RUN={number} with a long value").into_bytes()],
                started: 7_000_000 + i64::from(number),
                ..header(id)
            };
            store
                .append(&header, &RunEnd::default(), 0, &mut |sink| {
                    many(number, sink)
                })
                .unwrap();
        }
        make_former(&store, &runs);
        *store.cache.get_mut() = Cache::default();
        drop(store);
        let fresh = SqliteStore::open(&Home::open(tmp.path()).unwrap()).unwrap();
        runs.map(|id| answers(&fresh, id)).into()
    };
    // The expected answers come from a store that never had the former schema.
    let other = tempfile::tempdir().unwrap();
    let mut never = store(&other);
    for (number, id) in (0..).zip(runs) {
        let header = before[number as usize].0.header.clone();
        never
            .append(&header, &RunEnd::default(), 0, &mut |sink| {
                many(number, sink)
            })
            .unwrap();
        assert!(answers(&never, id) == before[number as usize]);
    }
    let upgraded = store(&tmp);
    let former = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'former%'";
    let left: i64 = upgraded
        .conn
        .query_row(former, [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    {
        let mut store = store(&tmp);
        store
            .append(&header("one"), &RunEnd::default(), 0, &mut |sink| {
                many(0, sink)
            })
            .unwrap();
        make_former(&store, &["one"]);
        store.conn.execute("DELETE FROM texts", []).unwrap();
    }
    let home = Home::open(tmp.path()).unwrap();
    for _ in 0..2 {
        let Err(failed) = SqliteStore::open(&home) else {
            panic!("a text is missing");
        };
        assert!(matches!(failed, Error::Damaged(_)), "{failed}");
    }
    let conn = Connection::open(home.database_path()).unwrap();
    let version: i64 = conn
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 2);
}
