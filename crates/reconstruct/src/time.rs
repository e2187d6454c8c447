//! The time of day during the recorded execution.
//!
//! In: two readings of the time-stamp counter with the time of day, of the deep log. Out: the time
//! at any counter between. Programs take the time without a system call, so it is not in the log.
//! Each recorded call has its counter, and so the time is known at each call.

use crate::volatile::VolatileRules;
use backstory_deep::DeepLog;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Counters as time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedClock {
    /// A counter, and ns since 1970.
    pub from: (u64, i64),
    /// The same, later. `None`: the log was cut off before.
    pub to: Option<(u64, i64)>,
}

impl RecordedClock {
    /// The clock of a log.
    pub fn of(log: &DeepLog) -> RecordedClock {
        RecordedClock {
            from: log.first_reading(),
            to: log.last_reading(),
        }
    }

    /// The counter at a time in ns since 1970. `None`: as of [`Self::at`].
    pub fn counter(&self, ns: i64) -> Option<u64> {
        let to = self.to?;
        let length = i128::from(to.1) - i128::from(self.from.1);
        let counts = i128::from(to.0) - i128::from(self.from.0);
        if length <= 0 || counts <= 0 {
            return None;
        }
        let since = i128::from(ns) - i128::from(self.from.1);
        u64::try_from(i128::from(self.from.0) + since * counts / length).ok()
    }

    /// The parts of outputs that may differ, with these patterns. One that is no regular expression
    /// matches nothing.
    pub fn rules(&self, patterns: &[String]) -> VolatileRules {
        let mut rules = match self.to {
            Some((_, to)) => VolatileRules::of_run(self.from.1, to),
            None => VolatileRules::default(),
        };
        for pattern in patterns {
            let _ = rules.declare(pattern);
        }
        rules
    }

    /// Ns since 1970 at a counter. `None` if the log does not say how fast the counter counts.
    pub fn at(&self, counter: u64) -> Option<i64> {
        let to = self.to?;
        let counts = i128::from(to.0) - i128::from(self.from.0);
        if counts <= 0 {
            return None;
        }
        let since = i128::from(counter) - i128::from(self.from.0);
        let ns = since * i128::from(to.1 - self.from.1) / counts;
        Some(self.from.1.saturating_add(ns as i64))
    }

    /// The time between two counters. Nothing if the second one is earlier.
    pub fn between(&self, from: u64, to: u64) -> Duration {
        let ns = match (self.at(from), self.at(to)) {
            (Some(from), Some(to)) => u64::try_from(to.saturating_sub(from)).unwrap_or(0),
            // Counters count once a nanosecond, or faster.
            _ => to.saturating_sub(from),
        };
        Duration::from_nanos(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::RecordedClock;

    #[test]
    fn the_time_lies_between_the_readings_as_the_counter_does() {
        let clock = RecordedClock {
            from: (1000, 50),
            to: Some((3000, 1050)),
        };
        assert_eq!(clock.at(1000), Some(50));
        assert_eq!(clock.at(2000), Some(550));
        assert_eq!(clock.at(4000), Some(1550));
        for counter in [1000, 2000, 3000] {
            assert_eq!(clock.counter(clock.at(counter).unwrap()), Some(counter));
        }
        assert_eq!(RecordedClock::default().at(7), None);
    }
}
