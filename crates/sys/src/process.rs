//! The calling process: its identity, its name, its program.
#![allow(unsafe_code)]

use crate::call::check;
use std::ffi::{CStr, c_int};
use std::io;
use std::ptr::null;

/// A process id.
pub type Pid = i32;

/// Makes this process leave no core file, however it ends.
pub fn no_core() {
    // An error is harmless: it means one core file too many.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Sets the name of the process that `ps` shows.
pub fn set_name(name: &CStr) {
    // SAFETY: the kernel copies at most 16 bytes of a NUL-terminated string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// True if the thread exists or is a zombie.
pub fn thread_exists(pid: Pid, tid: Pid) -> bool {
    // SAFETY: no pointers; signal 0 only asks.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Executes another program. Returns only if that fails.
pub fn exec(path: &CStr, argv: &[*const libc::c_char]) -> io::Error {
    debug_assert_eq!(argv.last(), Some(&null()));
    // SAFETY: argv ends with a null pointer and its strings live; the environment is the process's
    // own.
    unsafe { libc::execv(path.as_ptr(), argv.as_ptr()) };
    io::Error::last_os_error()
}

/// Leaves the session, its terminal and the process group.
pub fn leave_session() {
    // SAFETY: no pointers. A group's leader can't, and need not.
    unsafe { libc::setsid() };
}

/// Waits until each signal to a process group that this process has got was sent to all members.
///
/// The kernel sends such a signal under a lock for readers (`tasklist_lock` in `kernel/signal.c`),
/// and setpgid(2) takes it as a writer. The call changes nothing: this process stays in its group.
pub fn await_signals_to_group() {
    // SAFETY: no pointers.
    unsafe { libc::setpgid(0, libc::getpgrp()) };
}

/// The id of this process.
pub fn own_pid() -> Pid {
    std::process::id() as Pid
}

/// The id of the parent; `None` if the parent is in another pid namespace.
pub fn parent() -> Option<Pid> {
    rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get())
}

/// The session of a process; 0 if the leader is in another pid namespace.
///
/// # Errors
/// There is no such process.
pub fn session_of(pid: Pid) -> io::Result<Pid> {
    // SAFETY: no pointers. rustix fails an assertion if the id is 0.
    check(unsafe { libc::getsid(pid) })
}

/// The process group of a process; 0 if the leader is in another pid namespace.
///
/// # Errors
/// There is no such process.
pub fn group_of(pid: Pid) -> io::Result<Pid> {
    // SAFETY: no pointers. rustix fails an assertion if the id is 0.
    check(unsafe { libc::getpgid(pid) })
}

/// The resources that the ended children of this process used, and their ended children.
///
/// Returns user time in ns, system time in ns, and the largest resident set of one process in
/// bytes.
pub fn children_usage() -> (i64, i64, u64) {
    // SAFETY: all zero bytes are a valid rusage, which the kernel fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1000;
    // The kernel counts memory in KiB.
    let peak = usage.ru_maxrss.unsigned_abs() * 1024;
    (ns(usage.ru_utime), ns(usage.ru_stime), peak)
}

/// The text of an errno, as a shell prints it.
pub fn describe(errno: c_int) -> String {
    let mut buffer = [0; 256];
    // SAFETY: the buffer is as long as said and stays NUL-terminated.
    unsafe {
        if libc::strerror_r(errno, buffer.as_mut_ptr(), buffer.len() - 1) != 0 {
            return format!("error {errno}");
        }
        CStr::from_ptr(buffer.as_ptr())
            .to_string_lossy()
            .into_owned()
    }
}

/// The number of processors that this process may use.
pub fn processors() -> usize {
    let affinity = rustix::thread::sched_getaffinity(None);
    affinity.map_or(1, |set| set.count() as usize)
}

/// Executes another program with this environment. Both lists end with a null pointer. Returns only
/// if that fails.
pub fn exec_with(
    path: &CStr,
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
) -> io::Error {
    debug_assert!(argv.last() == Some(&null()) && envp.last() == Some(&null()));
    // SAFETY: both lists end with a null pointer and their strings live.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    io::Error::last_os_error()
}

/// The programs that this thread executes get the same addresses each time.
pub fn keep_addresses() -> io::Result<()> {
    let wanted = personality(0xffff_ffff)? | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    personality(wanted).map(drop)
}

/// The personality of this thread with [`keep_addresses`]. It is tried, and then taken back.
///
/// # Errors
/// It is forbidden.
pub fn fixed_addresses() -> io::Result<libc::c_ulong> {
    let old = personality(0xffff_ffff)?;
    keep_addresses()?;
    personality(old)
}

/// Sets the personality of this thread, and returns the former one.
fn personality(wanted: libc::c_ulong) -> io::Result<libc::c_ulong> {
    // SAFETY: takes no pointers.
    match unsafe { libc::personality(wanted) } {
        -1 => Err(io::Error::last_os_error()),
        old => Ok(old as libc::c_ulong),
    }
}
