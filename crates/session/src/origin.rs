//! What the process was given at its start, before the language's runtime changed it.
//!
//! Rust ignores SIGPIPE and opens `/dev/null` for closed standard descriptors before `main`. The command has to get what we were
//! given, so a function of the loader's start-up list looks first. Everything else is unchanged when `record` is called and is
//! read there.
#![allow(unsafe_code)]

use backstory_sys::{self as sys, SignalSet};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

static SIGPIPE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static CLOSED: AtomicU8 = AtomicU8::new(0);
static LOOKED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    SIGPIPE.store(sys::disposition(libc::SIGPIPE), Ordering::Relaxed);
    for fd in 0..3 {
        // SAFETY: no pointers.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
    LOOKED.store(true, Ordering::Relaxed);
}

// SAFETY: the loader calls the functions of this section with C's convention; this one needs nothing that is not there yet.
#[used]
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))] // Miri makes none of the calls that it makes
static AT_START: extern "C" fn() = look;

/// Limits that recording could run into before the command does.
pub(crate) const RAISED: [libc::__rlimit_resource_t; 3] =
    [libc::RLIMIT_NOFILE, libc::RLIMIT_FSIZE, libc::RLIMIT_AS];

/// What the command inherits beside descriptors, directory and limits.
#[derive(Clone)]
pub(crate) struct Origin {
    /// Signals blocked when `record` was called.
    pub mask: SignalSet,
    /// What SIGPIPE did when the process started.
    pub sigpipe: libc::sighandler_t,
    /// Other signals that are ignored, as bits; the first is that of signal 1.
    pub ignored: u64,
    /// Standard descriptors that were closed then, as bits.
    pub closed: u8,
    /// Limits that we raise for ourselves.
    pub limits: [libc::rlimit; RAISED.len()],
    /// Interval timers, which an `execve` would have kept.
    pub timers: [libc::itimerval; 3],
}

impl Origin {
    /// Reads it, takes the timers away from this process, because they are the command's, and raises the limits as far as
    /// possible: what the command may use up is not for us to use. A file that may not grow is an error then, not our end.
    pub(crate) fn take() -> Origin {
        debug_assert!(
            LOOKED.load(Ordering::Relaxed),
            "the linker dropped the start-up function"
        );
        let timers = sys::timers();
        for (which, timer) in timers.iter().enumerate() {
            if timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0 {
                sys::stop_timer(which);
            }
        }
        let mask = sys::set_mask(&sys::all_signals());
        sys::set_mask(&mask);
        let ignored = ignored();
        sys::set_disposition(libc::SIGXFSZ, libc::SIG_IGN);
        Origin {
            mask,
            sigpipe: SIGPIPE.load(Ordering::Relaxed),
            ignored,
            closed: CLOSED.load(Ordering::Relaxed),
            limits: RAISED.map(sys::raise_limit),
            timers,
        }
    }
}

fn ignored() -> u64 {
    let is = |signal: i32| signal != libc::SIGPIPE && sys::disposition(signal) == libc::SIG_IGN;
    (1..=64)
        .filter(|s| is(*s))
        .fold(0, |set, s| set | 1 << (s - 1))
}
