//! Calls of functions: which functions of a thread are active, and what they do with files.
//!
//! A run may have millions of calls. A call becomes an activity only if its thread does something
//! meanwhile that the graph has, as opening a file. Then all active functions of the thread become
//! activities inside each other, as those that a program marks ([`super::nesting`]). The other
//! calls are counted.
//!
//! Threads share the memory of their process, and its present activity. If another thread does
//! something, the activity of the first one ends. It goes on as another activity later.
//!
//! Invariant: an operation belongs to the innermost active function of its own thread.

use backstory_eventlog::event::{Bytes, FunctionStep, Op, Pid, ValuePointer};
use rustc_hash::FxHashMap;

use super::function_buffers::{FilledBuffers, ProcessBuffers};
use super::{CallContext, Fold};
use crate::marks::{ATTRIBUTE, CALLS_OF};
use crate::model::{ActivityId, Sink};
use crate::nested::DEEPEST;

/// The most functions of a process whose calls are counted by name.
const MOST_COUNTED: usize = 1000;

/// A function that is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ActiveCall {
    /// Tells calls of one function apart.
    pub(super) call: u64,
    pub(super) number: u32,
}

/// An activity of a function.
#[derive(Debug, Clone)]
struct EnteredCall {
    call: ActiveCall,
    arguments: Vec<Bytes>,
    /// Activities of the process around it.
    around: usize,
}

/// The active functions of a process.
#[derive(Debug, Clone, Default)]
struct ProcessCalls {
    threads: FxHashMap<Pid, Vec<ActiveCall>>,
    /// Those that are activities now, and the thread that they belong to.
    entered: Vec<EnteredCall>,
    owner: Pid,
    /// The activity that the counts belong to, and the number of calls by function.
    whole: Option<ActivityId>,
    counts: FxHashMap<u32, u64>,
    /// The arguments of calls that are active.
    arguments: FxHashMap<u64, Vec<Bytes>>,
    /// Their pointers.
    buffers: ProcessBuffers,
}

/// The functions of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct FunctionCalls {
    names: FxHashMap<u32, Bytes>,
    processes: FxHashMap<Pid, ProcessCalls>,
    filled: FilledBuffers,
    calls: u64,
}

impl FunctionCalls {
    /// True if calls of the process are recorded.
    pub(super) fn are_active(&self, pid: Pid) -> bool {
        self.processes.contains_key(&pid)
    }

    /// A process begins as a copy of its parent.
    pub(super) fn inherit(&mut self, child: Pid, parent: Option<Pid>) {
        self.filled.begin(child, parent);
    }

    /// A process has ended, or begins another program.
    pub(super) fn forget_memory(&mut self, pid: Pid) {
        self.filled.forget(pid);
    }

    /// Takes in the name of a function.
    pub(super) fn name(&mut self, number: u32, name: &[u8], location: &[u8]) {
        let mut text = [name, b"()"].concat();
        if !location.is_empty() {
            text.extend_from_slice(b" in ");
            text.extend_from_slice(location);
        }
        self.names.insert(number, text.into());
    }

    /// Takes in the values of the active function. True if it is an activity now.
    pub(super) fn take_values(
        &mut self,
        call: CallContext,
        number: u32,
        returned: bool,
        values: &[Bytes],
        pointers: &[ValuePointer],
    ) -> bool {
        let name = self.text(number);
        let Some(process) = self.processes.get_mut(&call.pid) else {
            return false;
        };
        let active = process.threads.get(&call.tid).map(Vec::as_slice);
        let Some((last, around)) = active.unwrap_or_default().split_last() else {
            return false;
        };
        if last.number != number {
            return false;
        }
        if returned {
            process.buffers.result(last.call, &name, pointers);
        } else {
            process.arguments.insert(last.call, values.to_vec());
            let filled = (&self.filled, call.pid);
            let buffers = &mut process.buffers;
            buffers.begin(last.call, &name, values, pointers, filled);
        }
        let entered = process.entered.get(around.len());
        process.owner == call.tid && entered.is_some_and(|one| one.call == *last)
    }

    fn text(&self, number: u32) -> Bytes {
        let unknown = || format!("function {number:x}").into_bytes().into();
        self.names.get(&number).cloned().unwrap_or_else(unknown)
    }
}

impl<S: Sink> Fold<'_, S> {
    /// Folds calls and returns of a thread.
    pub(super) fn call_functions(
        &mut self,
        call: CallContext,
        steps: &[FunctionStep],
    ) -> Result<(), S::Error> {
        let is_new = !self.functions.processes.contains_key(&call.pid);
        let whole = is_new.then(|| self.announce(call.epoch)).transpose()?;
        let process = self.functions.processes.entry(call.pid).or_default();
        process.whole = process.whole.or(whole);
        let active = process.threads.entry(call.tid).or_default();
        for step in steps {
            match *step {
                FunctionStep::Call { number, .. } => {
                    self.functions.calls += 1;
                    let call = self.functions.calls;
                    active.push(ActiveCall { call, number });
                    let room = process.counts.len() < MOST_COUNTED;
                    match process.counts.get_mut(&number) {
                        Some(count) => *count += 1,
                        None if room => {
                            process.counts.insert(number, 1);
                        }
                        None => {}
                    }
                }
                // A child by fork returns from functions that its parent called.
                FunctionStep::Return { .. } => {
                    if let Some(ended) = active.pop() {
                        process.arguments.remove(&ended.call);
                        process.buffers.returned(ended.call);
                    }
                }
            }
        }
        if process.owner == call.tid {
            self.leave_functions(call)?;
        }
        let functions = &mut self.functions;
        if let Some(process) = functions.processes.get_mut(&call.pid) {
            process.buffers.settle(&mut functions.filled, call.pid);
        }
        Ok(())
    }

    /// Makes the active functions of the calling thread the present activities of its process.
    pub(super) fn enter_functions(&mut self, call: CallContext, op: &Op) -> Result<(), S::Error> {
        if !belongs_to_function(op) {
            return Ok(());
        }
        if !self.leave_functions_of_others(call)? {
            return Ok(());
        }
        loop {
            let Some(process) = self.functions.processes.get_mut(&call.pid) else {
                return Ok(());
            };
            process.owner = call.tid;
            let active = process.threads.get(&call.tid);
            let Some(&next) = active.and_then(|active| active.get(process.entered.len())) else {
                return Ok(());
            };
            let arguments = process.arguments.get(&next.call).cloned();
            let buffers = process.buffers.attributes(next.call);
            let around = self.processes[&call.pid].outer.len();
            if around >= DEEPEST || !self.has_room()? {
                return Ok(());
            }
            let arguments = arguments.unwrap_or_default();
            let mut words = vec![self.functions.text(next.number)];
            words.extend_from_slice(&arguments);
            let epoch = self.process_of(call)?;
            self.begin_inside(CallContext { epoch, ..call }, words, true)?;
            let epoch = self.process_of(call)?;
            let inside = CallContext { epoch, ..call };
            self.join_descriptors(inside, &arguments)?;
            for (name, value) in &buffers {
                self.value_attribute(inside, name, value)?;
            }
            if let Some(process) = self.functions.processes.get_mut(&call.pid) {
                process.entered.push(EnteredCall {
                    call: next,
                    arguments,
                    around,
                });
            }
        }
    }

    /// Ends the activities that are not of the calling thread's active functions. False if the
    /// program has marked an activity inside of them, which goes on.
    fn leave_functions_of_others(&mut self, call: CallContext) -> Result<bool, S::Error> {
        self.leave_functions(call)?;
        let depth = self.processes[&call.pid].outer.len();
        let entered = self.functions.processes.get(&call.pid);
        let last = entered.and_then(|process| process.entered.last());
        Ok(last.is_none_or(|last| depth == last.around + 1))
    }

    /// Ends the activities of functions that are no longer active in the calling thread.
    fn leave_functions(&mut self, call: CallContext) -> Result<(), S::Error> {
        loop {
            let depth = self
                .processes
                .get(&call.pid)
                .map_or(0, |process| process.outer.len());
            let Some(process) = self.functions.processes.get_mut(&call.pid) else {
                return Ok(());
            };
            let Some(last) = process.entered.last() else {
                return Ok(());
            };
            if depth <= last.around {
                // The program ended it by a mark, or executed another program.
                process.entered.pop();
                continue;
            }
            let at = process.entered.len() - 1;
            let active = process.threads.get(&call.tid);
            let is_active = active.and_then(|active| active.get(at)) == Some(&last.call);
            if is_active || depth > last.around + 1 {
                return Ok(());
            }
            let ended = last.call.call;
            let arguments = process.entered.pop().map(|last| last.arguments);
            let epoch = self.process_of(call)?;
            self.join_paths(
                CallContext { epoch, ..call },
                &arguments.unwrap_or_default(),
            )?;
            let epoch = self.process_of(call)?;
            let read = self.end_nested(CallContext { epoch, ..call })?;
            if let Some(process) = self.functions.processes.get_mut(&call.pid)
                && read
            {
                process.buffers.read(ended);
            }
        }
    }

    /// A recorder starts in a process: nothing of an earlier program or process is active.
    pub(super) fn forget_functions(&mut self, call: CallContext) -> Result<(), S::Error> {
        match self.functions.processes.remove(&call.pid) {
            Some(process) => self.count_calls(&process),
            None => Ok(()),
        }
    }

    /// Writes the counts of all processes, at the end of the run.
    pub(super) fn count_all_calls(&mut self) -> Result<(), S::Error> {
        let mut all: Vec<_> = self.functions.processes.drain().collect();
        all.sort_by_key(|(pid, _)| *pid);
        all.iter()
            .try_for_each(|(_, process)| self.count_calls(process))
    }

    /// An attribute for each function: how often the process called it.
    fn count_calls(&mut self, process: &ProcessCalls) -> Result<(), S::Error> {
        let Some(whole) = process.whole else {
            return Ok(());
        };
        let counted = process.counts.iter();
        let mut counted: Vec<_> = counted
            .map(|(&number, &count)| (self.functions.text(number), count))
            .collect();
        counted.sort();
        for (name, count) in counted {
            let payload = [CALLS_OF, &*name, b"\0", count.to_string().as_bytes()].concat();
            self.sink.extended(whole, self.now, ATTRIBUTE, &payload)?;
        }
        Ok(())
    }
}

/// True for operations that are a part of the work of the function that makes them.
fn belongs_to_function(op: &Op) -> bool {
    !matches!(
        op,
        Op::Thread { .. }
            | Op::Listen { .. }
            | Op::Lost { .. }
            | Op::Exit { .. }
            | Op::Cloexec { .. }
            | Op::HeldDescriptor { .. }
            | Op::Extended { .. }
            | Op::Calls(_)
            | Op::Values { .. }
    )
}
