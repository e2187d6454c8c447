//! The threads of the command, and how they end.
//!
//! perf prints the thread of a line without its process. The event `task_newtask` tells who made
//! it, and with which flags. Without these events, all threads of the log are the command's.

use super::survey::Survey;
use std::collections::HashMap;

/// How a process ends, as far as lines told it.
#[derive(Debug, Default, Clone, Copy)]
struct Ending {
    /// The status of `exit_group`, or of `exit` in the first thread.
    status: Option<i32>,
    /// The last signal that was delivered.
    signal: Option<i32>,
}

/// The threads that belong to the command.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The process of each thread.
    process: HashMap<u32, u32>,
    endings: HashMap<u32, Ending>,
    has_births: bool,
}

impl Threads {
    pub(super) fn new(survey: &Survey) -> Threads {
        let first = survey.first.map(|first| (first, first));
        Threads {
            process: first.into_iter().collect(),
            endings: HashMap::new(),
            has_births: survey.has_births,
        }
    }

    /// The process of a thread. `None` if the thread is not the command's.
    pub(super) fn process(&mut self, tid: u32) -> Option<u32> {
        match self.process.get(&tid) {
            Some(pid) => Some(*pid),
            None if self.has_births => None,
            None => {
                self.process.insert(tid, tid);
                Some(tid)
            }
        }
    }

    /// A thread made a thread or a process. Returns its process.
    pub(super) fn made(&mut self, maker: u32, child: u32, flags: u32) -> u32 {
        let is_thread = flags & libc::CLONE_THREAD as u32 != 0;
        let pid = match self.process.get(&maker) {
            Some(pid) if is_thread => *pid,
            _ => child,
        };
        self.process.insert(child, pid);
        pid
    }

    /// A thread called `exit_group`, or `exit`.
    pub(super) fn exits(&mut self, tid: u32, pid: u32, status: i32, whole: bool) {
        let ending = self.endings.entry(pid).or_default();
        if whole || tid == pid && ending.status.is_none() {
            ending.status = Some(status & 0xff);
        }
    }

    /// A signal was delivered to a thread of a process.
    pub(super) fn signalled(&mut self, pid: u32, signal: i32) {
        self.endings.entry(pid).or_default().signal = Some(signal);
    }

    /// A thread ended. Returns the text of strace.
    pub(super) fn ended(&mut self, tid: u32, pid: u32) -> String {
        self.process.remove(&tid);
        let ending = self.endings.get(&pid).copied().unwrap_or_default();
        if tid == pid {
            self.endings.remove(&pid);
        }
        match (ending.status, ending.signal) {
            (Some(status), _) => format!("+++ exited with {status} +++"),
            (None, Some(signal)) => format!("+++ killed by {signal} +++"),
            (None, None) => "+++ killed by ? +++".to_owned(),
        }
    }
}
