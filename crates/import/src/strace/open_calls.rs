//! Calls whose text is not whole yet.

use crate::calls::{SystemCall, flags};
use backstory_eventlog::event::{Pid, Time};

/// A call that has not returned.
#[derive(Debug, Clone)]
pub(super) struct OpenCall {
    pub(super) name: String,
    pub(super) text: Vec<u8>,
    pub(super) time: Time,
    /// The child that it made, if the child was met before the call returned.
    pub(super) child: Option<Pid>,
    /// The line ended without strace's mark: a program's own output may have cut it short.
    pub(super) is_bare: bool,
    /// A message of strace cut it short: all of the next line belongs to it.
    pub(super) by_message: bool,
    /// An exec that replaces the first thread of its process, which succeeds.
    pub(super) replaces: bool,
}

impl OpenCall {
    /// A call whose text begins.
    pub(super) fn new(name: &str, text: &[u8], time: Time) -> OpenCall {
        OpenCall {
            name: name.to_owned(),
            text: text.to_vec(),
            time,
            child: None,
            is_bare: false,
            by_message: false,
            replaces: false,
        }
    }
}

/// True for the calls that make a thread or a process.
pub(super) fn makes_thread(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork" | "__clone2")
}

/// The flags of a call that makes a thread or a process.
pub(super) fn clone_flags(call: &SystemCall<'_>) -> u32 {
    match call.name {
        "vfork" => (libc::CLONE_VM | libc::CLONE_VFORK) as u32,
        "fork" => 0,
        // The lowest byte of `flags` is the signal of the child's end.
        _ => (call.field("flags").map_or(0, flags) & !0xff) as u32,
    }
}

/// The position at which the rest of a call begins in a line after a program's own output.
pub(super) fn rest_of_call(text: &[u8]) -> Option<usize> {
    let mut from = text.len();
    loop {
        let at = memchr::memrchr(b')', &text[..from])?;
        let after = text[at + 1..].trim_ascii_start();
        if after.starts_with(b"= ") {
            return Some(at);
        }
        from = at;
    }
}
