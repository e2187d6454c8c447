//! Tests of the engine's inside: streams of several segments, a full disk, texts whose ids collide.

use backstory_eventlog::event::{Bytes, Via};
use backstory_eventlog::run::{Machine, Modes, RunEnd, RunHeader};
use backstory_graph::model::*;
use backstory_vocabulary::SuppressMode;

use super::*;
use crate::Appender;
use crate::EngineControl;
use crate::MemoryStore;
use crate::block_tables::texts::{text_id, text_key};
use crate::block_tables::{BlockTable, PairTable, column};

mod hostile;
mod inodes;
mod renames;
mod upgrade;

fn header(id: &str) -> RunHeader {
    RunHeader {
        id: id.into(),
        name: None,
        repeats: None,
        source: None,
        database: None,
        imported: None,
        line: None,
        ssh_connection: None,
        job_rank: None,
        command: Vec::new(),
        environment: Vec::new(),
        cwd: Vec::new(),
        descriptors: Vec::new(),
        descriptor_flags: Vec::new(),
        descriptor_files: Vec::new(),
        launcher_pid: 0,
        boot_id: String::new(),
        machine: Machine::default(),
        uid: 0,
        modes: Modes {
            guard: None,
            lookups: None,
            io_uring: None,
            suppress: Some(SuppressMode::On),
            contents: None,
            self_contained: false,
            durability: None,
            deep: None,
            rows: None,
            byte_engine: false,
            fixed_addresses: false,
        },
        started: 0,
        since_boot: 0,
        arena: None,
        version: String::new(),
    }
}

fn activity(id: u32, argument: &[u8]) -> Activity {
    Activity {
        id: ActivityId(id),
        parent: None,
        pid: id,
        epoch: 1,
        exec_path: None,
        argv: vec![argument.into()],
        env_set: Vec::new(),
        env_unset: Vec::new(),
        cwd: Bytes::default(),
        interval: Interval { start: 0, end: 0 },
        exit: None,
        signal: None,
        execed: false,
        lookups_known: true,
        via: Via::Library,
    }
}

/// Some processes that take turns in reading and writing the same few hundred files.
fn turns(sink: &mut Appender<'_>) -> Result<()> {
    for id in 0..3 {
        sink.activity(&activity(id, b"a"))?;
    }
    for id in 0..300 {
        let path = format!("/d/{id}").into_bytes().into();
        let kind = EntityKind::File;
        let (aliases, previous, ident) = (Vec::new(), None, None);
        sink.entity(&Entity {
            id: EntityId(id),
            kind,
            path,
            aliases,
            by_name: Vec::new(),
            version: 0,
            previous,
            ident,
            last: false,
        })?;
    }
    for i in 0..1000u32 {
        let (activity, entity) = (ActivityId(i % 3), EntityId(i * 7 % 300));
        let relation = if i % 4 == 0 {
            Relation::Write
        } else {
            Relation::Read
        };
        let interval = Interval {
            start: i64::from(i),
            end: i64::from(i) + 5,
        };
        sink.edge(&Edge {
            activity,
            entity,
            relation,
            interval,
            certainty: Certainty::Seen,
            via: Via::Kernel,
        })?;
        if i % 50 == 0 {
            let to = ActivityId((i + 1) % 3);
            sink.inform(&Inform {
                from: activity,
                to,
                why: Informed::Wait,
                time: i64::from(i),
            })?;
        }
    }
    Ok(())
}

/// Bytes that cannot be compressed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn store(dir: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::open(&Home::open(dir.path()).unwrap()).unwrap()
}

#[test]
fn a_stream_of_many_segments_is_read_in_the_order_it_was_written() {
    let tmp = tempfile::tempdir().unwrap();
    let (mut sqlite, mut memory) = (store(&tmp), MemoryStore::default());
    let run = memory
        .append(&header("r"), &RunEnd::default(), 0, &mut turns)
        .unwrap();
    assert_eq!(
        sqlite
            .append(&header("r"), &RunEnd::default(), 0, &mut turns)
            .unwrap(),
        run
    );
    for table in ["segments", "edge_lists"] {
        let count = format!("SELECT count(*) FROM {table}");
        let rows: i64 = sqlite.conn.query_row(&count, [], |row| row.get(0)).unwrap();
        assert!(rows > 50, "{rows} {table}");
    }
    for id in 0..3 {
        let key = ActivityKey::new(run, ActivityId(id));
        assert_eq!(sqlite.stream(key).unwrap(), memory.stream(key).unwrap());
    }
    for id in 0..300 {
        let key = EntityKey::new(run, EntityId(id));
        let mut wanted = memory.touching(key).unwrap();
        wanted.sort_unstable();
        assert_eq!(sqlite.touching(key).unwrap(), wanted);
    }
}

#[test]
fn a_kept_record_of_a_run_is_the_present_one() {
    let tmp = tempfile::tempdir().unwrap();
    let (mut store, mut other) = (store(&tmp), store(&tmp));
    let run = store
        .append(&header("r"), &RunEnd::default(), 0, &mut turns)
        .unwrap();
    let name = |store: &SqliteStore| {
        let _one_state = store.reading().unwrap();
        let found = store.run("r").unwrap().map(|record| record.name);
        for _ in 0..2 {
            let again = store.run_by_key(run).unwrap().map(|record| record.name);
            assert_eq!(again, found);
        }
        found
    };
    assert_eq!(name(&store), Some(None));
    store.set_label("r", Label::Name, Some("own")).unwrap();
    assert_eq!(name(&store), Some(Some("own".to_owned())));
    other.set_label("r", Label::Name, Some("theirs")).unwrap();
    let changed = Some(Some("theirs".to_owned()));
    assert_eq!(store.run("r").unwrap().map(|record| record.name), changed);
    assert_eq!(name(&store), changed);
    assert!(other.remove("r").unwrap());
    assert_eq!(name(&store), None);
}

#[test]
fn an_append_without_space_fails_and_changes_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let mut store = store(&tmp);
    store
        .append(&header("before"), &RunEnd::default(), 0, &mut turns)
        .unwrap();
    let pages: i64 = store
        .conn
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .unwrap();
    store
        .conn
        .pragma_update(None, "max_page_count", pages + 1)
        .unwrap();
    let mut body = |sink: &mut Appender<'_>| {
        turns(sink)?;
        sink.extended(ActivityId(0), 0, b"big", &noise(7, 100_000))
    };
    let full = store.append(&header("after"), &RunEnd::default(), 0, &mut body);
    assert!(matches!(full, Err(Error::Full(_))), "{full:?}");
    assert_eq!(store.run_ids().unwrap().len(), 1);
    store
        .conn
        .pragma_update(None, "max_page_count", 1 << 20)
        .unwrap();
    store
        .append(&header("after"), &RunEnd::default(), 0, &mut turns)
        .unwrap();
}

#[test]
fn texts_of_a_removed_run_are_deleted_and_their_room_given_back() {
    let tmp = tempfile::tempdir().unwrap();
    let mut store = store(&tmp);
    let length = || {
        std::fs::metadata(tmp.path().join("graph.db"))
            .unwrap()
            .len()
    };
    let with = |store: &mut SqliteStore, id: &str, arguments: u32| {
        let append = |sink: &mut Appender<'_>| {
            (0..arguments).try_for_each(|n| {
                let seed = id
                    .bytes()
                    .fold(u64::from(n), |seed, byte| seed * 257 + u64::from(byte));
                let argument = noise(seed, 500);
                sink.activity(&activity(n, &argument))
            })
        };
        store
            .append(&header(id), &RunEnd::default(), 0, &mut { append })
            .unwrap()
    };
    let kept = with(&mut store, "kept", 20);
    store.compact().unwrap();
    store.bring_in_log().unwrap();
    let before = (length(), store.activities(kept).unwrap());
    with(&mut store, "gone", 5000);
    store.bring_in_log().unwrap();
    let most = length();
    assert!(most > before.0 + 5000 * 500, "{most}");
    assert!(store.remove("gone").unwrap());
    store.forget_unreferred().unwrap();
    store.compact().unwrap();
    assert!(length() <= before.0 + (64 << 10), "{} of {most}", length());
    assert_eq!(store.activities(kept).unwrap(), before.1);
    // A run that is appended again is found again.
    let again = with(&mut store, "gone", 30);
    assert_eq!(store.activities(again).unwrap().len(), 30);
}

#[test]
fn texts_whose_keys_collide_stay_apart() {
    let tmp = tempfile::tempdir().unwrap();
    let mut store = store(&tmp);
    let argument = b"an argument too long to be kept in place";
    let list = [&[argument.len() as u8], &argument[..]].concat();
    // A text with the same key, as if both had the same hash.
    let mut others = crate::codec::texts::Builder::default();
    others.push(b"something else of that key");
    store.begin().unwrap();
    store
        .add_row(BlockTable::Texts, 0, &others.finish())
        .unwrap();
    let pair = (text_key(&list), column(text_id(0, 0)));
    store.add_pairs(PairTable::TextKeys, &[pair]).unwrap();
    store.commit().unwrap();
    let one = activity(0, argument);
    let append = |sink: &mut Appender<'_>| sink.activity(&one);
    let run = store
        .append(&header("r"), &RunEnd::default(), 0, &mut { append })
        .unwrap();
    assert_eq!(store.activities(run).unwrap()[..], [activity(0, argument)]);
}

#[test]
fn a_left_log_is_brought_in_while_other_processes_have_the_database_open() {
    let tmp = tempfile::tempdir().unwrap();
    let mut left = store(&tmp);
    left.leave_log().unwrap();
    let mut body = |sink: &mut Appender<'_>| {
        turns(sink)?;
        (0..20).try_for_each(|n| sink.extended(ActivityId(0), n, b"big", &noise(n as u64, 100_000)))
    };
    left.append(&header("long"), &RunEnd::default(), 0, &mut body)
        .unwrap();
    assert!(left.has_long_log());
    let other = store(&tmp);
    drop(left);
    assert!(other.has_long_log());
    let third = store(&tmp);
    other.bring_in_log().unwrap();
    assert!(!other.has_long_log());
    assert_eq!(third.run_ids().unwrap().len(), 1);
}
