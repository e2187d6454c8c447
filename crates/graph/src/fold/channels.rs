//! Pipes, sockets, memory files: data that flows without a file between.
//!
//! A pipe is one entity. A socket connection is two, one for each direction, so that a request and
//! its response are not confused. All connections to one address share the two. An entity has its
//! other end outside the run if the run only uses it, or only generates it.

use std::collections::VecDeque;
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, CWD, Pid, Time};
use rustc_hash::{FxHashMap, FxHashSet};

use super::descriptors::O_CLOEXEC;
use super::socket_address::{
    Transport, beside, destination, is_loopback, is_wildcard, loopbacks, plain, readable, unix_path,
};
use super::{CallContext, Fold};
use crate::model::{EntityKind, Sink};
use crate::object::ObjectId;
use crate::paths::ROOT;
use crate::process::{Descriptor, OpenFile};
use crate::refused;

/// `SOCK_CLOEXEC`
const SOCK_CLOEXEC: u32 = 0o2_000_000;

/// All channels of the run.
#[derive(Debug, Clone, Default)]
pub struct Channels {
    /// By address: the direction to the server, and the direction from it.
    addresses: FxHashMap<(Transport, Bytes), (ObjectId, ObjectId)>,
    /// The address that a listening socket was bound to, by the socket's object.
    pub(super) bound: FxHashMap<ObjectId, Bytes>,
    /// Channels by their name in `/proc/PID/fd`, and the channels that have such a name.
    outside: FxHashMap<Vec<u8>, ObjectId>,
    called: FxHashSet<ObjectId>,
    /// Descriptors on their way through a socket.
    pub(super) sent: FxHashMap<ObjectId, VecDeque<Descriptor>>,
    /// Processes that receive a descriptor before it is sent.
    pub(super) awaited: FxHashMap<ObjectId, VecDeque<(Pid, i32)>>,
    pipes: u32,
    sockets: u32,
}

impl<S: Sink> Fold<'_, S> {
    pub(super) fn channel(&mut self, kind: EntityKind, label: Vec<u8>, time: Time) -> ObjectId {
        let object = self.add(kind, ROOT, time, 0);
        self.object_mut(object).label = Some(label.into());
        object
    }

    pub(super) fn new_pipe(&mut self, time: Time) -> ObjectId {
        self.channels.pipes += 1;
        let label = format!("pipe:{}", self.channels.pipes).into_bytes();
        self.channel(EntityKind::Pipe, label, time)
    }

    pub(super) fn new_socket(&mut self, time: Time) -> ObjectId {
        self.channels.sockets += 1;
        let label = format!("socket:{}", self.channels.sockets).into_bytes();
        self.channel(EntityKind::Socket, label, time)
    }

    /// The channel with the kernel's name `text`, whose creation was not seen.
    pub(super) fn channel_outside(&mut self, text: &[u8], time: Time) -> ObjectId {
        let kind = if text.starts_with(b"socket:") {
            EntityKind::Socket
        } else {
            EntityKind::Pipe
        };
        self.named_outside(kind, text, time)
    }

    /// The object without a path that has the kernel's name `text`.
    pub(super) fn named_outside(&mut self, kind: EntityKind, text: &[u8], time: Time) -> ObjectId {
        if let Some(known) = self.called(text) {
            return known;
        }
        let object = self.channel(kind, text.to_vec(), time);
        self.is_called(object, text);
        object
    }

    /// The object that the kernel calls `text`. Pipes and sockets are numbered upwards, so no two
    /// of a run have the same name.
    pub(super) fn called(&self, text: &[u8]) -> Option<ObjectId> {
        self.channels.outside.get(text).copied()
    }

    /// Notes that the kernel calls `object` by this name. False if either the object or the name
    /// has another partner already.
    pub(super) fn is_called(&mut self, object: ObjectId, text: &[u8]) -> bool {
        if let Some(&known) = self.channels.outside.get(text) {
            return known == object;
        }
        if !self.channels.called.insert(object) {
            return false;
        }
        self.channels.outside.insert(text.to_vec(), object);
        true
    }

    pub(super) fn end(
        &self,
        call: CallContext,
        source: ObjectId,
        target: ObjectId,
        reads: bool,
        writes: bool,
    ) -> OpenFile {
        OpenFile {
            source,
            target,
            reads,
            writes,
            keeps: false,
            path: ROOT,
            via: call.via,
            looked: false,
        }
    }

    pub(super) fn pipe(
        &mut self,
        call: CallContext,
        read: i32,
        write: i32,
        flags: u32,
    ) -> Result<(), S::Error> {
        if !call.ok() {
            return Ok(());
        }
        let pipe = self.new_pipe(call.time);
        let cloexec = flags & O_CLOEXEC as u32 != 0;
        let (reader, writer) = (
            self.end(call, pipe, pipe, true, false),
            self.end(call, pipe, pipe, false, true),
        );
        self.install(
            call,
            read,
            Descriptor::opened(Rc::new(reader), call.time, cloexec),
        )?;
        self.install(
            call,
            write,
            Descriptor::opened(Rc::new(writer), call.time, cloexec),
        )
    }

    /// Adds the pipe that `popen` makes unseen. Parent and child may use it in either direction.
    pub(super) fn hidden_pipe(&mut self, call: CallContext, child: Pid) -> Result<(), S::Error> {
        let pipe = self.new_pipe(call.time);
        let both = Rc::new(self.end(call, pipe, pipe, true, true));
        let mut held = Descriptor::opened(both, call.time, true);
        held.own = false;
        self.install_nameless(call, held.clone())?;
        held.cloexec = false;
        let epoch = self.processes.get(&child).map_or(call.epoch, |p| p.epoch);
        self.install_nameless(
            CallContext {
                pid: child,
                epoch,
                ..call
            },
            held,
        )
    }

    pub(super) fn socket(
        &mut self,
        call: CallContext,
        _domain: i32,
        kind: i32,
    ) -> Result<(), S::Error> {
        if !call.ok() {
            return Ok(());
        }
        let object = self.new_socket(call.time);
        let end = self.end(call, object, object, true, true);
        self.install_result(
            call,
            Descriptor::opened(Rc::new(end), call.time, kind as u32 & SOCK_CLOEXEC != 0),
        )
    }

    pub(super) fn socket_pair(
        &mut self,
        call: CallContext,
        a: i32,
        b: i32,
        kind: u32,
    ) -> Result<(), S::Error> {
        if !call.ok() {
            return Ok(());
        }
        let (there, back) = (self.new_socket(call.time), self.new_socket(call.time));
        let cloexec = kind & SOCK_CLOEXEC != 0;
        let first = self.end(call, back, there, true, true);
        let second = self.end(call, there, back, true, true);
        self.install(
            call,
            a,
            Descriptor::opened(Rc::new(first), call.time, cloexec),
        )?;
        self.install(
            call,
            b,
            Descriptor::opened(Rc::new(second), call.time, cloexec),
        )
    }

    /// The two directions of all connections to an address.
    pub(super) fn directions(
        &mut self,
        transport: Transport,
        address: &[u8],
        time: Time,
    ) -> (ObjectId, ObjectId) {
        let key = (transport, address.into());
        if let Some(&found) = self.channels.addresses.get(&key) {
            return found;
        }
        let name = readable(address, transport);
        let reply = [name.as_slice(), b" (reply)"].concat();
        let pair = (
            self.channel(EntityKind::Socket, name, time),
            self.channel(EntityKind::Socket, reply, time),
        );
        self.channels.addresses.insert(key, pair);
        pair
    }

    /// An address in the form that is the same for all processes: a path in it is absolute.
    pub(super) fn address(&mut self, call: CallContext, address: &[u8]) -> Bytes {
        let path = unix_path(address);
        match path.and_then(|path| self.place_of_content(call, CWD, path)) {
            Some(place) => [&address[..2], &self.paths.bytes(place)].concat().into(),
            None => plain(address),
        }
    }

    pub(super) fn connect(
        &mut self,
        call: CallContext,
        fd: i32,
        kind: i32,
        address: &[u8],
    ) -> Result<(), S::Error> {
        /// The result of a `connect` that does not block.
        const EINPROGRESS: i32 = -115;
        if address.is_empty() {
            return Ok(());
        }
        let transport = Transport::of(kind);
        if call.outcome.failed() && call.outcome.value() != Some(EINPROGRESS) {
            let path = unix_path(address).filter(|_| call.absent());
            let place = path.and_then(|path| self.place(call, CWD, path));
            if let Some(place) = place {
                return self.not_there(call, place);
            }
            let errno = call.outcome.value().unwrap_or_default().saturating_neg();
            let payload = refused::encode(&readable(&plain(address), transport), errno);
            let activity = self.announce(call.epoch)?;
            return self
                .sink
                .extended(activity, call.time, refused::KIND, &payload);
        }
        let address = destination(self.address(call, address));
        let (to, from) = self.directions(transport, &address, call.time);
        let end = self.end(call, from, to, true, true);
        let cloexec = self.descriptor(call, fd).is_some_and(|h| h.cloexec);
        let held = Descriptor::opened(Rc::new(end), call.time, cloexec);
        if call.via == backstory_eventlog::event::Via::Library
            || self.descriptor(call, fd).is_some()
        {
            self.install(call, fd, held)
        } else {
            self.install_nameless(call, held)
        }
    }

    pub(super) fn bind_socket(
        &mut self,
        call: CallContext,
        fd: i32,
        address: &[u8],
    ) -> Result<(), S::Error> {
        if call.outcome.failed() || address.is_empty() {
            return Ok(());
        }
        let address = self.address(call, address);
        let Some((object, _)) = self.object_of_descriptor(call, fd)? else {
            // The process accepts connections unseen, so each process that connects to this address
            // may exchange data with it.
            let (to, from) = self.directions(Transport::Stream, &address, call.time);
            let end = self.end(call, to, from, true, true);
            return self.install_nameless(call, Descriptor::opened(Rc::new(end), call.time, false));
        };
        self.channels.bound.insert(object, address);
        Ok(())
    }

    /// The address under which a client reached a server that was bound to `bound`. A server of all
    /// addresses has several. A client of the same machine uses the loopback address, or the
    /// address that is the client's own, too. `peer`: the client's address, if known.
    pub(super) fn served(&self, transport: Transport, bound: Bytes, peer: &[u8]) -> Bytes {
        if !is_wildcard(&bound) {
            return bound;
        }
        let is_known =
            |own: &Bytes| (self.channels.addresses).contains_key(&(transport, own.clone()));
        let own = match beside(&plain(peer), &bound) {
            Some(own) => Some(own).filter(|own| is_loopback(own) || is_known(own)),
            None => loopbacks(&bound).into_iter().find(is_known),
        };
        own.unwrap_or(bound)
    }

    pub(super) fn accept(
        &mut self,
        call: CallContext,
        fd: i32,
        address: &[u8],
    ) -> Result<(), S::Error> {
        if !call.ok() {
            return Ok(());
        }
        let listening = self
            .object_of_descriptor(call, fd)?
            .map(|(object, _)| object);
        let bound = listening.and_then(|l| self.channels.bound.get(&l)).cloned();
        let address = match bound {
            Some(bound) => self.served(Transport::Stream, bound, address),
            None => self.address(call, address),
        };
        let (to, from) = self.directions(Transport::Stream, &address, call.time);
        let end = self.end(call, to, from, true, true);
        self.install_result(call, Descriptor::opened(Rc::new(end), call.time, false))
    }
}
