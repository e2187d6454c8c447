//! How much of some work there is, and how much of it is done: what a bar shows.
//!
//! In: the amounts that the worker counts. Out: the same amounts, for another thread. Copies of a
//! [`WorkMeter`] count together.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts work, in a unit that the worker chooses.
#[derive(Debug, Clone, Default)]
pub struct WorkMeter(Arc<Amounts>);

#[derive(Debug, Default)]
struct Amounts {
    expected: AtomicU64,
    done: AtomicU64,
}

impl WorkMeter {
    /// Adds to the work that there is.
    pub fn expect(&self, amount: u64) {
        self.0.expected.fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds to the work that is done.
    pub fn add(&self, amount: u64) {
        self.0.done.fetch_add(amount, Ordering::Relaxed);
    }

    /// The work that there is. 0 until it is known.
    pub fn expected(&self) -> u64 {
        self.0.expected.load(Ordering::Relaxed)
    }

    /// The work that is done.
    pub fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// A reader that counts the bytes that are read from `from`.
    pub fn reading<R: Read>(&self, from: R) -> MeteredRead<R> {
        MeteredRead {
            from,
            meter: self.clone(),
        }
    }
}

/// A reader that counts its bytes.
#[derive(Debug)]
pub struct MeteredRead<R> {
    from: R,
    meter: WorkMeter,
}

impl<R: Read> Read for MeteredRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.from.read(buffer)?;
        self.meter.add(got as u64);
        Ok(got)
    }
}
