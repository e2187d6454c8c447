//! `peers`: the addresses that the processes of a run talked to, or tried to.
//!
//! A connection is two entities, one for each direction: see the fold's `channels`. A process that
//! writes to the first or reads from the second is the client. The record has no payload; what it
//! says of names is in [`peer_names`](crate::peer_names).

use backstory_ordering::SmallSort;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{ActivityId, Certainty, EntityKind, Interval, Relation};
use backstory_graph::{connection_traffic, refused_connection};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};

use crate::Result;
use crate::answer::PeerContact;
use crate::peer_names::{HOSTS, NameFinder};
use crate::runs::record;

pub use backstory_graph::REPLY;

/// True for the name of an address: `tcp:127.0.0.1:80`, `udp:127.0.0.1:53`, `unix:/run/x`.
pub(crate) fn is_address(path: &[u8]) -> bool {
    [&b"tcp:"[..], b"udp:", b"ip:", b"unix:"]
        .iter()
        .any(|kind| path.starts_with(kind))
}

/// The address of an entity's name, the same for both directions of a connection. `None` for a name
/// that is no address.
pub fn address_of(name: &[u8]) -> Option<&[u8]> {
    is_address(name).then(|| name.strip_suffix(REPLY).unwrap_or(name))
}

/// The addresses of the host `localhost`, given with or without a port: that of IPv4 first. `None`
/// for another host.
pub fn localhost_addresses(given: &str) -> Option<[String; 2]> {
    let port = given.strip_prefix("localhost")?;
    if port.is_empty() {
        return Some(["127.0.0.1", "::1"].map(str::to_owned));
    }
    let both = ["127.0.0.1", "[::1]"].map(|host| format!("{host}{port}"));
    port.starts_with(':').then_some(both)
}

/// The end of a connection that a user means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeantEnd {
    /// Any port of a host.
    Host(IpAddr),
    /// One port.
    Port(SocketAddr),
}

impl MeantEnd {
    /// The host.
    pub fn host(&self) -> IpAddr {
        match self {
            MeantEnd::Host(host) => *host,
            MeantEnd::Port(address) => address.ip(),
        }
    }

    /// The port. `None` for any.
    pub fn port(&self) -> Option<u16> {
        match self {
            MeantEnd::Host(_) => None,
            MeantEnd::Port(address) => Some(address.port()),
        }
    }
}

/// The ends that a host means, given with or without a port. They are two for `localhost`, and none
/// if the text is something else than a number.
pub fn meant_ends(given: &str) -> Vec<MeantEnd> {
    let addresses = localhost_addresses(given);
    let addresses = addresses.map_or_else(|| vec![given.to_owned()], Vec::from);
    let end = |address: &String| {
        let port = address.parse().map(MeantEnd::Port);
        port.or_else(|_| address.parse().map(MeantEnd::Host)).ok()
    };
    addresses.iter().filter_map(end).collect()
}

/// True for the name of a network address that content can come from or go to. Servers of names
/// are left out.
pub fn is_network_peer(name: &[u8]) -> bool {
    let address = address_of(name).filter(|address| !address.starts_with(b"unix:"));
    address.is_some_and(|address| !is_name_server(address))
}

/// True for the address of a server of names (port 53).
pub fn is_name_server(address: &[u8]) -> bool {
    !address.starts_with(b"unix:") && address.ends_with(b":53")
}

/// The contacts of a run's processes, in the order of their time.
pub fn peers(store: &dyn Store, run: &str) -> Result<Vec<PeerContact>> {
    let _one_state = store.reading()?;
    let run = record(store, run)?.key;
    let mut names = NameFinder::new(store.activities(run)?);
    let mut found: BTreeMap<(Bytes, ActivityId), PeerContact> = BTreeMap::new();
    for entity in store.entities(run)? {
        if entity.kind == EntityKind::File && &*entity.path == HOSTS {
            names.read_hosts(&entity);
        }
        if entity.kind != EntityKind::Socket || !is_address(&entity.path) {
            continue;
        }
        let is_reply = entity.path.ends_with(REPLY);
        let address: Bytes = entity
            .path
            .strip_suffix(REPLY)
            .unwrap_or(&entity.path)
            .into();
        for (activity, _) in store.touching(EntityKey::new(run, entity.id))? {
            let stream = store.stream(ActivityKey::new(run, activity))?;
            for edge in stream.edges.iter().filter(|edge| edge.entity == entity.id) {
                let contact = contact(&mut found, store, run, activity, &address, edge.interval)?;
                let reads = edge.relation == Relation::Read;
                // A connection whose bytes are not known has both directions as possible.
                let seen = edge.certainty == Certainty::Seen;
                if seen {
                    contact.connected = Some(true);
                    contact.serves |= reads != is_reply;
                }
                contact.received |= reads && seen;
                contact.sent |= !reads && seen;
            }
        }
    }
    for (activity, time, kind, payload) in store.extended(run)? {
        names.take(activity, &kind, &payload);
        let at = Interval {
            start: time,
            end: time,
        };
        if let Some((address, errno)) = refused_connection(&kind, &payload) {
            let contact = contact(&mut found, store, run, activity, &address.into(), at)?;
            if contact.connected.is_none() {
                contact.connected = Some(false);
            }
            contact.errno = Some(errno);
        }
        if let Some(one) = connection_traffic(&kind, &payload).filter(|one| is_address(one.address))
        {
            let contact = contact(&mut found, store, run, activity, &one.address.into(), at)?;
            let (sent, received) = contact.bytes.unwrap_or_default();
            contact.bytes = Some((sent + one.sent, received + one.received));
        }
    }
    let mut contacts: Vec<PeerContact> = found.into_values().collect();
    contacts.sort_small_by_key(|contact| (contact.interval.start, contact.id));
    for contact in &mut contacts {
        contact.names = names.of(contact);
    }
    Ok(contacts)
}

fn contact<'f>(
    found: &'f mut BTreeMap<(Bytes, ActivityId), PeerContact>,
    store: &dyn Store,
    run: RunKey,
    activity: ActivityId,
    address: &Bytes,
    interval: Interval,
) -> Result<&'f mut PeerContact> {
    let key = (address.clone(), activity);
    if !found.contains_key(&key) {
        let of = ActivityKey::new(run, activity);
        let new = PeerContact {
            address: address.clone(),
            id: of.0,
            activity: store.activity(of)?,
            connected: None,
            errno: None,
            serves: false,
            sent: false,
            received: false,
            bytes: None,
            interval,
            names: Vec::new(),
        };
        found.insert(key.clone(), new);
    }
    let contact = found
        .get_mut(&key)
        .ok_or(backstory_store::Error::Damaged("contact"))?;
    contact.interval.start = contact.interval.start.min(interval.start);
    contact.interval.end = contact.interval.end.max(interval.end);
    Ok(contact)
}
