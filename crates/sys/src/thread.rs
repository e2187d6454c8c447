//! The calling thread: its id, its priority, and the signal that interrupts it.
#![allow(unsafe_code)]

use libc::c_int;
use std::mem::MaybeUninit;

/// The calling thread's id.
pub fn gettid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() as u32 }
}

/// The calling thread runs before all ordinary ones as soon as it has something to do; what it starts does not. False where it may not.
///
/// It takes root, `CAP_SYS_NICE` or `ulimit -r 1`. The lowest real-time priority: whoever else has one goes first.
pub fn come_first() -> bool {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call, which only reads it; 0 is the calling thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &lowest) == 0
    }
}

/// The signal that makes a receiver look up from a blocking call.
pub fn wake_signal() -> c_int {
    libc::SIGRTMIN() + 5
}

/// Gives the wake signal a handler that does nothing and interrupts blocking calls.
pub fn prepare_wake_signal() {
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: all-zero bytes are a valid `sigaction`; the handler does nothing, so it is safe at any point.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
        libc::sigaction(wake_signal(), &action, std::ptr::null_mut());
    }
}

/// Interrupts a thread of ours.
pub fn interrupt(tid: u32) {
    // SAFETY: takes no pointers; the signal has a handler (`prepare_wake_signal`), and a thread id that no longer exists in
    // this process is refused by the kernel.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, wake_signal()) };
}

/// Blocks every signal in the calling thread, but for the wake signal, and the one of an arena cut short.
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
