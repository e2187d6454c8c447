//! Continues a process that stops, or is about to, for a stop of another process that is over.
//!
//! The launcher stops with the command, and a client of the broker with its program. Such a process
//! looks at the other one and then stops itself. The other one can go on or end between the two,
//! and one SIGCONT can come before the stop. So the process is looked at again until it has gone on
//! or has ended.
//!
//! SIGCONT does not end a tracing stop. A tracer such as strace(1) ends it at once, but a debugger
//! can hold a process as long as its user likes. So the wait for a held process is bounded.

use backstory_sys::Pid;
use backstory_sys::process_tree as tree;
use std::time::Duration;

/// Interval between two looks at the process.
const LOOK: Duration = Duration::from_millis(5);
/// Time in tracing stops after which a process is left to its tracer.
const HELD_BY_TRACER: Duration = Duration::from_secs(1);

/// Continues a process by `go_on` as often as it is stopped, until `is_over` or its tracer holds
/// it.
pub(crate) fn continue_until(process: Pid, mut is_over: impl FnMut() -> bool, go_on: impl Fn()) {
    let mut held = Duration::ZERO;
    while held < HELD_BY_TRACER && !is_over() {
        if tree::stopped_by_tracer(process) {
            held += LOOK;
        }
        if tree::stopped(process) {
            go_on();
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_sys as sys;
    use backstory_testkit::need::skipped;
    use backstory_testkit::procs::eventually;
    use std::io;
    use std::process::Command;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn send_continue(process: Pid) {
        sys::kill(process, libc::SIGCONT).unwrap();
    }

    /// A shell stands for the process.
    #[test]
    fn a_process_that_stops_after_the_first_look_goes_on() {
        let script = "sleep 0.1; kill -STOP $$";
        let mut shell = Command::new("/bin/sh")
            .args(["-c", script])
            .spawn()
            .unwrap();
        let pid = shell.id() as Pid;
        let has_ended = || shell.try_wait().unwrap().is_some();
        continue_until(pid, has_ended, || send_continue(pid));
        assert!(shell.wait().unwrap().success(), "it ended by itself");
    }

    /// Stops a child as a debugger does. The child is this thread's tracee until the thread ends.
    #[allow(unsafe_code)]
    fn hold(process: Pid) -> io::Result<()> {
        for request in [libc::PTRACE_SEIZE, libc::PTRACE_INTERRUPT] {
            let nothing = std::ptr::null_mut::<libc::c_void>();
            // SAFETY: the two requests access no memory of this process.
            if unsafe { libc::ptrace(request, process, nothing, nothing) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    #[test]
    fn a_process_that_its_debugger_holds_is_left_to_it() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id() as Pid;
        let is_held = hold(pid);
        let mut is_left = false;
        if is_held.is_ok() {
            assert!(eventually(PATIENCE, || tree::stopped_by_tracer(pid)));
            let wait = std::thread::spawn(move || {
                continue_until(pid, || false, || send_continue(pid));
            });
            is_left = eventually(PATIENCE, || wait.is_finished());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        match is_held {
            Ok(()) => assert!(is_left, "the wait ends"),
            Err(error) => skipped("a stop by a debugger", &format!("ptrace: {error}")),
        }
    }
}
