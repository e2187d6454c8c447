//! How processes end.
//!
//! The fold learns late that a process has ended. A `wait` is logged when it begins, so the child
//! has certainly ended only by the next event of the waiting thread.

use std::collections::VecDeque;

use backstory_eventlog::Reason;
use backstory_eventlog::event::{Pid, Time};
use backstory_eventlog::run::RunEnd;
use rustc_hash::FxHashMap;

use super::{CallContext, Fold};
use crate::model::{Informed, Sink};
use crate::serial::Serial;

/// True if the recording did not see the end of the run: it was killed, the machine crashed, or the
/// log lacks its end.
pub(super) fn is_cut_off(end: &RunEnd) -> bool {
    let reasons = [Reason::Killed {}.to_string(), Reason::NoEnd {}.to_string()];
    reasons.iter().any(|of| end.incomplete_because.contains(of))
}

/// How many ended processes stay in memory for deferred events.
const LATE: usize = 256;

/// Processes that have ended, or end with the next event of another process.
#[derive(Debug, Clone, Default)]
pub(super) struct EndedProcesses {
    /// Children that a thread has waited for. They had ended when the thread's next event came.
    waited: FxHashMap<Pid, Vec<(Pid, Time, Serial)>>,
    /// Processes that have ended, until no event can come from them any more.
    dead: VecDeque<(Pid, Serial)>,
}

impl EndedProcesses {
    /// A thread has waited for a child, at a time and in an epoch.
    fn wait(&mut self, tid: Pid, child: (Pid, Time, Serial)) {
        self.waited.entry(tid).or_default().push(child);
    }

    /// The children that the thread has waited for.
    fn take_waited(&mut self, tid: Pid) -> Vec<(Pid, Time, Serial)> {
        if self.waited.is_empty() {
            return Vec::new();
        }
        self.waited.remove(&tid).unwrap_or_default()
    }

    /// The threads that have waited for children.
    fn waiting(&self) -> Vec<Pid> {
        self.waited.keys().copied().collect()
    }

    /// A process has ended. Returns the process that ended so long ago that no event of it comes.
    fn push(&mut self, pid: Pid, epoch: Serial) -> Option<(Pid, Serial)> {
        self.dead.push_back((pid, epoch));
        match self.dead.len() > LATE {
            true => self.dead.pop_front(),
            false => None,
        }
    }
}

impl<S: Sink> Fold<'_, S> {
    pub(super) fn wait(
        &mut self,
        call: CallContext,
        status: i32,
        looked: bool,
    ) -> Result<(), S::Error> {
        let Some(child) = call.outcome.value().filter(|&c| c > 0) else {
            return Ok(());
        };
        let stopped = status & 0xff == 0x7f || status == 0xffff;
        if stopped {
            return Ok(());
        }
        if let Some(process) = self.processes.get_mut(&(child as Pid)) {
            process.status = Some(status);
        }
        if !looked {
            let child = (child as Pid, call.time, call.epoch);
            self.ended.wait(call.tid, child);
        }
        Ok(())
    }

    /// Ends the children that the thread waited for. They had ended before the thread went on.
    pub(super) fn reap_waited(&mut self, tid: Pid, time: Time) -> Result<(), S::Error> {
        for (child, waited, waiter) in self.ended.take_waited(tid) {
            let Some(process) = self.processes.get(&child) else {
                continue;
            };
            let from = process.epoch;
            let ended = self.epochs[from as usize]
                .as_ref()
                .map_or(waited, |e| e.last.max(waited));
            self.informed(from, waiter, Informed::Wait, ended)?;
            self.end_process(child, time)?;
        }
        Ok(())
    }

    pub(super) fn exit(
        &mut self,
        call: CallContext,
        status: i32,
        processor_time: Option<i64>,
    ) -> Result<(), S::Error> {
        if let (Some(epoch), Some(time)) = (&mut self.epochs[call.epoch as usize], processor_time) {
            // Handlers of the exit run after the first record, so that the last one counts.
            epoch.processor_time = Some(time);
        }
        // The status of a program whose main function returned is known from its parent.
        if let Some(process) = self.processes.get_mut(&call.pid)
            && !call.outcome.failed()
        {
            process.status.get_or_insert((status & 0xff) << 8);
        }
        Ok(())
    }

    pub(super) fn gone(
        &mut self,
        pid: Pid,
        time: Time,
        status: Option<i32>,
    ) -> Result<(), S::Error> {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.status = status.or(process.status);
            self.end_process(pid, time)?;
        }
        Ok(())
    }

    /// Ends a process: its descriptors are closed. Deferred events of the process still find its
    /// epoch for a while.
    pub(super) fn end_process(&mut self, pid: Pid, time: Time) -> Result<(), S::Error> {
        let Some(process) = self.processes.get_mut(&pid).filter(|p| !p.ended) else {
            return Ok(());
        };
        process.ended = true;
        self.functions.forget_memory(pid);
        if let Some(news) = &mut self.news {
            news.acted(pid);
        }
        let (serial, status) = (process.epoch, process.status);
        let made = std::mem::take(&mut process.made);
        self.own_pipes(made, time)?;
        let held = self
            .processes
            .get_mut(&pid)
            .map(|p| std::mem::take(&mut p.descriptors))
            .unwrap_or_default();
        for (fd, mut held) in held {
            // libc can write its buffers after the count.
            held.carried_nothing = false;
            self.release(serial, fd, held, time, None)?;
        }
        if let Some(epoch) = &mut self.epochs[serial as usize] {
            epoch.last = epoch.last.max(time);
            if let Some(status) = status {
                let signal = status & 0x7f;
                epoch.exit = (signal == 0).then_some(status >> 8 & 0xff);
                epoch.signal = (signal != 0).then_some(signal);
            }
        }
        if let Some((pid, serial)) = self.ended.push(pid, serial)
            && self.processes.get(&pid).is_some_and(|p| p.epoch == serial)
        {
            self.bury(pid)?;
        }
        Ok(())
    }

    /// Drops a process from which no event can come any more.
    pub(super) fn bury(&mut self, pid: Pid) -> Result<(), S::Error> {
        let Some(process) = self.processes.remove(&pid) else {
            return Ok(());
        };
        self.announce(process.epoch)?;
        let end = self.epochs[process.epoch as usize]
            .as_ref()
            .map_or(0, |e| e.last);
        self.flush(process.epoch, end)
    }

    /// Ends every process that still lives at the end of the run.
    pub(super) fn end_all(&mut self, end: Option<&RunEnd>, time: Time) -> Result<(), S::Error> {
        for tid in self.ended.waiting() {
            self.reap_waited(tid, time)?;
        }
        let mut pids: Vec<Pid> = self.processes.keys().copied().collect();
        pids.sort_unstable_by_key(|pid| self.processes[pid].epoch);
        for &pid in &pids {
            let Some(process) = self.processes.get_mut(&pid) else {
                continue;
            };
            let mut ended = time;
            if let (true, Some(end)) = (process.command, end) {
                let status = end.exit.map(|e| e << 8).or(end.signal);
                process.status = status.or(process.status);
                if end.command_ended > 0 {
                    ended = end.command_ended.max(
                        self.epochs[process.epoch as usize]
                            .as_ref()
                            .map_or(0, |e| e.last),
                    );
                }
            }
            self.end_process(pid, ended)?;
        }
        for pid in pids {
            self.bury(pid)?;
        }
        Ok(())
    }
}
