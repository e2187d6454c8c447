//! How many descriptors the mount may have for the files of its callers.
//!
//! In: the limit of this process. Out: a slot for each file that the kernel remembers or that a
//! program has open, or `EMFILE`. Also a descriptor that becomes readable when few slots are left.
//!
//! Invariant: a part of the limit stays free. So the mount looks at callers, finishes an operation
//! that it has begun, and unmounts, also while programs get `EMFILE`. A caller gets it before its
//! operation has changed anything.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fewest descriptors that stay free: those of the threads that serve requests.
const FREE: usize = 64;

/// The descriptors for the files of callers.
#[derive(Debug)]
pub(crate) struct DescriptorBudget {
    most: usize,
    held: AtomicUsize,
    /// Rung when few slots are left.
    bell: OwnedFd,
}

/// One of them. Dropped, it is free again.
#[derive(Debug)]
pub(crate) struct DescriptorSlot(Arc<DescriptorBudget>);

impl DescriptorBudget {
    /// The budget within the present limit of this process.
    pub(crate) fn of_process() -> Result<Arc<DescriptorBudget>, Errno> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        DescriptorBudget::within(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// A quarter of the limit is for the processes that are known.
    fn within(limit: usize) -> Result<Arc<DescriptorBudget>, Errno> {
        Ok(Arc::new(DescriptorBudget {
            most: limit.saturating_sub(FREE.max(limit / 4)),
            held: AtomicUsize::new(0),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        }))
    }

    /// Readable when few slots are left.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Takes back what the bell said. Returns whether few slots are left.
    pub(crate) fn is_short(&self) -> bool {
        // An error means that it was not rung.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.held() > self.mark()
    }

    /// The number of slots that are taken.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// The number of slots from which on the kernel shall forget files.
    fn mark(&self) -> usize {
        self.most / 2
    }

    /// A slot for one more descriptor. `EMFILE` if all are taken.
    pub(crate) fn slot(self: &Arc<Self>) -> Result<DescriptorSlot, Errno> {
        let one_more = |held| (held < self.most).then_some(held + 1);
        let held = &self.held;
        let taken = held.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        match taken {
            Ok(before) => {
                if before == self.mark() {
                    // The counter of the descriptor cannot overflow.
                    let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
                }
                Ok(DescriptorSlot(Arc::clone(self)))
            }
            Err(_) => Err(Errno::MFILE),
        }
    }
}

impl Drop for DescriptorSlot {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_end_before_the_limit_and_come_back() {
        let budget = DescriptorBudget::within(100).unwrap();
        let mut slots: Vec<_> = (0..18).map(|_| budget.slot().unwrap()).collect();
        assert!(!budget.is_short());
        slots.extend((18..36).map(|_| budget.slot().unwrap()));
        assert_eq!(budget.slot().unwrap_err(), Errno::MFILE);
        assert!(budget.is_short());
        drop(slots);
        assert!(budget.slot().is_ok() && !budget.is_short());
        assert!(DescriptorBudget::within(10).unwrap().slot().is_err());
    }
}
