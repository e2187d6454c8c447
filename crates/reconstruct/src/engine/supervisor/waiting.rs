//! Calls that wait: for descriptors, or for a child.

use super::processes::Registered;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::process::{CallObject, Made, ReadyTurn, ResultKey};
use crate::ready::{IN, OUT, PRI, epoll_events, poll_list, set_members};
use crate::resource::ResourceId;
use libc::*;
use std::io;

/// A descriptor that a call waits for.
#[derive(Debug, Clone, Copy)]
struct Awaited {
    fd: i32,
    events: u32,
    resource: Option<ResourceId>,
}

/// The answer to a wait.
enum Ready {
    /// These descriptors, by their position in the list, with their events.
    Some(Vec<(usize, u32)>),
    /// The time was up.
    TimeUp,
    /// The record has nothing more for any of them.
    Never,
}

impl Supervisor {
    fn awaited(&self, call: &NotifiedCall, fd: i32, events: u32) -> Awaited {
        let ends = self.stand_ins.of(call.tid, fd);
        let resource = ends.map(|ends| {
            if events & IN != 0 {
                ends.read
            } else {
                ends.write
            }
        });
        Awaited {
            fd,
            events,
            resource,
        }
    }

    /// Which of these are ready: as recorded if the recorded wait fits, otherwise as their streams
    /// are. `None`: no resource of the record is among them.
    fn ready(&mut self, index: usize, list: &[Awaited], may_time_out: bool) -> Option<Ready> {
        if list.iter().all(|one| one.resource.is_none()) {
            return None;
        }
        let fits = |turn: &ReadyTurn| {
            let among = |id: &ResourceId| list.iter().any(|one| one.resource == Some(*id));
            let known = turn
                .ready
                .iter()
                .all(|(id, _)| id.as_ref().is_some_and(among));
            known && (!turn.ready.is_empty() || turn.value == 0 && may_time_out)
        };
        if let Some(turn) = self.matchers[index].turn(fits) {
            let ready = self.as_recorded(&turn, list);
            // Streams agree with the wait: what is ready has arrived.
            for (id, _) in &turn.ready {
                if let Some(id) = id {
                    self.matchers[index].streams(*id).input.arrive();
                }
            }
            return Some(match ready.is_empty() {
                true => Ready::TimeUp,
                false => Ready::Some(ready),
            });
        }
        let mut ready = self.as_streams_are(index, list);
        if ready.is_empty() {
            for id in list.iter().filter_map(|one| one.resource) {
                self.matchers[index].streams(id).input.arrive();
                let accepted = &mut self.matchers[index].streams(id).accepted;
                while matches!(accepted.front(), Some((Made::Failed(EAGAIN), _))) {
                    accepted.pop_front();
                }
            }
            ready = self.as_streams_are(index, list);
        }
        Some(match ready.is_empty() {
            false => Ready::Some(ready),
            true if may_time_out && !self.matchers[index].idles() => Ready::TimeUp,
            true => Ready::Never,
        })
    }

    fn as_recorded(&self, turn: &ReadyTurn, list: &[Awaited]) -> Vec<(usize, u32)> {
        let one = |(at, awaited): (usize, &Awaited)| {
            let found = turn.ready.iter().find(|(id, _)| *id == awaited.resource)?;
            let always = (POLLERR | POLLHUP) as u32;
            let events = found.1 & (awaited.events | always | EPOLLRDHUP as u32);
            (awaited.resource.is_some() && events != 0).then_some((at, events))
        };
        list.iter().enumerate().filter_map(one).collect()
    }

    fn as_streams_are(&mut self, index: usize, list: &[Awaited]) -> Vec<(usize, u32)> {
        let mut ready = Vec::new();
        for (at, awaited) in list.iter().enumerate() {
            let Some(id) = awaited.resource else { continue };
            let streams = self.matchers[index].streams(id);
            let connects = matches!(streams.accepted.front(), Some((Made::Resource(_), _)));
            let mut events = 0;
            if streams.input.is_ready() || connects {
                events |= IN;
            }
            if streams.accepted.is_empty() {
                events |= OUT;
            }
            if events & awaited.events != 0 {
                ready.push((at, events & awaited.events));
            }
        }
        ready
    }

    /// The response to a wait that nothing ends.
    fn never(&mut self, call: &NotifiedCall, index: usize) -> Response {
        match self.beyond_the_record(call, index, "a wait for input".to_owned()) {
            Response::Value(_) => Response::Errno(EINTR),
            other => other,
        }
    }

    pub(super) fn poll(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let count = call.length(1).min(1 << 16);
        let bytes = call.bytes(call.args[0], count * 8)?;
        let list: Vec<Awaited> = poll_list(&bytes)
            .into_iter()
            .map(|(fd, events, _)| self.awaited(call, fd, u32::from(events)))
            .collect();
        let may_time_out = match call.number {
            SYS_poll => call.int(2) >= 0,
            _ => call.args[2] != 0,
        };
        let ready = match self.ready(index, &list, may_time_out) {
            None => return Ok(Response::Continue),
            Some(Ready::Never) => return Ok(self.never(call, index)),
            Some(Ready::TimeUp) => Vec::new(),
            Some(Ready::Some(ready)) => ready,
        };
        let mut bytes = bytes;
        for entry in bytes.chunks_exact_mut(8) {
            entry[6..8].fill(0);
        }
        for (at, events) in &ready {
            let events = *events as u16;
            bytes[at * 8 + 6..at * 8 + 8].copy_from_slice(&events.to_le_bytes());
        }
        call.put(call.args[0], &bytes)?;
        Ok(Response::Value(ready.len() as i64))
    }

    pub(super) fn select(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let size = call.length(0).min(1 << 16).div_ceil(64) * 8;
        let mut list: Vec<Awaited> = Vec::new();
        for (arg, events) in [(1, IN), (2, OUT), (3, PRI)] {
            if call.args[arg] == 0 {
                continue;
            }
            for fd in set_members(&call.bytes(call.args[arg], size)?) {
                list.push(self.awaited(call, fd, events));
            }
        }
        let ready = match self.ready(index, &list, call.args[4] != 0) {
            None => return Ok(Response::Continue),
            Some(Ready::Never) => return Ok(self.never(call, index)),
            Some(Ready::TimeUp) => Vec::new(),
            Some(Ready::Some(ready)) => ready,
        };
        let mut count = 0;
        for (arg, events) in [(1, IN), (2, OUT), (3, PRI)] {
            if call.args[arg] == 0 {
                continue;
            }
            let mut set = vec![0u8; size];
            for (at, found) in &ready {
                let awaited = &list[*at];
                // A closed connection is ready to be read.
                let closed = events == IN && found & POLLHUP as u32 != 0;
                if awaited.events == events && (found & events != 0 || closed) {
                    let fd = awaited.fd as usize;
                    set[fd / 8] |= 1 << (fd % 8);
                    count += 1;
                }
            }
            call.put(call.args[arg], &set)?;
        }
        Ok(Response::Value(count))
    }

    pub(super) fn epoll_change(
        &mut self,
        call: &NotifiedCall,
        index: usize,
    ) -> io::Result<Response> {
        let fd = call.int(2);
        let ends = self.stand_ins.of(call.tid, fd);
        let Some(process) = self
            .groups
            .get(&call.tid)
            .and_then(|group| self.live.get_mut(group))
        else {
            return Ok(Response::Continue);
        };
        let key = (call.int(0), fd);
        if call.int(1) == EPOLL_CTL_DEL {
            process.registered.remove(&key);
        } else {
            let event = call.bytes(call.args[3], 12)?;
            let (events, data) = epoll_events(&event).first().copied().unwrap_or_default();
            let registered = Registered {
                events,
                data,
                resource: ends.map(|ends| {
                    if events & IN != 0 {
                        ends.read
                    } else {
                        ends.write
                    }
                }),
                reported: false,
            };
            process.registered.insert(key, registered);
        }
        self.matchers[index].matched += u64::from(ends.is_some());
        Ok(match ends {
            Some(_) => Response::Value(0),
            None => Response::Continue,
        })
    }

    pub(super) fn epoll_wait(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let set = call.int(0);
        let Some(group) = self.groups.get(&call.tid).copied() else {
            return Ok(Response::Continue);
        };
        let Some(process) = self.live.get(&group) else {
            return Ok(Response::Continue);
        };
        let mut members: Vec<((i32, i32), Registered)> = process
            .registered
            .iter()
            .map(|(key, one)| (*key, *one))
            .collect();
        members.retain(|((of, _), _)| *of == set);
        members.sort_unstable_by_key(|(key, _)| *key);
        // A closed descriptor leaves its sets.
        members.retain(|((_, fd), one)| match one.resource {
            Some(id) => self
                .stand_ins
                .of(call.tid, *fd)
                .is_some_and(|e| e.read == id || e.write == id),
            None => true,
        });
        let list: Vec<Awaited> = members
            .iter()
            .map(|((_, fd), one)| {
                // With EPOLLET, readiness to write is reported once.
                let quiet = one.events & EPOLLET as u32 != 0 && one.reported;
                let events = if quiet { one.events & !OUT } else { one.events };
                Awaited {
                    fd: *fd,
                    events,
                    resource: one.resource,
                }
            })
            .collect();
        let ready = match self.ready(index, &list, call.int(3) >= 0) {
            None => return Ok(Response::Continue),
            Some(Ready::Never) => return Ok(self.never(call, index)),
            Some(Ready::TimeUp) => Vec::new(),
            Some(Ready::Some(ready)) => ready,
        };
        let mut bytes = Vec::new();
        let most = call.length(2);
        for (at, events) in ready.iter().take(most) {
            let (key, one) = &members[*at];
            bytes.extend(events.to_le_bytes());
            bytes.extend(one.data.to_le_bytes());
            if let Some(process) = self.live.get_mut(&group)
                && let Some(one) = process.registered.get_mut(key)
            {
                one.reported |= events & OUT != 0;
            }
        }
        call.put(call.args[1], &bytes)?;
        Ok(Response::Value((bytes.len() / 12) as i64))
    }

    /// A wait for a child. Without blocking, it gets a child when the recorded one did.
    pub(super) fn wait(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        if call.int(2) & WNOHANG == 0 {
            return Ok(Response::Continue);
        }
        let key = ResultKey {
            call: SYS_wait4 as u16,
            object: CallObject::Process,
            detail: 0,
        };
        let rest = &mut self.matchers[index].rest.results;
        let Some(queue) = rest.get_mut(&key) else {
            return Ok(Response::Continue);
        };
        match queue.front().map(|result| result.value) {
            Some(0) => {
                queue.pop_front();
                Ok(Response::Value(0))
            }
            Some(pid @ 1..) => {
                let state = std::fs::read(format!("/proc/{pid}/stat")).ok();
                let state = state.as_deref().and_then(|stat| {
                    let mut fields = backstory_sys::process_tree::stat_fields(stat)?;
                    fields.next().map(|state| state == "Z")
                });
                match state {
                    Some(false) => Ok(Response::Park),
                    _ => {
                        queue.pop_front();
                        Ok(Response::Continue)
                    }
                }
            }
            _ => Ok(Response::Continue),
        }
    }
}
