//! The processes of a log of auditd.
//!
//! In: events, in the order in which their calls returned. Out: records.
//!
//! A process is known by the call that made it, or else by `ppid` of its first event. Its program
//! is known by the call that executed it, or else by `exe` of its first event. Its directory is
//! known by the `CWD` record of each call that has a path.
//!
//! Invariant: at most [`MOST_PROCESSES`] are remembered. The rules may select no ends of processes.

use super::arguments;
use super::event::{AbnormalEnd, AuditEvent, LoggedCall};
use super::gaps::{AUDITD, AuditGaps};
use crate::ProcessIds;
use crate::calls::{Arg, TraceState, translate};
use crate::{CallingThread, Findings, RecordLog};
use backstory_abi::op;
use backstory_eventlog::event::{Pid, Time};
use std::collections::HashMap;

/// The most processes that are remembered.
const MOST_PROCESSES: usize = 1 << 16;
/// Calls without which an unused descriptor may have been used.
const OF_EVERY_USE: [&str; 5] = ["read", "write", "close", "mmap", "exit_group"];

/// Facts about a process besides its descriptors.
#[derive(Debug, Clone, Default)]
pub(super) struct AuditedProcess {
    pub(super) exe: Vec<u8>,
    cwd: Vec<u8>,
    /// The number of the last event.
    last: usize,
    /// The process that made it, while the call that did so has not returned.
    maker: Option<Pid>,
}

/// The processes of a machine.
pub(super) struct AuditedMachine<'a> {
    pub(super) state: TraceState<'a>,
    pub(super) gaps: AuditGaps,
    pub(super) processes: HashMap<Pid, AuditedProcess>,
    /// The processes that have events: of the first reading, if this is the second.
    known: Option<ProcessIds>,
    met: ProcessIds,
    has_begun: bool,
}

impl<'a> AuditedMachine<'a> {
    /// The machine at the beginning of its log.
    pub(super) fn new(
        records: &'a mut RecordLog,
        known: Option<&Findings>,
        root: Option<Vec<u8>>,
    ) -> AuditedMachine<'a> {
        AuditedMachine {
            state: TraceState::new(records, known, root),
            gaps: AuditGaps::default(),
            processes: HashMap::new(),
            known: known.map(|known| known.process_ids.clone()),
            met: ProcessIds::default(),
            has_begun: false,
        }
    }

    /// True if a record could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.state.records.has_failed()
    }

    /// Takes the next event.
    pub(super) fn event(&mut self, event: AuditEvent) {
        if let Some(end) = event.abnormal_end {
            self.killed(end, event.time);
        }
        let Some(call) = &event.call else {
            return;
        };
        self.gaps.events += 1;
        if event.is_configuration || is_of_audit(&call.exe) {
            return;
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.state.findings.started = event.time;
        }
        let ended = &mut self.state.findings.ended;
        *ended = event.time.max(*ended);
        let thread = CallingThread {
            pid: call.pid,
            tid: call.pid,
        };
        self.met.insert(call.pid);
        self.meet(thread, call, event.time);
        self.enter(thread, &event);
        let Some(name) = arguments::name(call) else {
            self.gaps.unnamed += 1;
            return;
        };
        self.state.gaps.met(&name);
        let executes = name.starts_with("execve") && call.exit == Some(0);
        if !executes {
            self.run(thread, &event, call);
        }
        self.call(thread, &event, call, &name);
        if executes && let Some(process) = self.processes.get_mut(&call.pid) {
            process.exe.clone_from(&call.exe);
        }
    }

    /// The process exists from now on.
    fn meet(&mut self, thread: CallingThread, call: &LoggedCall, time: Time) {
        let now = self.gaps.events;
        if let Some(process) = self.processes.get_mut(&thread.pid) {
            process.last = now;
            return;
        }
        let parent = self.processes.get(&call.ppid).cloned();
        let process = match parent {
            Some(parent) => {
                let maker = CallingThread {
                    pid: call.ppid,
                    tid: call.ppid,
                };
                self.state.forked(maker, time, thread.pid, 0);
                AuditedProcess {
                    maker: Some(call.ppid),
                    ..parent
                }
            }
            None => {
                self.gaps.roots += 1;
                let is_first = self.state.first.is_none();
                self.state.appeared(thread, time);
                let cwd = &self.state.findings.cwd;
                AuditedProcess {
                    cwd: if is_first { cwd.clone() } else { Vec::new() },
                    ..AuditedProcess::default()
                }
            }
        };
        self.processes.insert(
            thread.pid,
            AuditedProcess {
                last: now,
                ..process
            },
        );
        self.limit();
    }

    /// Forgets the processes that were met longest ago, if there are too many.
    fn limit(&mut self) {
        if self.processes.len() <= MOST_PROCESSES {
            return;
        }
        let mut last: Vec<usize> = self.processes.values().map(|one| one.last).collect();
        let half = last.len() / 2;
        let (_, oldest, _) = last.select_nth_unstable(half);
        let oldest = *oldest;
        self.processes.retain(|_, one| one.last >= oldest);
        let kept = &self.processes;
        self.state.processes.retain(|pid, _| kept.contains_key(pid));
        self.gaps.dropped += half;
    }

    /// The process is in the directory of the event.
    fn enter(&mut self, thread: CallingThread, event: &AuditEvent) {
        let Some(cwd) = &event.cwd else {
            return;
        };
        let is_first = self.state.first == Some(thread.pid);
        let Some(process) = self.processes.get_mut(&thread.pid) else {
            return;
        };
        if process.cwd == *cwd {
            return;
        }
        process.cwd.clone_from(cwd);
        if is_first && self.state.findings.cwd.is_empty() {
            self.state.findings.cwd.clone_from(cwd);
            return;
        }
        self.state
            .records
            .add(op::CHDIR, thread, event.time, |record| {
                record.fd(libc::AT_FDCWD).result(0).string(cwd).string(b"");
            });
    }

    fn call(&mut self, thread: CallingThread, event: &AuditEvent, call: &LoggedCall, name: &str) {
        match name {
            "clone" | "clone3" | "fork" | "vfork" => {
                self.made(thread, event.time, call, name);
                return;
            }
            // Their results are behind pointers.
            "wait4" | "waitpid" | "waitid" => return,
            _ => {}
        }
        let succeeded = call.exit.is_some_and(|exit| exit >= 0);
        self.gaps.without_items += usize::from(succeeded && event.items.len() < call.items);
        let mut made = arguments::system_call(event, call, name, thread, event.time);
        if name == "execve" && succeeded && made.path(0).is_err() {
            made.args[0] = Arg::Text {
                bytes: call.exe.clone(),
                cut: false,
            };
        }
        translate(&mut self.state, &made);
        match name {
            "exit_group" => self.ended(thread.pid, event.time, status(call)),
            "exit" => {
                let process = self.state.processes.get_mut(&thread.pid);
                let is_last = process.is_none_or(|process| {
                    process.threads = process.threads.saturating_sub(1);
                    process.threads == 0
                });
                if is_last {
                    self.ended(thread.pid, event.time, status(call));
                }
            }
            _ => {}
        }
    }

    /// A call made a process or a thread.
    fn made(&mut self, maker: CallingThread, time: Time, call: &LoggedCall, name: &str) {
        let child = call.exit.filter(|child| *child > 0);
        let Some(child) = child.and_then(|child| Pid::try_from(child).ok()) else {
            return;
        };
        let flags = match name {
            "clone" => (call.args[0] & !0xff) as u32,
            "vfork" => (libc::CLONE_VM | libc::CLONE_VFORK) as u32,
            // The flags of clone3 are behind a pointer. A thread has no events of its own number.
            "clone3"
                if self
                    .known
                    .as_ref()
                    .is_some_and(|known| !known.contains(child)) =>
            {
                libc::CLONE_THREAD as u32
            }
            _ => 0,
        };
        if let Some(known) = self.processes.get_mut(&child) {
            if known.maker == Some(maker.pid) {
                // Its events came before the call returned.
                known.maker = None;
                return;
            }
            if flags & libc::CLONE_THREAD as u32 == 0 {
                // The number is used again.
                self.ended(child, time, None);
            }
        }
        self.state.forked(maker, time, child, flags);
        if flags & libc::CLONE_THREAD as u32 == 0 {
            let copied = self.processes.get(&maker.pid).cloned().unwrap_or_default();
            let child_process = AuditedProcess {
                maker: None,
                last: self.gaps.events,
                ..copied
            };
            self.processes.insert(child, child_process);
            self.limit();
        }
    }

    fn killed(&mut self, end: AbnormalEnd, time: Time) {
        if self.processes.contains_key(&end.pid) {
            self.ended(end.pid, time, Some(end.signal & 0x7f));
        }
    }

    fn ended(&mut self, pid: Pid, time: Time, status: Option<i32>) {
        self.processes.remove(&pid);
        self.state.ended(pid, time, status);
    }

    /// The findings at the end of the log.
    pub(super) fn end(mut self) -> Findings {
        let common = &mut self.state.gaps;
        common.is_selection_known = true;
        common.foreign = self.gaps.foreign;
        common.first_foreign = self.gaps.first_foreign.map(|(file, line)| (file, line, 1));
        common.cut_lines = self.gaps.cut_lines;
        common.is_cut_off = self.gaps.is_cut_off;
        if common.names.contains("exit_group") {
            common.living = self.processes.len();
        }
        let mut found = self.state.findings.clone();
        let common = &self.state.gaps;
        found.has_every_call = OF_EVERY_USE.iter().all(|name| common.names.contains(*name));
        found.gaps = self.gaps.reasons(&common.missing_groups());
        found.gaps.extend(common.reasons(&AUDITD, None));
        if self.gaps.roots != 1 || found.command.is_empty() {
            found.command = vec![b"auditd".to_vec()];
            found.environment.clear();
            (found.exit, found.signal) = (None, None);
        }
        if found.cwd.is_empty() {
            found.cwd = b"/".to_vec();
        }
        found.process_ids = self.met;
        found
    }
}

fn status(call: &LoggedCall) -> Option<i32> {
    Some(((call.args[0] & 0xff) as i32) << 8)
}

/// The tools of the audit system are logged when they change its rules.
fn is_of_audit(exe: &[u8]) -> bool {
    let name = exe.rsplit(|byte| *byte == b'/').next();
    matches!(name, Some(b"auditd" | b"auditctl" | b"augenrules"))
}
