//! Process groups and sessions: programs see the recorded ones, and the kernel keeps its own.
//!
//! The first program leads a session here, so that it cannot reach the user's terminal. In the
//! record, it was in the group of its caller. Programs decide by that: setsid(1) forks if it leads
//! a group. In: questions, changes, and signals to groups. Out: recorded answers. Invariant: a
//! process leads a group or a session here where it led one in the record. Logs of earlier
//! recorders lack these calls, and the kernel answers.
//!
//! A tool at a terminal stays in the group of its user. A program that a tracer starts is in the
//! group of the tracer. Invariant: no signal of a program to its group reaches a tool, or a process
//! outside of the replay. None of a tool reaches a process outside.

use super::processes::Role;
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::process::CallObject;
use backstory_sys as sys;
use libc::{SYS_getpgrp, SYS_getsid, SYS_setpgid, SYS_setsid};
use std::fs;
use std::io;

/// The number of a group that is outside of the pid namespace.
const OUTSIDE: u32 = 0;

/// The parent, the group and the session of a process here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Membership {
    parent: u32,
    pub(super) group: u32,
    pub(super) session: u32,
}

impl Membership {
    pub(super) fn of(pid: u32) -> Option<Membership> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The state comes before.
        let mut fields = sys::process_tree::stat_fields(&stat)?.skip(1);
        let mut next = || fields.next()?.parse().ok();
        Some(Membership {
            parent: next()?,
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

    /// Sends a signal to a group that the kernel does not know by this number, or that has others
    /// than programs of the replay. `pid`: as for `kill`. `None`: the kernel sends the signal.
    pub(super) fn signal_group(
        &self,
        call: &NotifiedCall,
        pid: i32,
        signal: i32,
    ) -> Option<Response> {
        let named = u32::try_from(pid.checked_neg()?).ok()?;
        let here = match named {
            0 => Membership::of(self.group_of(call))?.group,
            // All processes of the namespace.
            1 if self.aside.is_empty() => return None,
            1 => return Some(self.signal_all(call, signal)),
            _ => self.foreign_groups.get(&named).copied().unwrap_or(named),
        };
        if self.has_others(here) {
            return Some(self.signal_members(call, here, signal));
        }
        if named == 0 || named == here {
            return None;
        }
        Some(match sys::kill(-(here as sys::Pid), signal) {
            Ok(()) => Response::Value(0),
            Err(error) => error.into(),
        })
    }

    /// True if the tool or the supervisor is in a group, or processes outside of the namespace are.
    fn has_others(&self, group: u32) -> bool {
        let has = |pid| Membership::of(pid).is_some_and(|own| own.group == group);
        group == OUTSIDE || has(std::process::id()) || self.has_tool && has(self.child as u32)
    }

    /// Sends a signal to all programs but the caller, beside which other processes run.
    fn signal_all(&self, call: &NotifiedCall, signal: i32) -> Response {
        let own = self.group_of(call);
        let others = self.live.keys().filter(|pid| **pid != own);
        let sent = others.filter(|pid| sys::kill(**pid as sys::Pid, signal).is_ok());
        match sent.count() {
            0 => Response::Errno(libc::ESRCH),
            _ => Response::Value(0),
        }
    }

    /// Sends a signal to the programs of a group. If a tool sends it, tools get it, too.
    fn signal_members(&self, call: &NotifiedCall, group: u32, signal: i32) -> Response {
        let by_tool = self.is_tool(self.group_of(call)) == Some(true);
        let entries = fs::read_dir("/proc").into_iter().flatten();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let members = pids.filter(|pid: &u32| {
            let gets = self
                .is_tool(*pid)
                .is_some_and(|is_tool| by_tool || !is_tool);
            gets && Membership::of(*pid).is_some_and(|own| own.group == group)
        });
        let mut failed = libc::ESRCH;
        let mut sent = false;
        for pid in members.collect::<Vec<u32>>() {
            match sys::kill(pid as sys::Pid, signal) {
                Ok(()) => sent = true,
                Err(error) => failed = error.raw_os_error().unwrap_or(failed),
            }
        }
        match sent {
            true => Response::Value(0),
            false => Response::Errno(failed),
        }
    }

    /// Whether a process is one of a tool. One that has made no call yet is as its parent. `None`:
    /// it does not belong to the replay.
    fn is_tool(&self, pid: u32) -> Option<bool> {
        let known = |pid: u32| self.live.get(&pid).map(|process| process.role);
        let role = known(pid).or_else(|| known(Membership::of(pid)?.parent))?;
        Some(matches!(role, Role::Tool | Role::Loading(_)))
    }
}
