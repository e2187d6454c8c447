//! Pipes and pairs of sockets of the program, and the pipe that a tool makes in its process.
//!
//! A tool in the program's own process may make a pipe by the same call as the program. That call
//! takes the next recorded pipe, and a later call tells whose it is. Invariant: a pair that was
//! returned is the next one of its kind again.

use super::taken::TakenTime;
use super::{ProcessMatcher, place_of};
use crate::process::skip_to;
use crate::resource::ResourceId;

/// A recorded pair that a call made again.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenPair {
    /// The number of the call.
    call: u16,
    pair: (ResourceId, ResourceId),
    time: TakenTime,
}

impl ProcessMatcher {
    /// The next recorded pipe or pair of sockets, by the number of the call. It is one of this
    /// recorded thread, if it made one.
    pub fn pair(&mut self, call: u16, thread: u32) -> Option<(ResourceId, ResourceId)> {
        self.skip(|rest, time| {
            if let Some(queue) = rest.pairs.get_mut(&call) {
                skip_to(queue, time);
            }
        });
        let rest = &mut self.rest;
        let at = place_of(&rest.movers, rest.is_part, rest.pairs.get(&call)?, thread);
        let made = rest.pairs.get_mut(&call)?.remove(at);
        if let Some((pair, returned)) = made {
            let time = self.taken_at(returned);
            let taken = TakenPair { call, pair, time };
            self.taken_pairs.insert(pair.1, taken);
        }
        self.made(made)
    }

    /// Another call than that of the program took the pair whose written end this is: the
    /// program's comes later. False: no recorded call made it.
    pub fn return_pair(&mut self, written: ResourceId) -> bool {
        let Some(TakenPair { call, pair, time }) = self.taken_pairs.remove(&written) else {
            return false;
        };
        let queue = self.rest.pairs.entry(call).or_default();
        let at = queue.partition_point(|(_, returned)| *returned < time.returned);
        queue.insert(at, (pair, time.returned));
        self.take_back(time);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProcessMatcher;
    use crate::process::RecordedProcess;
    use std::collections::{HashMap, VecDeque};

    const PIPE: u16 = libc::SYS_pipe2 as u16;

    #[test]
    fn a_returned_pipe_is_the_next_one_again_and_moves_no_time() {
        let pipes = VecDeque::from([((5, 6), 100), ((7, 8), 200)]);
        let mut matcher = ProcessMatcher::new(RecordedProcess {
            pairs: HashMap::from([(PIPE, pipes)]),
            began: 50,
            ..RecordedProcess::default()
        });
        for _ in 0..3 {
            assert_eq!(matcher.pair(PIPE, 1), Some((5, 6)));
            assert_eq!((matcher.time(), matcher.matched), (100, 1));
            assert!(matcher.return_pair(6));
            assert_eq!((matcher.time(), matcher.matched), (50, 0));
        }
        assert!(!matcher.return_pair(6));
        assert_eq!(matcher.pair(PIPE, 1), Some((5, 6)));
        assert_eq!(matcher.pair(PIPE, 1), Some((7, 8)));
        assert_eq!(matcher.pair(PIPE, 1), None);
    }

    #[test]
    fn a_returned_pipe_comes_back_before_later_ones_and_behind_earlier_ones() {
        let pipes = VecDeque::from([((1, 2), 100), ((3, 4), 200), ((5, 6), 300)]);
        let mut matcher = ProcessMatcher::new(RecordedProcess {
            pairs: HashMap::from([(PIPE, pipes)]),
            // The second one is that of thread 9.
            movers: HashMap::from([(200, 9)]),
            ..RecordedProcess::default()
        });
        assert_eq!(matcher.pair(PIPE, 9), Some((3, 4)));
        assert!(matcher.return_pair(4));
        for pair in [(1, 2), (3, 4), (5, 6)] {
            assert_eq!(matcher.pair(PIPE, 1), Some(pair));
        }
    }
}
