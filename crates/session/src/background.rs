//! Starts what the caller wants done in the background after a run: niced, without terminal and descriptors of the run.
#![allow(unsafe_code)]

use backstory_sys as sys;
use std::ffi::{CString, OsString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

/// Becomes the command. Returns if there is none or it can't be executed: the next question does its work then.
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
    // SAFETY: plain calls; a process that leads a group already stays in its session, which does no harm.
    unsafe {
        libc::setsid();
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
    }
    sys::set_mask(&sys::no_signals());
    sys::exec(program, &argv);
}

/// Starts the command as a process of its own, whose parent is not waiting for it.
pub fn spawn(after: &[OsString]) {
    if after.is_empty() {
        return;
    }
    // Twice, so that it is nobody's child here.
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
