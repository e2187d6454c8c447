//! Small graphs to append.

use backstory_eventlog::event::{Bytes, Via};
use backstory_eventlog::run::{Machine, Modes, RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::*;
use backstory_store::{Appender, Error, RunKey, Store};
use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode};

pub fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

pub fn header(id: &str, started: i64) -> RunHeader {
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
        command: vec![b"make".to_vec(), b"\xff".to_vec()],
        environment: vec![b"A=1".to_vec(), b"B=\xfe".to_vec()],
        cwd: b"/work".to_vec(),
        descriptors: vec![(0, b"/dev/null".to_vec())],
        descriptor_flags: Vec::new(),
        descriptor_files: Vec::new(),
        launcher_pid: 7,
        boot_id: "boot".into(),
        machine: Machine {
            kernel: "Linux".into(),
            ..Machine::default()
        },
        uid: 1000,
        modes: Modes {
            guard: Some(GuardMode::On),
            lookups: Some(LookupsMode::Library),
            io_uring: Some(IoUringMode::Decode),
            suppress: Some(SuppressMode::On),
            contents: Some(ContentsMode::Off),
            self_contained: false,
            durability: None,
            deep: None,
            rows: None,
            byte_engine: false,
            fixed_addresses: false,
        },
        started,
        since_boot: 0,
        arena: None,
        version: "0".into(),
    }
}

pub fn end() -> RunEnd {
    RunEnd {
        exit: Some(0),
        command_ended: 90,
        ended: 100,
        ..RunEnd::default()
    }
}

pub fn ident(ino: u64, mtime: i64) -> Ident {
    Ident {
        dev: 2049,
        ino,
        size: 10,
        mtime,
        ctime: mtime + 3,
        birth: 5,
        mode: 0o100644,
        nlink: 1,
    }
}

pub fn activity(id: u32, parent: Option<u32>) -> Activity {
    Activity {
        id: ActivityId(id),
        parent: parent.map(ActivityId),
        pid: 100 + id,
        epoch: 1,
        exec_path: Some(bytes("/usr/bin/a-program-with-a-name")),
        argv: vec![
            bytes("a"),
            bytes("a rather long argument, so that it is kept apart"),
        ],
        env_set: vec![bytes("X=1")],
        env_unset: vec![bytes("Y")],
        cwd: bytes("/work"),
        interval: Interval {
            start: 1000,
            end: 2000,
        },
        exit: Some(0),
        signal: None,
        execed: false,
        lookups_known: true,
        via: Via::Library,
    }
}

pub fn entity(id: u32, path: &str, version: u32, ident: Option<Ident>) -> Entity {
    Entity {
        id: EntityId(id),
        kind: EntityKind::File,
        path: bytes(path),
        aliases: Vec::new(),
        by_name: Vec::new(),
        version,
        previous: None,
        ident,
        last: version > 0,
    }
}

pub fn edge(activity: u32, entity: u32, relation: Relation, start: i64, end: i64) -> Edge {
    Edge {
        activity: ActivityId(activity),
        entity: EntityId(entity),
        relation,
        interval: Interval { start, end },
        certainty: Certainty::Seen,
        via: Via::Library,
    }
}

/// Appends a run in which one process reads `input` and writes `output`.
pub fn copy(
    store: &mut dyn Store,
    id: &str,
    started: i64,
    input: (&str, Ident),
    output: (&str, Ident),
) -> RunKey {
    store
        .append(&header(id, started), &end(), 10, &mut |sink| {
            copy_body(sink, started, input, output)
        })
        .unwrap()
}

pub fn copy_body(
    sink: &mut Appender<'_>,
    at: i64,
    input: (&str, Ident),
    output: (&str, Ident),
) -> Result<(), Error> {
    sink.activity(&activity(0, None))?;
    sink.entity(&entity(0, input.0, 0, Some(input.1)))?;
    sink.edge(&edge(0, 0, Relation::Read, at + 1, at + 2))?;
    // The output's identity is known only when it is closed: announced early, completed later.
    sink.entity(&entity(1, output.0, 1, None))?;
    sink.edge(&edge(0, 1, Relation::Write, at + 2, at + 3))?;
    sink.entity(&entity(1, output.0, 1, Some(output.1)))
}
