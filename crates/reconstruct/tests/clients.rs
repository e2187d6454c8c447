//! One request of a client: the record behind it is left out, and what was sent before prepares it.
#![allow(clippy::unwrap_used)]

use crate::written_log;
use backstory_abi::{DeepRecord, deep};
use backstory_deep::DeepEnd;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::input::Taken;
use backstory_reconstruct::matcher::ProcessMatcher;
use backstory_reconstruct::request::choose;
use backstory_reconstruct::volatile::VolatileRules;
use backstory_testkit::deep_records::{WrittenSection, deep_record, thread_chunk};

const READ: u16 = libc::SYS_read as u16;
const WRITE: u16 = libc::SYS_write as u16;
const SOCKET: u16 = libc::SYS_socket as u16;
const CONNECT: u16 = libc::SYS_connect as u16;
const EXIT_GROUP: u16 = libc::SYS_exit_group as u16;

/// The descriptor of the connection.
const FD: i32 = 3;
/// 127.0.0.1:8080
const ADDRESS: WrittenSection<'_> = (
    deep::ADDRESS,
    &[2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
);
const NOTHING: WrittenSection<'_> = (deep::ENTERED, b"");

/// A call at a time.
fn call(call: u16, (time, fd): (u64, i32), result: i64) -> DeepRecord {
    DeepRecord {
        call,
        time,
        fd,
        result,
        ..DeepRecord::default()
    }
}

/// A call that moved these bytes, and took so many units of 64 counts.
fn moved_in(took: u32, number: u16, at: (u64, i32), bytes: &[u8]) -> Vec<u8> {
    let kind = match number {
        READ => deep::ENTERED,
        _ => deep::LEFT,
    };
    let head = DeepRecord {
        took,
        a: 100,
        ..call(number, at, bytes.len() as i64)
    };
    deep_record(head, &[(kind, bytes)])
}

fn moved(number: u16, at: (u64, i32), bytes: &[u8]) -> Vec<u8> {
    moved_in(0, number, at, bytes)
}

/// The calls before the first request.
fn connected() -> Vec<Vec<u8>> {
    let begin = DeepRecord {
        a: deep::BY_EXEC,
        b: 10,
        ..call(deep::BEGIN, (50, -1), 1)
    };
    let socket = DeepRecord {
        a: libc::AF_INET as u64,
        b: libc::SOCK_STREAM as u64,
        ..call(SOCKET, (100, -1), i64::from(FD))
    };
    vec![
        deep_record(begin, &[NOTHING]),
        deep_record(socket, &[NOTHING]),
        deep_record(call(CONNECT, (200, FD), 0), &[ADDRESS]),
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
    let exit = call(EXIT_GROUP, (900, -1), 0);
    records.push(deep_record(exit, &[NOTHING]));
    loaded(&[records])
}

/// A process whose threads made these calls.
fn loaded(threads: &[Vec<Vec<u8>>]) -> RecordedRun {
    let threads = (10..).zip(threads);
    let chunks: Vec<_> = threads
        .map(|(tid, records)| thread_chunk(tid, 0, records))
        .collect();
    written_log::loaded(&chunks, &DeepEnd::default())
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
    let mut first = connected();
    first.extend([
        moved(WRITE, (300, FD), b"one"),
        moved(READ, (350, FD), b"ONE"),
        moved_in(200, WRITE, (400, 1), b"ONE"),
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
