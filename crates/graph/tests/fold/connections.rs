//! Connections that a child inherits, and closes by executing a program. Connections that carried
//! nothing.
#![allow(dead_code, clippy::unwrap_used)]

use crate::common::*;
use backstory_eventlog::event::{Op, Outcome, Pid};
use backstory_graph::connections_closed_by_exec;

/// A stream socket.
const STREAM: i32 = 1;
const SOCK_CLOEXEC: i32 = 0o2_000_000;
const CLIENT: Pid = 3;
const CHILD: Pid = 4;
/// The client's descriptor of its connection.
const SOCKET: i32 = 5;

/// The client connects by a socket with these flags.
fn connect(s: &mut Scene, flags: i32, outcome: Outcome) {
    let (domain, kind) = (2, STREAM | flags);
    s.push(CLIENT, Outcome::Done(SOCKET), Op::Socket { domain, kind });
    let address = [
        &2_u16.to_le_bytes()[..],
        &5432_u16.to_be_bytes(),
        &[127, 0, 0, 1],
        &[0; 8],
    ];
    let connect = Op::Connect {
        fd: SOCKET,
        kind: STREAM,
        address: address.concat().into(),
    };
    s.push(CLIENT, outcome, connect);
}

/// A client that connects by a socket with these flags, does `before` and forks. The child does
/// `after`, and executes a program. Returns the names of the connections that the exec closed.
fn closed(flags: i32, before: impl Fn(&mut Scene), after: impl Fn(&mut Scene)) -> Vec<String> {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, CLIENT, &["client"]);
    connect(&mut s, flags, Outcome::Done(0));
    before(&mut s);
    s.fork(CLIENT, CHILD);
    s.start(CHILD, CLIENT, true);
    after(&mut s);
    s.exec(CHILD, "/bin/true", &["true"]);
    s.start(CHILD, CLIENT, false);
    let graph = s.graph();
    let found = graph
        .extended
        .iter()
        .filter_map(|(process, _, kind, payload)| {
            let name = connections_closed_by_exec(kind, payload)?;
            Some(format!("{} {}", activity(&graph, *process), text(name)))
        });
    found.collect()
}

fn nothing(_: &mut Scene) {}

fn set(pid: Pid, on: bool) -> impl Fn(&mut Scene) {
    move |s| {
        s.done(pid, Op::Cloexec { fd: SOCKET, on });
    }
}

/// Duplicates the descriptor to another number.
fn duplicate(pid: Pid, cloexec: bool) -> impl Fn(&mut Scene) {
    move |s| {
        let (fd, replaced) = (SOCKET, false);
        s.push(
            pid,
            Outcome::Done(9),
            Op::Dup {
                fd,
                cloexec,
                replaced,
            },
        );
    }
}

#[test]
fn an_exec_closes_the_connection_of_a_socket_that_is_close_on_exec() {
    let name = ["true#1 tcp:127.0.0.1:5432"];
    assert_eq!(closed(SOCK_CLOEXEC, nothing, nothing), name);
    assert_eq!(closed(0, set(CLIENT, true), nothing), name);
    assert_eq!(closed(0, nothing, set(CHILD, true)), name);
    assert_eq!(closed(SOCK_CLOEXEC, duplicate(CLIENT, true), nothing), name);
}

#[test]
fn an_exec_leaves_the_connection_of_another_socket_open() {
    let none: [&str; 0] = [];
    assert_eq!(closed(0, nothing, nothing), none);
    assert_eq!(closed(SOCK_CLOEXEC, set(CLIENT, false), nothing), none);
    assert_eq!(closed(SOCK_CLOEXEC, nothing, set(CHILD, false)), none);
    // One of two descriptors stays.
    assert_eq!(
        closed(SOCK_CLOEXEC, duplicate(CLIENT, false), nothing),
        none
    );
    assert_eq!(closed(0, duplicate(CLIENT, true), nothing), none);
}

#[test]
fn a_connection_that_the_child_used_is_not_one_that_its_exec_closed_unused() {
    let none: [&str; 0] = [];
    let read = |s: &mut Scene| {
        s.read(CHILD, SOCKET);
    };
    let write = |s: &mut Scene| {
        s.write(CHILD, SOCKET);
    };
    assert_eq!(closed(SOCK_CLOEXEC, nothing, read), none);
    assert_eq!(closed(SOCK_CLOEXEC, nothing, write), none);
}

/// The uses of a connection that did not block, until `end` and the end of the process.
fn uses_until(end: impl Fn(&mut Scene)) -> Vec<String> {
    const EINPROGRESS: i32 = 115;
    let mut s = Scene::new(&["sh"]);
    s.runs(2, CLIENT, &["client"]);
    connect(&mut s, SOCK_CLOEXEC, Outcome::Done(-EINPROGRESS));
    end(&mut s);
    s.exits(CLIENT, 2);
    let told = told(&s.graph());
    let of_client = |line: &&str| line.starts_with("client#1 ") && line.contains(" tcp:");
    let uses = told.lines().filter(of_client);
    uses.map(str::to_owned).collect()
}

/// The uses of a connection of which the kernel counted these bytes at its close. `None`: the
/// process was killed before.
fn uses(counted: Option<(u64, u64)>, during: impl Fn(&mut Scene)) -> Vec<String> {
    uses_until(|s| {
        during(s);
        if let Some((sent, received)) = counted {
            count(s, sent, received);
            s.close(CLIENT, SOCKET);
        }
    })
}

fn count(s: &mut Scene, sent: u64, received: u64) {
    let fd = SOCKET;
    s.done(CLIENT, Op::Traffic { fd, sent, received });
}

#[test]
fn a_connection_that_carried_no_byte_was_not_used() {
    let none: [&str; 0] = [];
    assert_eq!(uses(Some((0, 0)), nothing), none);
}

#[test]
fn a_connection_of_which_the_bytes_are_unknown_was_possibly_used() {
    let both = [
        "client#1 Read? tcp:127.0.0.1:5432 (reply)@0",
        "client#1 Write? tcp:127.0.0.1:5432@0",
    ];
    assert_eq!(uses(None, nothing), both);
    assert_eq!(uses(Some((1, 0)), nothing), both);
    assert_eq!(uses(Some((0, 1)), nothing), both);
    // libc can write its buffers after the count.
    assert_eq!(uses_until(|s| count(s, 0, 0)), both);
    let read = |s: &mut Scene| {
        s.read(CLIENT, SOCKET);
    };
    assert_eq!(
        uses(Some((0, 0)), read),
        ["client#1 Read tcp:127.0.0.1:5432 (reply)@0"]
    );
}
