//! The two ends of connections within a run.

use backstory_abi::deep;
use backstory_deep::{Call, Section};
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::resource::Origin;
use libc::{AF_INET, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_STREAM, c_long};

const LISTENER: i32 = 3;

fn call(number: c_long, fd: i32, result: i64, time: u64) -> Call {
    Call {
        number: number as u16,
        fd,
        result,
        time,
        ..Call::default()
    }
}

fn with(mut call: Call, kind: u16, bytes: &[u8]) -> Call {
    let bytes = bytes.to_vec();
    let arg = 1;
    call.sections.push(Section { kind, arg, bytes });
    call
}

fn socket(fd: i32) -> Call {
    socket_of(fd, SOCK_STREAM)
}

fn socket_of(fd: i32, kind: i32) -> Call {
    Call {
        a: AF_INET as u64,
        b: kind as u64,
        ..call(libc::SYS_socket, -1, i64::from(fd), 1)
    }
}

/// A call with the address of the local host and this port.
fn addressed(call: Call, port: u16) -> Call {
    let family = (AF_INET as u16).to_le_bytes();
    let address = [&family[..], &port.to_be_bytes(), &[127, 0, 0, 1]].concat();
    with(call, deep::ADDRESS, &address)
}

fn listens() -> Vec<Call> {
    let bound = addressed(call(libc::SYS_bind, LISTENER, 0, 2), 0);
    // The kernel chose the port.
    let told = addressed(call(libc::SYS_getsockname, LISTENER, 0, 3), 80);
    vec![socket(LISTENER), bound, told]
}

fn connects(fd: i32, port: u16, time: u64) -> Vec<Call> {
    let connected = call(libc::SYS_connect, fd, 0, time);
    vec![socket(fd), addressed(connected, port)]
}

fn accepts(fd: i32, time: u64) -> Call {
    let accepted = call(libc::SYS_accept4, LISTENER, i64::from(fd), time);
    addressed(accepted, 40_000)
}

fn writes(fd: i32, bytes: &[u8]) -> Call {
    let written = call(libc::SYS_sendto, fd, bytes.len() as i64, 90);
    with(written, deep::LEFT, bytes)
}

fn reads(fd: i32, bytes: &[u8]) -> Call {
    let read = call(libc::SYS_recvfrom, fd, bytes.len() as i64, 91);
    with(read, deep::ENTERED, bytes)
}

/// The number of bytes that were written into each known connection, in the order of the sockets.
/// Beside it is the number that were read from the other end.
fn joined(calls: Vec<Vec<Call>>) -> Vec<(u64, u64)> {
    let calls = calls.concat().into_iter();
    let run = RecordedRun::arrange([(1, 10, 1, calls)].into_iter());
    let streams = &run.processes[0].streams;
    let one = |(socket, accepted): &(usize, usize)| {
        assert_eq!(run.resources[*socket].origin, Origin::Socket);
        assert!(matches!(
            run.resources[*accepted].origin,
            Origin::Accepted(_)
        ));
        let written = streams[socket].output.remaining();
        (written, streams[accepted].input.remaining())
    };
    run.connections.iter().map(one).collect()
}

#[test]
fn connections_have_their_ends_in_the_order_of_time() {
    let found = joined(vec![
        listens(),
        connects(4, 80, 20),
        connects(5, 80, 10),
        // To another listener, which is not in the run.
        connects(6, 81, 15),
        vec![accepts(7, 30), accepts(8, 40)],
        vec![writes(5, b"a"), writes(4, b"bc"), writes(6, b"def")],
        vec![reads(7, b"a"), reads(8, b"bc")],
    ]);
    assert_eq!(found, [(2, 2), (1, 1)]);
}

#[test]
fn the_last_connection_may_not_have_been_accepted() {
    let found = joined(vec![
        listens(),
        connects(4, 80, 10),
        connects(5, 80, 20),
        vec![accepts(7, 30), writes(4, b"a"), reads(7, b"a")],
    ]);
    assert_eq!(found, [(1, 1)]);
}

#[test]
fn a_socket_for_datagrams_makes_no_connection_to_a_listener() {
    let asks = addressed(call(libc::SYS_connect, 5, 0, 5), 80);
    let found = joined(vec![
        listens(),
        vec![socket_of(5, SOCK_DGRAM | SOCK_CLOEXEC), asks],
        connects(4, 80, 10),
        vec![accepts(7, 30), writes(4, b"a"), reads(7, b"a")],
    ]);
    assert_eq!(found, [(1, 1)]);
}

#[test]
fn a_listener_to_which_others_connected_has_no_known_ends() {
    let more = joined(vec![
        listens(),
        connects(4, 80, 10),
        vec![accepts(7, 30), accepts(8, 40)],
        vec![writes(4, b"a"), reads(8, b"a")],
    ]);
    assert!(more.is_empty(), "{more:?}");
    // More bytes came out than went in.
    let other = joined(vec![
        listens(),
        connects(4, 80, 10),
        vec![accepts(7, 30), writes(4, b"a"), reads(7, b"abc")],
    ]);
    assert!(other.is_empty(), "{other:?}");
}
