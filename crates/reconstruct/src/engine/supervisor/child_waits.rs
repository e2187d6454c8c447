//! Calls that wait for a child.

use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::process::{CallObject, ResultKey};
use libc::{SIGCHLD, SYS_wait4, WNOHANG};
use std::io;

impl Supervisor {
    /// A wait for a child. Without blocking, it gets a child when the recorded one did.
    pub(super) fn wait(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        if self.part.is_some() {
            return Ok(self.wait_in_part(call, index));
        }
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
        match queue.front().map(|(result, time)| (result.value, *time)) {
            Some((0, time)) => {
                queue.pop_front();
                // A program that polls until a time has this one.
                self.matchers[index].reached(time);
                // A child that has ended meanwhile ended later in the record, with another signal.
                if any_ended(&children(call.tid))
                    && let Some(group) = self.groups.get(&call.tid)
                {
                    let _ = backstory_sys::kill(*group as backstory_sys::Pid, SIGCHLD);
                }
                Ok(Response::Value(0))
            }
            Some((pid @ 1.., _)) => match has_ended(&pid.to_string()) {
                Some(false) => Ok(Response::Park),
                _ => {
                    queue.pop_front();
                    Ok(Response::Continue)
                }
            },
            _ => Ok(Response::Continue),
        }
    }

    /// A wait for a child while only a request runs again. Children that were not made never end.
    fn wait_in_part(&mut self, call: &NotifiedCall, index: usize) -> Response {
        let children = children(call.tid);
        let blocks = call.int(2) & WNOHANG == 0;
        match (any_ended(&children), blocks) {
            (true, _) => Response::Continue,
            (false, true) if children.trim().is_empty() => self.hold(index),
            (false, true) => Response::Continue,
            (false, false) => Response::Value(0),
        }
    }
}

/// The ids of a thread's children, with spaces between.
fn children(tid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{tid}/task/{tid}/children")).unwrap_or_default()
}

/// True if one of these processes has ended, and its parent has not taken that.
fn any_ended(pids: &str) -> bool {
    let mut pids = pids.split_whitespace();
    pids.any(|pid| has_ended(pid) == Some(true))
}

/// The same for one process. `None`: it is gone.
pub(super) fn has_ended(pid: &str) -> Option<bool> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = backstory_sys::process_tree::stat_fields(&stat)?;
    fields.next().map(|state| state == "Z")
}
