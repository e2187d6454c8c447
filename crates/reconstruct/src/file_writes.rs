//! The recorded writes to files of the root, for the search of a text.
//!
//! The kernel makes such writes, so no record answers them. In: the recorded writes of a process to
//! a path, and a write of the new execution. Out: the time of the recorded one. Invariant: a
//! recorded write is taken once, and none is taken that came before one that was taken.

use backstory_ordering::SmallSort;
use std::collections::{HashMap, VecDeque};

/// Recorded writes that are looked through for one at a position.
const MOST_LOOKED: usize = 256;

/// A recorded write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedWrite {
    /// Time-stamp counter when it returned.
    pub time: u64,
    /// Position of its first byte.
    pub start: u64,
    /// Number of its bytes.
    pub length: u64,
}

impl RecordedWrite {
    fn covers(&self, at: u64) -> bool {
        at.checked_sub(self.start)
            .is_some_and(|behind| behind < self.length)
    }
}

/// The recorded writes to one path that have not come again, and the one that came last.
#[derive(Debug, Default)]
struct PathWrites {
    rest: VecDeque<RecordedWrite>,
    last: Option<RecordedWrite>,
    /// The position behind the bytes that came last.
    end: u64,
}

/// The recorded writes of all processes, each given as an index.
#[derive(Debug, Default)]
pub struct FileWrites {
    paths: HashMap<usize, HashMap<Vec<u8>, PathWrites>>,
}

impl FileWrites {
    /// Adds the recorded writes of a process, each with its path, if they are not known yet.
    pub fn arrange<'p>(
        &mut self,
        process: usize,
        writes: impl Iterator<Item = (&'p [u8], RecordedWrite)>,
    ) {
        self.paths.entry(process).or_insert_with(|| {
            let mut all: Vec<(&[u8], RecordedWrite)> = writes.collect();
            all.sort_small_by_key(|(_, write)| write.time);
            let mut paths: HashMap<Vec<u8>, PathWrites> = HashMap::new();
            for (path, write) in all {
                let own = paths.entry(path.to_vec()).or_default();
                own.rest.push_back(write);
            }
            paths
        });
    }

    /// When the recorded write returned that this one is. `at`: its position, unless it appends.
    /// The record of a file that is appended to counts from its own first byte. `None`: the record
    /// has no further write.
    pub fn take(
        &mut self,
        process: usize,
        path: &[u8],
        at: Option<u64>,
        length: u64,
    ) -> Option<u64> {
        let own = self.paths.get_mut(&process)?.get_mut(path)?;
        let goes_on = |last: &RecordedWrite| at.is_some_and(|at| at == own.end && last.covers(at));
        let found = match own.last.filter(goes_on) {
            // A part of the recorded write came before.
            Some(last) => last,
            None => {
                let mut first = own.rest.iter().take(MOST_LOOKED);
                let number = at.and_then(|at| first.position(|write| write.covers(at)));
                own.rest.drain(..number.unwrap_or(0));
                own.rest.pop_front()?
            }
        };
        own.last = Some(found);
        own.end = at.unwrap_or(0).saturating_add(length);
        Some(found.time)
    }
}

#[cfg(test)]
mod tests {
    use super::{FileWrites, RecordedWrite};

    const LOG: &[u8] = b"/srv/log";
    const PAGE: &[u8] = b"/srv/page";

    /// The writes of process 0, by path: time, position, length.
    fn writes(recorded: &[(&'static [u8], [u64; 3])]) -> FileWrites {
        let mut all = FileWrites::default();
        let of = |&(path, [time, start, length]): &(&'static [u8], [u64; 3])| {
            let write = RecordedWrite {
                time,
                start,
                length,
            };
            (path, write)
        };
        all.arrange(0, recorded.iter().map(of));
        all
    }

    #[test]
    fn a_write_has_the_time_of_the_recorded_one_to_its_path() {
        let mut all = writes(&[(PAGE, [20, 0, 5]), (LOG, [10, 0, 3]), (LOG, [30, 3, 3])]);
        assert_eq!(all.take(0, PAGE, Some(0), 5), Some(20));
        // The file had bytes before the program appended to it.
        assert_eq!(all.take(0, LOG, None, 3), Some(10));
        assert_eq!(all.take(0, LOG, None, 3), Some(30));
        assert_eq!(all.take(0, LOG, None, 3), None);
        assert_eq!(all.take(0, b"/srv/other", Some(0), 1), None);
        assert_eq!(all.take(1, LOG, None, 3), None);
    }

    #[test]
    fn a_write_at_a_position_leaves_out_those_before_it_and_a_part_takes_none() {
        let mut all = writes(&[
            (PAGE, [10, 0, 4]),
            (PAGE, [20, 4, 4]),
            (PAGE, [30, 0, 4]),
            (PAGE, [40, 4, 4]),
        ]);
        assert_eq!(all.take(0, PAGE, Some(4), 2), Some(20));
        assert_eq!(all.take(0, PAGE, Some(6), 2), Some(20));
        // The file is written from its beginning again.
        assert_eq!(all.take(0, PAGE, Some(0), 4), Some(30));
        assert_eq!(all.take(0, PAGE, Some(90), 4), Some(40));
    }
}
