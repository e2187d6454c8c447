//! The pipe of a tool in the program's own process, and what it opens before it has that pipe.
//!
//! Valgrind's lock is a pipe. It makes one when it starts, and another one in each child by `fork`.
//! Such a call takes the next recorded pipe of the program. Valgrind then moves both ends to the
//! descriptors that it keeps for itself, and writes a byte there before any other call on them. So
//! that write tells whose pipe it is. The program gets its pipe back, and the kernel serves the
//! lock. A program under Valgrind cannot have these descriptors.
//!
//! Valgrind makes its lock before the first instruction of the program. What it opens before, it
//! opens for itself: `/proc/self/maps`, and the program's file. The program may open the same names
//! later, so the records stay the program's. An opened file moves the time that has been reached,
//! and a request's replay leaves out what lies before that time.
//!
//! Absent: with `--fair-sched=yes`, Valgrind makes no pipe. Up to the program's first pipe, a call
//! of `open` counts as Valgrind's then. libc calls `openat`.

use super::Supervisor;
use super::executing::is_loader;
use crate::engine::caller::NotifiedCall;
use crate::engine::proc_texts::open_files;
use crate::resource::ResourceId;
use libc::SYS_open;
use std::fs;

/// The last descriptors below the soft limit of open files, which Valgrind keeps for itself
/// (`N_RESERVED_FDS` in its source).
const KEPT: u64 = 12;

impl Supervisor {
    /// True for a write of a tool to a pipe of its own, which took the recorded pipe `id`. That one
    /// is the program's next pipe again.
    pub(super) fn is_tools_pipe(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
    ) -> bool {
        if !self.has_tool || !is_kept_by_tool(call) || !self.matchers[index].return_pair(id) {
            return false;
        }
        self.stand_ins.forget(call.tid, call.int(0));
        true
    }

    /// The caller makes a pipe, or its tool does.
    pub(super) fn note_pipe(&mut self, call: &NotifiedCall) {
        let group = self.group_of(call);
        if let Some(process) = self.live.get_mut(&group) {
            process.made_pipe = true;
        }
    }

    /// True if a tool in the caller's process opens a file for itself, before it starts the
    /// program.
    pub(super) fn is_opened_to_load(&self, call: &NotifiedCall) -> bool {
        // The byte engine says when it has loaded the program.
        let may_load = self.has_tool && !self.follows_bytes && call.number == SYS_open;
        let process = || self.live.get(&self.group_of(call));
        may_load && process().is_some_and(|process| !process.made_pipe) && has_tool_inside(call)
    }
}

/// True if a tool is in the caller's process, and keeps the descriptor in the first argument.
fn is_kept_by_tool(call: &NotifiedCall) -> bool {
    let limits = fs::read_to_string(format!("/proc/{}/limits", call.tid));
    has_tool_inside(call) && limits.is_ok_and(|limits| is_kept(call.int(0), &limits))
}

/// True if a tool runs the program in the caller's process.
fn has_tool_inside(call: &NotifiedCall) -> bool {
    let executed = fs::read_link(format!("/proc/{}/exe", call.tid));
    executed.is_ok_and(|path| is_loader(&path))
}

/// True for a descriptor in the range that Valgrind keeps. `limits`: the text of
/// `/proc/PID/limits`.
fn is_kept(fd: i32, limits: &str) -> bool {
    let fd = u64::try_from(fd).ok();
    let limit = open_files(limits);
    fd.zip(limit)
        .is_some_and(|(fd, limit)| fd >= limit.saturating_sub(KEPT) && fd < limit)
}

#[cfg(test)]
mod tests {
    use super::is_kept;

    #[test]
    fn a_tool_keeps_the_last_descriptors_below_the_limit() {
        let limits = "\
Limit                     Soft Limit           Hard Limit           Units
Max processes             127000               127000               processes
Max open files            20000                524288               files
";
        for (fd, kept) in [
            (19_987, false),
            (19_988, true),
            (19_999, true),
            (20_000, false),
            (3, false),
            (-1, false),
        ] {
            assert_eq!(is_kept(fd, limits), kept, "{fd}");
        }
        assert!(!is_kept(3, ""));
    }
}
