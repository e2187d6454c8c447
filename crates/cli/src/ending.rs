//! What is done when the program is asked to end in the middle of its work: what is not finished is taken away, and then it ends as it was asked to.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use backstory_export::unfinished;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Availability for good by who ends the program.
static ENDING: Mutex<()> = Mutex::new(());

/// Processes that are at work for this one.
static WORKERS: Mutex<Vec<(u64, OwnedFd)>> = Mutex::new(Vec::new());

fn workers() -> MutexGuard<'static, Vec<(u64, OwnedFd)>> {
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How those who work for this program are ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// At once.
    Killed,
    /// By the same signal; those that the terminal asks itself are not asked twice.
    Signalled,
}

/// From now on whatever is not finished goes when the program is asked to end.
pub fn watch(how: Workers) {
    // Without a thread for it, the program ends as any other, and what it leaves goes with the next.
    let _ = backstory_sys::when_asked_to_end(move |signal| {
        let key = signal == Signal::INT.as_raw();
        let at_work = workers();
        // What was begun is not told of any more: it could not be done.
        std::mem::forget(ENDING.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, worker) in &*at_work {
            let signal = match how {
                Workers::Killed => Signal::KILL,
                Workers::Signalled if key => continue,
                Workers::Signalled => Signal::from_named_raw(signal).unwrap_or(Signal::TERM),
            };
            let _ = pidfd_send_signal(worker, signal);
        }
        drop(at_work);
        // For good, as above.
        std::mem::forget(unfinished::remove_all());
    });
}

/// Waits for the end if the program is about to be ended.
pub fn unless_ended() {
    drop(ENDING.lock().unwrap_or_else(PoisonError::into_inner));
}

/// A process that is at work as long as this lives.
pub struct AtWork(u64);

impl AtWork {
    /// Takes it down. One that cannot be held on to ends by itself.
    pub fn of(child: &Child) -> AtWork {
        let id = u64::from(child.id());
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        let held = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        workers().extend(held.map(|held| (id, held)));
        AtWork(id)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        workers().retain(|(id, _)| *id != self.0);
    }
}
