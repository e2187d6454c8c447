//! Collects what the calls of one incident did.
//!
//! In: calls. Out: the beginning of the bytes in both directions, files, programs and connections.
//! Memory: bounded for each of these.

use std::collections::BTreeSet;

use backstory_abi::deep;
use backstory_deep::address::address_text;
use backstory_deep::{Call, Content, DeepLog, DeepProcess, Part};
use backstory_eventlog::event::Time;

use crate::excerpt::Collected;
use crate::left::Acts;
use crate::model::SceneConnection;

/// Most programs and connections of one incident.
const MOST: usize = 1000;

/// The deeds of the calls of one incident.
#[derive(Default)]
pub struct Deeds {
    /// Bytes of the connection that entered.
    pub received: Collected,
    /// Bytes of the connection that left.
    pub sent: Collected,
    /// The files that were used.
    pub files: Acts,
    /// Process id and begin of each started program.
    pub started: Vec<(u32, Time)>,
    /// Connections that were made.
    pub connections: Vec<SceneConnection>,
    /// The processes whose calls these were.
    pub pids: BTreeSet<u32>,
    /// The begin of the first call and of the last one.
    pub period: Option<(Time, Time)>,
}

impl Deeds {
    /// Takes a call that belongs to the incident.
    pub fn take(&mut self, log: &DeepLog, process: &DeepProcess, call: &Call, part: Part) {
        let time = log.time_of(call.time);
        let (from, to) = self.period.unwrap_or((time, time));
        self.period = Some((from.min(time), to.max(time)));
        self.pids.insert(process.pid);
        match part {
            Part::Received if !is_peek(call) => match call.content_in() {
                Some(Content::Bytes(bytes)) => self.received.add(bytes),
                _ => self.received.add_unknown(call.result.max(0) as u64),
            },
            Part::Sent => match call.content_out() {
                Some(Content::Bytes(bytes)) => self.sent.add(bytes),
                _ => self.sent.add_unknown(call.result.max(0) as u64),
            },
            _ => {}
        }
        match call.number {
            deep::BEGIN if call.a == deep::BY_EXEC && self.started.len() < MOST => {
                self.started.push((process.pid, time));
            }
            CONNECT => self.connected(process, call),
            _ => {}
        }
    }

    fn connected(&mut self, process: &DeepProcess, call: &Call) {
        let address = call.address().map(address_text).unwrap_or_default();
        let connection = SceneConnection {
            address,
            pid: process.pid,
            serves: false,
            connected: match call.result {
                0.. => Some(true),
                IN_PROGRESS => None,
                _ => Some(false),
            },
        };
        let is_new = !self.connections.contains(&connection);
        if is_new && !connection.address.is_empty() && self.connections.len() < MOST {
            self.connections.push(connection);
        }
    }
}

const CONNECT: u16 = 42;
/// `-EINPROGRESS`
const IN_PROGRESS: i64 = -115;

/// True for bytes that stay in the socket.
fn is_peek(call: &Call) -> bool {
    const RECEIVES: [u16; 2] = [45, 47];
    const MSG_PEEK: u64 = 2;
    RECEIVES.contains(&call.number) && call.b & MSG_PEEK != 0
}
