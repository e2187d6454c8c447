//! The waits for answers of units in other processes, while a request runs again.
//!
//! In: which program waits with which resource, and for which unit. Out: whether the wait goes on.
//! Invariant: a unit is given up only if every wait for it has lasted [`LONGEST_BEHIND`] since its
//! process made a call. So a program that begins to wait has all of that time, although another
//! program has waited for the same unit, or for another one.

use crate::resource::ResourceId;
use crate::unit::RecordedUnit;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The first bytes of a unit wait for the answer of an earlier unit in another process. The wait
/// ends when that process has made no call for so long, and no process has worked meanwhile. After
/// [`super::STALLED`] the request would end.
pub(super) const LONGEST_BEHIND: Duration = Duration::from_secs(1);

/// A program, and the resource whose next input comes behind a unit of another program. Threads of
/// a program wait for resources of their own.
pub(super) type Waiter = (usize, ResourceId);

#[derive(Debug, Clone, Copy)]
struct WaitBehind {
    unit: RecordedUnit,
    /// When it began, or was last prolonged.
    since: Instant,
    /// Processor time of all programs then.
    used: u64,
}

/// The present wait of each waiter.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitsBehind {
    all: HashMap<Waiter, WaitBehind>,
}

impl WaitsBehind {
    /// True if this waiter waits for the unit, and one that does has not waited for long.
    /// `progress`: when the process of the unit made its last call.
    pub fn are_young(
        &self,
        waiter: Waiter,
        unit: &RecordedUnit,
        progress: Option<Instant>,
        now: Instant,
    ) -> bool {
        let is_young = |wait: &WaitBehind| {
            let since = progress.map_or(wait.since, |last| last.max(wait.since));
            now.saturating_duration_since(since) < LONGEST_BEHIND
        };
        let mut same = self.all.values().filter(|wait| wait.unit == *unit);
        self.waits_for(waiter, unit).is_some() && same.any(is_young)
    }

    /// A wait begins, or is prolonged because a process has worked meanwhile. `used`: the processor
    /// time of all. False: none has, so the unit is given up.
    pub fn goes_on(&mut self, waiter: Waiter, unit: RecordedUnit, used: u64, now: Instant) -> bool {
        let own = self.waits_for(waiter, &unit);
        if own.is_some_and(|own| own.used == used) {
            return false;
        }
        let since = now;
        self.all.insert(waiter, WaitBehind { unit, since, used });
        true
    }

    fn waits_for(&self, waiter: Waiter, unit: &RecordedUnit) -> Option<&WaitBehind> {
        let own = self.all.get(&waiter);
        own.filter(|own| own.unit == *unit)
    }

    /// A unit was given up.
    pub fn leave(&mut self, unit: &RecordedUnit) {
        self.all.retain(|_, wait| wait.unit != *unit);
    }

    /// A unit has been answered, so the programs go on.
    pub fn clear(&mut self) {
        self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_BEHIND, Waiter, WaitsBehind};
    use crate::unit::RecordedUnit;
    use std::time::{Duration, Instant};

    const ONE: Waiter = (1, 10);
    const OTHER: Waiter = (2, 20);
    const SHORT: Duration = Duration::from_millis(100);

    fn unit(connection: usize) -> RecordedUnit {
        RecordedUnit::without_bytes(0, connection, (5, 6))
    }

    /// One waiter has waited for so long for a unit when the other one begins.
    fn waiting(first: RecordedUnit, second: RecordedUnit) -> (WaitsBehind, Instant) {
        let mut waits = WaitsBehind::default();
        let began = Instant::now();
        let later = began + (LONGEST_BEHIND - SHORT);
        assert!(waits.goes_on(ONE, first, 7, began));
        assert!(!waits.are_young(OTHER, &second, None, later));
        assert!(waits.goes_on(OTHER, second, 7, later));
        (waits, began + LONGEST_BEHIND)
    }

    #[test]
    fn the_wait_of_one_program_does_not_shorten_that_of_another_one() {
        let (x, y) = (unit(30), unit(31));
        // For two units, each wait has its own time.
        let (mut waits, over) = waiting(x, y);
        assert!(!waits.are_young(ONE, &x, None, over));
        assert!(!waits.goes_on(ONE, x, 7, over));
        waits.leave(&x);
        let end = over + (LONGEST_BEHIND - SHORT);
        assert!(waits.are_young(OTHER, &y, None, end - SHORT / 2));
        assert!(!waits.are_young(OTHER, &y, None, end));
        // One unit is given up for all, so it waits for the last one.
        let (waits, over) = waiting(x, x);
        assert!(waits.are_young(ONE, &x, None, over));
        assert!(!waits.are_young(ONE, &x, None, end + SHORT));
    }

    #[test]
    fn a_call_of_the_units_process_and_work_of_any_process_prolong_a_wait() {
        let x = unit(30);
        let (mut waits, over) = waiting(x, x);
        let long = over + LONGEST_BEHIND;
        assert!(waits.are_young(ONE, &x, Some(long - SHORT), long));
        assert!(!waits.are_young(ONE, &x, None, long));
        assert!(waits.goes_on(ONE, x, 8, long));
        assert!(waits.are_young(ONE, &x, None, long + SHORT));
        assert!(!waits.goes_on(ONE, x, 8, long + LONGEST_BEHIND));
        waits.clear();
        assert!(waits.goes_on(ONE, x, 8, long + LONGEST_BEHIND));
    }
}
