//! The process by which a debugger comes to a program: the one that executed it.
//!
//! A command is often a shell that starts the server. A debugger of the shell sees nothing of it.

use crate::log::{DeepLog, DeepProcess};
use backstory_abi::deep;

impl DeepLog {
    /// The number of the process that executed the program of this one, as that program saw it. For
    /// a child by `fork`, it is the nearest process above it. `epoch`: that of the process.
    ///
    /// `None` if that is the process of the command, with which a replay starts in any case, or if
    /// the log does not have it.
    pub fn starter(&self, epoch: u64) -> Option<u32> {
        let all = self.processes();
        let mut own = all.iter().find(|process| process.epoch == epoch)?;
        while !self.is_executed(own) {
            let (epoch, parent) = (own.epoch, own.parent);
            let mut before = all.iter().filter(|one| one.epoch < epoch);
            own = before.rfind(|one| one.own_pid == parent)?;
        }
        let command = all.iter().find(|process| self.is_executed(process))?;
        (command.own_pid != own.own_pid).then_some(own.own_pid)
    }

    /// True if the stream of a process begins with the execution of a program.
    fn is_executed(&self, process: &DeepProcess) -> bool {
        let mut calls = self.thread_calls(process.epoch, process.own_pid);
        let begin = calls.next().filter(|call| call.number == deep::BEGIN);
        begin.is_some_and(|begin| begin.a == deep::BY_EXEC)
    }
}
