//! The threads of a trace: joins calls that other lines cut short, and finds the parent of each
//! process.
//!
//! In: lines in the order of the log. Out: whole calls, in the order in which they ended.
//!
//! Invariant: a process exists before its first call. strace may print calls of a child before the
//! call that made it has returned. If one such call is open, it made the child. If there are more,
//! the child's lines wait until one of them returns.

use super::line::{Body, attached, body, prefix};
use super::moments::Moments;
use super::open_calls::{OpenCall, clone_flags, makes_thread, rest_of_call};
use crate::calls::{Arg, Returned, SystemCall, TextReader, TraceState, flags, translate};
use crate::lines::LogLine;
use crate::{CallingThread, Findings, RecordLog};
use backstory_eventlog::event::{Pid, Time, UNNUMBERED};
use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The thread of lines that name none, if no line ever has its number.
const UNNAMED: Pid = UNNUMBERED + 1;
/// Most lines that wait for the birth of their thread.
const MOST_DELAYED: usize = 100_000;

/// A thread of the trace.
#[derive(Debug)]
pub(super) struct TracedThread {
    pub(super) pid: Pid,
    pub(super) open: Option<OpenCall>,
    /// The log has a line of it.
    pub(super) spoke: bool,
}

/// A line that waits: its time and its text after the prefix.
type DelayedLine = (Time, Vec<u8>);

/// The state of a trace.
pub(super) struct Tracer<'a> {
    pub(super) state: TraceState<'a>,
    pub(super) moments: Moments,
    /// A call of the first process was met.
    has_called: bool,
    has_begun: bool,
    /// The time of the line.
    pub(super) now: Time,
    pub(super) threads: HashMap<Pid, TracedThread>,
    pub(super) delayed: BTreeMap<Pid, Vec<DelayedLine>>,
    pub(super) delayed_lines: usize,
    /// The thread of lines that name none.
    unnamed: Pid,
    /// Its number, once a line has it.
    alias: Option<Pid>,
    /// Threads that strace said it attached to.
    attached: HashSet<Pid>,
    /// The thread whose line ended without a mark.
    bare: Option<Pid>,
    /// An exec by another thread than the first, by the id that the thread gets.
    renamed: HashMap<Pid, OpenCall>,
    /// Threads that were made since this was last taken.
    pub(super) made: Vec<Pid>,
}

impl<'a> Tracer<'a> {
    /// A trace that begins, with what its first reading found.
    pub(super) fn new(
        records: &'a mut RecordLog,
        moments: Moments,
        known: Option<&Findings>,
        root: Option<Vec<u8>>,
    ) -> Tracer<'a> {
        Tracer {
            state: TraceState::new(records, known, root),
            moments,
            has_called: false,
            has_begun: false,
            now: 0,
            threads: HashMap::new(),
            delayed: BTreeMap::new(),
            delayed_lines: 0,
            unnamed: known.and_then(|known| known.first_pid).unwrap_or(UNNAMED),
            alias: None,
            attached: HashSet::new(),
            bare: None,
            renamed: HashMap::new(),
            made: Vec::new(),
        }
    }

    /// The conversion of times, after the last line.
    pub(super) fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Threads that were made since the last call of this.
    pub(super) fn take_made(&mut self) -> Vec<Pid> {
        std::mem::take(&mut self.made)
    }

    /// Takes the next line.
    pub(super) fn line(&mut self, line: &LogLine) {
        let prefix = prefix(&line.bytes);
        let time = self.moments.next(prefix.stamp);
        if !std::mem::replace(&mut self.has_begun, true) {
            self.state.findings.started = time;
        }
        self.now = time;
        self.state.findings.ended = self.state.findings.ended.max(time);
        let said = body(prefix.body);
        match said {
            Body::Nothing => return,
            Body::Attached(tid) => {
                self.attached.insert(tid);
                return;
            }
            Body::Foreign if !self.is_rest_of_bare(prefix.body) => {
                self.foreign(line, prefix.column);
                return;
            }
            _ => {}
        }
        let named = prefix.tid.or(line.tid);
        let is_rest = matches!(said, Body::Foreign | Body::Unfinished);
        let tid = match named.or(self.bare.filter(|_| is_rest)) {
            Some(tid) if is_rest => tid,
            Some(tid) => self.without_alias(tid, &said),
            None => self.unnamed_thread(),
        };
        if !self.is_met(tid, &said) {
            self.delayed
                .entry(tid)
                .or_default()
                .push((time, prefix.body.to_vec()));
            self.delayed_lines += 1;
            if self.delayed_lines > MOST_DELAYED {
                self.release_delayed();
            }
            return;
        }
        if !self.said(tid, time, said, prefix.body) {
            self.foreign(line, prefix.column);
        }
        self.release_born();
    }

    fn foreign(&mut self, line: &LogLine, column: usize) {
        self.state.gaps.foreign += 1;
        let position = (line.file, line.number, column);
        self.state.gaps.first_foreign.get_or_insert(position);
    }

    /// The thread of a line without a number: the only live one, or the first.
    fn unnamed_thread(&mut self) -> Pid {
        if let (1, Some(tid)) = (self.threads.len(), self.threads.keys().next()) {
            return *tid;
        }
        match self.bare.or(self.state.first) {
            Some(tid) if self.threads.contains_key(&tid) => tid,
            _ => self.unnamed,
        }
    }

    /// strace prints the number of the first thread only once there is a second one.
    fn without_alias(&mut self, tid: Pid, said: &Body<'_>) -> Pid {
        if self.alias == Some(tid) {
            return self.unnamed;
        }
        let Some(unnamed) = self.threads.get(&self.unnamed) else {
            return tid;
        };
        if tid == self.unnamed
            || self.alias.is_some()
            || self.threads.contains_key(&tid)
            || self.attached.contains(&tid)
        {
            return tid;
        }
        let open = unnamed.open.as_ref();
        let continues = match said {
            Body::Resumed { name, .. } => open.is_some_and(|open| open.name == *name),
            _ => open.is_none_or(|open| !makes_thread(&open.name)),
        };
        if !continues {
            return tid;
        }
        self.alias = Some(tid);
        self.unnamed
    }

    /// Takes what a line says of a thread that was met. False if it cannot be decoded.
    pub(super) fn said(&mut self, tid: Pid, time: Time, said: Body<'_>, text: &[u8]) -> bool {
        let is_bare = self.bare.take_if(|bare| *bare == tid).is_some();
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.spoke = true;
        }
        match said {
            Body::Call { name, rest, open } => {
                self.abandon(tid, time);
                self.state.gaps.met(name);
                self.begun(tid, time, name, rest, open)
            }
            Body::Resumed { name, rest, open } => {
                let Some(mut call) = self.take_open(tid).filter(|call| call.name == name) else {
                    // The beginning is not in the log.
                    return true;
                };
                self.state.gaps.recognized += 1;
                call.text.extend_from_slice(rest);
                if open {
                    self.keep_open(tid, call);
                } else {
                    self.complete(tid, time, call);
                }
                true
            }
            Body::Unfinished => {
                if let Some(thread) = self.threads.get_mut(&tid)
                    && let Some(call) = &mut thread.open
                {
                    call.is_bare = false;
                }
                true
            }
            Body::Foreign => {
                let Some(mut call) = self.take_open(tid).filter(|_| is_bare) else {
                    return false;
                };
                let from = match call.by_message {
                    true => 0,
                    false => rest_of_call(text).unwrap_or(0),
                };
                call.text.extend_from_slice(&text[from..]);
                self.complete(tid, time, call);
                true
            }
            Body::Renamed { name, rest, to } => {
                self.abandon(tid, time);
                let call = OpenCall::new(name, rest, time);
                self.renamed.insert(
                    to,
                    OpenCall {
                        replaces: true,
                        ..call
                    },
                );
                true
            }
            Body::Superseded(by) => {
                self.superseded(tid, by, time);
                true
            }
            Body::Exited(status) => {
                self.state.gaps.recognized += 1;
                self.ended(tid, time, Some((status & 0xff) << 8));
                true
            }
            Body::Killed(signal) => {
                self.state.gaps.recognized += 1;
                let number = flags(signal) as i32;
                self.ended(tid, time, (number != 0).then_some(number & 0x7f));
                true
            }
            Body::Attached(_) | Body::Nothing => true,
        }
    }

    /// A call begins. `open`: strace says that it goes on later.
    fn begun(&mut self, tid: Pid, time: Time, name: &str, rest: &[u8], open: bool) -> bool {
        if let Some(at) = memchr::memmem::find(rest, b"strace: Process ")
            && let Some(child) = attached(&rest[at..])
        {
            self.attached.insert(child);
            let call = OpenCall {
                is_bare: true,
                by_message: true,
                ..OpenCall::new(name, &rest[..at], time)
            };
            self.keep_open(tid, call);
            self.bare = Some(tid);
            return true;
        }
        if open {
            self.state.gaps.recognized += 1;
            self.keep_open(tid, OpenCall::new(name, rest, time));
            return true;
        }
        let mut reader = TextReader::new(rest);
        let (args, closed) = reader.arguments();
        match reader.result().filter(|_| closed) {
            Some(returned) => {
                self.state.gaps.recognized += 1;
                self.call(tid, time, name, (args, returned), None);
                true
            }
            None => {
                let call = OpenCall::new(name, rest, time);
                self.keep_open(
                    tid,
                    OpenCall {
                        is_bare: true,
                        ..call
                    },
                );
                self.bare = Some(tid);
                // It counts as decoded once its rest is found.
                true
            }
        }
    }

    fn is_rest_of_bare(&self, text: &[u8]) -> bool {
        self.bare.is_some() && rest_of_call(text).is_some()
    }

    fn take_open(&mut self, tid: Pid) -> Option<OpenCall> {
        self.threads.get_mut(&tid)?.open.take()
    }

    fn keep_open(&mut self, tid: Pid, call: OpenCall) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.open = Some(call);
        }
    }

    /// A call whose text is whole.
    fn complete(&mut self, tid: Pid, time: Time, open: OpenCall) {
        let mut reader = TextReader::new(&open.text);
        let (args, _) = reader.arguments();
        let mut returned = reader.result().unwrap_or_default();
        if open.replaces {
            // strace 6.13 prints an error for such an exec.
            returned.value = Some(0);
        }
        if open.is_bare {
            self.state.gaps.recognized += 1;
        }
        self.call(tid, time, &open.name, (args, returned), open.child);
    }

    /// A thread goes on although its call has not returned in the log.
    fn abandon(&mut self, tid: Pid, time: Time) {
        let Some(open) = self.take_open(tid) else {
            return;
        };
        if open.is_bare {
            self.state.gaps.foreign += 1;
        }
        let (args, _) = TextReader::new(&open.text).arguments();
        self.call(
            tid,
            time,
            &open.name,
            (args, Returned::default()),
            open.child,
        );
    }

    /// Takes a whole call. `child`: the child that was already met.
    fn call(
        &mut self,
        tid: Pid,
        time: Time,
        name: &str,
        (args, returned): (Vec<Arg>, Returned),
        child: Option<Pid>,
    ) {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else {
            return;
        };
        let call = SystemCall {
            thread: CallingThread { pid, tid },
            time,
            name,
            args,
            returned,
        };
        let is_exec = name.starts_with("execve");
        if !std::mem::replace(&mut self.has_called, true) && !is_exec {
            // strace came when the process ran already.
            self.state.gaps.orphans += 1;
        }
        if makes_thread(name) {
            let made = call
                .returned
                .outer
                .or(call.number().map(i32::cast_unsigned));
            let made = made.filter(|made| *made > 0 && child.is_none());
            if let Some(made) = made.filter(|made| !self.threads.contains_key(made)) {
                self.birth(call.thread, time, made, clone_flags(&call));
            }
            return;
        }
        translate(&mut self.state, &call);
    }

    /// An exec by thread `by` took over the first thread of the process.
    fn superseded(&mut self, tid: Pid, by: Pid, time: Time) {
        self.abandon(tid, time);
        // Older versions of strace print nothing special where the exec begins.
        let plain = self.take_open(by).map(|call| OpenCall {
            replaces: true,
            ..call
        });
        self.threads.remove(&by);
        if let Some(call) = self.renamed.remove(&tid).or(plain) {
            self.keep_open(tid, call);
        }
    }

    fn ended(&mut self, tid: Pid, time: Time, status: Option<i32>) {
        self.abandon(tid, time);
        let Some(thread) = self.threads.remove(&tid) else {
            return;
        };
        self.attached.remove(&tid);
        let Some(process) = self.state.processes.get_mut(&thread.pid) else {
            return;
        };
        process.threads = process.threads.saturating_sub(1);
        if tid == thread.pid || process.status.is_none() {
            process.status = status;
        }
        let lives = process.threads > 0 && self.threads.values().any(|of| of.pid == thread.pid);
        if lives {
            return;
        }
        let status = process.status;
        self.state.ended(thread.pid, time, status);
    }

    /// The log is over.
    pub(super) fn end(&mut self) {
        self.release_delayed();
        let time = self.now;
        let mut open: Vec<Pid> = self.threads.keys().copied().collect();
        open.sort_small();
        for tid in open {
            self.abandon(tid, time);
        }
        let silent = self.threads.iter().filter(|(_, thread)| !thread.spoke);
        self.state.gaps.unfollowed = silent.count();
        let speaking = self.threads.values().filter(|thread| thread.spoke);
        let living: HashSet<Pid> = speaking.map(|thread| thread.pid).collect();
        self.state.gaps.living = living.len();
        self.state.findings.first_pid = self.alias;
    }
}
