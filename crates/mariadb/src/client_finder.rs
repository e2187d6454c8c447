//! The processes behind connections.
//!
//! In: the numbers of connections. Out: the addresses of their clients, and the processes of this
//! machine. The server's list of connections has the port of a client through TCP. Of a client
//! through the Unix socket, it has the server's thread. If that thread waits for its client, the
//! kernel shows at which descriptor. If it works, its socket is the one that is left when those of
//! all other connections are known.
//!
//! Invariant: a connection is never given another one's socket. The connection is in the server's
//! list before and after the look at the sockets, so its own is among them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;

use backstory_database::client_process::{self, ClientProcess};
use backstory_database::socket_diag::{UnixPeer, all_served_by, socket_inodes};

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
    pub(crate) process: Option<ClientProcess>,
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
    /// The clients of connections, or of all.
    pub(crate) fn find(
        &mut self,
        session: &mut Connection,
        connections: Option<&[u64]>,
    ) -> Result<Vec<FoundClient>, Error> {
        let mut found = Vec::new();
        let mut local = Vec::new();
        for entry in list(session, connections)? {
            let address = entry.host.rsplit_once(':');
            let address = address.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            let (host, port) = match address {
                Some((host, port)) => (host.to_owned(), port),
                None => (entry.host, 0),
            };
            let process = match port {
                0 => None,
                port => at_port(&host, port, self.server_port),
            };
            if port == 0 {
                local.push((found.len(), entry.connection, entry.thread));
            }
            found.push(FoundClient {
                connection: entry.connection,
                user: entry.user,
                host,
                port,
                process,
            });
        }
        if !local.is_empty() {
            self.find_local(session, &local, &mut found)?;
        }
        Ok(found)
    }

    /// Finds clients through the Unix socket.
    fn find_local(
        &mut self,
        session: &mut Connection,
        local: &[(usize, u64, u32)],
        found: &mut [FoundClient],
    ) -> Result<(), Error> {
        let Some(server) = self.server_pid else {
            return Ok(());
        };
        let own: BTreeSet<u64> = socket_inodes(std::process::id()).map(u64::from).collect();
        let mut sockets: BTreeMap<u32, UnixPeer> = all_served_by(server)
            .into_iter()
            .filter(|(_, peer)| !own.contains(&peer.inode))
            .collect();
        self.known.retain(|inode, _| sockets.contains_key(inode));
        let waits = local
            .iter()
            .map(|(at, id, thread)| (*at, *id, waits_at(server, *thread)));
        let waits: Vec<(usize, u64, Option<u32>)> = waits.collect();
        let ids: Vec<u64> = local.iter().map(|(_, id, _)| *id).collect();
        let still: BTreeSet<u64> = list(session, Some(&ids))?
            .into_iter()
            .map(|entry| entry.connection)
            .collect();
        let mut left = Vec::new();
        for (at, id, inode) in waits.into_iter().filter(|(_, id, _)| still.contains(id)) {
            match inode.and_then(|inode| Some((inode, sockets.get(&inode)?))) {
                Some((inode, peer)) => {
                    found[at].process = client_process::find_peer(peer);
                    self.known.insert(inode, id);
                }
                None => left.push((at, id)),
            }
        }
        sockets.retain(|inode, _| !self.known.contains_key(inode));
        let Some((inode, first)) = sockets.first_key_value().filter(|_| !left.is_empty()) else {
            return Ok(());
        };
        let process = client_process::find_peer(first);
        let id = |peer: &UnixPeer| client_process::find_peer(peer).map(|one| (one.pid, one.born));
        let is_one = sockets.len() == 1
            || process.is_some() && sockets.values().all(|peer| id(peer) == id(first));
        if is_one {
            for (at, _) in &left {
                found[*at].process.clone_from(&process);
            }
            if let ([(_, connection)], 1) = (&left[..], sockets.len()) {
                self.known.insert(*inode, *connection);
            }
        }
        Ok(())
    }
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

/// The server may show a name for this machine's addresses.
fn at_port(host: &str, port: u16, server_port: u16) -> Option<ClientProcess> {
    let hosts = match host.parse::<std::net::IpAddr>() {
        Ok(_) => vec![host],
        Err(_) => vec!["127.0.0.1", "::1"],
    };
    hosts
        .into_iter()
        .find_map(|host| client_process::find(host, port, server_port))
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
