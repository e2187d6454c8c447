//! The positions of threads among the times that they took, in a record with exact time.
//!
//! A program may ask more or less often than it did in the record. Python asks at each lock, and
//! their number depends on addresses. So the outputs of a thread are its marks, and the files that
//! it opens. A question behind a mark gets an answer that was recorded behind it.
//!
//! Invariant: each thread has its own answers, so no other thread takes them.

use crate::process::TimedQueue;
use std::collections::HashMap;

/// How often an answer is repeated before the next output. A program may wait for a later time.
const MOST_REPEATED: u32 = 64;

/// The position of each thread among its answers.
#[derive(Debug, Clone, Default)]
pub struct ExactPositions {
    /// The time-stamp counter of the last mark of each thread.
    marks: HashMap<u32, u64>,
    /// The last answer of each thread and clock, and how often it was repeated.
    last: HashMap<(u32, i32), (i64, u32)>,
}

impl ExactPositions {
    /// This thread made a call that returned at this time in the record.
    pub fn pass(&mut self, thread: u32, time: u64) {
        let last = self.marks.entry(thread).or_default();
        *last = time.max(*last);
    }

    /// The next answer of a thread and clock, in ns, from before a time-stamp counter, if there is
    /// one. With it the counter of that answer, if it is a further one.
    pub fn take(
        &mut self,
        (thread, clock): (u32, i32),
        answers: &mut TimedQueue<i64>,
        before: Option<u64>,
    ) -> Option<(i64, Option<u64>)> {
        let key = (thread, clock);
        let mark = self.marks.get(&thread).copied().unwrap_or(0);
        while let Some((ns, time)) = answers.front().copied()
            && time < mark
        {
            self.last.insert(key, (ns, 0));
            answers.pop_front();
        }
        let next = answers.front().map(|(_, time)| *time);
        let is_ahead = next.is_none_or(|time| before.is_some_and(|before| time > before));
        if is_ahead
            && let Some((ns, repeated)) = self.last.get_mut(&key)
            && *repeated < MOST_REPEATED
        {
            *repeated += 1;
            return Some((*ns, None));
        }
        let (ns, time) = answers.pop_front()?;
        self.last.insert(key, (ns, 0));
        Some((ns, Some(time)))
    }
}

#[cfg(test)]
mod tests {
    use super::ExactPositions;
    use crate::process::TimedQueue;

    const KEY: (u32, i32) = (7, 1);

    /// A thread that took the times 10, 20 to 60 at the counters 1, 2 to 6.
    fn taken() -> (ExactPositions, TimedQueue<i64>) {
        let taken = (1..=6).map(|n| (10 * n as i64, n));
        (ExactPositions::default(), taken.collect())
    }

    #[test]
    fn a_question_left_out_does_not_move_those_behind_the_next_mark() {
        let (mut positions, mut answers) = taken();
        assert_eq!(positions.take(KEY, &mut answers, None), Some((10, Some(1))));
        positions.pass(8, 6);
        assert_eq!(positions.take(KEY, &mut answers, None), Some((20, Some(2))));
        positions.pass(7, 4);
        assert_eq!(positions.take(KEY, &mut answers, None), Some((40, Some(4))));
    }

    #[test]
    fn a_further_question_before_an_output_gets_the_last_answer_again() {
        let (mut positions, mut answers) = taken();
        let mut ns = |before| {
            let taken = positions.take(KEY, &mut answers, before);
            taken.map(|(ns, _)| ns)
        };
        let two: Vec<_> = [2; 4].map(|before| ns(Some(before))).into();
        assert_eq!(two, [10, 20, 20, 20].map(Some));
        assert_eq!(ns(Some(9)), Some(30));
    }

    #[test]
    fn a_program_that_waits_for_a_later_time_gets_it() {
        let (mut positions, mut answers) = taken();
        let waits = std::iter::from_fn(|| positions.take(KEY, &mut answers, Some(1)));
        assert_eq!(waits.take(1000).last().map(|(ns, _)| ns), Some(60));
    }
}
