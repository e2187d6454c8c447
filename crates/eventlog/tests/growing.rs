//! A reader of a growing log has each event once, whenever it looks.

use crate::common;
use backstory_abi::op;
use backstory_eventlog::event::{Event, Op, Outcome};
use backstory_eventlog::{LogTail, Patience};
use common::{Scratch, ThreadStream};
use proptest::prelude::*;
use std::time::Duration;

/// A record of a thread: operation, time, result.
type Made = (u16, u64, Option<i32>);

fn chunk(tid: u32, records: &[Made]) -> ThreadStream {
    let mut stream = ThreadStream::new(1, 1, tid);
    for (op, time, result) in records {
        stream.record(*op, *time, |record| {
            if let Some(result) = result {
                record.result(*result);
            }
        });
    }
    stream
}

/// A reader with this patience, in nanoseconds.
fn tail(late: u64, lasting: u64) -> LogTail {
    LogTail::new(Patience {
        late: Duration::from_nanos(late),
        lasting: Duration::from_nanos(lasting),
    })
}

/// The thread and the outcome of each event that has come. No reader waits for longer than a quiet
/// log is quiet.
fn read(tail: &mut LogTail, log: &Scratch, is_quiet: bool) -> Vec<(u32, Outcome)> {
    tail.grow(log.path()).expect("grow");
    let mut events = Vec::new();
    tail.read(quiet(is_quiet), |event| {
        events.push((event.tid, event.outcome))
    });
    events
}

fn quiet(is_quiet: bool) -> Duration {
    Duration::from_nanos(if is_quiet { 20 } else { 0 })
}

/// A log in which counters are nanoseconds.
fn scratch() -> Scratch {
    let mut log = Scratch::new();
    log.clock(0).clock(1_000);
    log
}

const DONE: Outcome = Outcome::Done(1);

#[test]
fn young_records_wait_for_older_ones_unless_the_log_is_quiet() {
    let mut log = scratch();
    let mut tail = tail(20, 1_000);
    log.add(&chunk(
        1,
        &[(op::WRITE, 10, Some(1)), (op::WRITE, 40, Some(1))],
    ));
    assert_eq!(read(&mut tail, &log, false), [(1, DONE)]);
    log.add(&chunk(2, &[(op::READ, 30, Some(1))]));
    assert_eq!(read(&mut tail, &log, false), []);
    assert_eq!(read(&mut tail, &log, true), [(2, DONE), (1, DONE)]);
    assert_eq!(read(&mut tail, &log, true), []);
}

#[test]
fn a_record_that_comes_behind_later_ones_is_given_at_once() {
    let mut log = scratch();
    let mut tail = tail(0, 1_000);
    log.add(&chunk(
        1,
        &[(op::WRITE, 10, Some(1)), (op::WRITE, 40, Some(1))],
    ));
    assert_eq!(read(&mut tail, &log, true).len(), 2);
    assert!(!tail.is_disordered());
    log.add(&chunk(2, &[(op::READ, 30, Some(1))]));
    assert_eq!(read(&mut tail, &log, true), [(2, DONE)]);
    assert!(tail.is_disordered());
}

#[test]
fn a_call_is_given_with_its_result_and_keeps_no_other_thread_back() {
    let mut log = scratch();
    let mut tail = tail(0, 100);
    log.add(&chunk(1, &[(op::WRITE, 10, None)]));
    log.add(&chunk(2, &[(op::READ, 30, Some(1))]));
    assert_eq!(read(&mut tail, &log, true), [(2, DONE)]);
    log.add(&chunk(1, &[(op::WRITE, 10, Some(1))]));
    assert_eq!(read(&mut tail, &log, true), [(1, DONE)]);
    assert!(!tail.is_disordered(), "it had come in time");
}

#[test]
fn a_call_that_lasts_is_given_without_its_result_and_later_with_it() {
    let mut log = scratch();
    let mut tail = tail(0, 100);
    log.add(&chunk(1, &[(op::WRITE, 10, None)]));
    log.add(&chunk(2, &[(op::READ, 200, Some(1))]));
    let both = [(1, Outcome::Unknown), (2, DONE)];
    assert_eq!(read(&mut tail, &log, true), both);
    assert_eq!(read(&mut tail, &log, true), []);
    let returned = [(op::WRITE, 10, Some(1)), (op::READ, 300, Some(1))];
    log.add(&chunk(1, &returned));
    assert_eq!(read(&mut tail, &log, true), [(1, DONE), (1, DONE)]);
    assert_eq!(read(&mut tail, &log, true), []);
    assert!(!tail.is_disordered());
}

#[test]
fn a_wait_is_given_when_it_returns_however_long_it_lasts() {
    let mut log = scratch();
    let mut tail = tail(0, 10);
    log.add(&chunk(1, &[(op::WRITE, 1, Some(1)), (op::WAIT, 2, None)]));
    log.add(&chunk(2, &[(op::READ, 300, Some(1))]));
    assert_eq!(read(&mut tail, &log, true), [(1, DONE), (2, DONE)]);
    log.add(&chunk(
        1,
        &[(op::WRITE, 1, Some(1)), (op::WAIT, 2, Some(7))],
    ));
    assert_eq!(read(&mut tail, &log, true), [(1, Outcome::Done(7))]);
}

#[test]
fn a_program_begins_after_the_call_that_started_it() {
    let mut log = scratch();
    let mut tail = tail(0, 1_000);
    // The clock of another core is late.
    let mut program = ThreadStream::new(2, 7, 7);
    program.record(op::START, 3, |record| {
        record.arg(1).aux(1).result(0);
    });
    log.add(&program);
    log.add(&chunk(1, &[(op::FORK, 4, Some(7))]));
    tail.grow(log.path()).unwrap();
    let mut ops = Vec::new();
    tail.read(quiet(true), |event| ops.push(event.op));
    assert!(
        matches!(ops[..], [Op::Fork { .. }, Op::Start { .. }]),
        "{ops:?}"
    );
}

/// The operations of a thread at rising times, each with its result or without.
fn records() -> impl Strategy<Value = Vec<Made>> {
    let ops = prop::sample::select(vec![op::WAIT, op::READ, op::WRITE, op::FORK, op::CLOSE]);
    let one = (ops, 1..9u64, prop::option::of(0..5i32));
    prop::collection::vec(one, 1..12).prop_map(|made| {
        let mut time = 0;
        let later = |(op, after, result)| {
            time += after;
            (op, time, result)
        };
        made.into_iter().map(later).collect()
    })
}

/// The events of a thread, without the times at which they were given.
fn of_thread(events: &[Event], tid: u32) -> Vec<(Op, Outcome)> {
    let of_thread = events.iter().filter(|event| event.tid == tid);
    of_thread
        .map(|event| (event.op.clone(), event.outcome))
        .collect()
}

proptest! {
    #[test]
    fn each_thread_has_the_events_of_the_whole_log_once(
        threads in prop::collection::vec(records(), 1..4),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, any::<(bool, bool)>()), 1..14),
        late in 0..20u64,
    ) {
        let mut log = scratch();
        // No call lasts so long.
        let mut tail = tail(late, 1_000);
        let mut events = Vec::new();
        let mut known = vec![0; threads.len()];
        for (thread, more, (is_open, is_quiet)) in steps {
            let thread = thread.index(threads.len());
            let former = known[thread];
            let end = (former + more).min(threads[thread].len());
            known[thread] = end;
            let mut records = threads[thread][..end].to_vec();
            if let Some(last) = records.last_mut().filter(|_| is_open && end > former) {
                // Its call goes on.
                last.2 = None;
            }
            log.add(&chunk(thread as u32 + 1, &records));
            tail.grow(log.path()).unwrap();
            tail.read(quiet(is_quiet), |event| events.push(event));
        }
        for (thread, records) in threads.iter().enumerate() {
            // Everything has returned by now, and does something else.
            let tid = thread as u32 + 1;
            let mut all: Vec<Made> = records.clone();
            all.push((op::CLOSE, 500, Some(0)));
            log.add(&chunk(tid, &all));
        }
        tail.grow(log.path()).unwrap();
        tail.read(quiet(true), |event| events.push(event));
        let whole = log.events();
        for tid in 1..=threads.len() as u32 {
            prop_assert_eq!(of_thread(&events, tid), of_thread(&whole, tid));
        }
    }
}
