//! The calling thread: its id, and the signal that interrupts it.
#![allow(unsafe_code)]

use libc::c_int;
use std::mem::MaybeUninit;

/// The calling thread's id.
pub fn gettid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() as u32 }
}

/// The signal that interrupts a receiver in a blocking call.
pub fn wake_signal() -> c_int {
    libc::SIGRTMIN() + 5
}

/// Gives the wake signal a handler that does nothing and interrupts blocking calls.
pub fn prepare_wake_signal() {
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: all-zero bytes are a valid `sigaction`; the handler does nothing, so it is safe at
    // any point.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
        libc::sigaction(wake_signal(), &action, std::ptr::null_mut());
    }
}

/// Interrupts a thread of this process.
pub fn interrupt(tid: u32) {
    // SAFETY: takes no pointers. The signal has a handler (`prepare_wake_signal`), and the kernel
    // refuses a thread id that is not of this process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, wake_signal()) };
}

/// Blocks every signal in the calling thread but the wake signal and SIGBUS, which an arena that
/// was cut short raises.
pub fn block_signals() {
    // SAFETY: the set is initialised by `sigfillset` before it is used.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigfillset(&mut set);
        libc::sigdelset(&mut set, wake_signal());
        libc::sigdelset(&mut set, libc::SIGBUS);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}
