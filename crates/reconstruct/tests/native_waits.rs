//! Waits that a new execution leaves to the kernel.
#![allow(clippy::unwrap_used)]

use backstory_abi::deep;
use backstory_deep::{Call, Section};
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::process::ReadyTurn;
use libc::{
    EINTR, EPOLL_CTL_ADD, EPOLL_CTL_DEL, POLLIN, SIGCHLD, SYS_epoll_create1, SYS_epoll_ctl,
    SYS_epoll_wait, SYS_eventfd2, SYS_poll, SYS_select, c_int, c_long,
};

/// No recorded call made this descriptor.
const INHERITED: i32 = 0;
const EVENTS: i32 = 5;
const SET: i32 = 6;

fn call(number: c_long, fd: i32, result: i64) -> Call {
    Call {
        tid: 10,
        number: number as u16,
        fd,
        result,
        ..Call::default()
    }
}

fn with(mut call: Call, kind: u16, arg: u16, bytes: Vec<u8>) -> Call {
    call.sections.push(Section { kind, arg, bytes });
    call
}

fn eventfd() -> Call {
    call(SYS_eventfd2, -1, i64::from(EVENTS))
}

/// A poll of these descriptors, as many of which are ready as the result says.
fn poll(fds: &[i32], result: i64) -> Call {
    let ready = |at: usize| if (at as i64) < result { POLLIN } else { 0 };
    let one = |(at, fd): (usize, &i32)| {
        let halves = [POLLIN, ready(at)].map(i16::to_le_bytes).concat();
        [&fd.to_le_bytes()[..], &halves].concat()
    };
    let list = fds.iter().enumerate().flat_map(one).collect();
    with(call(SYS_poll, -1, result), deep::ENTERED, 0, list)
}

/// A change of the set of epoll. The data of a member is its descriptor.
fn change(operation: c_int, fd: i32) -> Call {
    let event = [
        &(POLLIN as u32).to_le_bytes()[..],
        &(fd as u64).to_le_bytes(),
    ]
    .concat();
    let change = Call {
        a: operation as u64,
        b: fd as u64,
        ..call(SYS_epoll_ctl, SET, 0)
    };
    with(change, deep::LEFT, 3, event)
}

/// The waits that a new execution answers from the record of these calls.
fn turns(calls: Vec<Call>) -> Vec<ReadyTurn> {
    let times = (1..).map(|at| at * 100);
    let timed = calls.into_iter().zip(times);
    let timed = timed.map(|(call, time)| Call { time, ..call });
    let mut run = RecordedRun::arrange([(1, 10, 1, timed)].into_iter());
    run.processes.remove(0).turns.into()
}

/// The results of these waits.
fn values(calls: Vec<Call>) -> Vec<i64> {
    turns(calls).iter().map(|turn| turn.value).collect()
}

#[test]
fn a_poll_of_the_kernels_own_objects_alone_answers_no_later_wait() {
    assert!(values(vec![eventfd(), poll(&[EVENTS], 0)]).is_empty());
    assert!(values(vec![eventfd(), poll(&[EVENTS, -1], 0)]).is_empty());
    let mixed = poll(&[EVENTS, INHERITED], 0);
    assert_eq!(values(vec![eventfd(), mixed]), [0]);
    assert_eq!(values(vec![poll(&[INHERITED], 0)]), [0]);
    // The record does not say for what it waited.
    let sets = with(call(SYS_select, -1, 0), deep::ENTERED, 1, vec![0; 8]);
    assert_eq!(values(vec![eventfd(), sets]), [0]);
}

#[test]
fn a_wait_for_a_set_with_the_kernels_own_objects_alone_answers_no_later_wait() {
    let wait = |result| call(SYS_epoll_wait, SET, result);
    let begin = || vec![call(SYS_epoll_create1, -1, i64::from(SET)), eventfd()];
    let then = |more: Vec<Call>| values([begin(), more].concat());
    let (add, remove) = (EPOLL_CTL_ADD, EPOLL_CTL_DEL);

    assert!(then(vec![wait(0)]).is_empty());
    let interrupted = wait(-i64::from(EINTR));
    assert!(then(vec![change(add, EVENTS), wait(0), interrupted]).is_empty());
    let mixed = vec![change(add, EVENTS), change(add, INHERITED)];
    assert_eq!(then([mixed.clone(), vec![wait(0)]].concat()), [0]);
    let again = vec![wait(0), change(remove, INHERITED), wait(0)];
    assert_eq!(then([mixed, again].concat()), [0]);
    // No recorded call made this set.
    assert_eq!(values(vec![wait(0)]), [0]);
}

#[test]
fn the_end_of_a_child_after_such_a_wait_belongs_to_no_earlier_one() {
    let ended = call(c_long::from(deep::SIGNAL), -1, i64::from(SIGCHLD));
    let before = vec![eventfd(), poll(&[INHERITED], 1)];
    let found = |wait| turns([before.clone(), vec![wait, ended.clone()]].concat());
    let own = found(poll(&[INHERITED], 0));
    assert_eq!(own[1].child_ended, Some(400));
    let native = found(poll(&[EVENTS], 0));
    assert_eq!(native.len(), 1);
    assert_eq!(native[0].child_ended, None);
}
