//! Reacts to a signal that ends the program in the middle of its work: removes unfinished files,
//! then ends as the signal does.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use backstory_export::unfinished;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The thread that ends the program takes this lock and never releases it.
static ENDING: Mutex<()> = Mutex::new(());

/// Processes that work for this one.
static WORKERS: Mutex<Vec<(u64, OwnedFd)>> = Mutex::new(Vec::new());

fn workers() -> MutexGuard<'static, Vec<(u64, OwnedFd)>> {
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the processes that work for this program end with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// They are killed.
    Killed,
    /// They receive the same signal. A key of the terminal reaches them without this program.
    Signalled,
}

/// From now on a signal that ends the program removes unfinished files first.
pub fn watch(how: Workers) {
    // Without a thread for the removal, the program ends as any other. The next program removes the
    // files that are left.
    let _ = backstory_sys::when_asked_to_end(move |signal| {
        let key = signal == Signal::INT.as_raw();
        let at_work = workers();
        // From now on the main thread prints nothing: its work cannot be completed.
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
        // Never released, as above.
        std::mem::forget(unfinished::remove_all());
    });
}

/// Waits for the end of the program if a signal is about to end it.
pub fn unless_ended() {
    drop(ENDING.lock().unwrap_or_else(PoisonError::into_inner));
}

/// A process that works for this one as long as this value lives.
pub struct AtWork(u64);

impl AtWork {
    /// Registers a child. A child without a pidfd ends by itself.
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
