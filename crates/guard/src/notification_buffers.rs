//! What supervisor and keeper share: the buffers that notifications are received into.
//!
//! Invariant: from the moment a receiver has taken a notification until after it has been answered, its id stands here. The
//! kernel delivers a notification once; if the supervisor dies in between, only this tells the keeper whom to answer.
#![allow(unsafe_code)]

use backstory_sys as sys;
use std::io;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Receivers that there can be.
pub const RECEIVERS: usize = 8;
/// Calls whose answer can wait for something else than a receiver.
pub const PARKED: usize = 256;
/// Room for one notification: more than any known kernel's.
const BUFFER_SIZE: usize = 256;

/// Place for one notification.
#[repr(C, align(128))]
struct Buffer([AtomicU64; BUFFER_SIZE / 8]);

/// The shared state; lives in a [`SharedMap`].
#[repr(C)]
pub struct NotificationBuffers {
    buffers: [Buffer; RECEIVERS],
    parked: [AtomicU64; PARKED],
    /// Calls received so far.
    pub received: AtomicU64,
}

/// A notification, copied out of its place.
#[derive(Debug, Clone, Copy)]
pub struct Notification {
    /// The kernel's number for it.
    pub id: u64,
    /// The thread that waits.
    pub tid: u32,
    /// System call number.
    pub nr: u32,
    /// `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Address after the instruction that made the call.
    pub ip: u64,
    /// Arguments.
    pub args: [u64; 6],
}

impl NotificationBuffers {
    /// Waits for a notification in place `receiver`. It stays there until [`Shared::clear`].
    pub fn receive(&self, listener: BorrowedFd<'_>, receiver: usize) -> io::Result<Notification> {
        let buffer = &self.buffers[receiver].0;
        // SAFETY: the place is `ROOM` bytes of shared memory made of atomics, which the kernel may write at any time; it is
        // zeroed, because only this receiver uses it and clears it after each answer.
        unsafe { sys::receive_notification(listener, buffer.as_ptr().cast_mut().cast()) }?;
        let word = |i: usize| buffer[i].load(Ordering::Relaxed);
        // struct seccomp_notif: id, (pid, flags), then seccomp_data: (nr, arch), ip, six arguments.
        Ok(Notification {
            id: word(0),
            tid: word(1) as u32,
            nr: word(2) as u32,
            arch: (word(2) >> 32) as u32,
            ip: word(3),
            args: std::array::from_fn(|i| word(4 + i)),
        })
    }

    /// Forgets what stands in a place: its call has been answered, or parked.
    pub fn clear(&self, receiver: usize) {
        for word in &self.buffers[receiver].0 {
            word.store(0, Ordering::Release);
        }
    }

    /// The calls that stand in the first places: zero where none does.
    pub(crate) fn in_progress<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|receiver| self.buffers[receiver].0[0].load(Ordering::Acquire))
    }

    /// Where the ids of received and parked calls stand; 0 where none does.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &AtomicU64> {
        let received = self.buffers.iter().map(|buffer| &buffer.0[0]);
        received.chain(&self.parked)
    }

    /// Keeps an id that will be answered later; false if there are too many already.
    pub fn park(&self, id: u64) -> bool {
        self.parked.iter().any(|p| {
            p.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Forgets a parked id: its call has been answered.
    pub fn unpark(&self, id: u64) {
        for p in &self.parked {
            let _ = p.compare_exchange(id, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// [`Shared`] in anonymous memory that stays shared over `fork`.
pub struct SharedBuffers(NonNull<NotificationBuffers>);

// SAFETY: all of `Shared` is atomics.
unsafe impl Send for SharedBuffers {}
// SAFETY: as above.
unsafe impl Sync for SharedBuffers {}

impl SharedBuffers {
    /// Maps it. To be done before supervisor and keeper part.
    pub fn create() -> io::Result<SharedBuffers> {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<NotificationBuffers>(),
                protection,
                flags,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(at.cast())
            .map(SharedBuffers)
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

impl Deref for SharedBuffers {
    type Target = NotificationBuffers;

    fn deref(&self) -> &NotificationBuffers {
        // SAFETY: the mapping is as large and (page) aligned as `Shared` asks, zeroed at first, which is valid for atomics, and
        // lives as long as `self`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedBuffers {
    fn drop(&mut self) {
        // SAFETY: maps exactly what `create` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<NotificationBuffers>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_calls_are_kept_waiting_than_the_keeper_can_answer() {
        let shared = SharedBuffers::create().unwrap();
        assert!((1..=PARKED as u64).all(|id| shared.park(id)));
        assert!(!shared.park(1000), "this one goes on at once");
        shared.unpark(7);
        assert!(shared.park(1000));
    }
}
