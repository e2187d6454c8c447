//! Converts time-stamp counters to time.
//!
//! Invariant: the conversion never decreases, even if the real-time clock was set back.

use crate::event::Time;
use crate::run::ClockPoint;

/// Straight lines between the clock readings of a log.
#[derive(Debug, Clone, Default)]
pub struct RunClock {
    lines: Vec<Line>,
}

/// The line from one reading on: its start, and the rate of real time.
#[derive(Debug, Clone, Copy)]
struct Line {
    counter: u64,
    real: i64,
    slope: f64,
    /// Real time at the next reading, which this line must not pass.
    end: i64,
}

impl RunClock {
    /// From the readings of a log, in any order. With one reading, a counter counts as nanoseconds;
    /// without, as the time.
    pub fn new(mut points: Vec<ClockPoint>) -> RunClock {
        points.sort_by_key(|p| (p.counter, p.real));
        points.dedup_by_key(|p| p.counter);
        let mut high = i64::MIN;
        for point in &mut points {
            high = high.max(point.real);
            point.real = high;
        }
        let mut lines: Vec<Line> = points
            .windows(2)
            .map(|w| Line {
                counter: w[0].counter,
                real: w[0].real,
                slope: w[1].real.abs_diff(w[0].real) as f64 / (w[1].counter - w[0].counter) as f64,
                end: w[1].real,
            })
            .collect();
        if let Some(last) = points.last() {
            let slope = lines.last().map_or(1.0, |l| l.slope);
            lines.push(Line {
                counter: last.counter,
                real: last.real,
                slope,
                end: i64::MAX,
            });
        }
        RunClock { lines }
    }

    /// The time of this counter value.
    pub fn time(&self, counter: u64) -> Time {
        let after = self.lines.partition_point(|l| l.counter <= counter);
        match (
            after.checked_sub(1).and_then(|i| self.lines.get(i)),
            self.lines.first(),
        ) {
            (Some(line), _) => {
                let passed = ((counter - line.counter) as f64 * line.slope) as i64;
                line.real.saturating_add(passed).min(line.end)
            }
            (None, Some(line)) => {
                let missing = ((line.counter - counter) as f64 * line.slope) as i64;
                line.real.saturating_sub(missing)
            }
            (None, None) => i64::try_from(counter).unwrap_or(i64::MAX),
        }
    }

    /// The approximate number of counts in this many nanoseconds.
    pub fn counts(&self, nanoseconds: u64) -> u64 {
        let slope = self.lines.first().map_or(1.0, |l| l.slope);
        if slope > 0.0 {
            (nanoseconds as f64 / slope) as u64
        } else {
            nanoseconds
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(points: &[(u64, i64)]) -> RunClock {
        RunClock::new(
            points
                .iter()
                .map(|(counter, real)| ClockPoint {
                    counter: *counter,
                    real: *real,
                })
                .collect(),
        )
    }

    #[test]
    fn between_readings_time_goes_straight_and_beyond_them_on_as_before() {
        let clock = clock(&[(3_000, 1_000), (0, 0), (4_000, 2_000)]);
        let times = [0, 1_500, 3_000, 3_500, 4_000, 5_000].map(|c| clock.time(c));
        assert_eq!(times, [0, 500, 1_000, 1_500, 2_000, 3_000]);
        assert_eq!(
            RunClock::new(vec![ClockPoint {
                counter: 100,
                real: 900
            }])
            .time(50),
            850
        );
        assert_eq!(RunClock::default().time(7), 7);
        assert_eq!(clock.counts(1_000), 3_000);
    }

    #[test]
    fn time_never_decreases_even_if_the_clock_was_set_back() {
        let clock = clock(&[
            (0, 1_000_000),
            (1_000, 2_000_000),
            (2_000, 500_000),
            (3_000, 2_500_000),
        ]);
        let times: Vec<Time> = (0..4_000).step_by(7).map(|c| clock.time(c)).collect();
        assert!(times.windows(2).all(|w| w[0] <= w[1]));
        assert_eq!(clock.time(2_000), 2_000_000);
        assert_eq!(clock.time(3_000), 2_500_000);
    }

    #[test]
    fn nanoseconds_survive_days_of_counting() {
        let (rate, days) = (3, 30 * 86_400 * 1_000_000_000u64);
        let start = 1_700_000_000_000_000_000i64;
        let clock = clock(&[(0, start), (days * rate, start + days as i64)]);
        for ns in [1u64, 1_000_000_007, days / 2 + 1, days - 1] {
            assert!((clock.time(ns * rate) - start).abs_diff(ns as i64) <= 1);
        }
    }
}
