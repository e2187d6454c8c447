//! Survives an arena that a program has cut short.
//!
//! Every program of the run can open the arena's file and truncate it. An access beyond the end of
//! a file raises SIGBUS. The signal would kill supervisor, keeper and launcher one after the other,
//! and the command's exit status would be lost. Instead the page is replaced by one of zeros, in
//! this process alone. The records on it are lost, and are reported as torn.
//!
//! Invariant: only pages of the arena are replaced. Any other SIGBUS kills the process.
#![allow(unsafe_code)]

use rustix::param::page_size;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static BASE: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static PAGE: AtomicUsize = AtomicUsize::new(4096);
static REPLACED: AtomicU64 = AtomicU64::new(0);

/// Handles SIGBUS from now on, in the calling thread and those that it starts. To be called only in
/// the processes beside the command: the caller of `record` may use the signal itself.
pub fn survive(base: *const u8, length: usize) {
    if crate::signal::disposition(libc::SIGBUS) == libc::SIG_IGN {
        // The command must find the signal ignored, so it cannot be handled here.
        return;
    }
    BASE.store(base as usize, Ordering::Release);
    LENGTH.store(length, Ordering::Release);
    PAGE.store(page_size(), Ordering::Release);
    // SAFETY: the handler only does what is allowed in one; structure and set are initialised
    // before they are read.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction =
            replace as extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &action, null_mut());
        let mut set = MaybeUninit::zeroed().assume_init();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGBUS);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, null_mut());
    }
}

/// The number of pages that were replaced in the mapping at `base`; 0 for one that [`survive`] did
/// not register.
pub fn replaced(base: *const u8) -> u64 {
    if BASE.load(Ordering::Acquire) == base as usize {
        REPLACED.load(Ordering::Acquire)
    } else {
        0
    }
}

/// Forgets the mapping at `base`, which is about to be unmapped: a later mapping may lie there.
pub fn forget(base: *const u8) {
    let registered = base as usize;
    if BASE
        .compare_exchange(registered, 0, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
    {
        LENGTH.store(0, Ordering::Release);
        REPLACED.store(0, Ordering::Release);
    }
}

extern "C" fn replace(signal: c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid structure. The replaced pages belong to this process's
    // mapping of the arena. Only raw pointers and atomics refer to them, and zeros are valid for
    // both.
    unsafe {
        let (code, at) = ((*info).si_code, (*info).si_addr() as usize);
        if code <= 0 {
            // A process sent the signal to the command. The processes beside it ignore it.
            return;
        }
        let start = at & !(PAGE.load(Ordering::Acquire) - 1);
        let inside =
            start.wrapping_sub(BASE.load(Ordering::Acquire)) < LENGTH.load(Ordering::Acquire);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let size = PAGE.load(Ordering::Acquire);
        if !inside
            || libc::mmap(start as *mut libc::c_void, size, protection, flags, -1, 0)
                == libc::MAP_FAILED
        {
            // The access is made again, and kills the process.
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        REPLACED.fetch_add(1, Ordering::AcqRel);
    }
}
