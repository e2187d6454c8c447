//! The ends of TCP connections, and which of them are those of one connection.
//!
//! A recorded process knows the addresses of both ends. A client and a server in two runs have one
//! connection if their addresses agree, and if they got it at about the same time. Ports are used
//! again, but hardly within a minute.
//!
//! The clocks of two machines differ by an unknown time. Two machines whose clocks differ by more
//! than a minute have no connection in common here. Bounds for the difference follow from the order
//! of events. A server gets a connection after the client began it, and the fastest of several
//! connections takes at most a second.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::RunHeader;
use backstory_graph::model::{ActivityId, Certainty};
use backstory_graph::{connection_ends as decoded, connections_closed_by_exec};
use backstory_store::{RunKey, Store};

use crate::Result;

/// Clocks of one boot differ by less than this between runs, in ns.
pub(crate) const DRIFT: i64 = 10_000_000;

/// The most ns between the times at which both ends of a connection have it.
pub(crate) const MINUTE: i64 = 60_000_000_000;

/// The most ns until the server of the fastest connection of two runs has it.
const SECOND: i64 = 1_000_000_000;

/// An end of a connection, as its process saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// The process.
    pub activity: ActivityId,
    /// When the client began to connect, or when the server had accepted the connection.
    pub began: Time,
    /// True for the server.
    pub accepted: bool,
    /// The cookie of the network namespace, which tells those of one boot apart. 0 if unknown.
    pub network: u64,
    /// The address of this end.
    pub own: SocketAddr,
    /// The address of the other end.
    pub other: SocketAddr,
    /// The name of the entity that the process writes as a client, and reads as a server.
    pub name: Bytes,
}

/// Where an address is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressScope {
    /// In a network namespace.
    Loopback,
    /// In a private network. Several networks may use it.
    Private,
    /// Everywhere.
    Global,
}

impl AddressScope {
    /// The scope of an address.
    pub(crate) fn of(address: IpAddr) -> AddressScope {
        let (loopback, private) = match address {
            IpAddr::V4(ip) => (ip.is_loopback(), ip.is_private() || ip.is_link_local()),
            IpAddr::V6(ip) => (
                ip.is_loopback(),
                ip.is_unique_local() || ip.is_unicast_link_local(),
            ),
        };
        match (loopback, private) {
            (true, _) => AddressScope::Loopback,
            (_, true) => AddressScope::Private,
            _ => AddressScope::Global,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            AddressScope::Loopback => "loopback",
            AddressScope::Private => "private",
            AddressScope::Global => "global",
        }
    }
}

impl ConnectionEnd {
    /// The address of the server.
    pub fn server(&self) -> SocketAddr {
        if self.accepted { self.own } else { self.other }
    }

    /// Where the address of the server is unique.
    pub fn scope(&self) -> AddressScope {
        AddressScope::of(self.server().ip())
    }

    /// The names that the connection's entity can have in the run of the other end. A server may
    /// have named it after the address that its socket was bound to.
    pub(crate) fn names_there(&self) -> Vec<String> {
        let server = self.server();
        let mut hosts = vec![server.ip().to_string()];
        if let IpAddr::V4(ip) = server.ip() {
            hosts.push(format!("[{}]", ip.to_ipv6_mapped()));
        } else {
            hosts[0] = format!("[{}]", server.ip());
        }
        if self.accepted {
            let named = |host| format!("tcp:{host}:{}", server.port());
            return hosts.into_iter().map(named).collect();
        }
        hosts.extend(["0.0.0.0", "[::]"].map(str::to_owned));
        // With port 0, the kernel chose one.
        let ports = [server.port(), 0];
        let named = |host: String| ports.map(|port| format!("tcp:{host}:{port}"));
        hosts.into_iter().flat_map(named).collect()
    }
}

/// The ends of connections that a run's processes had, in the order of time.
///
/// # Errors
///
/// If the store fails.
pub fn connection_ends(store: &dyn Store, run: RunKey) -> Result<Vec<ConnectionEnd>> {
    let mut found = Vec::new();
    for (activity, began, kind, payload) in store.extended(run)? {
        if let Some(ends) = decoded(&kind, &payload) {
            found.push(ConnectionEnd {
                activity,
                began,
                accepted: ends.accepted,
                network: ends.network,
                own: ends.own,
                other: ends.other,
                name: ends.address.into(),
            });
        }
    }
    Ok(found)
}

/// When processes of a run executed programs, and closed inherited connections by that, which they
/// had not used. By the process and the name of the connections.
pub(crate) type ClosedByExec = HashMap<(ActivityId, Bytes), Time>;

/// Reads them.
pub(crate) fn closed_by_exec(store: &dyn Store, run: RunKey) -> Result<ClosedByExec> {
    let mut found = ClosedByExec::new();
    for (activity, time, kind, payload) in store.extended(run)? {
        if let Some(name) = connections_closed_by_exec(&kind, &payload) {
            found.insert((activity, name.into()), time);
        }
    }
    Ok(found)
}

/// The ends of a run's connections, by their own address and that of the other end.
pub(crate) type EndsByAddress = HashMap<(SocketAddr, SocketAddr), Vec<ConnectionEnd>>;

/// A connection that two runs have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommonConnection {
    pub(crate) client: ConnectionEnd,
    pub(crate) server: ConnectionEnd,
    pub(crate) certainty: Certainty,
}

/// All connections that two runs have in common, and how time passes between them.
#[derive(Debug, Default)]
pub(crate) struct CommonConnections {
    pub(crate) all: Vec<CommonConnection>,
    /// The ns to add to a time of the server. The sum is the latest time at which the client can
    /// have sent what the server had by then.
    pub(crate) to_client: i64,
    /// The ns to add to a time of the client. The sum is the latest time at which the server can
    /// have sent what the client had by then.
    pub(crate) to_server: i64,
}

/// Finds the connections of which the clients are in one run, and the servers in another.
pub(crate) fn common(
    (clients, at_client): (&EndsByAddress, &RunHeader),
    (servers, at_server): (&EndsByAddress, &RunHeader),
) -> CommonConnections {
    let mut found = CommonConnections::default();
    let (few, many) = match clients.len() < servers.len() {
        true => (clients, servers),
        false => (servers, clients),
    };
    for ((own, other), ends) in few {
        for (one, two) in ends.iter().flat_map(|one| {
            many.get(&(*other, *own))
                .into_iter()
                .flatten()
                .map(move |two| (one, two))
        }) {
            let (client, server) = if one.accepted { (two, one) } else { (one, two) };
            if let Some(certainty) = joined((client, at_client), (server, at_server)) {
                found.all.push(CommonConnection {
                    client: client.clone(),
                    server: server.clone(),
                    certainty,
                });
            }
        }
    }
    let later = |one: &CommonConnection| one.server.began.saturating_sub(one.client.began);
    let fastest = found.all.iter().map(later).min().unwrap_or_default();
    let bounds = match is_one_boot(at_client, at_server) {
        true => (
            at_server.to_clock_of(at_client),
            at_client.to_clock_of(at_server),
        ),
        false => (SECOND.saturating_sub(fastest), fastest),
    };
    (found.to_client, found.to_server) = bounds;
    found
}

fn is_one_boot(one: &RunHeader, other: &RunHeader) -> bool {
    !one.boot_id.is_empty() && one.boot_id == other.boot_id
}

/// Decides whether two ends are those of one connection, and how certain that is.
fn joined(
    (client, at_client): (&ConnectionEnd, &RunHeader),
    (server, at_server): (&ConnectionEnd, &RunHeader),
) -> Option<Certainty> {
    let agree = !client.accepted
        && server.accepted
        && client.own == server.other
        && client.other == server.own;
    if !agree {
        return None;
    }
    let one_boot = is_one_boot(at_client, at_server);
    let shift = at_server.to_clock_of(at_client);
    let later = server
        .began
        .saturating_add(shift)
        .saturating_sub(client.began);
    let earliest = if one_boot { -DRIFT } else { -MINUTE };
    let networks = [client.network, server.network];
    let one_network = networks[0] == networks[1] || networks.contains(&0);
    let scope = client.scope();
    let may_be = scope != AddressScope::Loopback || (one_boot && one_network);
    if !may_be || later < earliest || later > MINUTE {
        return None;
    }
    Some(match scope {
        AddressScope::Private if !one_boot => Certainty::Possible,
        _ => Certainty::Seen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(accepted: bool, began: i64, server: &str) -> ConnectionEnd {
        let (client, server) = (
            "198.51.100.7:40000".parse().unwrap(),
            server.parse().unwrap(),
        );
        let (own, other) = if accepted {
            (server, client)
        } else {
            (client, server)
        };
        ConnectionEnd {
            activity: ActivityId(0),
            began,
            accepted,
            network: 1,
            own,
            other,
            name: b"tcp:x:1"[..].into(),
        }
    }

    fn header(boot: &str) -> RunHeader {
        RunHeader {
            boot_id: boot.into(),
            ..RunHeader::default()
        }
    }

    /// Joins ends that have a connection `later` ns after each other, on machines of these boots.
    fn joins(server: &str, later: i64, boots: [&str; 2]) -> Option<Certainty> {
        let (one, other) = (end(false, 0, server), end(true, later, server));
        let (here, there) = (header(boots[0]), header(boots[1]));
        joined((&one, &here), (&other, &there))
    }

    #[test]
    fn ends_of_two_machines_are_one_connection_if_they_have_it_within_a_minute() {
        let global = "203.0.113.1:80";
        for (later, expected) in [
            (0, Some(Certainty::Seen)),
            (-60 * SECOND, Some(Certainty::Seen)),
            (60 * SECOND, Some(Certainty::Seen)),
            (61 * SECOND, None),
            (-61 * SECOND, None),
        ] {
            assert_eq!(joins(global, later, ["a", "b"]), expected, "{later}");
        }
    }

    #[test]
    fn a_server_of_the_same_boot_has_a_connection_after_its_client() {
        assert_eq!(
            joins("127.0.0.1:80", SECOND, ["a", "a"]),
            Some(Certainty::Seen)
        );
        assert_eq!(joins("127.0.0.1:80", -SECOND, ["a", "a"]), None);
    }

    #[test]
    fn a_private_address_of_two_machines_is_possibly_the_same() {
        assert_eq!(
            joins("10.0.0.1:80", 0, ["a", "b"]),
            Some(Certainty::Possible)
        );
        assert_eq!(joins("10.0.0.1:80", 0, ["a", "a"]), Some(Certainty::Seen));
        assert_eq!(
            joins("[fd00::1]:80", 0, ["a", "b"]),
            Some(Certainty::Possible)
        );
        assert_eq!(
            joins("[2001:db8::1]:80", 0, ["a", "b"]),
            Some(Certainty::Seen)
        );
    }

    #[test]
    fn the_loopback_address_is_that_of_one_network() {
        assert_eq!(joins("127.0.0.1:80", 0, ["a", "b"]), None);
        assert_eq!(joins("127.0.0.1:80", 0, ["", ""]), None);
        let (one, mut other) = (end(false, 0, "[::1]:80"), end(true, 0, "[::1]:80"));
        let boot = header("a");
        assert!(joined((&one, &boot), (&other, &boot)).is_some());
        other.network = 2;
        assert!(joined((&one, &boot), (&other, &boot)).is_none());
        other.network = 0;
        assert!(joined((&one, &boot), (&other, &boot)).is_some());
    }

    #[test]
    fn the_fastest_connection_bounds_the_difference_of_two_clocks() {
        let boots = [header("a"), header("b")];
        let (mut clients, mut servers) = (EndsByAddress::new(), EndsByAddress::new());
        // The server's clock is ahead by four seconds, and it is once slow to accept.
        for (began, accepted) in [(0, 5 * SECOND), (10 * SECOND, 30 * SECOND)] {
            let (one, two) = (
                end(false, began, "192.0.2.1:80"),
                end(true, accepted, "192.0.2.1:80"),
            );
            clients.entry((one.own, one.other)).or_default().push(one);
            servers.entry((two.own, two.other)).or_default().push(two);
        }
        let found = common((&clients, &boots[0]), (&servers, &boots[1]));
        // The first client's end also fits the second server's, and the other way round.
        assert_eq!(found.all.len(), 4);
        assert_eq!(
            (found.to_client, found.to_server),
            (6 * SECOND, -5 * SECOND)
        );
    }

    #[test]
    fn other_addresses_or_two_clients_are_no_connection() {
        let boot = header("a");
        let (client, mut server) = (end(false, 0, "127.0.0.1:80"), end(true, 0, "127.0.0.1:80"));
        assert!(joined((&server, &boot), (&client, &boot)).is_none());
        assert!(joined((&client, &boot), (&client, &boot)).is_none());
        server.other.set_port(40001);
        assert!(joined((&client, &boot), (&server, &boot)).is_none());
    }
}
