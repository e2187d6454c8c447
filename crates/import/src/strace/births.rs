//! The births of threads and processes.
//!
//! strace may print calls of a child before the call that made it has returned. If one such call is
//! open, it made the child. If there are more, the child's lines wait until one of them returns.

use super::line::{Body, body};
use super::open_calls::{clone_flags, makes_thread};
use super::tracer::{TracedThread, Tracer};
use crate::CallingThread;
use crate::calls::{Returned, SystemCall, TextReader};
use backstory_eventlog::event::{Pid, Time};
use backstory_ordering::SmallSort;

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
        let time = self.now;
        let thread = CallingThread { pid: tid, tid };
        self.threads.insert(
            tid,
            TracedThread {
                pid: tid,
                open: None,
                spoke: false,
            },
        );
        self.state.appeared(thread, time);
    }

    /// A fork: the child exists from now on.
    pub(super) fn birth(&mut self, maker: CallingThread, time: Time, child: Pid, flags: u32) {
        self.made.push(child);
        let is_thread = flags & libc::CLONE_THREAD as u32 != 0;
        let pid = if is_thread { maker.pid } else { child };
        self.threads.insert(
            child,
            TracedThread {
                pid,
                open: None,
                spoke: false,
            },
        );
        self.state.forked(maker, time, child, flags);
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
            makers.sort_small();
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
