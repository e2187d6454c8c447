//! Where the handlers of signals ran, and when a signal killed a process.
#![allow(clippy::unwrap_used)]

use backstory_abi::deep;
use backstory_deep::{Call, Section};
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::process::RecordedProcess;
use libc::{EINTR, SIGALRM, SYS_close, SYS_poll, SYS_pselect6, SYS_wait4, c_long};

const FIRST_THREAD: u32 = 10;
const SECOND_THREAD: u32 = 11;

/// A call of a thread that takes 10 counts.
fn call(tid: u32, number: c_long, result: i64, time: u64) -> Call {
    Call {
        tid,
        number: number as u16,
        fd: -1,
        result,
        time,
        took: 10,
        ..Call::default()
    }
}

fn close(tid: u32, time: u64) -> Call {
    call(tid, SYS_close, 0, time)
}

/// A wait for so many descriptors that a signal interrupted.
fn interrupted(number: c_long, descriptors: u64, time: u64) -> Call {
    Call {
        a: descriptors,
        ..call(FIRST_THREAD, number, -i64::from(EINTR), time)
    }
}

/// A handler of the timer's signal begins in the first thread.
fn handles(time: u64) -> Call {
    let number = c_long::from(deep::SIGNAL);
    call(FIRST_THREAD, number, i64::from(SIGALRM), time)
}

fn process(calls: Vec<Call>) -> RecordedProcess {
    let all = [(1, FIRST_THREAD, 1, calls.into_iter())];
    RecordedRun::arrange(all.into_iter()).processes.remove(0)
}

/// Of each handler: when it began, whether it ran in a call, and when the next call began.
fn handlers(calls: Vec<Call>) -> Vec<(u64, bool, u64)> {
    let handlers = process(calls).handlers.into_iter();
    let one = handlers.map(|ran| (ran.time, ran.in_call, ran.next_call));
    one.collect()
}

#[test]
fn a_handler_runs_in_a_call_or_before_the_next_one() {
    let wait = || call(FIRST_THREAD, SYS_wait4, 0, 100);
    let next = || close(FIRST_THREAD, 200);
    // The record of a handler that ran in a call comes before that of the call.
    assert_eq!(
        handlers(vec![handles(105), wait(), next()]),
        [(105, true, 100)]
    );
    assert_eq!(
        handlers(vec![wait(), handles(150), next()]),
        [(150, false, 200)]
    );
    let own = Call {
        in_handler: true,
        ..close(FIRST_THREAD, 160)
    };
    let others = close(SECOND_THREAD, 170);
    let all = vec![wait(), handles(150), own, others, next()];
    assert_eq!(handlers(all), [(150, false, 200)]);
    assert_eq!(
        handlers(vec![wait(), handles(150)]),
        [(150, false, u64::MAX)]
    );
}

#[test]
fn a_handler_in_a_sleep_by_poll_or_select_runs_before_the_call_behind_the_sleep() {
    for number in [SYS_poll, SYS_pselect6] {
        for (descriptors, expected) in [(0, (105, false, 200)), (1, (105, true, 100))] {
            let wait = interrupted(number, descriptors, 100);
            let calls = vec![handles(105), wait, close(FIRST_THREAD, 200)];
            assert_eq!(handlers(calls), [expected], "{number} {descriptors}");
        }
        // The whole sleep came behind the handler.
        let sleep = call(FIRST_THREAD, number, 0, 100);
        let calls = vec![handles(95), sleep, close(FIRST_THREAD, 200)];
        assert_eq!(handlers(calls), [(95, false, 200)], "{number}");
    }
}

#[test]
fn an_interrupted_sleep_is_no_wait_for_descriptors() {
    let turns = |descriptors| process(vec![interrupted(SYS_poll, descriptors, 100)]).turns;
    assert!(turns(0).is_empty());
    assert_eq!(turns(1)[0].value, -i64::from(EINTR));
}

#[test]
fn a_killed_process_has_the_time_at_which_its_parent_learned_that() {
    const CHILD: u32 = 20;
    for (status, expected) in [(libc::SIGTERM, Some(110)), (3 << 8, None)] {
        let mut wait = call(FIRST_THREAD, SYS_wait4, i64::from(CHILD), 100);
        wait.sections.push(Section {
            kind: deep::ENTERED,
            arg: 1,
            bytes: status.to_le_bytes().to_vec(),
        });
        let parent = (1, FIRST_THREAD, 1, vec![wait].into_iter());
        let child = (2, CHILD, FIRST_THREAD, vec![close(CHILD, 50)].into_iter());
        let run = RecordedRun::arrange([parent, child].into_iter());
        assert_eq!(run.processes[1].killed_at, expected, "{status}");
    }
}
