//! Signals: masks, dispositions, sending and receiving.
#![allow(unsafe_code)]

use crate::call::check;
use crate::process::Pid;
use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering};

/// A set of signals.
pub type SignalSet = libc::sigset_t;

/// The set of all signals.
pub fn all_signals() -> SignalSet {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Sets the calling thread's signal mask and returns the former one.
pub fn set_mask(mask: &SignalSet) -> SignalSet {
    let mut old = all_signals();
    // SAFETY: both point to initialised sets.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, &mut old) };
    old
}

/// Blocks exactly these signals, as bits. The lowest bit is signal 1. May be called between a fork
/// and an exec.
pub fn set_blocked(signals: u64) {
    let none = null_mut::<u64>();
    // SAFETY: the kernel reads a set of 8 bytes.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const signals,
            none,
            8,
        )
    };
}

/// A descriptor from which blocked signals can be read. It does not block.
pub fn signal_fd() -> io::Result<OwnedFd> {
    let set = all_signals();
    // SAFETY: the set is initialised; the result is a new descriptor that has no other owner.
    unsafe {
        let fd = check(libc::signalfd(
            -1,
            &set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Reads the next pending signal, if there is one.
pub fn read_signal(fd: BorrowedFd<'_>) -> Option<libc::signalfd_siginfo> {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    // SAFETY: a structure of plain integers.
    let mut info: libc::signalfd_siginfo = unsafe { zeroed() };
    // SAFETY: the buffer is as long as said.
    let n = unsafe { libc::read(fd.as_raw_fd(), (&raw mut info).cast(), SIZE) };
    (n == SIZE as isize).then_some(info)
}

/// Reads the next pending signal. True if it asks a program to end: SIGINT, SIGTERM or SIGHUP.
pub fn read_end_signal(fd: BorrowedFd<'_>) -> bool {
    let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    read_signal(fd).is_some_and(|info| ends.contains(&(info.ssi_signo as c_int)))
}

/// Lets the next signal of this number act on this process with its default action (a stop), as if
/// it had just arrived.
pub fn act_on_self(signal: c_int) {
    // SAFETY: sets are initialised by the calls; the default action of a stop signal stops the
    // process and returns after SIGCONT.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        let mut old_action: libc::sigaction = zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &action, &mut old_action);
        let mut set = zeroed();
        let mut old = zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, &mut old);
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, null_mut());
        libc::sigaction(signal, &old_action, null_mut());
    }
}

/// The signals of the terminal's keys that end programs (Ctrl-C, Ctrl-\\).
const KEYS: [c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// The actions of this process on the signals of [`KEYS`]. They are set again when this value is
/// dropped.
#[must_use = "the keys act again when this value is dropped"]
pub struct OutlivedInterrupts([libc::sigaction; KEYS.len()]);

/// Makes this process, and those that it starts meanwhile, ignore the terminal's keys.
pub fn outlive_interrupts() -> OutlivedInterrupts {
    OutlivedInterrupts(KEYS.map(|signal| {
        // SAFETY: actions are initialised here. Ignoring a signal needs no handler.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            let mut before: libc::sigaction = zeroed();
            action.sa_sigaction = libc::SIG_IGN;
            libc::sigaction(signal, &action, &mut before);
            before
        }
    }))
}

impl Drop for OutlivedInterrupts {
    fn drop(&mut self) {
        for (signal, before) in KEYS.into_iter().zip(&self.0) {
            // SAFETY: the kernel gave this action, so its handler is still a function of this
            // process.
            unsafe { libc::sigaction(signal, before, null_mut()) };
        }
    }
}

/// The pipe by which the handler wakes the thread of [`when_asked_to_end`].
static ASKED: AtomicI32 = AtomicI32::new(-1);

extern "C" fn asked(signal: c_int) {
    let number = signal as u8;
    // SAFETY: `write` may be called in a handler, and the byte outlives the call. The `errno` of
    // the interrupted code is restored.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(ASKED.load(Ordering::Relaxed), (&raw const number).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// Calls `end` with the signal's number when SIGINT, SIGTERM or SIGHUP arrives, on a thread of its
/// own. Then the process ends by the signal.
///
/// A signal that is ignored stays ignored. To be called once in a process. Processes that this one
/// starts are not affected.
pub fn when_asked_to_end(end: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let (heard, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let wait = move || {
        let mut number = [0];
        // Only an interrupted read returns no byte: the other end is never closed.
        while rustix::io::read(&heard, &mut number) != Ok(1) {}
        let signal = c_int::from(number[0]);
        end(signal);
        // SAFETY: the signal's default action ends the process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
        }
    };
    std::thread::Builder::new().spawn(wait)?;
    ASKED.store(tell.into_raw_fd(), Ordering::Relaxed);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: actions are initialised by the calls or here; the handler does only what a
        // handler may.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            libc::sigaction(signal, null(), &mut action);
            if action.sa_sigaction != libc::SIG_IGN {
                action.sa_sigaction = asked as *const () as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigemptyset(&mut action.sa_mask);
                libc::sigaction(signal, &action, null_mut());
            }
        }
    }
    Ok(())
}

/// Sends a signal. The target may just have ended, so callers may ignore an error.
pub fn kill(pid: Pid, signal: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Sends a signal to one thread of a process. It may just have ended, so callers may ignore an
/// error.
pub fn kill_thread(pid: Pid, tid: Pid, signal: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) }).map(drop)
}

/// Sends a signal with the value that it was queued with.
pub fn queue(pid: Pid, signal: c_int, value: u64) -> io::Result<()> {
    let value = libc::sigval {
        sival_ptr: value as *mut libc::c_void,
    };
    // SAFETY: the pointer is never followed, it is a number in transit.
    check(unsafe { libc::sigqueue(pid, signal, value) }).map(drop)
}

/// The kernel's own structure. libc hides the signals that it uses itself, but a caller of
/// backstory may have set them to be ignored.
#[repr(C)]
struct KernelAction {
    handler: libc::sighandler_t,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// The current disposition of a signal.
pub fn disposition(signal: c_int) -> libc::sighandler_t {
    let mut action = KernelAction {
        handler: libc::SIG_DFL,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    // SAFETY: only reads into a structure of the kernel's layout.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            null::<KernelAction>(),
            &mut action,
            8,
        )
    };
    action.handler
}

/// Sets a signal to be ignored or to its default. May be called between a vfork and an exec.
pub fn set_disposition(signal: c_int, handler: libc::sighandler_t) {
    debug_assert!(handler == libc::SIG_IGN || handler == libc::SIG_DFL);
    let action = KernelAction {
        handler,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    // SAFETY: the action names no handler, so no code can be run by it; the structure has the
    // kernel's layout.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            &action,
            null_mut::<KernelAction>(),
            8,
        )
    };
}

/// Ignores the signals of the keys that interrupt and quit. For a process whose child has the
/// terminal.
pub fn ignore_keys() {
    for signal in KEYS {
        set_disposition(signal, libc::SIG_IGN);
    }
}

/// The empty set of signals.
pub fn no_signals() -> SignalSet {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// True if a process sent this signal, and not the kernel.
pub fn sent_by_process(info: &libc::signalfd_siginfo) -> bool {
    matches!(
        info.ssi_code,
        libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL | libc::SI_MESGQ
    )
}

#[cfg(test)]
mod tests {
    use super::{disposition, outlive_interrupts};

    #[test]
    #[cfg_attr(miri, ignore = "the kernel's actions")]
    fn the_keys_act_as_before_when_a_process_has_outlived_them() {
        let now = || [libc::SIGINT, libc::SIGQUIT].map(disposition);
        let before = now();
        let outlived = outlive_interrupts();
        assert_eq!(now(), [libc::SIG_IGN; 2]);
        drop(outlived);
        assert_eq!(now(), before);
    }
}
