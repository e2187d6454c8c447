//! Datagrams, the ends and the traffic of connections, and names that were looked up.
//!
//! In: what the recorder knows of internet sockets beside their connections. Out: edges to the
//! address of a datagram, and extended records ([`crate::network_facts`]).
//!
//! Invariant: a socket that was bound to a port is that of a server. All its datagrams belong to
//! its own address. A server of all addresses has the one that a client of its machine used. Any
//! other socket is that of a client, and a datagram belongs to the address of the other end. So the
//! datagrams of a client and its server meet at the server's address.

use std::collections::BTreeSet;
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Via};

use super::socket_address::{Transport, destination, end_of_connection, has_no_port};
use super::{CallContext, Fold};
use crate::model::Sink;
use crate::network_facts::{
    CLOSED_BY_EXEC, ENDS, NAME, REPLY, TRAFFIC, encode_ends, encode_name, encode_traffic,
};
use crate::object::ObjectId;
use crate::paths::ROOT;
use crate::process::{Descriptor, NAMELESS, OpenFile};

impl<S: Sink> Fold<'_, S> {
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

    /// The names of the connections of which the process has descriptors that it inherited and did
    /// not use, and that an exec closes. A use is seen by the recorder. A child that libc makes for
    /// another program uses none.
    pub(super) fn closed_by_exec(&self, call: CallContext) -> BTreeSet<Bytes> {
        let mut found = BTreeSet::new();
        let Some(process) = self.processes.get(&call.pid) else {
            return found;
        };
        let epoch = self.epochs[call.epoch as usize].as_ref();
        // The recorder logs what a child of libc does with its descriptors.
        let is_known = match process.spawned {
            true => call.via == Via::Library,
            false => epoch.is_some_and(|epoch| epoch.recorded),
        };
        if !is_known {
            return found;
        }
        let mut left = BTreeSet::new();
        for (&fd, held) in &process.descriptors {
            let Some(name) = held.what.as_ref().and_then(|what| self.connection(what)) else {
                continue;
            };
            let is_unused = !held.own && held.read.is_none() && held.written.is_none();
            match held.cloexec && is_unused && !held.doubtful && fd > NAMELESS {
                true => found.insert(name),
                false => left.insert(name),
            };
        }
        found.retain(|name| !left.contains(name));
        found
    }

    /// The name of an internet connection.
    fn connection(&self, what: &OpenFile) -> Option<Bytes> {
        let label = self.object(what.source).label.as_ref()?;
        let name = label.strip_suffix(REPLY).unwrap_or(label);
        name.starts_with(b"tcp:").then(|| name.into())
    }

    /// Notes the connections that the exec of a program closed.
    pub(super) fn connections_closed(
        &mut self,
        call: CallContext,
        closed: BTreeSet<Bytes>,
    ) -> Result<(), S::Error> {
        for name in closed {
            let activity = self.announce(call.epoch)?;
            self.sink
                .extended(activity, call.time, CLOSED_BY_EXEC, &name)?;
        }
        Ok(())
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
        if let Some(held) = self.descriptor(call, fd) {
            held.carried_nothing = sent == 0 && received == 0;
        }
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
