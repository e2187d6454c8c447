//! Other moments for the questions of a program for the time: the *timeline projection adjustment*.
//!
//! In: a question whose answer was not recorded, and the pauses of the program. Out: shifts of the
//! clock. Each of them moves the answer over the beginning of a second. Invariant: the answer stays
//! between the recorded calls around a pause.
//!
//! Two dates in the place of the first difference say more: by how much the clock is to be shifted.
//! A server that keeps a date for a second and is fed one request has a newer one. So the whole
//! clock may be shifted by that, within a bound.

use crate::time::RecordedClock;
use serde::{Deserialize, Serialize};

/// Most shifts of an execution that are worth an attempt.
pub const MOST: usize = 8;
/// The same for one question.
const OF_QUESTION: usize = 4;
/// Ns of the shortest pause: half a millisecond.
const SHORTEST: i64 = 500_000;
/// Ns.
const SECOND: i64 = 1_000_000_000;
/// Most ns by which two dates shift the whole clock. A server that keeps a date for a second may be
/// late by a second more. A date that lies farther away may be that of an earlier request.
const MOST_APART: i64 = 2 * SECOND;

/// A change of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockShift {
    /// Added to the recorded time, in ns.
    pub ns: i64,
    /// Only for questions behind the call that returned at this time-stamp counter. `None`: for
    /// all.
    pub behind: Option<u64>,
}

impl ClockShift {
    /// The nanoseconds that a question gets added, at this point of the recorded execution.
    pub fn at(&self, reached: u64) -> i64 {
        match self.behind.is_none_or(|behind| behind == reached) {
            true => self.ns,
            false => 0,
        }
    }

    /// Its amount in words.
    pub fn words(&self) -> String {
        match self.ns / 1_000_000 {
            0 => format!("{} µs", self.ns / 1_000),
            ms => format!("{ms} ms"),
        }
    }
}

/// A question for the time whose answer was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Time-stamp counter when the recorded call returned that answered last.
    pub behind: u64,
    /// The time at this call, which was the answer, in ns.
    pub given: i64,
}

/// The shifts that two dates suggest, which are so many ns apart. They are taken out of those that
/// the record allows, if these have one, and the last one is of the whole clock.
pub(crate) fn dated(apart: i64, allowed: &mut Vec<ClockShift>) -> Vec<ClockShift> {
    // One that moves the answer to the beginning of the recorded second.
    let moves_there = |shift: &ClockShift| (0..SECOND).contains(&(apart - shift.ns));
    let found = allowed.iter().position(moves_there);
    let mut shifts: Vec<ClockShift> = found.map(|at| allowed.remove(at)).into_iter().collect();
    if apart != 0 && apart.abs() <= MOST_APART {
        shifts.push(ClockShift {
            ns: apart,
            behind: None,
        });
    }
    shifts
}

/// True if a thread made no call between these time-stamp counters, and a second began meanwhile.
pub(crate) fn is_pause(clock: &RecordedClock, from: u64, to: u64) -> bool {
    // Counters count once a nanosecond, or faster. So most calls need no division.
    if to.saturating_sub(from) < SHORTEST.cast_unsigned() {
        return false;
    }
    let (Some(from), Some(to)) = (clock.at(from), clock.at(to)) else {
        return false;
    };
    to.saturating_sub(from) >= SHORTEST && from.div_euclid(SECOND) != to.div_euclid(SECOND)
}

impl Question {
    /// The shifts that move the answer over the beginning of a second. `pauses`: those of the
    /// program, in the order of their ends. The answer came before the time-stamp counter `until`.
    pub(crate) fn shifts(
        &self,
        pauses: &[(u64, u64)],
        clock: &RecordedClock,
        until: u64,
    ) -> Vec<ClockShift> {
        let first = pauses.partition_point(|(_, to)| *to <= self.behind);
        let own = pauses[first..].iter();
        let mut found = Vec::new();
        for (from, to) in own.take_while(|(from, _)| *from < until) {
            let (Some(from), Some(to)) = (clock.at(*from), clock.at(until.min(*to))) else {
                break;
            };
            let next = (from.max(self.given).div_euclid(SECOND) + 1) * SECOND;
            let last = to.div_euclid(SECOND) * SECOND;
            if next > last {
                continue;
            }
            // The question usually lies at the beginning or at the end of long work.
            let between = (next..last).step_by(SECOND as usize).skip(1);
            for second in [next, last].into_iter().chain(between.take(OF_QUESTION)) {
                let shift = ClockShift {
                    ns: second - self.given,
                    behind: Some(self.behind),
                };
                if found.len() == OF_QUESTION {
                    return found;
                }
                if !found.contains(&shift) {
                    found.push(shift);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockShift, MOST_APART, OF_QUESTION, Question, SECOND, dated, is_pause};
    use crate::time::RecordedClock;

    /// Counts of a hundredth of a second.
    const HUNDREDTH: u64 = 26_000_000;
    /// Counts of a second.
    const COUNTS: u64 = 100 * HUNDREDTH;

    fn clock() -> RecordedClock {
        RecordedClock {
            from: (0, 0),
            to: Some((1000 * COUNTS, 1000 * SECOND)),
        }
    }

    /// The counter at so many hundredths of a second.
    fn at(hundredths: u64) -> u64 {
        hundredths * HUNDREDTH
    }

    /// The times that a question behind a call gets by the shifts, in hundredths of a second.
    fn times(behind: u64, pauses: &[(u64, u64)], until: u64) -> Vec<i64> {
        let question = Question {
            behind: at(behind),
            given: clock().at(at(behind)).unwrap(),
        };
        let pauses: Vec<(u64, u64)> = pauses.iter().map(|(a, b)| (at(*a), at(*b))).collect();
        let shifts = question.shifts(&pauses, &clock(), at(until));
        let moved = |shift: &ClockShift| (question.given + shift.at(at(behind))) * 100 / SECOND;
        shifts.iter().map(moved).collect()
    }

    #[test]
    fn a_question_moves_over_the_second_that_began_between_two_calls() {
        assert_eq!(times(490, &[(490, 510)], 510), [500]);
        // The pause follows calls that did not move the point which the execution has reached.
        assert_eq!(times(450, &[(480, 510)], 510), [500]);
        assert_eq!(times(450, &[(480, 510), (590, 620)], 620), [500, 600]);
    }

    #[test]
    fn no_second_began_for_a_question_outside_of_all_pauses() {
        assert!(times(510, &[(490, 510)], 900).is_empty());
        assert!(times(450, &[(590, 620)], 460).is_empty());
        // Another thread paused for longer.
        assert!(times(450, &[(400, 9000)], 460).is_empty());
        assert!(times(505, &[(490, 580)], 580).is_empty());
        let question = Question {
            behind: 0,
            given: 0,
        };
        let unknown = RecordedClock::default();
        assert!(question.shifts(&[(0, 9)], &unknown, 9).is_empty());
    }

    #[test]
    fn in_a_long_pause_its_first_and_its_last_second_come_first_and_all_have_a_bound() {
        assert_eq!(times(450, &[(450, 750)], 750), [500, 700, 600]);
        let many = times(450, &[(450, 9050)], 9050);
        assert_eq!(many.len(), OF_QUESTION);
        assert_eq!(many[..2], [500, 9000]);
    }

    #[test]
    fn a_pause_is_long_enough_and_has_the_beginning_of_a_second() {
        for (from, to, is) in [(490, 510, true), (510, 590, false), (510, 490, false)] {
            assert_eq!(is_pause(&clock(), at(from), at(to)), is, "{from} {to}");
        }
        assert!(!is_pause(&RecordedClock::default(), at(490), at(510)));
    }

    #[test]
    fn a_pause_lasts_half_a_millisecond_at_any_rate_of_the_counter() {
        for counts in [1, 2, 3].map(|gigahertz| gigahertz * 1_000_000_000) {
            let clock = RecordedClock {
                from: (0, 0),
                to: Some((1000 * counts, 1000 * SECOND)),
            };
            let microsecond = counts / 1_000_000;
            let lasts = |us: u64| is_pause(&clock, counts - microsecond, counts + us * microsecond);
            assert!(lasts(500) && !lasts(400), "{counts} counts a second");
        }
    }

    #[test]
    fn two_dates_choose_the_shift_of_the_recorded_second_and_one_of_the_whole_clock() {
        let behind = |ns| ClockShift {
            ns,
            behind: Some(7),
        };
        let all = |ns| ClockShift { ns, behind: None };
        // A question 0.4 s before the next second: the record allows that second, and two later.
        let record = [0, 1, 2].map(|second| behind(400_000_000 + second * SECOND));
        for (apart, expected, left) in [
            (
                SECOND,
                vec![record[0], all(SECOND)],
                vec![record[1], record[2]],
            ),
            (3 * SECOND, vec![record[2]], vec![record[0], record[1]]),
            (-SECOND, vec![all(-SECOND)], record.to_vec()),
            (-3_000_000, vec![all(-3_000_000)], record.to_vec()),
            (MOST_APART + 2 * SECOND, Vec::new(), record.to_vec()),
            (-MOST_APART - 1, Vec::new(), record.to_vec()),
            (0, Vec::new(), record.to_vec()),
        ] {
            let mut allowed = record.to_vec();
            assert_eq!(dated(apart, &mut allowed), expected, "{apart}");
            assert_eq!(allowed, left, "{apart}");
        }
    }

    #[test]
    fn a_shift_for_one_moment_leaves_all_other_questions_alone() {
        let shift = ClockShift {
            ns: 80_400_000,
            behind: Some(7),
        };
        assert_eq!((shift.at(7), shift.at(8)), (80_400_000, 0));
        let all = ClockShift {
            ns: -400_000,
            behind: None,
        };
        assert_eq!((all.at(7), all.at(8)), (-400_000, -400_000));
        assert_eq!([shift.words(), all.words()], ["80 ms", "-400 µs"]);
    }
}
