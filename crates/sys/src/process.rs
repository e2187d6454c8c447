//! The calling process: its identity, its name, its program.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::io;
use std::ptr::null;

/// Process ids as the kernel has them.
pub type Pid = i32;

/// This process leaves no core file behind, whatever ends it.
pub fn no_core() {
    // Errors are harmless: the worst is a core file too many.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Names the process, as `ps` shows it.
pub fn set_name(name: &CStr) {
    // SAFETY: the kernel copies at most 16 bytes of a NUL-terminated string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// The thread exists (or is a zombie).
pub fn thread_exists(pid: Pid, tid: Pid) -> bool {
    // SAFETY: no pointers; signal 0 only asks.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Replaces the program. Returns only the error.
pub fn exec(path: &CStr, argv: &[*const libc::c_char]) -> io::Error {
    debug_assert_eq!(argv.last(), Some(&null()));
    // SAFETY: argv ends with a null pointer and its strings live; the environment is the process's own.
    unsafe { libc::execv(path.as_ptr(), argv.as_ptr()) };
    io::Error::last_os_error()
}

/// Leaves the session, its terminal and its process group.
pub fn leave_session() {
    // SAFETY: no pointers. A group's leader can't, and need not.
    unsafe { libc::setsid() };
}

/// This process.
pub fn own_pid() -> Pid {
    std::process::id() as Pid
}

/// The parent, unless that is in another pid namespace.
pub fn parent() -> Option<Pid> {
    rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get())
}

/// What an errno means, in the words a shell uses.
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

/// Processors that this process may use.
pub fn processors() -> usize {
    let affinity = rustix::thread::sched_getaffinity(None);
    affinity.map_or(1, |set| set.count() as usize)
}
