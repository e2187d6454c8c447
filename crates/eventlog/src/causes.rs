//! Matches each recorder's start with the fork or exec that it must come after.
//!
//! Clocks of different cores may differ a little, and process ids are reused. A start is matched
//! with the latest cause that is not later by more than the clocks may differ. Within so short a
//! time no process starts, ends and is followed by another with the same id. Nor does one start and
//! execute another program.

use crate::stream::RecordPosition;
use std::collections::HashMap;

/// A fork, or an exec.
#[derive(Debug, Clone, Copy)]
pub struct StartCause {
    /// Position of its record.
    pub at: RecordPosition,
    /// Its time-stamp counter.
    pub time: u64,
    /// Number of the recorder start that logged it; 0 for the guard.
    pub epoch: u64,
}

impl StartCause {
    /// True if it can have caused the start. A start's own epoch, or a later one, cannot. So no
    /// stream can wait for itself.
    fn may_precede(&self, start: &RecorderStart) -> bool {
        self.epoch == 0 || self.epoch < start.epoch
    }
}

/// The start of a recorder in a process.
#[derive(Debug, Clone, Copy)]
pub struct RecorderStart {
    /// The stream that begins with it.
    pub stream: u32,
    /// Process id.
    pub pid: u32,
    /// Its number, which rises with time whatever the clocks say.
    pub epoch: u64,
    /// Its time-stamp counter.
    pub time: u64,
    /// True after a fork, false after an exec.
    pub forked: bool,
    /// Position of its record.
    pub at: RecordPosition,
}

/// All causes of starts, and all starts.
#[derive(Debug, Default)]
pub struct StartCauses {
    forks: HashMap<u32, Vec<StartCause>>,
    execs: HashMap<u32, Vec<StartCause>>,
    starts: Vec<RecorderStart>,
    /// Thread streams of each epoch.
    streams: HashMap<u64, Vec<u32>>,
}

impl StartCauses {
    /// Adds the creation of a process.
    pub fn fork(&mut self, child: u32, cause: StartCause) {
        self.forks.entry(child).or_default().push(cause);
    }

    /// Adds the execution of a program.
    pub fn exec(&mut self, pid: u32, cause: StartCause) {
        self.execs.entry(pid).or_default().push(cause);
    }

    /// Adds the start of a recorder.
    pub fn start(&mut self, started: RecorderStart) {
        self.starts.push(started);
    }

    /// Adds a stream to an epoch.
    pub fn stream(&mut self, epoch: u64, stream: u32) {
        if epoch != 0 {
            self.streams.entry(epoch).or_default().push(stream);
        }
    }

    /// The streams that must not start before certain records, with these records.
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
