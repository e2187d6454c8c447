//! The state of the process at its start, before Rust's runtime changed it.
//!
//! Rust ignores SIGPIPE and opens `/dev/null` for closed standard descriptors before `main`. The
//! command must inherit the original state, so a function in the loader's start-up list reads it
//! first. It reads the disposition of SIGCHLD, too, because [`observe_children`] changes that. All
//! other state is unchanged when `record` is called and is read there.
#![allow(unsafe_code)]

use backstory_sys::{self as sys, SignalSet};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

static SIGPIPE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static SIGCHLD: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static CLOSED: AtomicU8 = AtomicU8::new(0);
static LOOKED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    SIGPIPE.store(sys::disposition(libc::SIGPIPE), Ordering::Relaxed);
    SIGCHLD.store(sys::disposition(libc::SIGCHLD), Ordering::Relaxed);
    for fd in 0..3 {
        // SAFETY: no pointers.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
    LOOKED.store(true, Ordering::Relaxed);
}

// SAFETY: the loader calls the functions of this section with C's convention. This one needs
// nothing that is not initialized yet.
#[used]
// Miri does not support the calls of this function
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = look;

/// Makes this process learn how its children end. A caller may have SIGCHLD ignored, as daemons and
/// Perl scripts do, and that is inherited. The kernel then discards the status of each child, and
/// sends no signal at its end. A recorded command gets the caller's disposition nevertheless.
pub fn observe_children() {
    sys::set_disposition(libc::SIGCHLD, libc::SIG_DFL);
}

/// Limits that the recording could reach before the command does.
pub(crate) const RAISED: [sys::LimitNumber; 3] =
    [libc::RLIMIT_NOFILE, libc::RLIMIT_FSIZE, libc::RLIMIT_AS];

/// The state that the command inherits beside descriptors, directory and limits.
#[derive(Clone)]
pub(crate) struct InheritedState {
    /// Signals that were blocked when `record` was called.
    pub mask: SignalSet,
    /// The disposition of SIGPIPE when the process started.
    pub sigpipe: libc::sighandler_t,
    /// Other ignored signals, as bits. The lowest bit is signal 1.
    pub ignored: u64,
    /// Standard descriptors that were closed at the start, as bits.
    pub closed: u8,
    /// Limits that the recording raises for itself.
    pub limits: [libc::rlimit; RAISED.len()],
    /// Interval timers, which an `execve` would have preserved.
    pub timers: [libc::itimerval; 3],
    /// The personality that the command gets, if it is another one than this process has.
    pub personality: Option<libc::c_ulong>,
}

impl InheritedState {
    /// Reads this state, takes the timers away from this process, and raises the limits where
    /// permitted. The timers belong to the command, and so do its resources. With SIGXFSZ ignored,
    /// a file that may not grow gives an error instead of ending this process.
    pub(crate) fn take() -> InheritedState {
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
        observe_children();
        sys::set_disposition(libc::SIGXFSZ, libc::SIG_IGN);
        InheritedState {
            mask,
            sigpipe: SIGPIPE.load(Ordering::Relaxed),
            ignored,
            closed: CLOSED.load(Ordering::Relaxed),
            limits: RAISED.map(sys::raise_limit),
            timers,
            personality: None,
        }
    }
}

fn ignored() -> u64 {
    let at_start = |signal: i32| match signal {
        libc::SIGCHLD => SIGCHLD.load(Ordering::Relaxed),
        other => sys::disposition(other),
    };
    (1..=64)
        .filter(|&signal| signal != libc::SIGPIPE && at_start(signal) == libc::SIG_IGN)
        .fold(0, |set, s| set | 1 << (s - 1))
}
