//! Child processes: forking them, waiting for them, keeping them running.
#![allow(unsafe_code)]

use crate::call::check;
use crate::process::Pid;
use crate::process_tree::stopped;
use crate::signal::{kill, set_disposition};
use rustix::event::Timespec;
use std::ffi::c_int;
use std::io;
use std::mem::zeroed;

/// Forks this process, which must have one thread. Returns 0 in the child.
///
/// In a child of a process with several threads, another thread's locks would stay taken for ever.
pub fn fork() -> io::Result<Pid> {
    // SAFETY: called while single-threaded, so the child may go on using the heap and everything
    // else.
    check(unsafe { libc::fork() })
}

/// Ends the process at once. Destructors do not run and buffers are not written: in a forked copy
/// they belong to the original.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: never returns, touches nothing.
    unsafe { libc::_exit(status) }
}

/// A change of a child's state, as waitid(2) reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildChange {
    /// The child.
    pub pid: Pid,
    /// `CLD_EXITED`, `CLD_KILLED`, `CLD_DUMPED`, `CLD_STOPPED` or `CLD_CONTINUED`.
    pub code: c_int,
    /// The exit status or the signal.
    pub status: c_int,
}

impl ChildChange {
    /// The status as wait(2) would report it.
    pub fn wait_status(self) -> i32 {
        match self.code {
            libc::CLD_EXITED => (self.status & 0xff) << 8,
            libc::CLD_DUMPED => (self.status & 0x7f) | 0x80,
            libc::CLD_STOPPED => ((self.status & 0xff) << 8) | 0x7f,
            libc::CLD_CONTINUED => 0xffff,
            _ => self.status & 0x7f,
        }
    }
}

/// waitid(2) without waiting. `None`: no child has changed its state.
///
/// # Errors
/// `ECHILD`: there is no such child.
pub fn child_change(which: Option<Pid>, options: c_int) -> io::Result<Option<ChildChange>> {
    let (kind, id) = which.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid as u32));
    // SAFETY: a plain structure which the kernel fills; the fields read are those of SIGCHLD.
    unsafe {
        let mut info: libc::siginfo_t = zeroed();
        check(libc::waitid(kind, id, &mut info, options | libc::WNOHANG))?;
        let pid = info.si_pid();
        Ok((pid != 0).then(|| ChildChange {
            pid,
            code: info.si_code,
            status: info.si_status(),
        }))
    }
}

/// How often a child that must go on is checked: it may stay stopped for so long.
pub const LOOK_AFTER: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Continues a child that another process has stopped. A user who waits for the child could not
/// know which process to continue.
///
/// The kernel reports a stop once all threads of the child have stopped. A thread that hangs in a
/// file system does not stop, so the child's state is also read from `/proc`.
pub fn keep_going(child: Pid) {
    if matches!(child_change(Some(child), libc::WSTOPPED), Ok(Some(_))) || stopped(child) {
        // An error means that the child has just ended.
        let _ = kill(child, libc::SIGCONT);
    }
}

/// Reaps a child that has ended.
pub fn reap(pid: Pid) {
    let mut status = 0;
    // SAFETY: the status is a plain integer of this function.
    unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) };
}

/// Makes this process the parent of its descendants' orphans.
pub fn become_subreaper() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Waits until a child has ended, and reaps it.
pub fn wait_for(pid: Pid) {
    let mut status = 0;
    // SAFETY: the status is a plain integer of this function.
    while unsafe { libc::waitpid(pid, &mut status, 0) } < 0 {
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            break;
        }
    }
}

/// Has the kernel send `signal` to this process when its parent ends.
pub fn signal_at_parents_end(signal: c_int) {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) };
}

/// Has the kernel reap this process's children from now on.
pub fn forget_children() {
    set_disposition(libc::SIGCHLD, libc::SIG_IGN);
}
