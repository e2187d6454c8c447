//! The times of CLOCK records, most of which count from the record before.
//!
//! In: the records of one thread in order. Out: the same with whole times. Invariant: behind a gap,
//! no time counts from one before the gap.

use crate::call::Call;
use backstory_abi::deep;
use std::collections::HashMap;

/// The last whole time of each clock of one thread.
#[derive(Debug, Default)]
pub(crate) struct ClockTimes {
    last: HashMap<u64, i64>,
}

impl ClockTimes {
    /// Records are missing here.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
    }

    /// Gives a CLOCK record its whole time; other calls stay. False: the time is unknown, because
    /// the record is missing that it counts from.
    pub(crate) fn complete(&mut self, call: &mut Call) -> bool {
        match call.number {
            deep::CLOCK => {}
            deep::GAP => {
                self.forget();
                return true;
            }
            _ => return true,
        }
        match call.b {
            deep::SINCE => {
                let Some(last) = self.last.get(&call.a) else {
                    return false;
                };
                call.result = last.wrapping_add(call.result);
            }
            deep::ASIDE => return true,
            _ => {}
        }
        self.last.insert(call.a, call.result);
        call.b = deep::WHOLE;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::ClockTimes;
    use crate::call::Call;
    use backstory_abi::deep;

    fn clock(clock: u64, how: u64, result: i64) -> Call {
        Call {
            number: deep::CLOCK,
            a: clock,
            b: how,
            result,
            ..Call::default()
        }
    }

    #[test]
    fn times_count_from_the_last_one_of_their_clock() {
        let mut times = ClockTimes::default();
        let mut whole = |mut call: Call| times.complete(&mut call).then_some(call.result);
        assert_eq!(whole(clock(0, deep::WHOLE, 100)), Some(100));
        assert_eq!(whole(clock(1, deep::WHOLE, 7)), Some(7));
        assert_eq!(whole(clock(0, deep::SINCE, 5)), Some(105));
        assert_eq!(whole(clock(0, deep::ASIDE, 900)), Some(900));
        assert_eq!(whole(clock(0, deep::SINCE, -1)), Some(104));
        assert_eq!(whole(clock(1, deep::SINCE, 1)), Some(8));
    }

    #[test]
    fn behind_a_gap_a_time_is_unknown_until_the_next_whole_one() {
        let mut times = ClockTimes::default();
        assert!(times.complete(&mut clock(0, deep::WHOLE, 100)));
        let gap = Call {
            number: deep::GAP,
            ..Call::default()
        };
        assert!(times.complete(&mut gap.clone()));
        assert!(!times.complete(&mut clock(0, deep::SINCE, 5)));
        assert!(times.complete(&mut clock(0, deep::WHOLE, 300)));
        assert!(times.complete(&mut clock(0, deep::SINCE, 5)));
    }
}
