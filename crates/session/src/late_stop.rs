//! Continues a launcher that stops, or is about to, for a stop of the command that is over.
//!
//! The launcher looks at the command and then stops itself. The command can go on or end between
//! the two, and one SIGCONT can come before the stop. So the launcher is looked at again until
//! `Control::launcher_stops` says that it goes on.

use crate::control::Control;
use backstory_sys::process_tree as tree;
use backstory_sys::{self as sys, Pid};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Interval between two looks at the launcher.
const LOOK: Duration = Duration::from_millis(5);

/// Continues the launcher if it is stopped.
pub(crate) fn continue_stopped(launcher: Pid) {
    if tree::stopped(launcher) {
        let _ = sys::kill(launcher, libc::SIGCONT); // it may be gone
    }
}

/// Continues the launcher until it has gone on. `lives`: whether it still lives.
pub(crate) fn continue_until_it_runs(
    control: &Control,
    launcher: Pid,
    mut lives: impl FnMut() -> bool,
) {
    while control.launcher_stops.load(Ordering::SeqCst) != 0 && lives() {
        continue_stopped(launcher);
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A shell stands for the launcher.
    #[test]
    fn a_launcher_that_stops_after_the_first_look_goes_on() {
        let control = Control::map().unwrap();
        control.launcher_stops.store(1, Ordering::SeqCst);
        let script = "sleep 0.1; kill -STOP $$";
        let mut launcher = Command::new("/bin/sh")
            .args(["-c", script])
            .spawn()
            .unwrap();
        let pid = launcher.id() as Pid;
        continue_until_it_runs(control, pid, || launcher.try_wait().unwrap().is_none());
        assert!(launcher.wait().unwrap().success(), "it ended by itself");
    }
}
