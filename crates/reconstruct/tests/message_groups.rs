//! Groups of messages that one call sends (`sendmmsg`).
#![allow(clippy::unwrap_used)]

use crate::sent_bytes;
use backstory_deep::Call;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::output::ExpectedOutput;
use backstory_reconstruct::volatile::VolatileRules;
use libc::{AF_UNIX, EAGAIN, SOCK_DGRAM};
use sent_bytes::sent;

/// A message of the call that began at this time. The record has one call for each message.
fn sends(taken: Result<&[u8], i32>, time: u64, took: u64) -> Call {
    let call = Call {
        tid: 10,
        number: libc::SYS_sendmsg as u16,
        fd: 3,
        time,
        took,
        a: taken.map_or(0, |bytes| bytes.len() as u64),
        ..Call::default()
    };
    sent(call, taken)
}

/// The output of a socket, through which a process makes these calls.
fn output(calls: &[Call]) -> ExpectedOutput {
    let socket = Call {
        tid: 10,
        number: libc::SYS_socket as u16,
        fd: -1,
        result: 3,
        time: 1,
        a: AF_UNIX as u64,
        b: SOCK_DGRAM as u64,
        ..Call::default()
    };
    let calls = [&[socket][..], calls].concat();
    let mut run = RecordedRun::arrange([(1, 10, 1, calls.into_iter())].into_iter());
    let mut streams = run.processes.remove(0).streams.into_values();
    streams.next().unwrap().output
}

/// Sends messages, and says of each whether its group ends behind it.
fn ends(output: &mut ExpectedOutput, messages: &[&[u8]]) -> Vec<bool> {
    let mut ends = Vec::new();
    for message in messages {
        ends.push(output.ends_group(message.len() as u64));
        assert_eq!(output.leave(message, &VolatileRules::default()), None);
    }
    ends
}

#[test]
fn a_group_of_messages_ends_behind_its_last_recorded_one() {
    let mut output = output(&[
        sends(Ok(b"one"), 100, 64),
        sends(Ok(b"two"), 100, 128),
        sends(Ok(b"three"), 300, 64),
        sends(Err(EAGAIN), 400, 64),
        sends(Ok(b"four"), 500, 64),
    ]);
    let found = ends(&mut output, &[b"one", b"two", b"three"]);
    assert_eq!(found, [false, true, true]);
    assert!(output.is_at_failure());
    assert_eq!(output.failure(), Some(EAGAIN));
    assert_eq!(ends(&mut output, &[b"four"]), [true]);
    assert!(output.is_empty());
}

#[test]
fn a_group_of_other_messages_has_no_end() {
    let mut output = output(&[sends(Ok(b"one"), 100, 64), sends(Ok(b"two"), 300, 64)]);
    assert!(output.leave(b"new", &VolatileRules::default()).is_some());
    assert!(!output.ends_group(3));
}
