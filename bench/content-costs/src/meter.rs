//! Wall time, and the processor time of all threads of this process.

use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Threads of a pool look for work before they sleep. That processor time counts, too.
const SETTLING: Duration = Duration::from_millis(5);

/// The cost of some work.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Time until the work was done.
    pub wall: Duration,
    /// Processor time, until all threads sleep again.
    pub processor: Duration,
}

/// Does the work, and returns its cost and result.
pub fn measured<T>(work: impl FnOnce() -> T) -> (Cost, T) {
    let (began, before) = (Instant::now(), processor());
    let result = work();
    let wall = began.elapsed();
    thread::sleep(SETTLING);
    let processor = processor() - before;
    (Cost { wall, processor }, result)
}

fn processor() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec as u32)
}
