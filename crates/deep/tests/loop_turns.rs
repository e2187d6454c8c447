//! The turns of event loops: which calls they have, and which programs have them.
#![allow(clippy::unwrap_used)]

use backstory_abi::deep;
use backstory_deep::{
    Compression, DeepEnd, DeepHeader, DeepLog, DeepWriter, LoopTurn, Request, Role,
};
use backstory_testkit::deep_records::{WrittenSection, short_call, thread_chunk};
use std::collections::BTreeSet;

const READ: u16 = 0;
const WRITE: u16 = 1;
const POLL: u16 = 7;
const CONNECT: u16 = 42;
const OPENAT: u16 = 257;
const ACCEPT: u16 = 288;

/// The connection, and standard input.
const FD: i32 = 3;
const INPUT: i32 = 0;
const ADDRESS: WrittenSection<'_> = (deep::ADDRESS, &[2, 0, 0x1f, 0x90, 127, 0, 0, 1]);
const NOTHING: WrittenSection<'_> = (deep::ENTERED, b"");

fn wait(time: u64, ready: i64) -> Vec<u8> {
    short_call(POLL, 0, (time, -1), ready, NOTHING)
}

fn read(time: u64, fd: i32, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as i64;
    short_call(READ, 0, (time, fd), length, (deep::ENTERED, bytes))
}

fn write(time: u64, fd: i32, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as i64;
    short_call(WRITE, 0, (time, fd), length, (deep::LEFT, bytes))
}

/// The turns and requests of a program whose threads made these calls.
fn turns(threads: &[Vec<Vec<u8>>]) -> (Vec<LoopTurn>, Vec<Request>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.deep");
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    for (tid, records) in (10..).zip(threads) {
        log.chunk(&thread_chunk(tid, 0, records), Compression::Usual)
            .unwrap();
    }
    log.end(&DeepEnd::default()).unwrap();
    DeepLog::open(&path).unwrap().loop_turns()
}

/// A client that reads a question, sends it, and stores the answer. Its loop looks around once in
/// vain, and once its time is up.
fn client() -> Vec<Vec<u8>> {
    vec![
        short_call(CONNECT, 0, (1000, FD), 0, ADDRESS),
        wait(2000, 1),
        read(3000, INPUT, b"question"),
        write(4000, FD, b"question"),
        wait(5000, -4),
        wait(6000, 1),
        read(7000, FD, b"an "),
        read(8000, FD, b"answer"),
        short_call(OPENAT, 0, (9000, -100), 4, (deep::PATH, b"answers")),
        wait(10_000, 0),
        wait(11_000, 0),
        write(12_000, 1, b"tick"),
    ]
}

#[test]
fn a_turn_has_the_calls_of_its_thread_from_one_wait_to_the_next() {
    let (turns, requests) = turns(&[client()]);
    assert_eq!(requests.len(), 1);
    let calls: Vec<_> = turns.iter().map(|t| (t.from, t.to, t.calls)).collect();
    // The wait that failed, and the one behind which nothing was done, began none.
    assert_eq!(calls, [(2, 4, 2), (6, 9, 3), (11, 12, 1)]);
    let moved: Vec<_> = turns.iter().map(|t| (t.bytes_in, t.bytes_out)).collect();
    assert_eq!(moved, [(0, 8), (9, 0), (0, 0)]);
    let ready: Vec<_> = turns.iter().map(|t| t.ready).collect();
    assert_eq!(ready, [1, 1, 0]);
    let first = BTreeSet::from([0_usize]);
    let of: Vec<_> = turns.iter().map(|t| t.requests.clone()).collect();
    assert_eq!(of, [first.clone(), first, BTreeSet::new()]);
    assert_eq!(turns[1].files, [b"answers".to_vec()]);
    assert_eq!((turns[1].began, turns[1].ended), (6064, 9064));
}

#[test]
fn calls_of_another_thread_belong_to_no_turn_of_this_one() {
    let other = vec![read(6500, 5, b"x"), write(7500, 6, b"x")];
    let (turns, _) = turns(&[client(), other]);
    let calls: Vec<_> = turns.iter().map(|t| (t.from, t.to, t.calls)).collect();
    assert_eq!(calls, [(2, 4, 2), (6, 11, 3), (13, 14, 1)]);
}

#[test]
fn a_program_that_serves_has_requests_and_no_turns() {
    let server = vec![
        short_call(ACCEPT, 0, (100, 7), 8, ADDRESS),
        wait(200, 1),
        read(300, 8, b"served"),
        write(400, 8, b"done"),
    ];
    let (found, requests) = turns(&[[server, client()].concat()]);
    let roles: Vec<Role> = requests.iter().map(|request| request.role).collect();
    assert_eq!(roles, [Role::Server, Role::Client]);
    assert!(found.is_empty());
}

#[test]
fn a_program_that_asks_nothing_has_no_turns() {
    let (found, requests) = turns(&[vec![wait(100, 1), read(200, INPUT, b"x")]]);
    assert!(found.is_empty() && requests.is_empty());
}
