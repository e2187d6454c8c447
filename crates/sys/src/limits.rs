//! Resource limits and interval timers.
#![allow(unsafe_code)]

use std::mem::zeroed;
use std::ptr::null_mut;

/// The number of a resource limit (`RLIMIT_NOFILE`), as this C library takes it.
#[cfg(target_env = "gnu")]
pub type LimitNumber = libc::__rlimit_resource_t;
/// The number of a resource limit (`RLIMIT_NOFILE`), as this C library takes it.
#[cfg(not(target_env = "gnu"))]
pub type LimitNumber = std::ffi::c_int;

/// The values of this process's interval timers. An `execve` keeps the timers, a fork does not.
pub fn timers() -> [libc::itimerval; 3] {
    // SAFETY: plain integers, filled by the kernel.
    unsafe {
        let mut timers: [libc::itimerval; 3] = zeroed();
        for (which, timer) in timers.iter_mut().enumerate() {
            libc::syscall(libc::SYS_getitimer, which, timer);
        }
        timers
    }
}

/// Stops one of this process's interval timers.
pub fn stop_timer(which: usize) {
    // SAFETY: the structure is read only.
    unsafe {
        let off: libc::itimerval = zeroed();
        libc::syscall(
            libc::SYS_setitimer,
            which,
            &off,
            null_mut::<libc::itimerval>(),
        );
    }
}

/// Raises a soft limit to its hard limit. Returns the former limits.
pub fn raise_limit(resource: LimitNumber) -> libc::rlimit {
    let mut was = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is a plain local.
    unsafe { libc::getrlimit(resource, &mut was) };
    if was.rlim_cur != was.rlim_max {
        let raised = libc::rlimit {
            rlim_cur: was.rlim_max,
            ..was
        };
        set_limit(resource, &raised);
    }
    was
}

/// The number of descriptors that this process may still open, counted up to `most`.
pub fn free_descriptors(most: usize) -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is a plain local.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let end = libc::c_int::try_from(limit.rlim_cur).unwrap_or(libc::c_int::MAX);
    // SAFETY: no pointers. A number without an open file is an error, and nothing else.
    let is_free = |fd: &libc::c_int| unsafe { libc::fcntl(*fd, libc::F_GETFD) } < 0;
    (0..end).filter(is_free).take(most).count()
}

/// Sets a limit. May be called between a vfork and an exec.
pub fn set_limit(resource: LimitNumber, limit: &libc::rlimit) {
    // SAFETY: the structure is only read. A refusal leaves the limit, which was possible before, as
    // it is.
    unsafe { libc::setrlimit(resource, limit) };
}
