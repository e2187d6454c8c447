//! The calls of several threads as one sequence.

use crate::call::Call;
use crate::log::{DeepLog, DeepProcess};
use crate::stream::ThreadCalls;
use std::iter::Peekable;

/// The calls of a process. The order of each thread is kept.
pub struct ProcessCalls<'a> {
    threads: Vec<Peekable<ThreadCalls<'a>>>,
}

impl DeepLog {
    /// The calls of all threads of a process. The order of each thread is kept. Between threads the
    /// call that began earlier comes first.
    pub fn process_calls(&self, epoch: u64) -> ProcessCalls<'_> {
        let process = self.processes().iter().find(|p| p.epoch == epoch);
        let tids = process.map_or(&[][..], |process| &process.tids);
        ProcessCalls::new(tids.iter().map(|tid| self.thread_calls(epoch, *tid)))
    }
}

impl DeepLog {
    /// The calls of all processes, one process after the other, each as of
    /// [`DeepLog::process_calls`].
    pub fn walk_calls(&self, mut visit: impl FnMut(&DeepProcess, &Call)) {
        self.begin_pass();
        for process in self.processes() {
            for call in self.process_calls(process.epoch) {
                visit(process, &call);
            }
        }
    }

    /// The time-stamp counter when call number `wanted` of all processes returned, from 1. `None`:
    /// there are fewer.
    pub fn end_of_call(&self, wanted: usize) -> Option<u64> {
        self.ends_of_calls().get(wanted.checked_sub(1)?).copied()
    }

    /// The time-stamp counters when the calls of all processes returned, in order. The number of a
    /// call is its place here, from 1.
    pub fn ends_of_calls(&self) -> Vec<u64> {
        self.begin_pass();
        let calls = self.processes().iter();
        let calls = calls.flat_map(|process| self.process_calls(process.epoch));
        let calls = calls.filter(|call| !call.is_fact());
        let mut ends: Vec<u64> = calls
            .map(|call| call.time.saturating_add(call.took))
            .collect();
        ends.sort_unstable();
        ends
    }
}

impl<'a> ProcessCalls<'a> {
    fn new(threads: impl Iterator<Item = ThreadCalls<'a>>) -> ProcessCalls<'a> {
        ProcessCalls {
            threads: threads.map(Iterator::peekable).collect(),
        }
    }
}

impl Iterator for ProcessCalls<'_> {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        let mut earliest: Option<(u64, usize)> = None;
        for (index, thread) in self.threads.iter_mut().enumerate() {
            if let Some(call) = thread.peek()
                && earliest.is_none_or(|(time, _)| call.time < time)
            {
                earliest = Some((call.time, index));
            }
        }
        let (_, index) = earliest?;
        self.threads.get_mut(index)?.next()
    }
}
