//! Programs whose start is not in the log.
//!
//! In: an event of a process that runs another program than before. Out: the record of an exec.

use super::arguments;
use super::event::{AuditEvent, LoggedCall};
use super::machine::AuditedMachine;
use crate::CallingThread;
use crate::calls::{Arg, translate};

/// The kernel logs so many bytes of a title.
const TITLE: usize = 128;

impl AuditedMachine<'_> {
    /// The process runs the program of the event, whose start may not be in the log.
    pub(super) fn run(&mut self, thread: CallingThread, event: &AuditEvent, call: &LoggedCall) {
        let Some(process) = self.processes.get_mut(&thread.pid) else {
            return;
        };
        if process.exe == call.exe || !call.exe.starts_with(b"/") {
            return;
        }
        process.exe.clone_from(&call.exe);
        self.gaps.without_start += 1;
        let (words, cut) = words(event, call);
        let executed = AuditEvent {
            time: event.time,
            arguments: (0..).zip(words).collect(),
            is_cut: cut,
            ..AuditEvent::default()
        };
        let start = LoggedCall {
            exit: Some(0),
            ..call.clone()
        };
        let mut made = arguments::system_call(&executed, &start, "execve", thread, event.time);
        made.args[0] = Arg::Text {
            bytes: call.exe.clone(),
            cut: false,
        };
        translate(&mut self.state, &made);
    }
}

/// The words of the program that a process runs, and whether the kernel cut them. The kernel keeps
/// the title of the first event of a process, so that it may be that of an earlier program.
fn words(event: &AuditEvent, call: &LoggedCall) -> (Vec<Vec<u8>>, bool) {
    let title = event.title.as_deref().unwrap_or_default();
    let is_cut = title.len() >= TITLE;
    let all = title
        .strip_suffix(b"\0")
        .unwrap_or(title)
        .split(|byte| *byte == 0);
    let all: Vec<Vec<u8>> = all.map(<[u8]>::to_vec).collect();
    let first = all.first().map(|first| {
        let name = first
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or_default();
        name.strip_prefix(b"-").unwrap_or(name).to_vec()
    });
    match first.filter(|name| !name.is_empty() && name.starts_with(&call.comm)) {
        Some(_) => (all, is_cut),
        None => (vec![call.comm.clone()], false),
    }
}
