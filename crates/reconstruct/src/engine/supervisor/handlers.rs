//! Handlers of `SIGCHLD`, which interrupt no call that the kernel would not interrupt.
//!
//! A signal that comes before the supervisor has received a call ends that call. It then fails with
//! `EINTR`, also if the kernel by itself lets it never fail so, as `clone`. With the flag
//! `SA_RESTART`, the kernel makes the call again behind the handler (signal(7)). Children end at
//! any time, and shells handle that. So a handler of `SIGCHLD` gets the flag.
//!
//! The end of a child may have interrupted a wait, a read or a write in the record. The supervisor
//! responds to these, or no flag lets the kernel make them again. Calls that the filter does not
//! watch, as `futex`, are not interrupted any more (docs/limits.md).

use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use libc::{SA_RESTART, SIG_DFL, SIG_IGN};
use std::io;

/// The offset of the flags in the kernel's `struct sigaction`, behind the handler.
const FLAGS_AT: u64 = 8;

impl Supervisor {
    /// A program says what `SIGCHLD` does (`rt_sigaction`).
    pub(super) fn set_handler(&self, call: &NotifiedCall) -> Response {
        // The kernel reports an action that cannot be read.
        let _ = restarts_calls(call, call.args[1]);
        Response::Continue
    }
}

/// Gives an action in the caller's memory the flag, if it has a handler.
fn restarts_calls(call: &NotifiedCall, action: u64) -> io::Result<()> {
    if action == 0 {
        return Ok(());
    }
    let handler = call.word(action)?;
    if [SIG_DFL, SIG_IGN].contains(&(handler as usize)) {
        return Ok(());
    }
    let flags = call.word(action + FLAGS_AT)?;
    let restarts = flags | SA_RESTART as u64;
    if restarts == flags {
        return Ok(());
    }
    call.put(action + FLAGS_AT, &restarts.to_le_bytes())
}
