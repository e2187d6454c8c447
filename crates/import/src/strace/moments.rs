//! The times of lines, as ns since 1970.
//!
//! | strace's option | the time of a line |
//! | --- | --- |
//! | `-ttt` | as it is there |
//! | `-t`, `-tt` | the time of the day, on the latest day on which it was before the file's last change |
//! | `-r` | counted back from the file's last change |
//! | none | the same, with a microsecond between two lines |

use super::line::Stamp;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const SECOND: i64 = 1_000_000_000;
/// The beginning of 1990.
const EARLY: i64 = 631_152_000 * SECOND;
const DAY: i64 = 86_400 * SECOND;
/// The time between two lines, where it is not known.
const STEP: i64 = 1_000;

/// The times that a log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TimeKind {
    /// None.
    #[default]
    Unknown,
    /// Since 1970.
    Epoch,
    /// Of the day.
    Day,
    /// Since the line before.
    Since,
}

/// Converts the times of lines, one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Moments {
    /// The time to add to all, which is known after the first reading.
    base: i64,
    kind: TimeKind,
    days: i64,
    last_of_day: i64,
    last: i64,
    /// A time since 1970 was older than strace.
    is_early: bool,
}

impl Moments {
    /// From the base that the first reading gave.
    pub(super) fn from(base: i64) -> Moments {
        Moments {
            base,
            ..Moments::default()
        }
    }

    /// The kind of times that were met.
    pub(super) fn kind(&self) -> TimeKind {
        self.kind
    }

    /// True if times since 1970 are older than strace. A clock can have been set later.
    pub(super) fn is_early(&self) -> bool {
        self.is_early
    }

    /// The time of the next line.
    pub(super) fn next(&mut self, stamp: Option<Stamp>) -> i64 {
        self.last = match stamp {
            None => self.last.saturating_add(STEP),
            Some(Stamp::Epoch(time)) => {
                self.kind = TimeKind::Epoch;
                self.is_early |= time < EARLY;
                time.max(self.last)
            }
            Some(Stamp::Since(passed)) => {
                self.kind = TimeKind::Since;
                self.last.saturating_add(passed)
            }
            Some(Stamp::Day(time)) => {
                self.kind = TimeKind::Day;
                // Midnight has passed. A clock may have been set back a little.
                self.days += i64::from(time < self.last_of_day - DAY / 2);
                self.last_of_day = time;
                (self.days * DAY + time).max(self.last)
            }
        };
        self.base.saturating_add(self.last)
    }

    /// The base for the second reading, if the last line was written at `changed`.
    pub(super) fn base_before(&self, changed: i64) -> i64 {
        match self.kind {
            TimeKind::Epoch => 0,
            TimeKind::Since | TimeKind::Unknown => changed.saturating_sub(self.last),
            TimeKind::Day => {
                let midnight = midnight_before(changed) - self.days * DAY;
                // The last change is stored with less precision than the times.
                match midnight + self.last > changed + 2 * SECOND {
                    true => midnight - DAY,
                    false => midnight,
                }
            }
        }
    }
}

/// The midnight before a time, in this machine's time zone.
fn midnight_before(time: i64) -> i64 {
    let start = || {
        let at = Timestamp::UNIX_EPOCH
            .checked_add(SignedDuration::from_nanos(time))
            .ok()?;
        let day = at.to_zoned(TimeZone::system()).start_of_day().ok()?;
        i64::try_from(day.timestamp().as_nanosecond()).ok()
    };
    start().unwrap_or(time - time.rem_euclid(DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_day_pass_midnight_and_end_before_the_files_last_change() {
        let changed = midnight_before(1_700_000_000 * SECOND) + 100 * SECOND;
        let stamps = [DAY - SECOND, 0, 99 * SECOND];
        let mut first = Moments::default();
        for stamp in stamps {
            first.next(Some(Stamp::Day(stamp)));
        }
        let mut second = Moments::from(first.base_before(changed));
        let times = stamps.map(|stamp| changed - second.next(Some(Stamp::Day(stamp))));
        assert_eq!(times, [101 * SECOND, 100 * SECOND, SECOND]);
    }

    #[test]
    fn a_clock_that_was_set_within_the_log_was_wrong_before() {
        let early = |stamps: &[i64]| {
            let mut moments = Moments::default();
            for stamp in stamps {
                moments.next(Some(Stamp::Epoch(stamp * SECOND)));
            }
            moments.is_early()
        };
        assert!(early(&[100, 1_700_000_000]));
        assert!(!early(&[1_700_000_000, 1_700_000_001]));
    }

    #[test]
    fn relative_times_end_at_the_files_last_change() {
        let mut first = Moments::default();
        first.next(Some(Stamp::Since(0)));
        first.next(Some(Stamp::Since(7)));
        let mut second = Moments::from(first.base_before(1_000));
        assert_eq!(second.next(Some(Stamp::Since(0))), 993);
        assert_eq!(second.next(Some(Stamp::Since(7))), 1_000);
    }
}
