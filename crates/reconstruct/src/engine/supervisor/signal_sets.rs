//! The signals that a thread handles, and those that are there for it.
//!
//! In: a thread, and a wait that blocks signals of its own choice. Out: sets of signals, in which
//! the bit of signal 1 is the lowest.

use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::signals;
use libc::*;
use std::io;

/// The signals that a wait blocks by itself, in the place of those of its thread.
pub(super) fn own_mask(call: &NotifiedCall) -> io::Result<Option<u64>> {
    let mask = match call.number {
        SYS_ppoll => call.args[3],
        SYS_epoll_pwait | SYS_epoll_pwait2 => call.args[4],
        SYS_pselect6 if call.args[5] != 0 => call.word(call.args[5])?,
        _ => 0,
    };
    match mask {
        0 => Ok(None),
        at => call.word(at).map(Some),
    }
}

/// The bit of a signal in a set.
pub(super) fn bit(signal: i32) -> u64 {
    match signal {
        1..=64 => 1 << (signal - 1),
        _ => 0,
    }
}

/// True if a thread has a handler for this signal.
pub(super) fn has_handler(tid: u32, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status"));
    status.is_ok_and(|status| signals(&status, "SigCgt") & bit(signal) != 0)
}

/// True if this signal was sent to this thread alone, and is there. The thread has a handler for it
/// and does not block it, so it takes the signal, and no other thread does.
pub(super) fn is_for_thread(tid: u32, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status"));
    status.is_ok_and(|status| {
        let set = |name| signals(&status, name);
        set("SigPnd") & set("SigCgt") & !set("SigBlk") & bit(signal) != 0
    })
}

/// The signals that a thread has a handler for and does not block, and those among them that are
/// there. `blocked`: the signals that a call blocks, instead of those of the thread.
pub(super) fn handled_signals(tid: u32, blocked: Option<u64>) -> io::Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status"))?;
    let set = |name| signals(&status, name);
    let handled = set("SigCgt") & !blocked.unwrap_or_else(|| set("SigBlk"));
    Ok((handled, handled & (set("SigPnd") | set("ShdPnd"))))
}
