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
mod tests;
