//! What supervisor and keeper share: the buffers that notifications are received into.
//!
//! Invariant: from the moment a receiver has taken a notification until after it has been answered, its id stands here. The
//! kernel delivers a notification once; if the supervisor dies in between, only this tells the keeper whom to answer.
#![allow(unsafe_code)]

use backstory_sys::kernel as sys;
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
const ROOM: usize = 256;

/// Place for one notification.
#[repr(C, align(128))]
struct Place([AtomicU64; ROOM / 8]);

/// The shared state; lives in a [`SharedMap`].
#[repr(C)]
pub struct Shared {
    places: [Place; RECEIVERS],
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

impl Shared {
    /// Waits for a notification in place `receiver`. It stays there until [`Shared::clear`].
    pub fn receive(&self, listener: BorrowedFd<'_>, receiver: usize) -> io::Result<Notification> {
        let place = &self.places[receiver].0;
        // SAFETY: the place is `ROOM` bytes of shared memory made of atomics, which the kernel may write at any time; it is
        // zeroed, because only this receiver uses it and clears it after each answer.
        unsafe { sys::receive(listener, place.as_ptr().cast_mut().cast()) }?;
        let word = |i: usize| place[i].load(Ordering::Relaxed);
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
        for word in &self.places[receiver].0 {
            word.store(0, Ordering::Release);
        }
    }

    /// The calls that stand in the first places: zero where none does.
    pub(super) fn in_hand<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|receiver| self.places[receiver].0[0].load(Ordering::Acquire))
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

/// Lets go on whoever a dead supervisor had received and not answered. Returns how many waited.
///
/// Only for the keeper, once the supervisor is known to be dead. An id that had been answered is refused by the kernel, harmlessly.
pub fn answer_pending(listener: BorrowedFd<'_>, shared: &Shared) -> usize {
    let places = shared.places.iter().map(|place| &place.0[0]);
    let mut rescued = 0;
    for id in places.chain(&shared.parked) {
        let value = id.swap(0, Ordering::AcqRel);
        if value != 0 && sys::answer_continue(listener, value).is_ok() {
            rescued += 1;
        }
    }
    for receiver in 0..RECEIVERS {
        shared.clear(receiver);
    }
    rescued
}

/// Lets every watched call go on, unseen, until no process is left that has the filter. Returns how many there were.
///
/// For the keeper after the supervisor's end. The filter can't be removed, so this is what keeps its processes alive.
pub fn serve_plain(listener: BorrowedFd<'_>, shared: &Shared) -> u64 {
    let mut served = 0;
    loop {
        let events = sys::poll(listener, libc::POLLIN, -1);
        if events & libc::POLLIN != 0 {
            if let Ok(call) = shared.receive(listener, 0) {
                let _ = sys::answer_continue(listener, call.id);
                shared.clear(0);
                served += 1;
            }
        } else if events & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
            return served;
        }
    }
}

/// Lets every call go on that waits now. Does not wait. False once no process is left that has the filter.
pub fn serve_waiting(listener: BorrowedFd<'_>, shared: &Shared) -> bool {
    loop {
        let events = sys::poll(listener, libc::POLLIN, 0);
        if events & libc::POLLIN == 0 {
            return events & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) == 0;
        }
        if let Ok(call) = shared.receive(listener, 0) {
            let _ = sys::answer_continue(listener, call.id); // its caller may have died
            shared.clear(0);
        }
    }
}

/// [`Shared`] in anonymous memory that stays shared over `fork`.
pub struct SharedMap(NonNull<Shared>);

// SAFETY: all of `Shared` is atomics.
unsafe impl Send for SharedMap {}
// SAFETY: as above.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    /// Maps it. To be done before supervisor and keeper part.
    pub fn create() -> io::Result<SharedMap> {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
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
            .map(SharedMap)
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

impl Deref for SharedMap {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: the mapping is as large and (page) aligned as `Shared` asks, zeroed at first, which is valid for atomics, and
        // lives as long as `self`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: maps exactly what `create` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Shared>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_calls_are_kept_waiting_than_the_keeper_can_answer() {
        let shared = SharedMap::create().unwrap();
        assert!((1..=PARKED as u64).all(|id| shared.park(id)));
        assert!(!shared.park(1000), "this one goes on at once");
        shared.unpark(7);
        assert!(shared.park(1000));
    }
}
