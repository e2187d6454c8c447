//! The processes behind connections.
//!
//! In: the numbers of connections. Out: the addresses of their clients, and the processes of this
//! machine. The server's list of connections has the port of a client through TCP. Of a client
//! through the Unix socket, it has the server's thread. If that thread waits for its client, the
//! kernel shows at which descriptor. If it works, its socket is the one that is left when those of
//! all other connections are known.
//!
//! Invariant: a connection is never given another one's socket. The connection is in the server's
//! list before and after the look at the sockets, so its own is among them. The kernel gives its
//! port to no other client meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;

use backstory_database::client_process::{self, SessionClient};
use backstory_database::socket_diag::{UnixPeer, all_served_by, socket_inodes};
use backstory_sys::clock::machine;

use crate::connection::Connection;
use backstory_database::error::Error;

/// `poll(2)`, whose first argument is an address, and `recvfrom(2)`, whose first is a descriptor.
const POLL: &str = "7";
const RECEIVE: &str = "45";

/// A connection of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundClient {
    pub(crate) connection: u64,
    pub(crate) user: String,
    pub(crate) host: String,
    /// 0: a Unix socket.
    pub(crate) port: u16,
    pub(crate) client: SessionClient,
}

/// Finds clients.
#[derive(Debug, Default)]
pub(crate) struct ClientFinder {
    /// The server's sockets whose connections are known, by inode.
    pub(crate) known: BTreeMap<u32, u64>,
    /// The server's process.
    pub(crate) server_pid: Option<u32>,
    /// TCP port.
    pub(crate) server_port: u16,
}

impl ClientFinder {
    /// The clients of connections, or of all. With each connection comes a time at which it
    /// existed, in ns since 1970.
    pub(crate) fn find(
        &mut self,
        session: &mut Connection,
        connections: Option<&BTreeMap<u64, i64>>,
    ) -> Result<Vec<FoundClient>, Error> {
        let now = machine();
        let seen = |id: u64| connections.and_then(|all| all.get(&id)).copied();
        let ids = connections.map(|all| all.keys().copied().collect::<Vec<u64>>());
        let mut found = Vec::new();
        let mut local = Vec::new();
        for entry in list(session, ids.as_deref())? {
            let address = entry.host.rsplit_once(':');
            let address = address.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            let (host, port) = match address {
                Some((host, port)) => (host.to_owned(), port),
                None => (entry.host, 0),
            };
            let seen = seen(entry.connection).unwrap_or(now);
            let client = match port {
                0 => SessionClient::default(),
                port => self.at_port((&host, port), seen),
            };
            if port == 0 {
                local.push(LocalConnection {
                    at: found.len(),
                    id: entry.connection,
                    waits: self
                        .server_pid
                        .and_then(|server| waits_at(server, entry.thread)),
                    seen,
                });
            }
            found.push(FoundClient {
                connection: entry.connection,
                user: entry.user,
                host,
                port,
                client,
            });
        }
        let sockets = match local.is_empty() {
            true => BTreeMap::new(),
            false => self.sockets(),
        };
        // The client of a connection is known if the connection was open all the time.
        let ids: Vec<u64> = found.iter().map(|one| one.connection).collect();
        let still: BTreeSet<u64> = match ids.is_empty() {
            true => BTreeSet::new(),
            false => list(session, Some(&ids))?
                .into_iter()
                .map(|entry| entry.connection)
                .collect(),
        };
        for one in found
            .iter_mut()
            .filter(|one| !still.contains(&one.connection))
        {
            one.client = SessionClient::default();
        }
        local.retain(|one| still.contains(&one.id));
        self.find_local(sockets, &local, &mut found);
        Ok(found)
    }

    /// The server's sockets of clients through the socket file, without those of this watch.
    fn sockets(&self) -> BTreeMap<u32, UnixPeer> {
        let Some(server) = self.server_pid else {
            return BTreeMap::new();
        };
        let own: BTreeSet<u64> = socket_inodes(std::process::id()).map(u64::from).collect();
        let all = all_served_by(server).into_iter();
        all.filter(|(_, peer)| !own.contains(&peer.inode)).collect()
    }

    /// Finds clients through the Unix socket.
    fn find_local(
        &mut self,
        mut sockets: BTreeMap<u32, UnixPeer>,
        local: &[LocalConnection],
        found: &mut [FoundClient],
    ) {
        if local.is_empty() {
            return;
        }
        self.known.retain(|inode, _| sockets.contains_key(inode));
        let mut left = Vec::new();
        for one in local {
            match one
                .waits
                .and_then(|inode| Some((inode, sockets.get(&inode)?)))
            {
                Some((inode, peer)) => {
                    found[one.at].client = client_process::find_peer(peer, one.seen);
                    self.known.insert(inode, one.id);
                }
                None => left.push(one),
            }
        }
        sockets.retain(|inode, _| !self.known.contains_key(inode));
        let Some((inode, first)) = sockets.first_key_value().filter(|_| !left.is_empty()) else {
            return;
        };
        // Which of several sockets a connection has is unknown, but one process may have all.
        let seen = left.iter().map(|one| one.seen).min().unwrap_or_default();
        let client = client_process::find_peer(first, seen);
        let id = |client: &SessionClient| client.certain().map(|one| (one.pid, one.born));
        let has_it = |peer: &UnixPeer| id(&client_process::find_peer(peer, seen)) == id(&client);
        if sockets.len() == 1 || id(&client).is_some() && sockets.values().all(has_it) {
            for one in &left {
                found[one.at].client = client.clone();
            }
            if let ([one], 1) = (&left[..], sockets.len()) {
                self.known.insert(*inode, one.id);
            }
        }
    }

    /// The client at a port. The server may show a name for this machine's addresses.
    fn at_port(&self, (host, port): (&str, u16), seen: i64) -> SessionClient {
        let hosts = match host.parse::<std::net::IpAddr>() {
            Ok(_) => vec![host],
            Err(_) => vec!["127.0.0.1", "::1"],
        };
        let mut found = SessionClient::default();
        for host in hosts {
            let client =
                client_process::find((host, port), self.server_port, self.server_pid, seen);
            if !client.is_unknown() {
                return client;
            }
            // A client on another machine has no process here, but its server has an address.
            if found.server.is_empty() {
                found = client;
            }
        }
        found
    }
}

/// A connection through the Unix socket.
struct LocalConnection {
    /// Its place in the list of clients.
    at: usize,
    id: u64,
    /// The inode of the socket at which its thread waits.
    waits: Option<u32>,
    /// It existed at this time, in ns since 1970.
    seen: i64,
}

/// A line of the server's list of connections.
struct ListedConnection {
    connection: u64,
    user: String,
    host: String,
    /// The server's thread, by the kernel's number.
    thread: u32,
}

fn list(
    session: &mut Connection,
    connections: Option<&[u64]>,
) -> Result<Vec<ListedConnection>, Error> {
    let condition = connections.map(|ids| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        format!(" WHERE ID IN ({})", ids.join(","))
    });
    let text = "SELECT ID, USER, HOST, TID FROM information_schema.PROCESSLIST";
    let rows = session.query(&format!("{text}{}", condition.unwrap_or_default()))?;
    let listed = rows.into_iter().filter_map(|row| {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || texts.next().unwrap_or_default();
        let (connection, user, host, thread) = (next(), next(), next(), next());
        // Threads of the server itself have no host.
        (!host.is_empty()).then_some(())?;
        Some(ListedConnection {
            connection: connection.parse().ok()?,
            user,
            host,
            thread: thread.parse().ok()?,
        })
    });
    Ok(listed.collect())
}

/// The inode of the socket at which a thread of the server waits for its client.
fn waits_at(server: u32, thread: u32) -> Option<u32> {
    let call = fs::read_to_string(format!("/proc/{server}/task/{thread}/syscall")).ok()?;
    let mut words = call.split(' ');
    let (name, first) = (words.next()?, words.next()?);
    let first = u64::from_str_radix(first.trim_start_matches("0x"), 16).ok()?;
    let descriptor = match name {
        RECEIVE => first as u32,
        POLL => {
            let memory = fs::File::open(format!("/proc/{server}/mem")).ok()?;
            let mut bytes = [0; 4];
            memory.read_exact_at(&mut bytes, first).ok()?;
            u32::from_ne_bytes(bytes)
        }
        _ => return None,
    };
    let link = fs::read_link(format!("/proc/{server}/fd/{descriptor}")).ok()?;
    let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']');
    inode?.parse().ok()
}
