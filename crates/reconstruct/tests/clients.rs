//! One request of a client: the record behind it is left out, and what was sent before prepares it.
#![allow(clippy::unwrap_used)]

use backstory_abi::{CHUNK_DEEP, CHUNK_MAGIC, Chunk, DONE, DeepRecord, deep};
use backstory_deep::{Compression, DeepEnd, DeepHeader, DeepLog, DeepWriter};
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::input::Taken;
use backstory_reconstruct::matcher::ProcessMatcher;
use backstory_reconstruct::request::choose;
use backstory_reconstruct::volatile::VolatileRules;

const READ: u16 = libc::SYS_read as u16;
const WRITE: u16 = libc::SYS_write as u16;
const SOCKET: u16 = libc::SYS_socket as u16;
const CONNECT: u16 = libc::SYS_connect as u16;
const EXIT_GROUP: u16 = libc::SYS_exit_group as u16;

/// The descriptor of the connection.
const FD: i32 = 3;
/// 127.0.0.1:8080
const ADDRESS: &[u8] = &[2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/// A call at a time, with its first two arguments of interest and a section.
fn record(
    call: u16,
    (time, fd): (u64, i32),
    result: i64,
    (a, b): (u64, u64),
    (kind, bytes): (u16, &[u8]),
) -> Vec<u8> {
    let size = DeepRecord::SIZE + 8 + bytes.len().next_multiple_of(8);
    let mut out = vec![DONE as u8, 0];
    out.extend(call.to_le_bytes());
    out.extend((size as u32).to_le_bytes());
    out.extend(time.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(fd.to_le_bytes());
    out.extend(result.to_le_bytes());
    out.extend(a.to_le_bytes());
    out.extend(b.to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.extend(1u16.to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
    out.resize(size, 0);
    out
}

fn moved(call: u16, at: (u64, i32), bytes: &[u8]) -> Vec<u8> {
    let kind = if call == READ {
        deep::ENTERED
    } else {
        deep::LEFT
    };
    record(call, at, bytes.len() as i64, (100, 0), (kind, bytes))
}

/// The calls before the first request.
fn connected() -> Vec<Vec<u8>> {
    let (inet, stream) = (libc::AF_INET as u64, libc::SOCK_STREAM as u64);
    let none: (u16, &[u8]) = (deep::ENTERED, b"");
    vec![
        record(deep::BEGIN, (50, -1), 1, (deep::BY_EXEC, 10), none),
        record(SOCKET, (100, -1), i64::from(FD), (inet, stream), none),
        record(CONNECT, (200, FD), 0, (0, 0), (deep::ADDRESS, ADDRESS)),
    ]
}

/// A client that asks three times on one connection, and prints each answer.
fn run() -> RecordedRun {
    let mut records = connected();
    for (time, question, answer) in [
        (300, "one", "ONE"),
        (500, "two", "TWO"),
        (700, "six", "SIX"),
    ] {
        records.push(moved(WRITE, (time, FD), question.as_bytes()));
        records.push(moved(READ, (time + 50, FD), answer.as_bytes()));
        records.push(moved(WRITE, (time + 100, 1), answer.as_bytes()));
    }
    let none: (u16, &[u8]) = (deep::ENTERED, b"");
    records.push(record(EXIT_GROUP, (900, -1), 0, (0, 0), none));
    loaded(&[records])
}

/// A process whose threads made these calls.
fn loaded(threads: &[Vec<Vec<u8>>]) -> RecordedRun {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.deep");
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    for (tid, records) in (10..).zip(threads) {
        let records = records.concat();
        let head = Chunk {
            magic: CHUNK_MAGIC,
            pid: 10,
            tid,
            epoch: 1,
            ppid: 1,
            next: (Chunk::SIZE + records.len()) as u64,
            flags: CHUNK_DEEP,
            ..Chunk::default()
        };
        let bytes = [&head.to_bytes()[..], &records].concat();
        log.chunk(&bytes, Compression::Usual).unwrap();
    }
    log.end(&DeepEnd::default()).unwrap();
    RecordedRun::load(&DeepLog::open(&path).unwrap())
}

/// Request 2 of the client runs again. It sends these bytes, each before the next answer. Returns
/// the state behind them, and the answers.
fn second(questions: &[&str]) -> (ProcessMatcher, Vec<Taken>) {
    let mut run = run();
    let unit = choose(&mut run, 2, &[], 0).unwrap();
    assert!(unit.is_client && run.is_cut);
    let connection = unit.connection;
    let resource = run.resources[connection].clone();
    let mut matcher = ProcessMatcher::new(run.processes[0].clone());
    let mut answers = Vec::new();
    for question in questions {
        let (to, rules) = ((connection, &resource), VolatileRules::default());
        assert_eq!(matcher.write(to, question.as_bytes(), &rules), None);
        answers.push(matcher.read(connection, 100, true, false));
    }
    (matcher, answers)
}

fn answer(text: &str) -> Taken {
    Taken::Bytes(text.as_bytes().to_vec(), Vec::new())
}

#[test]
fn a_request_of_a_client_gets_all_before_it_and_nothing_behind_it() {
    let (matcher, answers) = second(&["one", "two", "other"]);
    assert_eq!(answers, [answer("ONE"), answer("TWO"), Taken::Exhausted]);
    assert_eq!(matcher.divergence, None);
    // Output behind the request is not compared.
    assert_eq!(matcher.left, 6);
}

#[test]
fn the_end_of_a_request_of_a_client_is_the_last_call_for_it() {
    let mut run = run();
    let unit = choose(&mut run, 2, &[], 0).unwrap();
    assert_eq!((unit.ended, unit.worked_until), (550, 600));
    let streams = run.processes[0].streams.iter();
    let mut printed = streams.filter(|(id, _)| **id != unit.connection);
    let (_, printed) = printed.next().unwrap();
    assert_eq!(printed.output.remaining(), 6);
}

#[test]
fn the_end_of_a_request_of_a_client_is_before_another_thread_sends_the_next_one() {
    // The call took until 600.
    let mut printed = moved(WRITE, (400, 1), b"ONE");
    printed[16..20].copy_from_slice(&200u32.to_le_bytes());
    let mut first = connected();
    first.extend([
        moved(WRITE, (300, FD), b"one"),
        moved(READ, (350, FD), b"ONE"),
        printed,
    ]);
    let second = vec![
        moved(WRITE, (500, FD), b"two"),
        moved(READ, (550, FD), b"TWO"),
    ];
    let mut run = loaded(&[first, second]);
    let unit = choose(&mut run, 1, &[], 0).unwrap();
    assert_eq!((unit.ended, unit.worked_until), (350, 499));
    let streams = &run.processes[0].streams[&unit.connection];
    assert_eq!(streams.output.remaining(), 3);
}

#[test]
fn a_difference_before_a_request_of_a_client_is_noted_and_one_in_it_counts() {
    let (matcher, _) = second(&["own", "two"]);
    assert_eq!(matcher.divergence, None);
    assert!(matcher.differs_before());
    let (matcher, _) = second(&["one", "tow"]);
    assert_eq!(matcher.divergence.unwrap().position, 4);
}

#[test]
fn waits_whose_time_is_up_count_only_between_bytes_of_the_record() {
    let mut run = run();
    let unit = choose(&mut run, 2, &[], 0).unwrap();
    let mut matcher = ProcessMatcher::new(run.processes[0].clone());
    let sleeps = |matcher: &mut ProcessMatcher| (0..12).any(|_| matcher.idles());
    assert!(!sleeps(&mut matcher));
    assert_eq!(
        matcher.read(unit.connection, 100, true, false),
        answer("ONE")
    );
    assert!(!sleeps(&mut matcher));
    // A look at the next bytes takes none of them.
    assert_eq!(
        matcher.read(unit.connection, 100, true, true),
        answer("TWO")
    );
    assert!(sleeps(&mut matcher));
}
