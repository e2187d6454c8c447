//! Connections within a run: which accepted connection is the other end of which socket.
//!
//! In: the addresses of listeners, and the times at which programs connected and accepted. Out:
//! pairs of resources. The record has no address of a socket that connected. But the kernel hands
//! out the connections of a listener in the order in which they were made. Invariant: a listener
//! that others than the programs of the run may have connected to has no pairs.

use super::{Arranging, RecordedRun, Scope, ended};
use crate::process::Made;
use crate::resource::{ResourceId, address_words};
use backstory_deep::Call;
use libc::c_long;
use std::collections::HashMap;

/// Addresses and connected sockets, while the log is read.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// The addresses of sockets, each with the time since when it is known.
    addresses: Vec<(String, u64, ResourceId)>,
    /// The sockets that connected: when the call returned, and to which address.
    made: HashMap<ResourceId, (u64, String)>,
}

impl Arranging {
    /// A socket got its address, or told it.
    pub(super) fn addressed(&mut self, call: &Call) {
        let tells = matches!(
            c_long::from(call.number),
            libc::SYS_bind | libc::SYS_getsockname
        );
        if !tells || !self.pairs_connections() {
            return;
        }
        let id = self.table.get(&call.fd).copied();
        let words = call.address().and_then(address_words);
        if let (0, Some(id), Some(words)) = (call.result, id, words) {
            let known = &mut self.connections.addresses;
            known.push((words, ended(call), id));
        }
    }

    /// A socket connected to this address, or has begun to. One for datagrams only sets their
    /// receiver, and no listener accepts it: the resolver of libc does so.
    pub(super) fn connects(&mut self, call: &Call, id: ResourceId, peer: Option<&String>) {
        let connects = call.result == 0 || call.result == -i64::from(libc::EINPROGRESS);
        let socket = self.run.resources[id].socket;
        let is_accepted = socket
            .is_none_or(|(_, kind)| matches!(kind & 0xf, libc::SOCK_STREAM | libc::SOCK_SEQPACKET));
        let connects = connects && is_accepted && self.pairs_connections();
        if let Some(peer) = peer.filter(|_| connects) {
            let made = self.connections.made.entry(id);
            made.or_insert_with(|| (ended(call), peer.clone()));
        }
    }
}

impl Arranging {
    /// False if no connections are paired: the outline of a run has none.
    fn pairs_connections(&self) -> bool {
        !matches!(self.scope, Scope::Outline)
    }
}

impl RecordedRun {
    /// Finds the pairs, each with the socket that connected first.
    pub(super) fn pair_connections(&mut self, connections: Connections) {
        let mut accepted: HashMap<ResourceId, Vec<(u64, ResourceId)>> = HashMap::new();
        for process in &self.processes {
            for (listener, streams) in &process.streams {
                for one in &streams.accepted {
                    if let Made::Resource(id) = one.made {
                        accepted.entry(*listener).or_default().push((one.time, id));
                    }
                }
            }
        }
        let mut listening = connections.addresses;
        listening.retain(|(_, _, id)| accepted.contains_key(id));
        let made = connections.made.into_iter();
        let mut in_order: Vec<_> = made.map(|(id, (time, peer))| (time, id, peer)).collect();
        in_order.sort_unstable();
        let mut made: HashMap<ResourceId, Vec<ResourceId>> = HashMap::new();
        for (time, id, peer) in &in_order {
            let known = listening.iter();
            let listeners = known.filter(|(own, since, _)| since <= time && listens_at(own, peer));
            if let Some((_, _, listener)) = listeners.max_by_key(|(_, since, _)| *since) {
                made.entry(*listener).or_default().push(*id);
            }
        }
        for (listener, mut handed_out) in accepted {
            handed_out.sort_unstable();
            let made = made.remove(&listener).unwrap_or_default();
            let pairs = made.into_iter().zip(handed_out.iter().map(|(_, id)| *id));
            let pairs: Vec<_> = pairs.collect();
            let is_whole = pairs.len() == handed_out.len();
            if is_whole && pairs.iter().all(|(one, two)| self.may_be_ends(*one, *two)) {
                self.connections.extend(pairs);
            }
        }
        self.connections.sort_unstable();
    }

    /// True unless more bytes came out of one of these resources than went into the other.
    fn may_be_ends(&self, one: ResourceId, two: ResourceId) -> bool {
        let processes = || self.processes.iter();
        let fits = |reader, writer| {
            let entered: u64 = processes().map(|process| process.received(reader)).sum();
            let left: u64 = processes().map(|process| process.sent(writer)).sum();
            entered <= left
        };
        fits(one, two) && fits(two, one)
    }
}

/// True if a listener with this address gets connections to that one.
fn listens_at(own: &str, peer: &str) -> bool {
    let parts = |address: &str| {
        let (host, port) = address.rsplit_once(':')?;
        Some((host.to_owned(), port.to_owned()))
    };
    let is_any = |host: &str| matches!(host, "0.0.0.0" | "[::]");
    let same_port = || {
        let ((host, own), (_, peer)) = parts(own).zip(parts(peer))?;
        Some(is_any(&host) && own == peer)
    };
    own == peer || same_port() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::listens_at;

    #[test]
    fn a_listener_gets_the_connections_to_its_address_and_port() {
        for (own, peer, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:80", "127.0.0.1:8080", false),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("[::]:80", "[::1]:80", true),
            ("[::]:80", "[::1]:81", false),
            ("/run/socket", "/run/socket", true),
            ("/run/socket", "/run/other", false),
        ] {
            assert_eq!(listens_at(own, peer), expected, "{own} {peer}");
        }
    }
}
