//! The positions of threads among the times that they took, in a record with exact time. Readings
//! of the time-stamp counter are times, too.
//!
//! A program may ask less or more often than it did in the record. Python asks at each lock, and
//! their number depends on addresses. So the outputs of a thread are its marks. A question between
//! two marks gets an answer that was recorded between them, or none.
//!
//! Invariant: each thread has its own answers, so no other thread takes them.

use crate::process::TimedQueue;
use std::collections::HashMap;

/// The position of each thread among its answers.
#[derive(Debug, Clone, Default)]
pub struct ExactPositions {
    /// The time-stamp counter of the last mark of each thread.
    marks: HashMap<u32, u64>,
}

impl ExactPositions {
    /// This thread made a call that returned at this time in the record.
    pub fn pass(&mut self, thread: u32, time: u64) {
        let last = self.marks.entry(thread).or_default();
        *last = time.max(*last);
    }

    /// The next answer of a thread, with its time-stamp counter. `next`: that of the next mark.
    /// `None`: it is not known.
    pub fn take<T>(
        &self,
        thread: u32,
        answers: &mut TimedQueue<T>,
        next: Option<u64>,
    ) -> Option<(T, u64)> {
        let mark = self.marks.get(&thread).copied().unwrap_or(0);
        while answers.front().is_some_and(|(_, time)| *time < mark) {
            answers.pop_front();
        }
        // An output that was left out is no mark.
        let next = next.filter(|next| *next > mark).unwrap_or(u64::MAX);
        let is_before = answers.front().is_some_and(|(_, time)| *time < next);
        is_before.then(|| answers.pop_front())?
    }
}

#[cfg(test)]
mod tests {
    use super::ExactPositions;
    use crate::process::TimedQueue;

    #[test]
    fn a_question_left_out_does_not_move_those_behind_the_next_mark() {
        let mut positions = ExactPositions::default();
        let mut answers: TimedQueue<i64> = (1..=6).map(|n| (10 * n as i64, n)).collect();
        let mut take = |positions: &ExactPositions| positions.take(7, &mut answers, None);
        assert_eq!(take(&positions), Some((10, 1)));
        positions.pass(8, 6);
        assert_eq!(take(&positions), Some((20, 2)));
        positions.pass(7, 4);
        assert_eq!(take(&positions), Some((40, 4)));
    }

    #[test]
    fn a_question_that_is_added_takes_no_answer_from_behind_the_next_mark() {
        let mut positions = ExactPositions::default();
        let mut answers: TimedQueue<i64> = [(10, 1), (30, 3), (50, 5)].into();
        let mut take = |positions: &ExactPositions, next| positions.take(7, &mut answers, next);
        assert_eq!(take(&positions, Some(2)), Some((10, 1)));
        assert_eq!(take(&positions, Some(2)), None);
        positions.pass(7, 2);
        assert_eq!(take(&positions, Some(4)), Some((30, 3)));
        // The program never made the output of time 4, but that of time 5.
        positions.pass(7, 5);
        assert_eq!(take(&positions, Some(4)), Some((50, 5)));
    }
}
