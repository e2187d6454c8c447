//! Which process began as whose child, and when: from the headers of chunks and from what the supervisor saw.

use crate::stored_frames::StoredFrames;
use crate::stream::{ThreadStream, head};
use std::collections::HashMap;

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
    pub fn new(log: &StoredFrames, streams: &[ThreadStream]) -> Births {
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
