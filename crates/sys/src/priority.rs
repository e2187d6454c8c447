//! The priority of the calling thread or process, for processors and for disks.
//!
//! | who | processors | disks |
//! | --- | --- | --- |
//! | [`come_first`] | `SCHED_FIFO` 1 | as before |
//! | [`interrupt_nobody`] | `SCHED_BATCH` | as before |
//! | [`come_last`] | `SCHED_IDLE`, nice 19 | idle |
//! | [`come_back`] | `SCHED_OTHER`, nice 0 | by niceness |
//!
//! The kernel lets every process come last. To come back on processors takes root,
//! `CAP_SYS_NICE` or `ulimit -e 40`; on disks it takes nothing.
#![allow(unsafe_code)]

use libc::{c_int, c_long};
use std::fs;

/// `ioprio_set(2)`: one thread.
const WHO_THREAD: c_int = 1;

/// The class that is served while no other wants the disk.
const CLASS_IDLE: c_int = 3 << 13;

/// No class: the niceness decides.
const CLASS_NONE: c_int = 0;

/// Where the kernel groups processes by session (`CONFIG_SCHED_AUTOGROUP`), the niceness of the
/// group. The policies and niceness of its threads count within the group only.
const GROUP: &str = "/proc/self/autogroup";

/// Gives the calling thread the lowest real-time priority, so that it runs before all ordinary
/// threads. Threads that it starts do not inherit that. False if it is not allowed.
///
/// It takes root, `CAP_SYS_NICE` or `ulimit -r 1`. Threads with a higher real-time priority run
/// first.
pub fn come_first() -> bool {
    set_scheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)
}

/// Lets the calling thread wait for its turn when it is woken: it does not interrupt a thread that
/// runs (sched(7)). Its share of the processors stays the same. A thread with a real-time priority
/// keeps it.
pub fn interrupt_nobody() {
    // SAFETY: takes a number; 0 is the caller.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    if policy == c_long::from(libc::SCHED_OTHER) {
        set_scheduler(0, libc::SCHED_BATCH, 0);
    }
}

/// Gives the calling thread, and what it starts, the lowest priority. It runs while no other
/// process wants to, and its requests wait for those of all others. If the kernel refuses a step,
/// the others count: the niceness remains.
pub fn come_last() {
    // SAFETY: takes numbers; 0 is the caller.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
    set_scheduler(0, libc::SCHED_IDLE, 0);
    set_disk_class(0, CLASS_IDLE);
}

/// Gives the caller's session the lowest priority among sessions. Only for a process that began a
/// session of its own.
pub fn let_session_come_last() {
    // A kernel that does not group by session has no such file.
    let _ = fs::write(GROUP, "19");
}

/// True if the calling thread came last.
pub fn is_last() -> bool {
    // SAFETY: takes a number; 0 is the caller.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) == c_long::from(libc::SCHED_IDLE) }
}

/// Gives all threads of a process that came last an ordinary priority. False if the kernel refused
/// that for processors; for disks they have it in any case. They rest no more.
pub fn come_back() -> bool {
    crate::stop_rests();
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return false;
    };
    let names = threads.filter_map(|thread| thread.ok()?.file_name().into_string().ok());
    let mut all = true;
    for thread in names.filter_map(|name| name.parse::<c_int>().ok()) {
        set_disk_class(thread, CLASS_NONE);
        // SAFETY: takes numbers. A thread that has ended is refused.
        let nice = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, 0) };
        all &= set_scheduler(thread, libc::SCHED_OTHER, 0) && nice == 0;
    }
    // SAFETY: takes a number, and nothing; 0 is the caller.
    let leads = unsafe { libc::getsid(0) == libc::getpid() };
    if all && leads {
        let _ = fs::write(GROUP, "0");
    }
    all
}

/// Sets a thread's policy and real-time priority by the kernel's own call. 0 is the calling thread.
/// The kernel's `struct sched_param` is one number; musl has a larger one, and its function always
/// fails.
fn set_scheduler(thread: c_int, policy: c_int, priority: c_int) -> bool {
    // SAFETY: the priority outlives the call, which only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            thread,
            policy,
            &raw const priority,
        ) == 0
    }
}

/// Sets a thread's class for disks. A kernel without classes, and a filter that forbids the call,
/// leave it to the niceness.
fn set_disk_class(thread: c_int, class: c_int) {
    // SAFETY: takes numbers; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_THREAD, thread, class) };
}
