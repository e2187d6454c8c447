//! The numbers of open files in the records of a source.
//!
//! A source does not learn the descriptors of processes. It gives each open file a number of its
//! own, which is unique in the run.

use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of open files. They start above the descriptors of programs.
#[derive(Debug)]
pub struct OpenNumbers(AtomicU64);

impl Default for OpenNumbers {
    fn default() -> Self {
        OpenNumbers(AtomicU64::new(0))
    }
}

impl OpenNumbers {
    const FIRST: u64 = 1 << 20;
    const COUNT: u64 = (i32::MAX as u64) - OpenNumbers::FIRST;

    /// A number that no open file has. They repeat after two thousand million opens.
    pub fn next(&self) -> i32 {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        (OpenNumbers::FIRST + count % OpenNumbers::COUNT) as i32
    }
}
