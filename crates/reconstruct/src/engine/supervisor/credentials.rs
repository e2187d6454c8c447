//! Calls that change the user of a process: they succeed, and change nothing.
//!
//! The namespace has one user, who may do everything in it. A server that gives up its rights goes
//! on with them, and sees the user that it has asked for. It cannot take its rights back: servers
//! try to, and end if they succeed.

use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use libc::*;
use std::io;

/// The user and group of a process, as it sees them: real, effective and saved.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Credentials {
    user: Option<[u32; 3]>,
    group: Option<[u32; 3]>,
}

/// "Leave this as it is".
const SAME: u32 = u32::MAX;

impl Supervisor {
    pub(super) fn credentials(&mut self, call: &NotifiedCall) -> io::Result<Response> {
        let group = self.groups.get(&call.tid).copied();
        let Some(process) = group.and_then(|group| self.live.get_mut(&group)) else {
            return Ok(Response::Continue);
        };
        let all = &mut process.credentials;
        let is_user = matches!(
            call.number,
            SYS_setuid | SYS_setreuid | SYS_setresuid | SYS_getuid | SYS_geteuid | SYS_getresuid
        );
        let argument = |at: usize| call.args[at] as u32;
        let own = if is_user { all.user } else { all.group };
        let before = own.unwrap_or([0; 3]);
        let is_root = all.user.is_none_or(|user| user[1] == 0);
        let own = if is_user {
            &mut all.user
        } else {
            &mut all.group
        };
        let new = match call.number {
            SYS_setuid | SYS_setgid if is_root => [argument(0); 3],
            SYS_setuid | SYS_setgid => [SAME, argument(0), SAME],
            SYS_setreuid | SYS_setregid => [argument(0), argument(1), argument(1)],
            SYS_setresuid | SYS_setresgid => [argument(0), argument(1), argument(2)],
            SYS_setgroups | SYS_setfsuid | SYS_setfsgid | SYS_chown | SYS_lchown | SYS_fchown
            | SYS_fchownat => return Ok(Response::Value(0)),
            _ => return look(call, *own),
        };
        if !is_root && new.iter().any(|id| *id != SAME && !before.contains(id)) {
            return Ok(Response::Errno(EPERM));
        }
        let mut after = before;
        for (known, new) in after.iter_mut().zip(new) {
            if new != SAME {
                *known = new;
            }
        }
        *own = Some(after);
        Ok(Response::Value(0))
    }
}

/// A question for the user or group.
fn look(call: &NotifiedCall, own: Option<[u32; 3]>) -> io::Result<Response> {
    let Some(own) = own else {
        return Ok(Response::Continue);
    };
    Ok(match call.number {
        SYS_getuid | SYS_getgid => Response::Value(i64::from(own[0])),
        SYS_geteuid | SYS_getegid => Response::Value(i64::from(own[1])),
        _ => {
            for (at, id) in own.iter().enumerate() {
                call.put(call.args[at], &id.to_le_bytes())?;
            }
            Response::Value(0)
        }
    })
}
