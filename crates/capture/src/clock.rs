//! The log's clock and how it relates to the calendar.

use backstory_eventlog::run::ClockPoint;
use rustix::time::{ClockId, clock_gettime};

/// The counter that slots are stamped with: the time-stamp counter where there is one.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub fn counter() -> u64 {
    // SAFETY: every x86-64 has the instruction, and nothing in this process forbids it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter that slots are stamped with.
#[cfg(not(target_arch = "x86_64"))]
pub fn counter() -> u64 {
    nanoseconds(ClockId::MonotonicRaw) as u64
}

/// Nanoseconds since 1970.
pub fn now() -> i64 {
    nanoseconds(ClockId::Realtime)
}

/// Nanoseconds of a clock that never jumps.
pub(crate) fn monotonic() -> i64 {
    nanoseconds(ClockId::Monotonic)
}

/// Both clocks, read together: of three tries the one in which the least time passed between the readings.
pub fn point() -> ClockPoint {
    let mut best = (u64::MAX, ClockPoint { counter: 0, real: 0 });
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

fn nanoseconds(clock: ClockId) -> i64 {
    let t = clock_gettime(clock);
    t.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_advance() {
        let a = point();
        let b = point();
        assert!(b.counter > a.counter);
        assert!(b.real >= a.real);
    }
}
