//! The positions of threads among the times that they took, in a record with exact time. Readings
//! of the time-stamp counter are times, too.
//!
//! A program may ask less often than it did in the record. Python asks at each lock, and their
//! number depends on addresses. So the outputs of a thread are its marks. A question behind a mark
//! gets an answer that was recorded behind it.
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

    /// The next answer of a thread, with its time-stamp counter.
    pub fn take<T>(&self, thread: u32, answers: &mut TimedQueue<T>) -> Option<(T, u64)> {
        let mark = self.marks.get(&thread).copied().unwrap_or(0);
        while answers.front().is_some_and(|(_, time)| *time < mark) {
            answers.pop_front();
        }
        answers.pop_front()
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
        assert_eq!(positions.take(7, &mut answers), Some((10, 1)));
        positions.pass(8, 6);
        assert_eq!(positions.take(7, &mut answers), Some((20, 2)));
        positions.pass(7, 4);
        assert_eq!(positions.take(7, &mut answers), Some((40, 4)));
    }
}
