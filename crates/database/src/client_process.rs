//! The processes at the other end of a session, by its socket.
//!
//! In: the client's address, as the server sees it, the server's process, and a time at which the
//! session existed. Out: the processes of this machine that have the client's end of the socket.
//! None is found of another machine or network namespace, of another user (unless root looks), and
//! none that has ended.
//!
//! Invariant: a process is certain only if no other one can have sent the statements. It is the
//! only one with the socket, and it is not younger than the session. A process that is younger
//! inherited the socket. This holds for the statements before the last look that found the process
//! with the socket. A process that has ended since may have given its socket to another one first.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use backstory_sys::clock::machine;

use crate::socket_diag::{self, UnixPeer, socket_inodes};
use crate::socket_holders::{SocketHolder, holders};

pub use crate::socket_holders::{ClientProcess, birth};

/// A process's birth is known in ticks of 10 ms, and the time of a session in ms, in ns.
const COARSE: i64 = 12_000_000;
/// The inode of no socket.
const CLOSED: u64 = 0;

/// The client of a session, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionClient {
    /// The processes that had the socket when they were looked for. Empty: none was found.
    pub processes: Vec<ClientProcess>,
    /// The one process is certainly the client, until `held`.
    pub is_certain: bool,
    /// When the one process was last seen to have the socket alone, in ns since 1970.
    held: i64,
    /// The names of the server's address, as the client may have used it: `tcp:HOST:PORT` or
    /// `unix:PATH`.
    pub server: Vec<String>,
    /// The inode of the client's socket, or `CLOSED`.
    socket: u64,
}

impl SessionClient {
    /// True if no process was found.
    pub fn is_unknown(&self) -> bool {
        self.processes.is_empty()
    }

    /// This client, with the server's address of an earlier look if it is not known any more.
    pub fn or_server_of(mut self, earlier: &SessionClient) -> SessionClient {
        if self.server.is_empty() {
            self.server.clone_from(&earlier.server);
        }
        self
    }

    /// The certain process.
    pub fn certain(&self) -> Option<&ClientProcess> {
        self.processes.first().filter(|_| self.is_certain)
    }

    /// True if the one process certainly sent a statement that had arrived at this time, in ns
    /// since 1970.
    pub fn is_certain_at(&self, time: i64) -> bool {
        self.is_certain && self.held >= time
    }

    /// Looks whether the process still has the socket alone. A socket that no process has any more
    /// comes back to none.
    pub fn look_for_sharers(&mut self) {
        let own = self.certain().map(|one| (one.pid, one.born));
        let Some(own) = own.filter(|_| self.socket != CLOSED) else {
            return;
        };
        let now = machine();
        let found = holders(self.socket, Some(own.0));
        let is_own = |one: &SocketHolder| (one.process.pid, one.process.born) == own;
        if found.is_empty() {
            self.socket = CLOSED;
        } else if found.iter().all(is_own) {
            self.held = now;
        } else {
            self.is_certain = false;
            self.processes = found.into_iter().map(|one| one.process).collect();
        }
    }

    /// The processes with the socket of this inode. `seen`: the session existed then, in ns since
    /// 1970.
    fn with_socket(socket: u64, server: Vec<String>, seen: i64) -> SessionClient {
        let held = machine();
        let found = holders(socket, None);
        let is_old = |one: &SocketHolder| one.birth <= seen + COARSE;
        SessionClient {
            is_certain: matches!(&found[..], [only] if is_old(only)),
            held,
            processes: found.into_iter().map(|one| one.process).collect(),
            server,
            socket,
        }
    }
}

/// Finds the client that a process of the server serves at a Unix socket. `server_path`: the end of
/// the path that the server bound. `seen`: the session existed then, in ns since 1970.
pub fn find_local(server_pid: u32, server_path: &str, seen: i64) -> SessionClient {
    // Another session's process may have got the number meanwhile.
    if !is_as_old(server_pid, seen) {
        return SessionClient::default();
    }
    let peer = socket_diag::served_by(server_pid, server_path);
    peer.map(|peer| find_peer(&peer, seen)).unwrap_or_default()
}

/// Finds the processes at this end of a Unix socket. `seen`: the session existed then, in ns since
/// 1970.
pub fn find_peer(peer: &UnixPeer, seen: i64) -> SessionClient {
    SessionClient::with_socket(peer.inode, socket_names(&peer.path), seen)
}

/// The names of a Unix socket: with the path that the server bound, and with the path without
/// symbolic links, if that is another one.
pub fn socket_names(path: &str) -> Vec<String> {
    let real = fs::canonicalize(path).ok();
    let real = real.as_deref().and_then(|real| real.to_str());
    let mut names = vec![format!("unix:{path}")];
    names.extend(
        real.filter(|real| *real != path)
            .map(|real| format!("unix:{real}")),
    );
    names
}

/// Finds the client that has this address and a connection to the server's port. `server_pid`: the
/// server's process of the session, which has the other end. `seen`: the session existed then, in
/// ns since 1970. Of a client on another machine, the address of the server is found.
///
/// The kernel gives the port of a client that has ended to another client. So the answer holds only
/// if the session's own end is open afterwards.
pub fn find(
    (host, port): (&str, u16),
    server_port: u16,
    server_pid: Option<u32>,
    seen: i64,
) -> SessionClient {
    // A session that has ended has no process any more. That takes microseconds to see, and the
    // tables of all sockets take milliseconds to read.
    if server_pid.is_some_and(|pid| !is_as_old(pid, seen)) {
        return SessionClient::default();
    }
    let found = || {
        let local = SocketAddr::new(host.parse().ok()?, port);
        let here = connection_to(local, server_port);
        let server = match here {
            Some((server, _)) => server,
            None => server_end(local, server_port)?,
        };
        let names = vec![format!("tcp:{server}")];
        let client = match here {
            Some((_, inode)) => SessionClient::with_socket(inode, names, seen),
            None => SessionClient {
                server: names,
                ..SessionClient::default()
            },
        };
        let serves = |pid: u32| {
            let own_end = tcp_inode(server, local);
            is_as_old(pid, seen) && socket_inodes(pid).any(|one| Some(u64::from(one)) == own_end)
        };
        server_pid.is_none_or(serves).then_some(client)
    };
    found().unwrap_or_default()
}

/// True if a process is not younger than a session that existed at this time.
fn is_as_old(pid: u32, seen: i64) -> bool {
    birth(pid).is_some_and(|birth| birth <= seen + COARSE)
}

/// The address of a server of this machine that has a connection from this client.
fn server_end(client: SocketAddr, server_port: u16) -> Option<SocketAddr> {
    // Replies leave from the address of the interface that leads to the client. Nothing is sent.
    let any = match client {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let route = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(client)?;
        socket.local_addr()
    });
    let near = route.ok().map(|own| SocketAddr::new(own.ip(), server_port));
    let near = near.filter(|own| socket_diag::tcp_inode(*own, client).is_some());
    near.or_else(|| {
        let is_of_client =
            |own: SocketAddr, other| own.port() == server_port && is_same(other, client);
        let (own, ..) = in_tables(&is_of_client)?;
        Some(SocketAddr::new(own.ip().to_canonical(), server_port))
    })
}

/// The server's address and the inode of the client's socket.
fn connection_to(local: SocketAddr, server_port: u16) -> Option<(SocketAddr, u64)> {
    // A client that connects to an address of its own machine has that address, too.
    let server = SocketAddr::new(local.ip(), server_port);
    if let Some(inode) = socket_diag::tcp_inode(local, server) {
        return Some((server, inode));
    }
    let is_of_client = |own, other: SocketAddr| is_same(own, local) && other.port() == server_port;
    let (_, server, inode) = in_tables(&is_of_client)?;
    Some((server, inode))
}

/// The inode of the socket with these addresses.
fn tcp_inode(own: SocketAddr, other: SocketAddr) -> Option<u64> {
    let is_wanted = |one, two| is_same(one, own) && is_same(two, other);
    let known = socket_diag::tcp_inode(own, other);
    known.or_else(|| Some(in_tables(&is_wanted)?.2))
}

/// True for one address in two forms.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// A connection: the address of an end, that of the other end, and the inode of the first.
type Connection = (SocketAddr, SocketAddr, u64);

/// The connection whose ends are wanted, by the kernel's tables of all sockets.
fn in_tables(is_wanted: &dyn Fn(SocketAddr, SocketAddr) -> bool) -> Option<Connection> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| {
            let text = fs::read_to_string(table).ok()?;
            let mut found = text.lines().filter_map(connection);
            found.find(|(own, other, inode)| *inode != 0 && is_wanted(*own, *other))
        })
}

/// The connection of a line of the table.
fn connection(line: &str) -> Option<Connection> {
    let mut words = line.split_whitespace();
    let (own, other) = (words.nth(1)?, words.next()?);
    let inode = words.nth(6)?.parse().ok()?;
    Some((address(own)?, address(other)?, inode))
}

/// An address of the table: the bytes of each 32-bit word in the machine's order.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut words = (0..host.len() / 8).map(|at| {
        let word = host.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let host = match host.len() {
        8 => IpAddr::V4(Ipv4Addr::from(words.next()??)),
        32 => {
            let mut octets = [0; 16];
            for chunk in octets.chunks_exact_mut(4) {
                chunk.copy_from_slice(&words.next()??);
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(host, port))
}

#[cfg(test)]
mod tests {
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
}
