//! Sets of epoll. Stand-ins are members of the supervisor's list only, and the kernel's own objects
//! are members of the kernel's set as well.

use super::processes::Registered;
use super::waiting::{Awaited, Ready, WaitTerms};
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::ready::{IN, OUT, epoll_events};
use backstory_ordering::SmallSort;
use libc::*;
use std::io;

impl Supervisor {
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
        members.sort_small_by_key(|(key, _)| *key);
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
        let timeout = match call.number {
            SYS_epoll_pwait2 if call.args[3] == 0 => None,
            SYS_epoll_pwait2 => Some(call.duration(call.args[3])?),
            _ => (call.int(3) >= 0).then(|| i64::from(call.int(3)) * 1_000_000),
        };
        let native = list.iter().filter(|one| one.resource.is_none()).count();
        let has_native = native > 0;
        if has_native && native < list.len() {
            let events = self.native_events(call, call.length(2));
            if !events.is_empty() {
                call.put(call.args[1], &events)?;
                return Ok(Response::Value((events.len() / 12) as i64));
            }
        }
        let terms = WaitTerms {
            timeout,
            has_native,
            has_placeholder: false,
        };
        let ready = match self.ready(call, index, &list, terms) {
            None => return Ok(Response::Continue),
            Some(Ready::Later) => return Ok(Response::Park),
            Some(Ready::Never) => return Ok(self.never(call, index)),
            Some(Ready::Failed(errno)) => return Ok(Response::Errno(errno)),
            Some(Ready::Again) => return Ok(Response::Sent),
            Some(Ready::TimeUp) => Vec::new(),
            Some(Ready::Some(ready)) => ready,
            // The kernel's set has no stand-ins.
            Some(Ready::Interrupted) => return Ok(Response::Continue),
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
}
