//! How much of deep logs was read, for another thread that shows it.
//!
//! In: the chunks that readers decompress. Out: numbers of bytes of the file. A reader that goes
//! over the whole log announces that first, so several passes have one sum.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of chunks that were read, and that are to be read. Copies count together.
#[derive(Debug, Clone, Default)]
pub struct ReadMeter(Arc<Amounts>);

#[derive(Debug, Default)]
struct Amounts {
    expected: AtomicU64,
    done: AtomicU64,
}

impl ReadMeter {
    pub(crate) fn expect(&self, bytes: u64) {
        self.0.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The bytes of all passes that have begun. 0 before the first one.
    pub fn expected(&self) -> u64 {
        self.0.expected.load(Ordering::Relaxed)
    }

    /// Those of them that were read. Readers of single chunks count, too, so this can be more.
    pub fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }
}
