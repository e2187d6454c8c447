//! The requests that the processes of a run served or made: units of work on a connection.
//!
//! In: deep streams. Out: one [`Request`] for each read-write pair on an accepted connection, and
//! for each write-read pair on a connection that the process itself made.
//!
//! - A request of a server begins with the first bytes that it reads after it last wrote. It ends
//!   with its last write before the next such read, or with the close.
//! - A file that a thread opens belongs to the request on which this thread worked last.
//! - A child by `fork` goes on with the connections of its parent.
//!
//! Memory: the open connections, and the requests.

use crate::call::Call;
use crate::log::{DeepLog, DeepProcess};
use backstory_abi::deep;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Most files that are named for one request.
const MOST_FILES: usize = 1000;

/// Which end of a connection the process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It accepted the connection.
    Server,
    /// It made the connection.
    Client,
}

/// One unit of work on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The epoch of the process, which names it in the deep log.
    pub epoch: u64,
    /// The process id, as the run's log has it.
    pub pid: u32,
    /// The thread that began with it, as the process sees it.
    pub tid: u32,
    /// Which end the process is.
    pub role: Role,
    /// The descriptor of the connection.
    pub fd: i32,
    /// The other end: an address, `unix:PATH`, or empty if it is not known.
    pub peer: String,
    /// Time-stamp counter at its first call.
    pub began: u64,
    /// Time-stamp counter after its last call.
    pub ended: u64,
    /// Bytes that the process received.
    pub bytes_in: u64,
    /// Bytes that the process sent.
    pub bytes_out: u64,
    /// Calls of the threads that worked on it, from its first to its last.
    pub calls: u64,
    /// The paths that were opened for it, in order, each once.
    pub files: Vec<Vec<u8>>,
}

/// A connection of a process.
#[derive(Debug, Clone)]
struct Connection {
    role: Role,
    peer: String,
    /// The request in progress, as an index of the list of all.
    current: Option<usize>,
    /// The half of the exchange that ends a request was seen.
    has_answer: bool,
}

/// The state of one process while its calls are read.
#[derive(Default)]
struct Connections {
    open: HashMap<i32, Connection>,
    /// The descriptor on which each thread worked last.
    busy: HashMap<u32, i32>,
}

/// Numbers of system calls on x86-64.
mod nr {
    pub const OPEN: &[u16] = &[2, 85, 257];
    pub const RECEIVES: &[u16] = &[0, 19, 45, 47];
    pub const SENDS: &[u16] = &[1, 20, 44, 46];
    pub const SENDFILE: u16 = 40;
    pub const CLOSE: u16 = 3;
    pub const CONNECT: u16 = 42;
    pub const ACCEPT: &[u16] = &[43, 288];
    pub const FORK: &[u16] = &[56, 57, 58];
}

impl DeepLog {
    /// The requests of all processes, in the order of their beginning.
    pub fn requests(&self) -> Vec<Request> {
        let mut all = Vec::new();
        // The connections that a child finds open, by its process id.
        let mut inherited: HashMap<u32, HashMap<i32, Connection>> = HashMap::new();
        for process in self.processes() {
            let mut state = Connections::default();
            if let Some(open) = inherited.remove(&process.own_pid) {
                state.open = open;
            }
            for call in self.process_calls(process.epoch) {
                state.take(process, &call, &mut all);
                if nr::FORK.contains(&call.number) && call.result > 0 {
                    inherited.insert(call.result as u32, state.passed_on());
                }
            }
        }
        all.sort_by_key(|request| request.began);
        all
    }
}

impl Connections {
    /// The open connections, as a child finds them.
    fn passed_on(&self) -> HashMap<i32, Connection> {
        let fresh = |connection: &Connection| Connection {
            current: None,
            has_answer: false,
            ..connection.clone()
        };
        let open = self.open.iter();
        open.map(|(fd, connection)| (*fd, fresh(connection)))
            .collect()
    }

    fn take(&mut self, process: &DeepProcess, call: &Call, all: &mut Vec<Request>) {
        let fd = call.fd;
        let worked = call.result >= 0;
        if nr::ACCEPT.contains(&call.number) && worked {
            self.open_connection(call.result as i32, Role::Server, call);
        } else if call.number == nr::CONNECT {
            // A connection that is still being made counts: its bytes follow.
            if worked || call.result == -115 {
                self.open_connection(fd, Role::Client, call);
            }
        } else if call.number == nr::CLOSE {
            self.count(call, all);
            self.open.remove(&fd);
        } else if nr::RECEIVES.contains(&call.number) && call.result > 0 {
            self.moved(process, fd, call, false, all);
        } else if nr::SENDS.contains(&call.number) && call.result > 0 {
            self.moved(process, fd, call, true, all);
        } else if call.number == nr::SENDFILE && call.result > 0 {
            self.moved(process, call.a as i32, call, true, all);
        } else if nr::OPEN.contains(&call.number) && worked {
            self.count(call, all);
            self.opened(call, all);
        } else if call.number < deep::BEGIN {
            self.count(call, all);
        }
    }

    fn open_connection(&mut self, fd: i32, role: Role, call: &Call) {
        let peer = call.address().map(address_text).unwrap_or_default();
        let connection = Connection {
            role,
            peer,
            current: None,
            has_answer: false,
        };
        self.open.insert(fd, connection);
    }

    /// Bytes went over a descriptor.
    fn moved(
        &mut self,
        process: &DeepProcess,
        fd: i32,
        call: &Call,
        sent: bool,
        all: &mut Vec<Request>,
    ) {
        let Some(connection) = self.open.get_mut(&fd) else {
            return self.count(call, all);
        };
        let answers = sent == (connection.role == Role::Server);
        let begins = !answers && (connection.current.is_none() || connection.has_answer);
        if begins || connection.current.is_none() {
            connection.current = Some(all.len());
            connection.has_answer = false;
            all.push(Request {
                epoch: process.epoch,
                pid: process.pid,
                tid: call.tid,
                role: connection.role,
                fd,
                peer: connection.peer.clone(),
                began: call.time,
                ended: call.time,
                bytes_in: 0,
                bytes_out: 0,
                calls: 0,
                files: Vec::new(),
            });
        }
        connection.has_answer |= answers;
        if let Some(request) = connection.current.and_then(|index| all.get_mut(index)) {
            let bytes = call.result as u64;
            *(if sent {
                &mut request.bytes_out
            } else {
                &mut request.bytes_in
            }) += bytes;
            request.ended = call.time + call.took;
        }
        self.busy.insert(call.tid, fd);
        self.count(call, all);
    }

    /// The request on which the call's thread worked last.
    fn current<'a>(&self, call: &Call, all: &'a mut [Request]) -> Option<&'a mut Request> {
        let connection = self.open.get(self.busy.get(&call.tid)?)?;
        all.get_mut(connection.current?)
    }

    fn count(&self, call: &Call, all: &mut [Request]) {
        if let Some(request) = self.current(call, all) {
            request.calls += 1;
        }
    }

    fn opened(&self, call: &Call, all: &mut [Request]) {
        let Some(request) = self.current(call, all) else {
            return;
        };
        let path = call.path().unwrap_or_default();
        let known = request.files.iter().any(|known| known == path);
        if !path.is_empty() && !known && request.files.len() < MOST_FILES {
            request.files.push(path.to_vec());
        }
    }
}

/// A socket address as text.
fn address_text(address: &[u8]) -> String {
    const UNIX: u16 = 1;
    const INET: u16 = 2;
    const INET6: u16 = 10;
    let Some((family, rest)) = address.split_first_chunk::<2>() else {
        return String::new();
    };
    let port = |bytes: &[u8]| bytes.first_chunk().map(|b| u16::from_be_bytes(*b));
    let text = match u16::from_ne_bytes(*family) {
        INET => port(rest)
            .zip(rest.get(2..6).and_then(|b| b.first_chunk::<4>()))
            .map(|(port, ip)| SocketAddr::from((Ipv4Addr::from(*ip), port)).to_string()),
        INET6 => port(rest)
            .zip(rest.get(6..22).and_then(|b| b.first_chunk::<16>()))
            .map(|(port, ip)| SocketAddr::from((Ipv6Addr::from(*ip), port)).to_string()),
        UNIX => {
            let path = rest.split(|byte| *byte == 0).next().unwrap_or_default();
            let path = String::from_utf8_lossy(path);
            (!path.is_empty()).then(|| format!("unix:{path}"))
        }
        _ => None,
    };
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::address_text;

    #[test]
    fn addresses_are_written_as_people_write_them() {
        assert_eq!(
            address_text(&[2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0]),
            "127.0.0.1:8080"
        );
        let mut six = vec![10, 0, 0, 80, 0, 0, 0, 0];
        six.extend([0; 15]);
        six.push(1);
        assert_eq!(address_text(&six), "[::1]:80");
        assert_eq!(address_text(b"\x01\0/run/x\0"), "unix:/run/x");
        for cut in [&[][..], &[2], &[2, 0, 1], &[10, 0, 1, 2, 3], &[1, 0]] {
            assert_eq!(address_text(cut), "");
        }
    }
}
