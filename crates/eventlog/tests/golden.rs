//! Logs of every version stay readable: `fixtures/logs/<version>/`.
//!
//! `pipeline.log` is `sh -c 'cp a b'` as recorded by guard and recorders. `pipeline.txt` is its
//! expected content. `continued.log` is the same log, whose chunks were appended in pieces. After a
//! change of the format, add a folder and keep the old one. `cargo test -p backstory-eventlog
//! --test eventlog -- --ignored golden` writes it.

use crate::common;
use backstory_abi::{Chunk, RESERVED, Record, SPAWN_VFORK, op};
use backstory_eventlog::frame::{self, FrameKind, LogPiece};
use backstory_eventlog::record::RecordBuilder;
use backstory_eventlog::run::{ClockPoint, Machine, Modes, RunEnd, RunHeader};
use backstory_eventlog::{Log, Writer, dump};
use backstory_files::Ident;
use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode, SuppressMode};
use common::ThreadStream;
use std::path::{Path, PathBuf};

fn folder(version: u16) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/logs/{version}"))
}

fn header() -> RunHeader {
    RunHeader {
        id: "7g3kq0zt".to_owned(),
        name: Some("golden".to_owned()),
        repeats: None,
        source: None,
        database: None,
        imported: None,
        line: None,
        ssh_connection: None,
        job_rank: None,
        command: ["sh", "-c", "cp a b"].map(|a| a.as_bytes().to_vec()).into(),
        environment: vec![b"PATH=/bin".to_vec(), b"ODD=\xff".to_vec()],
        cwd: b"/home/user".to_vec(),
        descriptors: vec![(0, b"/dev/null".to_vec()), (1, b"pipe:[5]".to_vec())],
        descriptor_flags: Vec::new(),
        descriptor_files: Vec::new(),
        launcher_pid: 90,
        boot_id: "6c7f1c0e-0000-4000-8000-000000000000".to_owned(),
        machine: Machine {
            kernel: "Linux 6.1.0 x86_64".to_owned(),
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
        started: 1_700_000_000_000_000_000,
        since_boot: 0,
        arena: None,
        version: "0.1.0".to_owned(),
    }
}

fn ident(ino: u64, ctime: i64, size: i64) -> Ident {
    let mtime = ctime;
    Ident {
        dev: 0x801,
        ino,
        size,
        mtime,
        ctime,
        birth: 1_600_000_000_000_000_000,
        mode: 0o100_644,
        nlink: 1,
    }
}

/// The supervisor's records.
fn guard() -> ThreadStream {
    let mut guard = ThreadStream::guard(0);
    guard.by(100, 100).record(op::BORN, 1_000, |b| {
        b.fd(100)
            .arg(90)
            .result(0)
            .string(b"")
            .string(b"/home/user");
    });
    guard.record(op::ARGS, 1_100, |b| {
        b.result(0).string(b"sh").string(b"-c").string(b"cp a b");
    });
    guard.record(op::EXEC, 1_100, |b| {
        b.fd(-100).arg(3).resolved().string(b"/bin/sh");
    });
    guard.record(op::OPEN, 1_200, |b| {
        b.fd(-100).predicted(3).resolved().string(b"/lib/libc.so.6");
    });
    guard.by(101, 101).record(op::OPEN, 5_200, |b| {
        b.fd(-100)
            .predicted(-2)
            .resolved()
            .string(b"/etc/ld.so.preload");
    });
    guard.record(op::GONE, 9_100, |b| {
        b.fd(101).aux(1).result(0);
    });
    guard
}

/// The shell, and in its chunk the child it spawned.
fn shell() -> ThreadStream {
    let mut shell = ThreadStream::of(Chunk {
        index: 1,
        pid: 100,
        tid: 100,
        epoch: 1,
        taken: 2_000,
        ppid: 90,
        ..Chunk::default()
    });
    shell.record(op::START, 2_000, |b| {
        b.fd(100).arg(90).result(0);
    });
    shell.record(op::STAT, 2_500, |b| {
        b.fd(-100).result(-2).string(b"/usr/local/bin/cp");
    });
    shell.record(op::VFORK, 3_000, |b| {
        b.arg(SPAWN_VFORK).result(0);
    });
    shell.record(op::ARGS, 3_100, |b| {
        b.result(0).string(b"cp").string(b"a").string(b"b");
    });
    shell.record(op::ENV, 3_100, |b| {
        b.fd(0x1234)
            .arg(0x5678)
            .result(0)
            .string(b"PATH=/bin")
            .string(b"ODD=\xff");
    });
    shell.record(op::EXEC, 3_200, |b| {
        b.fd(-100).arg(3).string(b"/bin/cp");
    });
    shell.record(op::VFORKED, 5_000, |b| {
        b.result(101);
    });
    shell.record(op::WAIT, 5_100, |b| {
        b.result(101);
    });
    shell
}

fn cp() -> ThreadStream {
    let mut cp = ThreadStream::of(Chunk {
        index: 2,
        pid: 101,
        tid: 101,
        epoch: 2,
        taken: 6_000,
        ppid: 100,
        ..Chunk::default()
    });
    cp.record(op::START, 6_000, |b| {
        b.fd(101).arg(100).result(0);
    });
    cp.record(op::OPEN, 6_100, |b| {
        b.fd(-100).result(3).string(b"a");
    });
    cp.record(op::OPEN, 6_200, |b| {
        b.fd(-100)
            .arg(0o1101)
            .aux(0o644)
            .result(4)
            .ident(&ident(12, 1_650_000_000_000_000_000, 3))
            .string(b"b");
    });
    cp.record(op::COPY, 6_300, |b| {
        b.fd(3).arg(4).result(6);
    });
    cp.record(op::CLOSE, 6_400, |b| {
        b.fd(4)
            .result(0)
            .ident(&ident(12, 1_700_000_000_000_006_000, 6));
    });
    cp.record(op::EXIT, 6_500, |_| {});
    cp
}

fn write(path: &Path) {
    write_chunks(path, |writer| {
        for stream in [cp(), shell(), guard()] {
            writer.chunk(stream.chunk.bytes()).expect("append");
        }
    });
}

/// The same log, whose chunks were appended in three pieces. The second piece begins with a record
/// that the first one had in another state.
fn write_continued(path: &Path) {
    let streams = [cp(), shell(), guard()];
    let chunks: Vec<&[u8]> = streams.iter().map(|of| of.chunk.bytes()).collect();
    write_chunks(path, |writer| {
        for chunk in &chunks {
            let mut first = part(chunk, 0, 3);
            // The third record was not complete yet.
            let third = offsets(chunk)[2];
            first[third..third + 2].copy_from_slice(&RESERVED.to_le_bytes());
            writer.chunk(&first).expect("append");
        }
        for chunk in &chunks {
            let from = offsets(chunk)[2];
            writer.more(&part(chunk, 2, 4), from).expect("append");
        }
        for chunk in &chunks {
            let from = offsets(chunk)[4];
            let all = offsets(chunk).len();
            writer.more(&part(chunk, 4, all), from).expect("append");
        }
    });
}

/// The offsets of the records in a chunk.
fn offsets(chunk: &[u8]) -> Vec<usize> {
    let mut at = Chunk::SIZE;
    let mut all = Vec::new();
    while let Some(record) = chunk.get(at..).and_then(Record::read) {
        all.push(at);
        at += usize::from(record.size);
    }
    all
}

/// The header that a chunk had with `to` records, then the records from number `from` on.
fn part(chunk: &[u8], from: usize, to: usize) -> Vec<u8> {
    let offsets = offsets(chunk);
    let end = offsets.get(to).copied().unwrap_or(chunk.len());
    let head = Chunk {
        next: end as u64,
        ..Chunk::read(chunk).expect("a chunk")
    };
    [&head.to_bytes()[..], &chunk[offsets[from]..end]].concat()
}

fn write_chunks(path: &Path, append: impl FnOnce(&mut Writer)) {
    let mut writer = Writer::create(path, &header()).expect("create");
    let clock = |counter| ClockPoint {
        counter,
        real: 1_700_000_000_000_000_000 + counter as i64 / 2,
    };
    writer.clock(clock(0)).expect("append");
    append(&mut writer);
    writer.clock(clock(10_000)).expect("append");
    let ended = 1_700_000_000_000_005_000;
    let end = RunEnd {
        exit: Some(0),
        command_ended: ended,
        ended,
        ..RunEnd::default()
    };
    writer.end(&end).expect("append");
    let mut builder = RecordBuilder::new();
    let mut records = Vec::new();
    records.extend_from_slice(builder.identity(
        0,
        b"/home/user/a",
        true,
        Ok(&ident(11, 1_650_000_000_000_000_000, 6)),
    ));
    records.extend_from_slice(builder.identity(0, b"/usr/local/bin/cp", false, Err(2)));
    writer.resolved(&records).expect("append");
}

/// Everything that can be read from a log, as text.
fn read(path: &Path) -> String {
    let log = Log::open(path).expect("opens");
    assert!(log.damage().is_none() && log.resolved() && log.end().is_some());
    let mut text = Vec::new();
    dump(&log, &mut text).expect("dump");
    let mut text = String::from_utf8(text).expect("ASCII");
    let header = serde_json::to_string(log.header()).expect("JSON");
    text.push_str(&format!("header {header}\n"));
    for event in log.events() {
        text.push_str(&format!("{event:?}\n"));
    }
    let found = log.identities();
    for path in [&b"/home/user/a"[..], b"/usr/local/bin/cp"] {
        text.push_str(&format!(
            "{} {:?}\n",
            path.escape_ascii(),
            found.of(path, true)
        ));
    }
    text
}

#[test]
fn every_version_is_read_as_ever() {
    for version in 1..=frame::VERSION {
        let folder = folder(version);
        let expected = std::fs::read_to_string(folder.join("pipeline.txt")).expect("golden text");
        assert_eq!(
            read(&folder.join("pipeline.log")),
            expected,
            "version {version}"
        );
    }
}

#[test]
fn a_log_in_pieces_is_read_as_ever() {
    let folder = folder(1);
    let expected = std::fs::read_to_string(folder.join("continued.txt")).expect("golden text");
    assert_eq!(read(&folder.join("continued.log")), expected);
}

#[test]
fn a_log_in_pieces_has_the_events_of_the_whole_one() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (whole, pieces) = (dir.path().join("whole"), dir.path().join("pieces"));
    write(&whole);
    write_continued(&pieces);
    let events = |path: &Path| -> Vec<String> {
        let log = Log::open(path).expect("opens");
        assert!(log.damage().is_none(), "{:?}", log.damage());
        log.events().map(|event| format!("{event:?}")).collect()
    };
    assert_eq!(events(&pieces), events(&whole));
    let golden = fixed(&folder(1).join("continued.log"));
    assert!(fixed(&pieces) == golden, "the format has changed");
}

#[test]
fn a_log_in_pieces_that_is_cut_has_a_prefix_of_each_thread() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("log");
    write_continued(&path);
    let bytes = std::fs::read(&path).expect("read");
    let mut most = 0;
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).expect("write");
        let count = Log::open(&path).expect("opens").events().count();
        assert!(count >= most, "{length} bytes lose events");
        most = count;
    }
    assert!(most > 10, "{most}");
}

/// Every frame whose content is fixed; header and end are JSON, to which fields may be added.
fn fixed(path: &Path) -> Vec<(Option<FrameKind>, u16, Vec<u8>)> {
    let bytes = std::fs::read(path).expect("read");
    let frames = frame::walk(&bytes).filter_map(|piece| match piece {
        LogPiece::Frame(frame) => Some((frame.kind, frame.version, bytes[frame.payload].to_vec())),
        LogPiece::Garbage(_) => None,
    });
    frames
        .filter(|f| !matches!(f.0, Some(FrameKind::Header | FrameKind::End)))
        .collect()
}

#[test]
fn the_newest_golden_log_is_what_the_writer_writes() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("log");
    write(&path);
    let golden = fixed(&folder(frame::VERSION).join("pipeline.log"));
    assert_eq!(golden.len(), 7);
    assert!(
        fixed(&path) == golden,
        "the format has changed: raise its version, add a golden log"
    );
}

#[test]
#[ignore = "writes the golden log of a new version, and what is read from it"]
fn write_the_golden_log() {
    let folder = folder(frame::VERSION);
    std::fs::create_dir_all(&folder).expect("folder");
    let path = folder.join("pipeline.log");
    // An existing log is never changed; its printed form may change.
    if !path.exists() {
        write(&path);
    }
    std::fs::write(folder.join("pipeline.txt"), read(&path)).expect("write");
    let path = folder.join("continued.log");
    if !path.exists() {
        write_continued(&path);
    }
    std::fs::write(folder.join("continued.txt"), read(&path)).expect("write");
}
