//! Starts the caller's background command after a run: with the lowest priority, without a
//! terminal, and without descriptors of the run.
#![allow(unsafe_code)]

use backstory_sys as sys;
use std::ffi::{CString, OsString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

/// Executes the command in this process. Returns if there is no command or if it cannot be
/// executed. The next query does the work in that case.
pub(crate) fn become_it(after: &[OsString]) {
    let Ok(words) = after
        .iter()
        .map(|w| CString::new(w.as_bytes()))
        .collect::<Result<Vec<_>, _>>()
    else {
        return;
    };
    let Some(program) = words.first() else {
        return;
    };
    let argv: Vec<*const c_char> = words.iter().map(|w| w.as_ptr()).chain([null()]).collect();
    // SAFETY: takes nothing. A process that leads its group stays in its session: no harm.
    let is_own_session = unsafe { libc::setsid() } != -1;
    sys::come_last();
    if is_own_session {
        sys::let_session_come_last();
    }
    sys::set_mask(&sys::no_signals());
    sys::exec(program, &argv);
}

/// Starts the command as a process whose parent does not wait for it.
pub fn spawn(after: &[OsString]) {
    if after.is_empty() {
        return;
    }
    // The second fork makes the process an orphan, so that no process here must reap it.
    match sys::fork() {
        Ok(0) => {
            if let Ok(0) = sys::fork() {
                sys::nullify(&[0, 1, 2]);
                become_it(after);
            }
            sys::exit_now(0)
        }
        Ok(child) => sys::wait_for(child),
        Err(_) => {}
    }
}
