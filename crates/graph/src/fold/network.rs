//! Datagrams, the ends and the traffic of connections, and names that were looked up.
//!
//! In: what the recorder knows of internet sockets beside their connections. Out: edges to the
//! address of a datagram, and extended records ([`crate::network_facts`]).
//!
//! Invariant: a socket that was bound to a port is that of a server. All its datagrams belong to
//! its own address. A server of all addresses has the one that a client of its machine used. Any
//! other socket is that of a client, and a datagram belongs to the address of the other end. So the
//! datagrams of a client and its server meet at the server's address.

use std::rc::Rc;

use super::socket_address::{Transport, destination, end_of_connection, has_no_port};
use super::{CallContext, Fold};
use crate::model::Sink;
use crate::network_facts::{ENDS, NAME, TRAFFIC, encode_ends, encode_name, encode_traffic};
use crate::object::ObjectId;
use crate::paths::ROOT;
use crate::process::Descriptor;

/// The end of the name of the direction from the server.
const REPLY: &[u8] = b" (reply)";

impl<S: Sink + ?Sized> Fold<'_, S> {
    /// Notes that a socket sent a datagram to an address, or received one from it.
    pub(super) fn datagram(
        &mut self,
        call: CallContext,
        fd: i32,
        address: &[u8],
        received: bool,
    ) -> Result<(), S::Error> {
        if call.outcome.failed() || address.is_empty() {
            return Ok(());
        }
        let socket = self.object_of_descriptor(call, fd)?;
        let bound = socket.and_then(|(socket, _)| self.channels.bound.get(&socket));
        let own = bound.filter(|bound| !has_no_port(bound)).cloned();
        let (address, serves) = match own {
            Some(own) => (self.served(Transport::Datagrams, own, address), true),
            None => (destination(self.address(call, address)), false),
        };
        let (to, from) = self.directions(Transport::Datagrams, &address, call.time);
        let (source, target) = if serves { (to, from) } else { (from, to) };
        // The answer to a client's first question may be read without an address.
        let first = !serves && socket.is_some_and(|(socket, _)| self.is_without_address(socket));
        let end = self.end(call, source, target, first || received, first || !received);
        let cloexec = self.descriptor(call, fd).is_some_and(|held| held.cloexec);
        let mut held = Descriptor::opened(Rc::new(end), call.time, cloexec || !first);
        held.read = received.then_some(call.time);
        held.written = (!received).then_some(call.time);
        if !received {
            self.wrote(call, target, ROOT)?;
        }
        match first {
            true => self.install(call, fd, held),
            // Another descriptor, which has no number and lasts as long as the process.
            false => self.install_nameless(call, held),
        }
    }

    /// True for a socket that was neither connected nor used with an address.
    fn is_without_address(&self, socket: ObjectId) -> bool {
        let label = self.object(socket).label.as_ref();
        label.is_some_and(|label| label.starts_with(b"socket:"))
    }

    /// Notes the addresses of both ends of a connection. A server has it from now on, and a client
    /// since it began to connect: the server may have got it before that call returned.
    pub(super) fn connection_began(
        &mut self,
        call: CallContext,
        fd: i32,
        accepted: bool,
        network: u64,
        (own, other): (&[u8], &[u8]),
    ) -> Result<(), S::Error> {
        let Some(held) = self.descriptor(call, fd) else {
            return Ok(());
        };
        let began = if accepted { call.time } else { held.since };
        let Some(object) = held.what.as_ref().map(|what| what.source) else {
            return Ok(());
        };
        let Some(label) = self.object(object).label.clone() else {
            return Ok(());
        };
        let (Some(own), Some(other)) = (end_of_connection(own), end_of_connection(other)) else {
            return Ok(());
        };
        let address = label.strip_suffix(REPLY).unwrap_or(&label);
        let payload = encode_ends(accepted, network, own, other, address);
        let activity = self.announce(call.epoch)?;
        self.sink.extended(activity, began, ENDS, &payload)
    }

    /// Notes how much a connection carried until its process closed it.
    pub(super) fn traffic(
        &mut self,
        call: CallContext,
        fd: i32,
        sent: u64,
        received: u64,
    ) -> Result<(), S::Error> {
        let Some((object, _)) = self.object_of_descriptor(call, fd)? else {
            return Ok(());
        };
        let Some(label) = self.object(object).label.clone() else {
            return Ok(());
        };
        let address = label.strip_suffix(REPLY).unwrap_or(&label);
        let payload = encode_traffic(address, sent, received);
        let activity = self.announce(call.epoch)?;
        self.sink.extended(activity, call.time, TRAFFIC, &payload)
    }

    /// Notes that a process looked up a name.
    pub(super) fn looked_up(
        &mut self,
        call: CallContext,
        name: &[u8],
        address: &[u8],
    ) -> Result<(), S::Error> {
        let payload = encode_name(name, address);
        let activity = self.announce(call.epoch)?;
        self.sink.extended(activity, call.time, NAME, &payload)
    }
}
