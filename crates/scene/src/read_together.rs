//! The requests that an event loop has read before it works on them.
//!
//! In: the calls of a deep log. Out: for an act, the other requests that its thread had read by
//! then. A call belongs to the request on which its thread worked last. If a turn of the loop reads
//! several connections first, that is the one that was read last, and not always the right one.
//!
//! Invariant: without a wait for several descriptors, a thread has no such requests. A request that
//! the thread has answered, if only in part, does not count.

use std::collections::{BTreeSet, HashMap};

use backstory_deep::call_numbers::WAITS;
use backstory_deep::{Call, Part};

/// The requests that a thread has read since a wait, and has not answered.
#[derive(Debug, Default)]
struct ReadRequests {
    /// The thread has waited since. The next read begins a new turn.
    has_waited: bool,
    ids: BTreeSet<usize>,
}

/// These of all threads, by the epoch of the process and the thread.
#[derive(Debug, Default)]
pub struct ReadTogether {
    threads: HashMap<(u64, u32), ReadRequests>,
}

impl ReadTogether {
    /// Takes a call of a process. `belongs`: the id of its request, and its part in that.
    pub fn take(&mut self, epoch: u64, call: &Call, belongs: Option<(usize, Part)>) {
        let thread = (epoch, call.tid);
        if WAITS.contains(&call.number) {
            self.threads.entry(thread).or_default().has_waited = true;
            return;
        }
        let Some(read) = self.threads.get_mut(&thread) else {
            return;
        };
        match belongs {
            Some((id, Part::Received)) => {
                // A loop such as asyncio works behind a further wait on what it has read.
                if std::mem::take(&mut read.has_waited) {
                    read.ids.clear();
                }
                read.ids.insert(id);
            }
            Some((id, Part::Sent)) => {
                read.ids.remove(&id);
            }
            _ => {}
        }
    }

    /// The requests of a thread besides its own one.
    pub fn others(&self, (epoch, tid): (u64, u32), own: Option<usize>) -> BTreeSet<usize> {
        let read = self.threads.get(&(epoch, tid));
        let ids = read.into_iter().flat_map(|read| &read.ids);
        ids.copied().filter(|id| Some(*id) != own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: u16 = 7;
    const THREAD: (u64, u32) = (1, 10);
    const NONE: BTreeSet<usize> = BTreeSet::new();

    /// A call of the thread.
    fn take(read: &mut ReadTogether, number: u16, belongs: Option<(usize, Part)>) {
        let call = Call {
            number,
            tid: THREAD.1,
            ..Call::default()
        };
        read.take(THREAD.0, &call, belongs);
    }

    #[test]
    fn requests_that_a_turn_read_together_are_known_until_they_are_answered() {
        let mut read = ReadTogether::default();
        take(&mut read, 0, Some((1, Part::Received)));
        assert_eq!(read.others(THREAD, None), NONE, "there is no event loop");
        take(&mut read, POLL, None);
        take(&mut read, 0, Some((2, Part::Received)));
        take(&mut read, 0, Some((3, Part::Received)));
        assert_eq!(read.others(THREAD, Some(3)), BTreeSet::from([2]));
        // The loop looks around, and then works.
        take(&mut read, POLL, None);
        assert_eq!(read.others(THREAD, Some(3)), BTreeSet::from([2]));
        assert_eq!(read.others((1, 11), Some(3)), NONE, "another thread");
        take(&mut read, 1, Some((2, Part::Sent)));
        assert_eq!(read.others(THREAD, Some(3)), NONE);
        assert_eq!(read.others(THREAD, Some(2)), BTreeSet::from([3]));
        // The next turn.
        take(&mut read, 0, Some((4, Part::Received)));
        assert_eq!(read.others(THREAD, Some(4)), NONE);
    }

    #[test]
    fn a_loop_that_answers_each_request_before_it_reads_the_next_reads_none_together() {
        let mut read = ReadTogether::default();
        take(&mut read, POLL, None);
        for id in 0..3 {
            take(&mut read, 0, Some((id, Part::Received)));
            assert_eq!(read.others(THREAD, Some(id)), NONE);
            take(&mut read, 1, Some((id, Part::Sent)));
        }
    }
}
