//! Tests of the search for the process of a client.

use super::*;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, id};

const SECOND: i64 = 1_000_000_000;

fn now() -> i64 {
    machine()
}

/// A connection to a listener of this process.
fn connected() -> (TcpListener, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    (listener, stream, accepted)
}

fn found(
    listener: &TcpListener,
    stream: &TcpStream,
    server: Option<u32>,
    seen: i64,
) -> SessionClient {
    let own = stream.local_addr().unwrap();
    let host = own.ip().to_string();
    let server_port = listener.local_addr().unwrap().port();
    find((&host, own.port()), server_port, server, seen)
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn child() -> Ended {
    Ended(Command::new("sleep").arg("60").spawn().unwrap())
}

/// A child with the descriptor of the stream.
fn heir(stream: &TcpStream) -> Ended {
    rustix::io::fcntl_setfd(stream.as_fd(), rustix::io::FdFlags::empty()).unwrap();
    child()
}

/// True if the client is possibly each of these processes. Children of other tests have
/// inherited the socket, too.
fn is_possibly(client: &SessionClient, wanted: &[u32]) -> bool {
    let has = |pid: &u32| client.processes.iter().any(|one| one.pid == *pid);
    client.certain().is_none() && wanted.iter().all(has)
}

/// The same client, unless a child of another test is about to execute its program.
fn certain(mut find: impl FnMut() -> SessionClient) -> SessionClient {
    let mut client = find();
    for _ in 0..100 {
        if client.is_certain {
            break;
        }
        client = find();
    }
    client
}

#[test]
fn the_process_behind_a_connection_is_certain_by_its_port() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(host) else {
            continue;
        };
        let server = listener.local_addr().unwrap();
        let stream = TcpStream::connect(server).unwrap();
        let _accepted = listener.accept().unwrap();
        let client = certain(|| found(&listener, &stream, Some(id()), now()));
        assert_eq!(client.certain().unwrap().pid, id());
        assert_eq!(client.server, [format!("tcp:{server}")]);
    }
}

#[test]
fn a_program_that_the_client_started_is_no_client() {
    let (listener, stream, _accepted) = connected();
    let _child = child();
    let client = certain(|| found(&listener, &stream, Some(id()), now()));
    assert_eq!(client.certain().unwrap().pid, id());
}

#[test]
fn a_socket_that_a_child_inherited_is_possibly_used_by_either_process() {
    let (listener, stream, _accepted) = connected();
    let mut client = certain(|| {
        let mut client = found(&listener, &stream, Some(id()), now());
        client.look_for_sharers();
        client
    });
    assert!(client.is_certain);
    let heir = heir(&stream);
    let both = [id(), heir.0.id()];
    assert!(is_possibly(
        &found(&listener, &stream, Some(id()), now()),
        &both
    ));
    client.look_for_sharers();
    assert!(is_possibly(&client, &both), "{client:?}");
}

#[test]
fn two_children_of_a_process_that_closed_their_socket_are_possibly_its_client() {
    let (listener, stream, _accepted) = connected();
    let heirs = [heir(&stream), heir(&stream)];
    let own = stream.local_addr().unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(stream);
    let client = find((&own.ip().to_string(), own.port()), port, None, now());
    assert!(
        is_possibly(&client, &heirs.each_ref().map(|heir| heir.0.id())),
        "{client:?}"
    );
}

#[test]
fn a_client_is_certain_of_what_was_sent_before_it_was_last_seen_with_its_socket() {
    let (listener, stream, _accepted) = connected();
    let before = now();
    let mut client = certain(|| found(&listener, &stream, Some(id()), now()));
    assert!(client.is_certain_at(before));
    assert!(!client.is_certain_at(now()));
    drop(stream);
    let later = now();
    for _ in 0..2 {
        client.look_for_sharers();
        assert!(!client.is_certain_at(later), "{client:?}");
    }
}

#[test]
fn a_process_that_is_younger_than_the_session_is_only_possibly_its_client() {
    let (listener, stream, _accepted) = connected();
    // Before the other process begins, however long that takes.
    let seen = now() - SECOND;
    let heir = heir(&stream);
    let (own, port) = (
        stream.local_addr().unwrap(),
        listener.local_addr().unwrap().port(),
    );
    drop(stream);
    let host = own.ip().to_string();
    let wanted = [heir.0.id()];
    let mut client = find((&host, own.port()), port, None, seen);
    // A child of another test that is about to execute its program has the socket, too.
    for _ in 0..100 {
        if is_possibly(&client, &wanted) {
            break;
        }
        client = find((&host, own.port()), port, None, seen);
    }
    assert!(is_possibly(&client, &wanted), "{client:?}");
}

#[test]
fn a_client_whose_session_has_ended_is_unknown_although_another_one_has_its_port() {
    let (listener, stream, _accepted) = connected();
    let other = child();
    for (server, seen) in [(other.0.id(), now()), (id(), 0)] {
        let client = found(&listener, &stream, Some(server), seen);
        assert!(client.is_unknown(), "{client:?}");
    }
}

#[test]
fn the_process_behind_a_unix_socket_is_certain_whatever_path_it_used() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap().join("real");
    fs::create_dir(&real).unwrap();
    let link = real.with_file_name("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let path = link.join("server");
    let listener = UnixListener::bind(&path).unwrap();
    let _client = UnixStream::connect(real.join("server")).unwrap();
    let _accepted = listener.accept().unwrap();
    let found = certain(|| find_local(id(), "/server", now()));
    assert_eq!(found.certain().unwrap().pid, id());
    let names = [path, real.join("server")].map(|path| format!("unix:{}", path.display()));
    assert_eq!(found.server, names);
    for (path, seen) in [("/another", now()), ("/server", 0)] {
        assert!(find_local(id(), path, seen).is_unknown());
    }
}

#[test]
fn the_servers_end_of_a_connection_has_its_address_by_that_of_the_client() {
    // A server for both families sees the address of a client in another form.
    for (bound, host) in [
        ("127.0.0.1:0", "127.0.0.1"),
        ("[::]:0", "127.0.0.1"),
        ("127.0.0.2:0", "127.0.0.2"),
    ] {
        let listener = TcpListener::bind(bound).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = TcpStream::connect((host, port)).unwrap();
        let _accepted = listener.accept().unwrap();
        let client = stream.local_addr().unwrap();
        let server: SocketAddr = format!("{host}:{port}").parse().unwrap();
        assert_eq!(server_end(client, port), Some(server), "{bound}");
        assert_eq!(server_end(client, port ^ 1), None, "{bound}");
    }
}

#[test]
fn a_connection_that_is_not_there_has_no_process() {
    for host in ["127.0.0.1", "[local]"] {
        assert!(find((host, 1), 1, None, now()).is_unknown());
    }
}
