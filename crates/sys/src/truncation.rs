//! Survives an arena that was cut short.
//!
//! The arena is a file that every program of the run can open, and can truncate. Touching a page beyond the end of a file raises SIGBUS,
//! which would kill supervisor, keeper and launcher one after the other, and with them the command's exit status. Instead such a page
//! becomes one of zeros of this process alone: what stood there is lost, and is told as torn.
//!
//! Invariant: only pages of the arena are replaced; any other SIGBUS kills as it always did.
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

/// From now on, in this process and in the calling thread and those that it starts. For the processes beside the command only: the
/// caller of `record` may have plans of its own for the signal.
pub fn survive(base: *const u8, length: usize) {
    if crate::signal::disposition(libc::SIGBUS) == libc::SIG_IGN {
        return; // the command is to find it so, and there is no way to have it both ways
    }
    BASE.store(base as usize, Ordering::Release);
    LENGTH.store(length, Ordering::Release);
    PAGE.store(page_size(), Ordering::Release);
    // SAFETY: the handler only does what is allowed in one; structure and set are initialised before they are read.
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

/// How many pages were not there when they were needed.
pub fn replaced() -> u64 {
    REPLACED.load(Ordering::Acquire)
}

extern "C" fn replace(signal: c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid structure. The pages that are mapped anew are this process's mapping of the arena, which
    // nothing refers to but raw pointers and atomics, for which zeros are valid.
    unsafe {
        let (code, at) = ((*info).si_code, (*info).si_addr() as usize);
        if code <= 0 {
            return; // sent by somebody: not for us, who ignore what is meant for the command
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
            libc::signal(signal, libc::SIG_DFL); // the access is made again, and kills
            return;
        }
        REPLACED.fetch_add(1, Ordering::AcqRel);
    }
}
