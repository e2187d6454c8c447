//! The buffers that notifications are received into. Supervisor and keeper share them.
//!
//! Invariant: the id of a notification is in a buffer from the moment a receiver has it until its
//! response has been sent. The kernel delivers a notification once. If the supervisor dies in
//! between, only the buffer tells the keeper to which call it must respond.
#![allow(unsafe_code)]

use backstory_sys as sys;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Receivers that there can be.
pub const RECEIVERS: usize = 8;
/// Calls that can wait for another thread than a receiver.
pub const PARKED: usize = 256;
/// Bytes of a buffer: more than the notification of any known kernel.
const BUFFER_SIZE: usize = 256;

/// The buffer of one receiver.
#[repr(C, align(128))]
struct Buffer([AtomicU64; BUFFER_SIZE / 8]);

/// The shared memory; lives in [`SharedBuffers`].
#[repr(C)]
pub struct NotificationBuffers {
    buffers: [Buffer; RECEIVERS],
    parked: [AtomicU64; PARKED],
    /// Calls received so far.
    pub received: AtomicU64,
}

/// A notification, copied out of its buffer.
#[derive(Debug, Clone, Copy)]
pub struct Notification {
    /// The kernel's id of the notification.
    pub id: u64,
    /// The thread whose call waits.
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
    /// Waits for a notification in the buffer of `receiver`. It stays there until
    /// [`NotificationBuffers::clear`].
    ///
    /// # Errors
    /// Those of `SECCOMP_IOCTL_NOTIF_RECV`; see seccomp_unotify(2).
    pub fn receive(&self, listener: BorrowedFd<'_>, receiver: usize) -> io::Result<Notification> {
        let buffer = &self.buffers[receiver].0;
        // SAFETY: the buffer is `BUFFER_SIZE` bytes of shared memory made of atomics, which the
        // kernel may write at any time. It is zeroed: only this receiver uses it, and clears it
        // after each response.
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

    /// Clears a buffer: the response has been sent, or the call is parked.
    pub fn clear(&self, receiver: usize) {
        for word in &self.buffers[receiver].0 {
            word.store(0, Ordering::Release);
        }
    }

    /// The ids in the first `N` buffers; 0 for an empty one.
    pub(crate) fn in_progress<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|receiver| self.buffers[receiver].0[0].load(Ordering::Acquire))
    }

    /// Where the ids of received and parked calls stand; 0 where none does.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &AtomicU64> {
        let received = self.buffers.iter().map(|buffer| &buffer.0[0]);
        received.chain(&self.parked)
    }

    /// Remembers a call that another thread responds to. False if too many calls are parked.
    pub fn park(&self, id: u64) -> bool {
        self.parked.iter().any(|p| {
            p.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Forgets a parked call: the response has been sent.
    pub fn unpark(&self, id: u64) {
        for p in &self.parked {
            let _ = p.compare_exchange(id, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// [`NotificationBuffers`] in memory that several processes share.
pub struct SharedBuffers(NonNull<NotificationBuffers>);

// SAFETY: all fields of the buffers are atomics.
unsafe impl Send for SharedBuffers {}
// SAFETY: as above.
unsafe impl Sync for SharedBuffers {}

impl SharedBuffers {
    /// Maps memory that stays shared over `fork`. To be called before supervisor and keeper are
    /// forked.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn create() -> io::Result<SharedBuffers> {
        SharedBuffers::map(libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)
    }

    /// Maps memory that a process without common ancestor shares by the descriptor.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and mmap(2).
    pub fn create_in_file() -> io::Result<(SharedBuffers, OwnedFd)> {
        let file = memfd_create("backstory-guard", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, size_of::<NotificationBuffers>() as u64)?;
        Ok((SharedBuffers::of_file(file.as_fd())?, file))
    }

    /// Maps the memory of a file of [`SharedBuffers::create_in_file`].
    ///
    /// # Errors
    /// Those of mmap(2), and `InvalidInput` for a file that is too short.
    pub fn of_file(file: BorrowedFd<'_>) -> io::Result<SharedBuffers> {
        if (fstat(file)?.st_size as usize) < size_of::<NotificationBuffers>() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        SharedBuffers::map(libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(flags: i32, file: i32) -> io::Result<SharedBuffers> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<NotificationBuffers>(),
                protection,
                flags,
                file,
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
        // SAFETY: the mapping has the size of the type, is page-aligned, and lives as long as
        // `self`. It is zeroed at first, which is valid for atomics. A file was checked to be long
        // enough, and no process makes it shorter.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedBuffers {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<NotificationBuffers>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_a_file_are_shared_with_a_process_that_has_its_descriptor() {
        let (shared, file) = SharedBuffers::create_in_file().unwrap();
        let keepers = SharedBuffers::of_file(file.as_fd()).unwrap();
        assert!(shared.park(7));
        assert!(
            keepers
                .unanswered()
                .any(|id| id.load(Ordering::Acquire) == 7)
        );
        let empty = std::fs::File::open("/dev/null").unwrap();
        assert!(SharedBuffers::of_file(empty.as_fd()).is_err());
    }

    #[test]
    fn no_more_calls_are_parked_than_the_keeper_can_respond_to() {
        let shared = SharedBuffers::create().unwrap();
        assert!((1..=PARKED as u64).all(|id| shared.park(id)));
        assert!(!shared.park(1000), "this one goes on at once");
        shared.unpark(7);
        assert!(shared.park(1000));
    }
}
