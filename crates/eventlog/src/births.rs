//! The parent and the start of each process, from the headers of chunks and the supervisor's
//! records.

use crate::stored_frames::StoredFrames;
use crate::stream::{ThreadStream, head};
use std::collections::{BTreeSet, HashMap};

/// Processes by parent, and by their ids in their own pid namespace.
#[derive(Debug, Default)]
pub struct Births {
    /// By parent: time and process id of each child.
    children: HashMap<u32, BTreeSet<(u64, u32)>>,
    /// By parent's and own id inside a namespace: time, and the id outside.
    inner: HashMap<(u32, u32), BTreeSet<(u64, u32)>>,
}

impl Births {
    /// Adds what the chunks' headers say.
    pub fn add(&mut self, log: &StoredFrames, streams: &[ThreadStream]) {
        for stream in streams.iter().filter(|l| !l.guard) {
            let Some(first) = stream
                .chunks
                .first()
                .map(|c| head(log, &log.chunks()[*c as usize]))
            else {
                continue;
            };
            match stream.inner {
                Some(own) => {
                    let known = self.inner.entry((first.ppid, own)).or_default();
                    known.insert((first.taken, stream.pid));
                }
                None => self.seen(stream.pid, first.ppid, first.taken),
            }
        }
    }

    /// Adds an observation: a process with this parent, at this time.
    pub fn seen(&mut self, pid: u32, parent: u32, time: u64) {
        self.children.entry(parent).or_default().insert((time, pid));
    }

    /// The first child of a process that appeared after that time.
    pub fn child(&self, parent: u32, time: u64) -> Option<u32> {
        // A child that existed before and executed another program is no new child.
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

    /// Converts a process id that a stream's owner saw to the supervisor's namespace. It is the
    /// child of that id that appeared next, or else last.
    pub fn translate(&self, stream: &ThreadStream, pid: u32, time: u64) -> Option<u32> {
        let Some(own) = stream.inner else {
            return Some(pid);
        };
        let known = self.inner.get(&(own, pid))?;
        let next = known.range((time, 0)..).next();
        next.or(known.last()).map(|k| k.1)
    }
}
