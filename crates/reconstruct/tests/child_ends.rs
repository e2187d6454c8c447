//! Reads and waits in which or behind which a program learned by a signal that a child had ended.
#![allow(clippy::unwrap_used)]

use backstory_abi::deep;
use backstory_deep::{Call, Section};
use backstory_reconstruct::RecordedRun;
use libc::{EAGAIN, POLLIN, SIGALRM, SIGCHLD, SYS_close, SYS_poll, SYS_read, c_long};

const FIRST_THREAD: u32 = 10;
const SECOND_THREAD: u32 = 11;

/// A call of a thread that takes 10 counts.
fn call(tid: u32, number: c_long, result: i64, time: u64) -> Call {
    Call {
        tid,
        number: number as u16,
        fd: 0,
        a: 64,
        result,
        time,
        took: 10,
        ..Call::default()
    }
}

fn read(result: i64, time: u64) -> Call {
    call(FIRST_THREAD, SYS_read, result, time)
}

/// A wait that has input at descriptor 0.
fn wait(time: u64) -> Call {
    let events = [POLLIN, POLLIN].map(i16::to_le_bytes).concat();
    let list = Section {
        kind: deep::ENTERED,
        arg: 0,
        bytes: [&[0u8; 4][..], &events].concat(),
    };
    Call {
        fd: -1,
        a: 1,
        sections: vec![list],
        ..call(FIRST_THREAD, SYS_poll, 1, time)
    }
}

fn close(time: u64) -> Call {
    call(FIRST_THREAD, SYS_close, 0, time)
}

/// The handler of a signal begins in a thread.
fn handles(tid: u32, signal: i32, time: u64) -> Call {
    let number = c_long::from(deep::SIGNAL);
    Call {
        took: 0,
        ..call(tid, number, i64::from(signal), time)
    }
}

/// When each such read returned, and when its child had ended.
fn ends(calls: Vec<Call>) -> Vec<(u64, u64)> {
    let mut run = RecordedRun::arrange([(1, 10, 1, calls.into_iter())].into_iter());
    let mut found: Vec<_> = run.processes.remove(0).child_ends.into_iter().collect();
    found.sort_unstable();
    found
}

/// When the child of each wait had ended.
fn ends_at_waits(calls: Vec<Call>) -> Vec<Option<u64>> {
    let mut run = RecordedRun::arrange([(1, 10, 1, calls.into_iter())].into_iter());
    let turns = run.processes.remove(0).turns;
    turns.into_iter().map(|turn| turn.child_ended).collect()
}

#[test]
fn a_read_has_the_end_of_a_child_that_was_known_before_the_next_call() {
    let ended = |time| handles(FIRST_THREAD, SIGCHLD, time);
    assert_eq!(
        ends(vec![read(0, 100), ended(150), close(200)]),
        [(110, 150)]
    );
    // The handler ran in the read, so its record comes first.
    assert_eq!(
        ends(vec![ended(105), read(0, 100), close(200)]),
        [(110, 105)]
    );
    // It made a call of its own.
    let own = Call {
        in_handler: true,
        ..close(160)
    };
    let all = vec![read(0, 100), ended(150), own, close(200)];
    assert_eq!(ends(all), [(110, 150)]);
    let two = vec![read(1, 100), ended(205), read(0, 200), close(300)];
    assert_eq!(ends(two), [(210, 205)]);
}

#[test]
fn a_read_has_no_end_of_a_child_that_came_behind_another_call_or_in_another_thread() {
    let ended = |time| handles(FIRST_THREAD, SIGCHLD, time);
    assert!(ends(vec![read(0, 100), close(200), ended(250), close(300)]).is_empty());
    assert!(ends(vec![ended(50), read(0, 100), close(200)]).is_empty());
    let failed = read(-i64::from(EAGAIN), 100);
    assert!(ends(vec![failed, ended(150), close(200)]).is_empty());
    for (thread, signal) in [(FIRST_THREAD, SIGALRM), (SECOND_THREAD, SIGCHLD)] {
        let other = handles(thread, signal, 150);
        assert!(ends(vec![read(0, 100), other, close(200)]).is_empty());
    }
}

#[test]
fn a_wait_has_the_end_of_a_child_that_was_known_before_the_next_call() {
    let ended = |time| handles(FIRST_THREAD, SIGCHLD, time);
    let between = vec![wait(100), ended(150), close(200)];
    assert_eq!(ends_at_waits(between), [Some(150)]);
    // The handler ran in the wait, so its record comes first.
    let within = vec![ended(105), wait(100), close(200)];
    assert_eq!(ends_at_waits(within), [Some(105)]);
    let second = vec![wait(100), ended(205), wait(200), close(300)];
    assert_eq!(ends_at_waits(second), [None, Some(205)]);
    let both = vec![wait(100), ended(150), ended(205), wait(200), close(300)];
    assert_eq!(ends_at_waits(both), [Some(150), Some(205)]);
}

#[test]
fn a_wait_has_no_end_of_a_child_that_came_before_it_or_in_another_thread() {
    let ended = handles(FIRST_THREAD, SIGCHLD, 50);
    assert_eq!(ends_at_waits(vec![ended, wait(100), close(200)]), [None]);
    for (thread, signal) in [(FIRST_THREAD, SIGALRM), (SECOND_THREAD, SIGCHLD)] {
        let other = handles(thread, signal, 105);
        assert_eq!(ends_at_waits(vec![other, wait(100), close(200)]), [None]);
    }
}
