//! The connections of one process while its calls are read, and the request that each call belongs
//! to.
//!
//! In: the calls of a process in order. Out: new requests, and the request of each call.
//! Invariant: a descriptor that came to mean something else is no connection any more. Descriptors
//! that `dup` made are the same connection.

use crate::address::address_text;
use crate::call::Call;
use crate::call_numbers as nr;
use crate::log::DeepProcess;
use crate::requests::{Part, Request, Role};
use std::collections::HashMap;

/// A connection of a process.
#[derive(Debug, Clone)]
struct Connection {
    role: Role,
    peer: String,
    number: Option<usize>,
    /// The request in progress, as an index of the list of all.
    current: Option<usize>,
    /// The half of the exchange that ends a request was seen.
    has_answer: bool,
    /// Number of descriptors that mean it.
    descriptors: usize,
}

/// The state of one process while its calls are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessConnections {
    /// The open connections, by a number of their own.
    connections: HashMap<u64, Connection>,
    /// Descriptors, with the number of their connection.
    open: HashMap<i32, u64>,
    next: u64,
    /// The descriptor on which each thread worked last.
    busy: HashMap<u32, i32>,
    /// The request that the process was made for.
    origin: Option<usize>,
}

/// Commands of `fcntl`, and an error.
const F_DUPFD: u64 = 0;
const F_DUPFD_CLOEXEC: u64 = 1030;
const EINPROGRESS: i64 = 115;

impl ProcessConnections {
    /// The state as a new process, or a program that the process executes, finds it.
    pub fn passed_on(&self, origin: Option<usize>) -> ProcessConnections {
        ProcessConnections {
            connections: self.connections.clone(),
            open: self.open.clone(),
            next: self.next,
            busy: HashMap::new(),
            origin,
        }
    }

    /// The request that the process was made for.
    pub fn origin(&self) -> Option<usize> {
        self.origin
    }

    /// The process id of the child that a call made.
    pub fn child(&self, call: &Call) -> Option<u32> {
        let made = nr::FORK.contains(&call.number) && call.result > 0;
        made.then_some(call.result as u32)
    }

    /// Takes a call. Returns the request that it belongs to. `all`: the requests so far, and their
    /// largest number.
    pub fn take(
        &mut self,
        process: &DeepProcess,
        call: &Call,
        accepted: &mut usize,
        all: (&mut Vec<Request>, usize),
    ) -> Option<(usize, Part)> {
        let fd = call.fd;
        let worked = call.result >= 0;
        let other = |request: Option<usize>| request.map(|id| (id, Part::Other));
        if nr::ACCEPT.contains(&call.number) && worked {
            *accepted += 1;
            self.open_connection(call.result as i32, Role::Server, Some(*accepted), call);
            // The thread turns to a new connection.
            self.busy.remove(&call.tid);
        } else if call.number == nr::CONNECT {
            // A connection that is still being made counts: its bytes follow.
            if worked || call.result == -EINPROGRESS {
                self.open_connection(fd, Role::Client, None, call);
            }
        } else if call.number == nr::CLOSE {
            let belongs = other(self.current(call));
            self.forget(fd);
            return belongs;
        } else if nr::RECEIVES.contains(&call.number) && call.result > 0 {
            return self.moved(process, fd, call, false, all);
        } else if nr::SENDS.contains(&call.number) && call.result > 0 {
            return self.moved(process, fd, call, true, all);
        } else if call.number == nr::SENDFILE && call.result > 0 {
            return self.moved(process, call.a as i32, call, true, all);
        } else if worked {
            self.rename_descriptor(call);
        }
        other(self.current(call))
    }

    /// Follows descriptors to their new numbers.
    fn rename_descriptor(&mut self, call: &Call) {
        let duplicates = nr::DUP.contains(&call.number)
            || call.number == nr::FCNTL && [F_DUPFD, F_DUPFD_CLOEXEC].contains(&call.a);
        let new = call.result as i32;
        if duplicates && new == call.fd {
            return;
        }
        match self.open.get(&call.fd).copied() {
            Some(connection) if duplicates => self.mean(new, connection),
            None if duplicates => self.forget(new),
            _ if nr::makes_descriptor(call.number) => self.forget(new),
            _ => {}
        }
    }

    /// From now on the descriptor means this connection.
    fn mean(&mut self, fd: i32, connection: u64) {
        self.forget(fd);
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.descriptors += 1;
        }
        self.open.insert(fd, connection);
    }

    /// The descriptor means no connection any more.
    fn forget(&mut self, fd: i32) {
        let Some(number) = self.open.remove(&fd) else {
            return;
        };
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.descriptors -= 1;
            if connection.descriptors == 0 {
                self.connections.remove(&number);
            }
        }
    }

    fn open_connection(&mut self, fd: i32, role: Role, number: Option<usize>, call: &Call) {
        let peer = call.address().map(address_text).unwrap_or_default();
        let connection = Connection {
            role,
            peer,
            number,
            current: None,
            has_answer: false,
            descriptors: 0,
        };
        self.next += 1;
        self.connections.insert(self.next, connection);
        self.mean(fd, self.next);
    }

    /// Bytes went over a descriptor.
    fn moved(
        &mut self,
        process: &DeepProcess,
        fd: i32,
        call: &Call,
        sent: bool,
        all: (&mut Vec<Request>, usize),
    ) -> Option<(usize, Part)> {
        let open = self.open.get(&fd).copied();
        let Some(connection) = open.and_then(|at| self.connections.get_mut(&at)) else {
            return self.current(call).map(|id| (id, Part::Other));
        };
        let answers = sent == (connection.role == Role::Server);
        let begins = !answers && (connection.current.is_none() || connection.has_answer);
        let (all, most) = all;
        if (begins || connection.current.is_none()) && all.len() >= most {
            connection.current = None;
            return None;
        }
        if begins || connection.current.is_none() {
            connection.current = Some(all.len());
            connection.has_answer = false;
            all.push(Request {
                id: all.len(),
                epoch: process.epoch,
                pid: process.pid,
                tid: call.tid,
                role: connection.role,
                fd,
                peer: connection.peer.clone(),
                connection: connection.number,
                began: call.time,
                ended: call.time,
                worked_until: call.time,
                sent: call.time,
                bytes_in: 0,
                bytes_out: 0,
                calls: 0,
                files: Vec::new(),
                written: Vec::new(),
                wrote_more: false,
            });
        }
        connection.has_answer |= answers;
        let id = connection.current?;
        let request = all.get_mut(id)?;
        let bytes = call.result as u64;
        match sent {
            true => {
                request.bytes_out += bytes;
                request.sent = request.sent.max(call.time);
            }
            false => request.bytes_in += bytes,
        }
        request.ended = request.ended.max(call.time + call.took);
        self.busy.insert(call.tid, fd);
        let part = if sent { Part::Sent } else { Part::Received };
        Some((id, part))
    }

    /// The request on which the call's thread worked last, or that its process was made for.
    fn current(&self, call: &Call) -> Option<usize> {
        let busy = self.busy.get(&call.tid).and_then(|fd| self.open.get(fd));
        let connection = busy.and_then(|at| self.connections.get(at));
        connection.map_or(self.origin, |connection| connection.current)
    }
}
