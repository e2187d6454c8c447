//! Whether an open file was the only one that could write to its inode.
//!
//! The kernel does not say which process wrote what the kernel writes by itself: pages of mappings,
//! and with passthrough all contents. It is known if no other open file could write meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The open files of an inode that can write to it.
#[derive(Debug, Default)]
pub(crate) struct WriterCount {
    counts: Mutex<Counts>,
    mapped: AtomicBool,
}

#[derive(Debug, Default)]
struct Counts {
    open: u32,
    /// Those that have ended, too.
    ever: u64,
}

/// An open file that can write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedWriter {
    /// Its number among all of the inode.
    number: u64,
    /// No other one was open when it was opened.
    began_alone: bool,
}

impl WriterCount {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an open file that can write.
    pub(crate) fn begin(&self) -> CountedWriter {
        let mut counts = self.counts();
        counts.open += 1;
        counts.ever += 1;
        CountedWriter {
            number: counts.ever,
            began_alone: counts.open == 1,
        }
    }

    /// Counts the end of such an open file.
    pub(crate) fn end(&self) {
        let mut counts = self.counts();
        counts.open = counts.open.saturating_sub(1);
    }

    /// True while one open file alone can write.
    pub(crate) fn is_one(&self) -> bool {
        self.counts().open == 1
    }

    /// True if no other open file could write since this one was opened.
    pub(crate) fn was_alone(&self, writer: CountedWriter) -> bool {
        writer.began_alone && self.counts().ever == writer.number
    }

    /// Notes that pages of a mapping reached the file.
    pub(crate) fn note_mapped(&self) {
        self.mapped.store(true, Ordering::Release);
    }

    /// True if pages of a mapping ever reached the file.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapped.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_not_alone_after_another_one_even_if_that_one_has_ended() {
        let writers = WriterCount::default();
        let first = writers.begin();
        assert!(writers.was_alone(first) && writers.is_one());
        let second = writers.begin();
        assert!(!writers.was_alone(first) && !writers.is_one());
        writers.end();
        assert!(writers.is_one());
        assert!(!writers.was_alone(first) && !writers.was_alone(second));
    }

    #[test]
    fn a_writer_that_comes_after_the_end_of_all_others_is_alone() {
        let writers = WriterCount::default();
        writers.begin();
        writers.end();
        assert!(!writers.is_one());
        let second = writers.begin();
        assert!(writers.was_alone(second));
    }
}
