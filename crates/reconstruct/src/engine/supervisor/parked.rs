//! Calls that wait for their answers.
//!
//! The supervisor looks at them again behind each call that comes. A server with a process for each
//! session can have hundreds of them. So many are not all looked at each time.

use crate::engine::caller::NotifiedCall;
use std::time::{Duration, Instant};

/// So many parked calls are all looked at behind each call.
pub(super) const FEW_PARKED: usize = 32;

/// Of more, each is looked at again after this part of the time that it has waited.
const PART: u32 = 16;

/// The same, at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A call that waits.
#[derive(Debug)]
pub(super) struct ParkedCall {
    pub call: NotifiedCall,
    /// When it began to wait.
    pub since: Instant,
    looked: Instant,
}

impl ParkedCall {
    /// A call that was just looked at.
    pub fn new(call: NotifiedCall, since: Instant) -> ParkedCall {
        let looked = Instant::now();
        ParkedCall {
            call,
            since,
            looked,
        }
    }

    /// True if one of many calls is looked at again.
    pub fn is_due(&self) -> bool {
        self.looked.elapsed() >= pause(self.since.elapsed())
    }
}

/// How long a call is not looked at that has waited for so long.
fn pause(waited: Duration) -> Duration {
    (waited / PART).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::pause;
    use std::time::Duration;

    #[test]
    fn a_look_at_one_of_many_parked_calls_is_late_by_a_part_of_its_wait_at_most() {
        for (waited, most) in [(0, 0), (16, 1), (800, 50), (60_000, 50)] {
            let waited = Duration::from_millis(waited);
            assert_eq!(pause(waited), Duration::from_millis(most), "{waited:?}");
        }
    }
}
