//! The clock of a log, and its relation to the calendar.
//!
//! Invariant: the times of a run follow the clock as it ran at the start of the run. Setting the
//! machine's clock meanwhile does not change them. So no operation seems to happen before its
//! cause. Ten seconds are reported as ten seconds. Times that are compared with those of files come
//! from [`machine`].

use backstory_eventlog::Reason;
use backstory_eventlog::run::{ClockPoint, RunHeader};
use backstory_sys::clock::{boot_id, counter, machine, since_boot};
use std::sync::OnceLock;

/// Nanoseconds since 1970, by the clock of the run that this process records. Forked processes
/// inherit the clock.
pub fn now() -> i64 {
    since_boot().saturating_add(ahead())
}

/// The present, on the clocks of `now` and `since_boot`.
pub(crate) fn both() -> (i64, i64) {
    let since_boot = since_boot();
    (since_boot.saturating_add(ahead()), since_boot)
}

/// The difference between the run's calendar and the time since boot. Of three measurements, the
/// one that took the least time counts.
fn ahead() -> i64 {
    static AHEAD: OnceLock<i64> = OnceLock::new();
    *AHEAD.get_or_init(|| {
        let tries = std::array::from_fn::<_, 3, _>(|_| {
            let before = since_boot();
            let calendar = machine();
            let apart = since_boot().saturating_sub(before);
            (apart, calendar.saturating_sub(before + apart / 2))
        });
        tries.into_iter().min().map_or(0, |best| best.1)
    })
}

/// The present, by the clock of a run whose recording another process began.
pub(crate) fn now_in(run: &RunHeader, boot_id: &str) -> i64 {
    match run.ahead_of_boot().filter(|_| run.boot_id == boot_id) {
        Some(ahead) => since_boot().saturating_add(ahead),
        None => machine(),
    }
}

/// A moment that the age of a run is measured from.
#[derive(Debug, Clone)]
pub struct Moment {
    boot_id: String,
    since_boot: i64,
    calendar: i64,
}

impl Moment {
    /// The present moment.
    pub fn now() -> Moment {
        Moment {
            boot_id: boot_id(),
            since_boot: since_boot(),
            calendar: machine(),
        }
    }

    /// Nanoseconds since a run began. If the machine has not been booted since, the clock is one
    /// that cannot be set.
    pub fn age_of(&self, run: &RunHeader) -> i64 {
        match run.ahead_of_boot().filter(|_| run.boot_id == self.boot_id) {
            Some(_) => self.since_boot.saturating_sub(run.since_boot),
            None => self.calendar.saturating_sub(run.started),
        }
    }
}

/// Two clocks whose difference changed by this many nanoseconds did not drift: one was set.
const SET: i64 = 1_000_000_000;

/// Reports how the machine's clock was set since the run of this process began, if it was.
pub(crate) fn was_set() -> Option<Reason> {
    set_by(machine().saturating_sub(now()))
}

/// A reading of the file systems' clock from the start of the run. It is 0 if the clock was set
/// since, because such a reading means nothing.
pub(crate) fn valid_reading(reading: i64) -> i64 {
    match was_set() {
        Some(_) => 0,
        None => reading,
    }
}

fn set_by(difference: i64) -> Option<Reason> {
    (difference.abs() > SET).then(|| Reason::ClockSet {
        seconds: difference.unsigned_abs().div_ceil(SET as u64),
        which: if difference < 0 { "back" } else { "forward" },
    })
}

/// A reading of both clocks. Of three attempts, the one that took the least time counts.
pub fn point() -> ClockPoint {
    let mut best = (
        u64::MAX,
        ClockPoint {
            counter: 0,
            real: 0,
        },
    );
    for _ in 0..3 {
        let before = counter();
        let real = now();
        let apart = counter().wrapping_sub(before);
        if apart < best.0 {
            best = (
                apart,
                ClockPoint {
                    counter: before.wrapping_add(apart / 2),
                    real,
                },
            );
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_clock_is_reported_and_a_drifting_one_is_not() {
        let told = |difference| set_by(difference).map(|reason| reason.to_string());
        assert_eq!((told(900_000_000), told(-900_000_000)), (None, None));
        assert!(
            told(-3_600_000_000_000)
                .unwrap()
                .contains("set back by 3600 s")
        );
        assert!(told(2_000_000_000).unwrap().contains("set forward by 2 s"));
    }

    #[test]
    fn a_run_goes_on_by_the_clock_that_it_began_with() {
        let began = RunHeader {
            boot_id: "this".into(),
            started: 5_000_000_000_000,
            since_boot: since_boot() - 1_000,
            ..RunHeader::default()
        };
        let now = now_in(&began, "this");
        assert!(
            (1_000..60_000_000_000).contains(&(now - began.started)),
            "{now}"
        );
        assert!((now_in(&began, "another") - machine()).abs() < SET);
    }

    #[test]
    fn a_run_made_under_a_wrong_clock_is_no_older_than_it_is() {
        let now = Moment {
            boot_id: "this".into(),
            since_boot: 1_000,
            calendar: 1_700_000_000_000_000_000,
        };
        let run = |boot: &str, since_boot, started| RunHeader {
            boot_id: boot.into(),
            since_boot,
            started,
            ..RunHeader::default()
        };
        assert_eq!(now.age_of(&run("this", 400, 7)), 600, "1970");
        assert_eq!(now.age_of(&run("this", 400, i64::MAX)), 600, "the future");
        assert_eq!(now.age_of(&run("before", 400, now.calendar - 5)), 5);
        assert_eq!(
            now.age_of(&run("this", 0, now.calendar - 5)),
            5,
            "an old log"
        );
    }

    #[test]
    fn both_clocks_advance() {
        let a = point();
        let b = point();
        assert!(b.counter > a.counter);
        assert!(b.real >= a.real);
    }
}
