//! Scenes of pipes and sockets.

use super::check;
use crate::common::*;
use backstory_eventlog::event::{Op, Outcome};
use backstory_graph::lineage::Follow;

#[test]
fn a_pipe_joins_writer_and_reader() {
    let mut s = Scene::new(&["sh"]);
    s.pipe(2, 3, 4);
    s.fork(2, 3);
    s.fork(2, 4);
    s.close(2, 3);
    s.close(2, 4);
    for (pid, from, to, name) in [(3, 4, 1, "cat"), (4, 3, 0, "sort")] {
        s.start(pid, 2, true);
        s.dup2(pid, from, to);
        s.close(pid, 3);
        s.close(pid, 4);
        s.exec(pid, &format!("/bin/{name}"), &[name]);
        s.start(pid, 2, false);
    }
    s.reads(3, "a");
    s.write(3, 1);
    s.read(4, 0);
    s.writes(4, "b", OUT);
    check(
        &s,
        "cat#1 Read a@0
         cat#1 Write pipe:1@0
         sh#1 Fork cat#1
         sh#1 Fork sort#1
         sort#1 Read pipe:1@0
         sort#1 Write b@1",
    );
}

#[test]
fn a_server_and_its_client_are_joined_by_address() {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["server"]);
    s.runs(2, 4, &["client"]);
    let address: Box<[u8]> = [&1u16.to_le_bytes()[..], b"/run/s\0"].concat().into();
    s.push(3, Outcome::Done(3), Op::Socket { domain: 1, kind: 1 });
    s.done(
        3,
        Op::Bind {
            fd: 3,
            address: address.clone(),
        },
    );
    s.push(4, Outcome::Done(3), Op::Socket { domain: 1, kind: 1 });
    s.push(
        3,
        Outcome::Done(4),
        Op::Accept {
            fd: 3,
            address: bytes(""),
        },
    );
    s.done(
        4,
        Op::Connect {
            fd: 3,
            kind: 1,
            address,
        },
    );
    s.reads(4, "question");
    s.write(4, 3);
    s.read(3, 4);
    s.writes(3, "answer", OUT);
    let found = came_from(
        &s.graph(),
        "/w/answer",
        Follow {
            possible: false,
            lookups: false,
        },
    );
    assert_eq!(found, ["question@0", "unix:/run/s@0"]);
}

/// An internet address: family, port, and the four bytes of the host.
fn internet(host: [u8; 4], port: u16) -> Box<[u8]> {
    let parts = [&2u16.to_le_bytes()[..], &port.to_be_bytes(), &host, &[0; 8]];
    parts.concat().into()
}

/// A server at `bound` answers a client whose host is `client`, and which connected to `reached`.
fn asked_over_the_network(bound: [u8; 4], reached: [u8; 4], client: [u8; 4]) -> Vec<String> {
    let mut s = Scene::new(&["sh"]);
    s.runs(2, 3, &["server"]);
    s.runs(2, 4, &["client"]);
    s.push(3, Outcome::Done(3), Op::Socket { domain: 2, kind: 1 });
    let address = internet(bound, 8080);
    s.done(3, Op::Bind { fd: 3, address });
    s.push(4, Outcome::Done(3), Op::Socket { domain: 2, kind: 1 });
    let address = internet(reached, 8080);
    s.done(
        4,
        Op::Connect {
            fd: 3,
            kind: 1,
            address,
        },
    );
    let address = internet(client, 41000);
    s.push(3, Outcome::Done(4), Op::Accept { fd: 3, address });
    s.reads(4, "question");
    s.write(4, 3);
    s.read(3, 4);
    s.writes(3, "answer", OUT);
    let follow = Follow {
        possible: false,
        lookups: false,
    };
    came_from(&s.graph(), "/w/answer", follow)
}

#[test]
fn a_server_of_all_addresses_is_joined_with_the_clients_of_its_machine() {
    let (all, local, own) = ([0; 4], [127, 0, 0, 1], [192, 168, 1, 5]);
    for (reached, name) in [
        (local, "tcp:127.0.0.1:8080@0"),
        (own, "tcp:192.168.1.5:8080@0"),
    ] {
        let found = asked_over_the_network(all, reached, reached);
        assert_eq!(found, ["question@0", name]);
    }
    // A client that connects to all addresses reaches the local one.
    let found = asked_over_the_network(all, all, local);
    assert_eq!(found, ["question@0", "tcp:127.0.0.1:8080@0"]);
    // The client asked another machine, and the server's client is on a third.
    let found = asked_over_the_network(all, [192, 168, 1, 9], [192, 168, 1, 7]);
    assert_eq!(found, ["tcp:0.0.0.0:8080@0"]);
}

#[test]
fn process_substitution_is_a_pipe() {
    let mut s = Scene::new(&["bash"]);
    s.pipe(2, 62, 63);
    s.runs(2, 3, &["cat"]);
    s.open(3, "/dev/fd/62", RDONLY, 3);
    s.read(3, 3);
    check(
        &s,
        "bash#1 Fork cat#1
         cat#1 Read pipe:1@0",
    );
}
