//! Who came from whom: matching each recorder's start with the fork or exec that it must come after.
//!
//! Clocks of different cores may differ by a little, and process ids are used again. A start is matched with the latest cause
//! that is not later by more than the clocks may differ: within so short a time no process starts, ends and is followed
//! by another of the same id, and none starts and executes something else.

use crate::index::{Position, ThreadStream, head};
use crate::log::Log;
use std::collections::HashMap;

/// A fork, or an exec.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    /// Its record.
    pub at: Position,
    /// Its counter.
    pub time: u64,
    /// Number of the recorder start that logged it; 0 for the guard.
    pub epoch: u64,
}

impl Cause {
    /// A start's own epoch, or a later one, can't have caused it; so no stream can come to wait for itself.
    fn may_precede(&self, start: &Started) -> bool {
        self.epoch == 0 || self.epoch < start.epoch
    }
}

/// A recorder's start in a process.
#[derive(Debug, Clone, Copy)]
pub struct Started {
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
    pub at: Position,
}

/// Everything that makes processes and programs start, and the starts.
#[derive(Debug, Default)]
pub struct Causes {
    forks: HashMap<u32, Vec<Cause>>,
    execs: HashMap<u32, Vec<Cause>>,
    starts: Vec<Started>,
    /// ThreadStreams of each epoch.
    streams: HashMap<u64, Vec<u32>>,
}

impl Causes {
    /// Notes that a process was made.
    pub fn fork(&mut self, child: u32, cause: Cause) {
        self.forks.entry(child).or_default().push(cause);
    }

    /// Notes that a process executed a program.
    pub fn exec(&mut self, pid: u32, cause: Cause) {
        self.execs.entry(pid).or_default().push(cause);
    }

    /// Notes that a recorder started.
    pub fn start(&mut self, started: Started) {
        self.starts.push(started);
    }

    /// Notes that a stream belongs to an epoch.
    pub fn stream(&mut self, epoch: u64, stream: u32) {
        if epoch != 0 {
            self.streams.entry(epoch).or_default().push(stream);
        }
    }

    /// Which streams may not start before which records.
    pub fn gates(mut self, slack: u64) -> Vec<(Position, u32)> {
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

/// Processes by parent, and by the numbers they have in their own pid namespace.
#[derive(Debug, Default)]
pub struct Births {
    /// By parent: when, who.
    children: HashMap<u32, Vec<(u64, u32)>>,
    /// By parent's and own number inside a namespace: when, and the number outside.
    inner: HashMap<(u32, u32), Vec<(u64, u32)>>,
}

impl Births {
    /// From the chunks' headers.
    pub fn new(log: &Log, streams: &[ThreadStream]) -> Births {
        let mut births = Births::default();
        for stream in streams.iter().filter(|l| !l.guard) {
            let Some(first) = stream
                .chunks
                .first()
                .map(|c| head(log, &log.chunks()[*c as usize]))
            else {
                continue;
            };
            match stream.inner {
                Some(own) => births
                    .inner
                    .entry((first.ppid, own))
                    .or_default()
                    .push((first.taken, stream.pid)),
                None => births.seen(stream.pid, first.ppid, first.taken),
            }
        }
        births.inner.values_mut().for_each(|v| v.sort_unstable());
        births
    }

    /// Notes that a process was seen with this parent.
    pub fn seen(&mut self, pid: u32, parent: u32, time: u64) {
        self.children.entry(parent).or_default().push((time, pid));
    }

    /// The first child of a process that appeared after that time.
    pub fn child(&self, parent: u32, time: u64) -> Option<u32> {
        // Another program of a child that was there before is no new child.
        let mut first = HashMap::new();
        for (seen, pid) in self.children.get(&parent)?.iter().filter(|c| c.1 != parent) {
            let earliest = first.entry(*pid).or_insert(*seen);
            *earliest = (*earliest).min(*seen);
        }
        first
            .into_iter()
            .filter(|c| c.1 > time)
            .min_by_key(|c| (c.1, c.0))
            .map(|c| c.0)
    }

    /// A process id that a stream's owner saw, as the supervisor sees it: of the child of that number that appeared next, else last.
    pub fn translate(&self, stream: &ThreadStream, pid: u32, time: u64) -> Option<u32> {
        let Some(own) = stream.inner else {
            return Some(pid);
        };
        let known = self.inner.get(&(own, pid))?;
        known
            .iter()
            .find(|k| k.0 >= time)
            .or(known.last())
            .map(|k| k.1)
    }
}
