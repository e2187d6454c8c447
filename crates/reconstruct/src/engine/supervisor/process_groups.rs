//! Process groups and sessions: programs see the recorded ones, and the kernel keeps its own.
//!
//! The first program leads a session here, so that it cannot reach the user's terminal. In the
//! record, it was in the group of its caller. Programs decide by that: setsid(1) forks if it leads
//! a group. In: questions, changes, and signals to groups. Out: recorded answers. Invariant: a
//! process leads a group or a session here where it led one in the record. Logs of earlier
//! recorders lack these calls, and the kernel answers.

use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::process::CallObject;
use backstory_sys as sys;
use libc::{SYS_getpgrp, SYS_getsid, SYS_setpgid, SYS_setsid};
use std::fs;
use std::io;

/// The group and the session of a process here.
#[derive(Debug, Clone, Copy)]
struct Membership {
    group: u32,
    session: u32,
}

impl Membership {
    fn of(pid: u32) -> Option<Membership> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // State and parent come before.
        let mut fields = sys::process_tree::stat_fields(&stat)?.skip(2);
        let mut next = || fields.next()?.parse().ok();
        Some(Membership {
            group: next()?,
            session: next()?,
        })
    }
}

impl Supervisor {
    /// A question for a group or session, or a change of one.
    pub(super) fn process_group(
        &mut self,
        call: &NotifiedCall,
        index: usize,
    ) -> io::Result<Response> {
        let recorded = self.recorded(call, index, CallObject::Process);
        let Some(value) = recorded.map(|result| result.value) else {
            return Ok(Response::Continue);
        };
        if value < 0 {
            return Ok(Response::Errno(-value as i32));
        }
        let is_made_here = match call.number {
            SYS_setsid => self.may_lead_session(call),
            SYS_setpgid => self.may_join_group(call),
            SYS_getsid => false,
            _ => {
                self.note_group(call, value);
                false
            }
        };
        Ok(match is_made_here {
            true => Response::Continue,
            false => Response::Value(value),
        })
    }

    /// True if the kernel lets the caller lead a new session. The leader of a group cannot, and the
    /// first program leads a session already.
    fn may_lead_session(&self, call: &NotifiedCall) -> bool {
        let own = self.group_of(call);
        Membership::of(own).is_none_or(|now| now.group != own)
    }

    /// True if the kernel lets a process join the group that it joined in the record. The leader of
    /// a session cannot leave its group, and a group outside of the record does not exist here.
    fn may_join_group(&self, call: &NotifiedCall) -> bool {
        let target = self.named_process(call.int(0), call);
        let group = match u32::try_from(call.int(1)) {
            Ok(group) if group != 0 => group,
            _ => target,
        };
        let is_there = |now: Membership| now.group == group || now.session == target;
        let is_foreign = self.foreign_groups.contains_key(&group);
        !is_foreign && !Membership::of(target).is_some_and(is_there)
    }

    /// Notes which group here stands for the recorded one of the caller.
    fn note_group(&mut self, call: &NotifiedCall, recorded: i64) {
        let own = self.group_of(call);
        if call.number != SYS_getpgrp && self.named_process(call.int(0), call) != own {
            return;
        }
        if let (Some(now), Ok(recorded)) = (Membership::of(own), u32::try_from(recorded))
            && now.group != recorded
        {
            self.foreign_groups.insert(recorded, now.group);
        }
    }

    /// A process by its number. 0 is the caller.
    fn named_process(&self, pid: i32, call: &NotifiedCall) -> u32 {
        match u32::try_from(pid) {
            Ok(pid) if pid != 0 => pid,
            _ => self.group_of(call),
        }
    }

    /// Sends a signal to a group of the record that another one stands for. `pid`: as for `kill`.
    /// `None`: the kernel knows the group, or it is that of the supervisor.
    pub(super) fn signal_group(&self, pid: i32, signal: i32) -> Option<Response> {
        let recorded = u32::try_from(pid.checked_neg()?).ok()?;
        let here = *self.foreign_groups.get(&recorded)?;
        let own = Membership::of(std::process::id())?;
        if here == own.group {
            return None;
        }
        Some(match sys::kill(-(here as sys::Pid), signal) {
            Ok(()) => Response::Value(0),
            Err(error) => error.into(),
        })
    }
}
