//! The processor's counter at times of the clock.
//!
//! In: readings of counter and clock, taken one after the other. Out: the counter at a time between
//! them.
//!
//! Invariant: a later time never has an earlier counter, and a time has the same counter each time.
//! The thread may be interrupted between the two parts of a reading. So a reading is final: no
//! later one changes the counters of the times before it.

use backstory_sys::clock::{counter, machine};

/// Most readings that are kept. Of more, every second of the older half is forgotten.
const MOST: usize = 1 << 14;

/// A reading of counter and clock. Of three, the one that took the least time counts, because a
/// busy machine interrupts the thread.
pub(crate) fn reading() -> (u64, i64) {
    let once = || {
        let before = counter();
        let now = machine();
        let apart = counter().saturating_sub(before);
        (apart, before + apart / 2, now)
    };
    let best = [once(), once(), once()].into_iter().min();
    best.map_or((0, 0), |(_, counter, now)| (counter, now))
}

/// Readings of counter and clock.
#[derive(Debug)]
pub(crate) struct CounterTimes {
    /// Counter, and ns since 1970. Both grow.
    readings: Vec<(u64, i64)>,
}

impl CounterTimes {
    /// Begins with a reading: earlier times have its counter.
    pub(crate) fn new(first: (u64, i64)) -> CounterTimes {
        CounterTimes {
            readings: vec![first],
        }
    }

    /// The counter at a time. `read` takes a reading, if the time is after the last one.
    pub(crate) fn at(&mut self, time: i64, read: impl FnOnce() -> (u64, i64)) -> u64 {
        if self.last().1 < time {
            let (counter, now) = read();
            let (last, before) = self.last();
            if counter > last && now > before {
                self.add((counter, now));
            }
        }
        let after = self.readings.partition_point(|(_, at)| *at <= time);
        let Some(&(first, from)) = after.checked_sub(1).and_then(|at| self.readings.get(at)) else {
            return self.readings.first().map_or(0, |(counter, _)| *counter);
        };
        let Some(&(last, to)) = self.readings.get(after) else {
            return first;
        };
        let whole = u128::from(to.abs_diff(from)).max(1);
        let part = u128::from(last - first) * u128::from(time.abs_diff(from)) / whole;
        first + part as u64
    }

    fn last(&self) -> (u64, i64) {
        self.readings.last().copied().unwrap_or_default()
    }

    fn add(&mut self, reading: (u64, i64)) {
        if self.readings.len() >= MOST {
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number > MOST / 2 || number % 2 == 1
            });
        }
        self.readings.push(reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_order_although_a_reading_was_interrupted() {
        let mut times = CounterTimes::new((1_000, 0));
        let begin = times.at(900, || (4_000, 1_000));
        assert_eq!(begin, 3_700);
        // The counter was read 400 ns before the clock.
        let end = times.at(1_100, || (4_100, 1_500));
        assert!(end > begin, "{end} {begin}");
        assert_eq!(times.at(900, || (9_000, 2_000)), begin);
        let later = times.at(1_900, || (9_000, 2_000));
        assert!(later > end);
        assert_eq!(times.at(1_100, || unreachable!()), end);
    }

    #[test]
    fn a_clock_that_was_set_back_changes_no_counter() {
        let mut times = CounterTimes::new((1_000, 5_000));
        assert_eq!(times.at(4_000, || unreachable!()), 1_000);
        assert_eq!(times.at(6_000, || (2_000, 3_000)), 1_000);
        assert_eq!(times.at(6_000, || (4_000, 7_000)), 2_500);
    }

    #[test]
    fn the_number_of_readings_is_bounded_and_the_order_stays() {
        let mut times = CounterTimes::new((0, 0));
        for number in 1..=3 * MOST as i64 {
            times.at(number * 10, || (number as u64 * 30, number * 10));
        }
        assert!(times.readings.len() <= MOST);
        assert!(times.readings.is_sorted());
        assert_eq!(times.at(105, || unreachable!()), 315);
    }
}
