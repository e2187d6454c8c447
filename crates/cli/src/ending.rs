//! Reacts to a signal that ends the program in the middle of its work. The program restores files
//! that were put aside, removes unfinished files, and then ends as the signal does.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backstory_export::unfinished;
use backstory_replay::rerun::set_aside;
use backstory_sys::process_tree::descendants_of;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal, test_kill_process,
};

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
    /// They and the programs that they record receive the same signal, and this program waits for
    /// their end. A key of the terminal reaches them without this program.
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
        let passed = Signal::from_named_raw(signal).unwrap_or(Signal::TERM);
        match how {
            Workers::Killed => at_work.iter().for_each(|(_, worker)| {
                let _ = pidfd_send_signal(worker, Signal::KILL);
            }),
            Workers::Signalled => end_recorded(&at_work, (!key).then_some(passed)),
        }
        drop(at_work);
        // Never released, as above: nothing more is put aside.
        std::mem::forget(set_aside::restore_all());
        // Never released, as above.
        std::mem::forget(unfinished::remove_all());
    });
}

/// How long a process may take to end after its signal.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks for new processes.
const STEP: Duration = Duration::from_millis(50);

/// Sends a signal to the programs that processes record, also to those that start meanwhile, and
/// waits for the end of both. Programs that do not end in time go on.
fn end_recorded(at_work: &[(u64, OwnedFd)], signal: Option<Signal>) {
    let begun = Instant::now();
    let own = std::fs::read_link("/proc/self/exe").ok();
    let records = |process: u32| std::fs::read_link(format!("/proc/{process}/exe")).ok() == own;
    let mut seen: Vec<Pid> = Vec::new();
    while begun.elapsed() < PATIENCE {
        let mut left = false;
        for (id, worker) in at_work {
            let mut ended = [PollFd::new(worker, PollFlags::IN)];
            left |= poll(&mut ended, Some(&Timespec::default())) == Ok(0);
            let recorded = descendants_of(*id as u32).into_iter();
            let recorded = recorded.filter(|process| !records(*process));
            for process in recorded.filter_map(|process| Pid::from_raw(process.cast_signed())) {
                if !seen.contains(&process) {
                    seen.push(process);
                    signal.map(|signal| kill_process(process, signal));
                }
            }
        }
        // A program that outlives the one that started it is no descendant any more.
        left |= seen
            .iter()
            .any(|process| test_kill_process(*process).is_ok());
        if !left {
            return;
        }
        std::thread::sleep(STEP);
    }
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
