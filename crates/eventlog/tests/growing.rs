//! A reader of a growing log goes on behind what it has read, and has the events that a reader of
//! the whole log has.

mod common;

use backstory_abi::op;
use backstory_eventlog::event::{Event, Op, Outcome};
use backstory_eventlog::{Log, Patience, Prefix};
use common::{Scratch, ThreadStream};
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;

/// A reader that takes each event as final at once.
const NONE: Patience = Patience {
    late: Duration::ZERO,
    lasting: Duration::ZERO,
};

/// A reader of a growing log.
#[derive(Default)]
struct Reader {
    prefix: Prefix,
    /// The events of the prefix, with results of waits that came later.
    events: Vec<Event>,
    /// How often it had to begin anew.
    beginnings: usize,
}

impl Reader {
    /// Reads on. Returns all events, those of earlier times included.
    fn read(&mut self, log: &Log, patience: Patience) -> Vec<Event> {
        let mut events = match log.events_behind(&self.prefix, patience) {
            Some((events, returned)) => {
                returned.into_iter().for_each(|wait| self.put(wait));
                events
            }
            None => {
                self.events.clear();
                self.beginnings += 1;
                log.tracked_events(patience)
            }
        };
        let mut mark = events.mark();
        let mut rest = Vec::new();
        while let Some(event) = events.next() {
            if !events.is_settled() {
                rest.push(event);
                break;
            }
            self.events.push(event);
            mark = events.mark();
        }
        self.prefix = events.prefix(mark);
        rest.extend(events);
        [self.events.as_slice(), &rest].concat()
    }

    fn put(&mut self, wait: Event) {
        let is_it = |event: &&mut Event| {
            let is_wait = matches!(event.op, Op::Wait { .. }) && event.outcome == Outcome::Unknown;
            is_wait && (event.time, event.pid, event.tid) == (wait.time, wait.pid, wait.tid)
        };
        // Earlier calls of the thread have ended without a result.
        if let Some(event) = self.events.iter_mut().rev().find(is_it) {
            *event = wait;
        }
    }
}

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

#[test]
fn a_wait_that_returns_leaves_the_events_after_it_as_they_are() {
    let mut log = Scratch::new();
    let mut reader = Reader::default();
    log.add(&chunk(1, &[(op::WRITE, 1, Some(1)), (op::WAIT, 2, None)]));
    log.add(&chunk(2, &[(op::READ, 3, Some(1)), (op::READ, 4, Some(1))]));
    reader.read(&log.open(), NONE);
    assert_eq!(reader.events.len(), 4);
    log.add(&chunk(
        1,
        &[
            (op::WRITE, 1, Some(1)),
            (op::WAIT, 2, Some(7)),
            (op::READ, 5, Some(1)),
        ],
    ));
    let log = log.open();
    assert_eq!(reader.read(&log, NONE), log.events().collect::<Vec<_>>());
    assert_eq!(reader.beginnings, 0);
}

#[test]
fn a_late_record_and_a_late_result_are_found() {
    let late_record = chunk(3, &[(op::READ, 3, Some(1))]);
    let late_result = chunk(2, &[(op::READ, 8, Some(1)), (op::READ, 9, Some(4))]);
    for late in [late_record, late_result] {
        let mut log = Scratch::new();
        let mut reader = Reader::default();
        log.add(&chunk(
            1,
            &[(op::WRITE, 1, Some(1)), (op::WRITE, 20, Some(1))],
        ));
        log.add(&chunk(2, &[(op::READ, 8, Some(1)), (op::READ, 9, None)]));
        reader.read(&log.open(), NONE);
        assert_eq!(reader.events.len(), 4);
        log.add(&late);
        let log = log.open();
        assert_eq!(reader.read(&log, NONE), log.events().collect::<Vec<_>>());
        assert_eq!(reader.beginnings, 1);
    }
}

#[test]
fn a_call_in_progress_is_read_again_until_it_lasts_long() {
    let mut log = Scratch::new();
    log.clock(0).clock(100);
    log.add(&chunk(1, &[(op::READ, 10, None)]));
    log.add(&chunk(2, &[(op::WRITE, 50, Some(1))]));
    let patience = |lasting| Patience {
        late: Duration::ZERO,
        lasting: Duration::from_nanos(lasting),
    };
    for (lasting, settled) in [(100, 0), (30, 2)] {
        let mut reader = Reader::default();
        reader.read(&log.open(), patience(lasting));
        assert_eq!(reader.events.len(), settled, "{lasting}");
    }
}

/// A log that grows, at a later time.
fn later(former: Option<Log>, path: &Path) -> Log {
    match former {
        Some(former) => former.later(path),
        None => Log::growing(path),
    }
    .expect("open")
}

#[test]
fn each_byte_that_is_appended_is_read_as_if_the_log_was_opened_anew() {
    let mut log = Scratch::new();
    log.clock(0).clock(100);
    for tid in 1..4 {
        let time = u64::from(tid);
        log.add(&chunk(
            tid,
            &[(op::FORK, time, Some(7)), (op::READ, time + 9, None)],
        ));
    }
    let mut bytes = std::fs::read(log.path()).unwrap();
    // Something damaged the log in between.
    bytes.splice(200..200, *b"garbage");
    let part = log.dir.path().join("part");
    let mut growing = None;
    for end in 16..=bytes.len() {
        std::fs::write(&part, &bytes[..end]).unwrap();
        let (whole, read) = (Log::open(&part).unwrap(), later(growing.take(), &part));
        assert_eq!(read.damage(), whole.damage(), "{end} bytes");
        let events: Vec<Event> = whole.events().collect();
        assert_eq!(read.events().collect::<Vec<_>>(), events, "{end} bytes");
        growing = Some(read);
    }
    assert!(growing.as_ref().unwrap().damage().bytes > 0);
    // Another log has the same name now.
    let mut other = Scratch::new();
    other.add(&chunk(5, &[(op::WRITE, 1, Some(1)); 40]));
    let read = later(growing, &other.path());
    let events: Vec<Event> = other.open().events().collect();
    assert_eq!(read.events().collect::<Vec<_>>(), events);
    assert!(read.damage().is_none() && events.len() == 40);
}

#[test]
fn a_reading_of_the_clock_makes_counters_of_earlier_pieces_possible() {
    // Days later, by any clock.
    const LATER: u64 = 1 << 51;
    let mut log = Scratch::new();
    log.clock(0);
    // The program began after the first `exec`.
    log.add(&chunk(1, &[(op::EXEC, 1, None), (op::EXEC, LATER, None)]));
    let mut program = ThreadStream::new(2, 1, 1);
    program.record(op::START, 5, |_| {});
    program.record(op::READ, 6, |_| {});
    log.add(&program);
    let part = later(None, &log.path());
    assert_eq!(part.events().count(), 4);
    log.clock(LATER + 10);
    let read = later(Some(part), &log.path());
    assert_eq!(read.events().collect::<Vec<_>>(), log.events());
}

/// The operations of a thread at rising times, each with its result or still going on.
fn records() -> impl Strategy<Value = Vec<Made>> {
    let ops = prop::sample::select(vec![
        op::WAIT,
        op::WAIT,
        op::READ,
        op::FORK,
        op::VFORK,
        op::VFORKED,
        op::EXEC,
        op::ENV,
        op::START,
        op::EXIT,
    ]);
    let result = prop::option::of(0..5i32);
    let one = (ops, 1..9u64, result);
    prop::collection::vec(one, 1..12).prop_map(|made| {
        let mut time = 0;
        let later = |(op, after, result)| {
            time += after;
            (op, time, result)
        };
        made.into_iter().map(later).collect()
    })
}

proptest! {
    #[test]
    fn behind_what_was_read_come_the_events_of_the_whole_log(
        threads in prop::collection::vec(records(), 1..4),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, any::<bool>()), 1..14),
        late in 0..20u64,
    ) {
        let mut log = Scratch::new();
        log.clock(0).clock(60);
        let (mut reader, mut growing) = (Reader::default(), None);
        let patience = Patience { late: Duration::from_nanos(late), lasting: Duration::from_nanos(late) };
        // Of each thread: its records so far, and whether the last call goes on.
        let mut known = vec![(0, true); threads.len()];
        for (thread, more, is_open) in steps {
            let thread = thread.index(threads.len());
            let (former, was_open) = known[thread];
            let end = (former + more).min(threads[thread].len());
            // A call that has returned does not go on again.
            let is_open = is_open && (was_open || end > former);
            known[thread] = (end, is_open);
            let mut records = threads[thread][..end].to_vec();
            if let Some(last) = records.last_mut().filter(|_| is_open) {
                // Its call goes on.
                last.2 = None;
            }
            log.add(&chunk(thread as u32 + 1, &records));
            let whole = log.open();
            let later = later(growing.take(), &log.path());
            prop_assert_eq!(later.damage(), whole.damage());
            prop_assert_eq!(reader.read(&later, patience), whole.events().collect::<Vec<_>>());
            growing = Some(later);
        }
    }
}
