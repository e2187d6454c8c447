//! The state of a trace that calls change: its processes, and what was found out about the run.

use super::gaps::TraceGaps;
use super::processes::TracedProcess;
use crate::{CallingThread, Findings, RecordLog};
use backstory_abi::op;
use backstory_eventlog::event::{Pid, Time};
use std::collections::HashMap;

const CLONE_FILES: u32 = libc::CLONE_FILES as u32;
const CLONE_THREAD: u32 = libc::CLONE_THREAD as u32;

/// The processes of a trace, and its findings.
pub(crate) struct TraceState<'a> {
    pub(crate) records: &'a mut RecordLog,
    /// Every call is in the log, so that a use without a call did not happen.
    pub(crate) has_every_call: bool,
    pub(crate) root: Option<Vec<u8>>,
    pub(crate) findings: Findings,
    pub(crate) gaps: TraceGaps,
    pub(crate) processes: HashMap<Pid, TracedProcess>,
    /// The first process.
    pub(crate) first: Option<Pid>,
}

impl<'a> TraceState<'a> {
    /// A trace that begins, with what its first reading found.
    pub(crate) fn new(
        records: &'a mut RecordLog,
        known: Option<&Findings>,
        root: Option<Vec<u8>>,
    ) -> TraceState<'a> {
        TraceState {
            records,
            has_every_call: known.is_some_and(|known| known.has_every_call),
            root,
            findings: known.cloned().unwrap_or_default(),
            gaps: TraceGaps::default(),
            processes: HashMap::new(),
            first: None,
        }
    }

    /// Notes that all calls of the process's program are in the log.
    pub(crate) fn started(&mut self, thread: CallingThread, time: Time, forked: bool) {
        if self.has_every_call {
            self.records.add(op::START, thread, time, |record| {
                record
                    .fd(thread.pid.cast_signed())
                    .aux(u32::from(forked))
                    .result(0);
            });
        }
    }

    /// A process whose maker is not in the log. The first one is that of the command.
    pub(crate) fn appeared(&mut self, thread: CallingThread, time: Time) {
        let is_first = self.first.is_none();
        let mut process = TracedProcess {
            threads: 1,
            is_at_start: true,
            is_orphan: !is_first,
            ..TracedProcess::default()
        };
        if is_first {
            self.first = Some(thread.pid);
            for (fd, _) in &self.findings.descriptors {
                process.opened(*fd, false);
            }
        } else {
            self.gaps.orphans += 1;
            self.records.add(op::BORN, thread, time, |record| {
                record.process(thread.pid, 0, b"");
            });
        }
        self.processes.insert(thread.pid, process);
        self.started(thread, time, true);
        if let Some(root) = self.root.clone().filter(|_| is_first) {
            self.records.add(op::CHROOT, thread, time, |record| {
                record.resolved().result(0).string(&root);
            });
        }
    }

    /// A thread made a thread, or a process, which exists from now on.
    pub(crate) fn forked(&mut self, maker: CallingThread, time: Time, child: Pid, flags: u32) {
        let shares = flags & CLONE_FILES != 0;
        let Some(process) = self.processes.get_mut(&maker.pid) else {
            return;
        };
        if flags & CLONE_THREAD != 0 {
            process.threads += 1;
            return;
        }
        process.shares_descriptors |= shares;
        let forked = process.forked(shares);
        self.processes.insert(child, forked);
        self.records.add(op::FORK, maker, time, |record| {
            record.aux(flags).result(child.cast_signed());
        });
        let thread = CallingThread {
            pid: child,
            tid: child,
        };
        self.started(thread, time, true);
    }

    /// A process ended. `status` is as wait(2) reports it.
    pub(crate) fn ended(&mut self, pid: Pid, time: Time, status: Option<i32>) {
        self.processes.remove(&pid);
        self.records.gone(pid, time, status);
        if self.first == Some(pid)
            && let Some(status) = status
        {
            let signal = status & 0x7f;
            self.findings.exit = (signal == 0).then_some(status >> 8 & 0xff);
            self.findings.signal = (signal != 0).then_some(signal);
        }
    }
}
