//! Who came from whom: matching each recorder's start with the fork or exec that it must come after.
//!
//! Clocks of different cores may differ by a little, and process ids are used again. A start is matched with the latest cause
//! that is not later by more than the clocks may differ: within so short a time no process starts, ends and is followed
//! by another of the same id, and none starts and executes something else.

use crate::stream::RecordPosition;
use std::collections::HashMap;

/// A fork, or an exec.
#[derive(Debug, Clone, Copy)]
pub struct StartCause {
    /// Its record.
    pub at: RecordPosition,
    /// Its counter.
    pub time: u64,
    /// Number of the recorder start that logged it; 0 for the guard.
    pub epoch: u64,
}

impl StartCause {
    /// A start's own epoch, or a later one, can't have caused it; so no stream can come to wait for itself.
    fn may_precede(&self, start: &RecorderStart) -> bool {
        self.epoch == 0 || self.epoch < start.epoch
    }
}

/// A recorder's start in a process.
#[derive(Debug, Clone, Copy)]
pub struct RecorderStart {
    /// The stream that begins with it.
    pub stream: u32,
    /// The process.
    pub pid: u32,
    /// Its number, rising with time whatever the clocks say.
    pub epoch: u64,
    /// Its counter.
    pub time: u64,
    /// After a fork; else after an exec.
    pub forked: bool,
    /// Its record.
    pub at: RecordPosition,
}

/// Everything that makes processes and programs start, and the starts.
#[derive(Debug, Default)]
pub struct StartCauses {
    forks: HashMap<u32, Vec<StartCause>>,
    execs: HashMap<u32, Vec<StartCause>>,
    starts: Vec<RecorderStart>,
    /// ThreadStreams of each epoch.
    streams: HashMap<u64, Vec<u32>>,
}

impl StartCauses {
    /// Notes that a process was made.
    pub fn fork(&mut self, child: u32, cause: StartCause) {
        self.forks.entry(child).or_default().push(cause);
    }

    /// Notes that a process executed a program.
    pub fn exec(&mut self, pid: u32, cause: StartCause) {
        self.execs.entry(pid).or_default().push(cause);
    }

    /// Notes that a recorder started.
    pub fn start(&mut self, started: RecorderStart) {
        self.starts.push(started);
    }

    /// Notes that a stream belongs to an epoch.
    pub fn stream(&mut self, epoch: u64, stream: u32) {
        if epoch != 0 {
            self.streams.entry(epoch).or_default().push(stream);
        }
    }

    /// Which streams may not start before which records.
    pub fn gates(mut self, slack: u64) -> Vec<(RecordPosition, u32)> {
        let mut gates = Vec::new();
        for causes in self.forks.values_mut().chain(self.execs.values_mut()) {
            causes.sort_by_key(|c| (c.time, c.at));
        }
        for start in &self.starts {
            let causes = if start.forked {
                &self.forks
            } else {
                &self.execs
            };
            let causes = causes.get(&start.pid).map_or(&[][..], Vec::as_slice);
            let latest = causes.partition_point(|c| c.time <= start.time.saturating_add(slack));
            if let Some(cause) = causes[..latest].iter().rfind(|c| c.may_precede(start)) {
                gates.push((cause.at, start.stream));
            }
            for stream in self
                .streams
                .get(&start.epoch)
                .into_iter()
                .flatten()
                .filter(|l| **l != start.stream)
            {
                gates.push((start.at, *stream));
            }
        }
        gates
    }
}
