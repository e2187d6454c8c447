//! Writes and reads that a signal interrupted in the record.
#![allow(clippy::unwrap_used)]

use crate::sent_bytes;
use backstory_abi::deep;
use backstory_deep::{Call, Section};
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::input::{InputStream, Taken};
use backstory_reconstruct::output::{ExpectedOutput, Interruption};
use backstory_reconstruct::process::ResourceStreams;
use backstory_reconstruct::volatile::VolatileRules;
use libc::{EAGAIN, EINTR, SIGALRM, SYS_read, SYS_write, c_long};
use sent_bytes::sent;

const FIRST_THREAD: u32 = 10;
const SECOND_THREAD: u32 = 11;

fn call(tid: u32, number: c_long, result: i64, time: u64) -> Call {
    Call {
        tid,
        number: number as u16,
        fd: -1,
        result,
        time,
        ..Call::default()
    }
}

/// A handler of the timer's signal begins.
fn handles(tid: u32, time: u64) -> Call {
    let number = c_long::from(deep::SIGNAL);
    call(tid, number, i64::from(SIGALRM), time)
}

/// A write of `asked` bytes by the first thread, which takes 64 counts.
fn write(asked: u64, taken: Result<&[u8], i32>, time: u64) -> Call {
    let call = Call {
        fd: 3,
        took: 64,
        a: asked,
        ..call(FIRST_THREAD, SYS_write, 0, time)
    };
    sent(call, taken)
}

/// A read by the first thread, which takes 64 counts.
fn read(got: Result<&[u8], i32>, time: u64) -> Call {
    let call = write(100, got, time);
    let sections = call.sections.into_iter().map(|section| Section {
        kind: deep::ENTERED,
        ..section
    });
    Call {
        number: SYS_read as u16,
        sections: sections.collect(),
        ..call
    }
}

/// The bytes that a process with these calls moves. They use one resource.
fn streams(calls: Vec<Call>) -> ResourceStreams {
    let all = [(1, FIRST_THREAD, 1, calls.into_iter())];
    let mut run = RecordedRun::arrange(all.into_iter());
    let mut streams = run.processes.remove(0).streams.into_values();
    streams.next().unwrap()
}

fn output(calls: Vec<Call>) -> ExpectedOutput {
    streams(calls).output
}

fn input(calls: Vec<Call>) -> InputStream {
    streams(calls).input
}

fn bytes(bytes: &[u8]) -> Taken {
    Taken::Bytes(bytes.to_vec(), Vec::new())
}

fn interruption(after: u64, time: u64) -> Option<Interruption> {
    Some(Interruption {
        after,
        signals: vec![SIGALRM],
        time,
    })
}

#[test]
fn a_write_ends_at_the_signal_that_interrupted_it() {
    let mut output = output(vec![
        handles(FIRST_THREAD, 15),
        write(5, Ok(b"abc"), 10),
        handles(FIRST_THREAD, 105),
        write(2, Err(EINTR), 100),
        write(2, Ok(b"de"), 200),
    ]);
    assert_eq!(output.interruption(5), interruption(3, 74));
    assert_eq!(output.leave(b"abc", &VolatileRules::default()), None);
    output.interrupted();
    assert_eq!(output.interruption(2), interruption(0, 164));
    output.interrupted();
    assert_eq!(output.interruption(2), None);
    assert_eq!(output.failure(), None);
    assert_eq!(output.leave(b"de", &VolatileRules::default()), None);
    assert_eq!(output.remaining(), 0);
}

#[test]
fn a_signal_interrupts_only_a_write_of_its_thread_that_it_cuts() {
    for (signal, taken) in [
        // Before the call, and behind it.
        (handles(FIRST_THREAD, 5), &b"abc"[..]),
        (handles(FIRST_THREAD, 80), &b"abc"[..]),
        (handles(SECOND_THREAD, 15), &b"abc"[..]),
        // The kernel went on with the write.
        (handles(FIRST_THREAD, 15), &b"abcde"[..]),
    ] {
        let output = output(vec![signal.clone(), write(5, Ok(taken), 10)]);
        assert_eq!(output.interruption(9), None, "{signal:?} {taken:?}");
    }
}

#[test]
fn a_read_ends_at_the_signal_that_interrupted_it() {
    let mut input = input(vec![
        read(Ok(b"ab"), 10),
        read(Err(EAGAIN), 90),
        handles(FIRST_THREAD, 205),
        read(Err(EINTR), 200),
        read(Ok(b"c"), 300),
    ]);
    assert_eq!(input.interruption(), None);
    assert_eq!(input.take(1, true, false), bytes(b"a"));
    assert_eq!(input.interruption(), None);
    assert_eq!(input.take(1, true, false), bytes(b"b"));
    assert_eq!(input.interruption(), interruption(0, 264));
    input.interrupted();
    assert_eq!(input.interruption(), None);
    assert_eq!(input.take(9, true, false), bytes(b"c"));
}

#[test]
fn a_signal_that_does_not_interrupt_a_read_again_hides_no_input() {
    let mut input = input(vec![
        handles(FIRST_THREAD, 15),
        read(Err(EINTR), 10),
        read(Err(EAGAIN), 90),
        read(Ok(b"a"), 200),
    ]);
    // A wait for input passes the time, and the signal still comes.
    assert!(!input.is_ready());
    input.arrive();
    assert!(input.is_ready());
    assert_eq!(input.interruption(), interruption(0, 74));
    assert_eq!(input.take(9, true, false), bytes(b"a"));
    assert_eq!(input.interruption(), None);
    assert_eq!(input.take(9, true, false), Taken::Exhausted);
}

#[test]
fn an_interruption_of_another_thread_stays_behind_the_input_that_a_read_gets() {
    let recorded = || {
        input(vec![
            handles(FIRST_THREAD, 15),
            read(Err(EINTR), 10),
            read(Err(EAGAIN), 90),
            read(Ok(b"a"), 200),
            read(Ok(b"b"), 300),
        ])
    };
    let mut waiting = recorded();
    waiting.postpone_interruption(true);
    assert_eq!(waiting.take(9, true, false), bytes(b"a"));
    assert_eq!(waiting.interruption(), interruption(0, 74));
    waiting.interrupted();
    assert_eq!(waiting.take(9, true, false), bytes(b"b"));
    // A read that does not wait finds nothing there.
    let mut looking = recorded();
    looking.postpone_interruption(false);
    assert_eq!(looking.take(9, false, false), Taken::Absent);
    assert_eq!(looking.interruption(), interruption(0, 74));
    assert_eq!(looking.take(9, true, false), bytes(b"a"));
    let mut last = input(vec![handles(FIRST_THREAD, 15), read(Err(EINTR), 10)]);
    last.postpone_interruption(true);
    assert_eq!(last.interruption(), interruption(0, 74));
}

#[test]
fn a_read_without_a_handler_of_its_thread_fails_as_it_did() {
    for signal in [
        handles(FIRST_THREAD, 5),
        handles(FIRST_THREAD, 80),
        handles(SECOND_THREAD, 15),
    ] {
        let mut input = input(vec![signal.clone(), read(Err(EINTR), 10)]);
        assert_eq!(input.interruption(), None, "{signal:?}");
        assert_eq!(input.take(9, true, false), Taken::Failed(EINTR));
    }
}
