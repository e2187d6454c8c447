//! The births of threads and processes.
//!
//! strace may print calls of a child before the call that made it has returned. If one such call is
//! open, it made the child. If there are more, the child's lines wait until one of them returns.

use super::line::{Body, body};
use super::open_calls::{clone_flags, makes_thread};
use super::processes::TracedProcess;
use super::system_call::SystemCall;
use super::text::{Returned, TextReader};
use super::tracer::{TracedThread, Tracer};
use crate::CallingThread;
use backstory_abi::op;
use backstory_eventlog::event::{Pid, Time};

const CLONE_FILES: u32 = 0x400;
const CLONE_THREAD: u32 = 0x1_0000;

impl Tracer<'_> {
    /// True once the thread has a process. Else its lines have to wait.
    pub(super) fn is_met(&mut self, tid: Pid, said: &Body<'_>) -> bool {
        if self.threads.contains_key(&tid) {
            return true;
        }
        if matches!(said, Body::Exited(_) | Body::Killed(_)) && !self.delayed.contains_key(&tid) {
            // The thread was replaced by an exec, or nothing of it is in the log.
            return true;
        }
        let open = self.threads.iter().filter(|(_, thread)| {
            let call = thread.open.as_ref();
            call.is_some_and(|call| makes_thread(&call.name) && call.child.is_none())
        });
        let makers: Vec<Pid> = open.map(|(tid, _)| *tid).collect();
        match makers[..] {
            [] => {
                self.appear(tid);
                true
            }
            [maker] => self.born_in_open_call(maker, tid),
            _ => false,
        }
    }

    /// Takes the open call of `maker` for the one that made `tid`. False if the call does not say
    /// whether it makes a thread or a process.
    fn born_in_open_call(&mut self, maker: Pid, tid: Pid) -> bool {
        let Some(thread) = self.threads.get_mut(&maker) else {
            return false;
        };
        let pid = thread.pid;
        let Some(call) = &mut thread.open else {
            return false;
        };
        let is_told = !call.name.starts_with("clone")
            || memchr::memmem::find(&call.text, b"flags=").is_some();
        if !is_told {
            return false;
        }
        call.child = Some(tid);
        let (args, _) = TextReader::new(&call.text).arguments();
        let made = SystemCall {
            thread: CallingThread { pid, tid: maker },
            time: call.time,
            name: &call.name.clone(),
            args,
            returned: Returned::default(),
        };
        let flags = clone_flags(&made);
        self.birth(made.thread, made.time, tid, flags);
        true
    }

    /// A process whose maker is not in the log.
    fn appear(&mut self, tid: Pid) {
        let (is_first, time) = (self.state.first.is_none(), self.now);
        let thread = CallingThread { pid: tid, tid };
        self.threads.insert(
            tid,
            TracedThread {
                pid: tid,
                open: None,
                spoke: false,
            },
        );
        let mut process = TracedProcess {
            threads: 1,
            is_at_start: true,
            is_orphan: !is_first,
            ..TracedProcess::default()
        };
        if is_first {
            self.state.first = Some(tid);
            for (fd, _) in &self.state.findings.descriptors {
                process.opened(*fd, false);
            }
        } else {
            self.state.gaps.orphans += 1;
            self.state.records.add(op::BORN, thread, time, |record| {
                record.process(tid, 0, b"");
            });
        }
        self.state.processes.insert(tid, process);
        self.state.started(thread, time, true);
        if let Some(root) = self.state.root.clone().filter(|_| is_first) {
            self.state.records.add(op::CHROOT, thread, time, |record| {
                record.resolved().result(0).string(&root);
            });
        }
    }

    /// A fork: the child exists from now on.
    pub(super) fn birth(&mut self, maker: CallingThread, time: Time, child: Pid, flags: u32) {
        self.made.push(child);
        let is_thread = flags & CLONE_THREAD != 0;
        let pid = if is_thread { maker.pid } else { child };
        self.threads.insert(
            child,
            TracedThread {
                pid,
                open: None,
                spoke: false,
            },
        );
        let shares = flags & CLONE_FILES != 0;
        let Some(process) = self.state.processes.get_mut(&maker.pid) else {
            return;
        };
        if is_thread {
            process.threads += 1;
            return;
        }
        process.shares_descriptors |= shares;
        let forked = process.forked(shares);
        self.state.processes.insert(child, forked);
        self.state.records.add(op::FORK, maker, time, |record| {
            record.aux(flags).result(child.cast_signed());
        });
        let thread = CallingThread {
            pid: child,
            tid: child,
        };
        self.state.started(thread, time, true);
    }

    /// Takes the lines that waited for threads that exist now.
    pub(super) fn release_born(&mut self) {
        while let Some(tid) = self
            .delayed
            .keys()
            .copied()
            .find(|tid| self.threads.contains_key(tid))
        {
            self.replay(tid);
        }
    }

    fn replay(&mut self, tid: Pid) {
        let lines = self.delayed.remove(&tid).unwrap_or_default();
        self.delayed_lines = self.delayed_lines.saturating_sub(lines.len());
        for (time, text) in lines {
            self.said(tid, time, body(&text), &text);
        }
    }

    /// No call that returns tells the makers of waiting threads: each gets one of the open calls.
    pub(super) fn release_delayed(&mut self) {
        while let Some(tid) = self.delayed.keys().next().copied() {
            let mut makers: Vec<Pid> = self
                .threads
                .iter()
                .filter(|(_, thread)| {
                    let call = thread.open.as_ref();
                    call.is_some_and(|call| makes_thread(&call.name) && call.child.is_none())
                })
                .map(|(tid, _)| *tid)
                .collect();
            makers.sort_unstable();
            let made = makers
                .first()
                .is_some_and(|maker| self.born_in_open_call(*maker, tid));
            if !made {
                self.appear(tid);
            }
            self.replay(tid);
        }
    }
}
