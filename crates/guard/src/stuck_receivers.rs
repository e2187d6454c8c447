//! Finds receivers that are stuck in a program's memory, and lets calls go on while all of them
//! are.
//!
//! The page of a call's argument may be made only when a thread touches it. Another thread of the
//! program makes it (`userfaultfd`), or a file server whose file is mapped. A receiver that reads
//! the page waits for that thread. The kernel has no flag that makes such a read fail instead. The
//! thread that makes the page may itself need a watched call, and then waits for a receiver.
//!
//! Invariant: the spare receiver receives nothing while another receiver could, and it reads no
//! memory. The monitor runs only when the supervisor's drainer has looked at the arena anyway.

use crate::guard_state::GuardState;
use crate::threads::{InProgress, RECEIVER_THREADS, Reserve, SPARE, ThreadControl};
use backstory_eventlog::Reason;
use backstory_sys as sys;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A receiver that reads a program's memory for so long is stuck: it is neither slow nor waiting
/// for a processor.
const STUCK: Duration = Duration::from_millis(200);
/// Milliseconds that the spare receiver waits for a call before it checks again whether it is
/// needed.
const LOOK: i32 = 10;

/// Checks from time to time whether receivers are stuck.
pub struct StuckReceiverMonitor {
    state: Weak<GuardState>,
    control: Weak<ThreadControl>,
    reserve: Weak<Reserve>,
    last: Mutex<(Instant, InProgress)>,
}

impl StuckReceiverMonitor {
    pub(crate) fn new(
        state: &Arc<GuardState>,
        control: &Arc<ThreadControl>,
        reserve: &Arc<Reserve>,
    ) -> StuckReceiverMonitor {
        StuckReceiverMonitor {
            state: Arc::downgrade(state),
            control: Arc::downgrade(control),
            reserve: Arc::downgrade(reserve),
            last: Mutex::new((Instant::now(), InProgress::default())),
        }
    }

    /// Checks the receivers, if the last check is long enough ago. To be called several times a
    /// second by a thread with other work. Does not wait.
    pub fn check(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0.elapsed() < STUCK {
            return;
        }
        let (Some(state), Some(control)) = (self.state.upgrade(), self.control.upgrade()) else {
            return;
        };
        let Some(reserve) = self.reserve.upgrade() else {
            return;
        };
        let before = last.1;
        *last = (Instant::now(), state.buffers.in_progress());
        let stuck = (0..RECEIVER_THREADS)
            .filter(|index| is_stuck(&state, &control, *index, &before))
            .count();
        if stuck == 0 || !state.has_pending() {
            return;
        }
        if stuck < RECEIVER_THREADS {
            reserve.helpers.begin();
            return control.call_helpers(RECEIVER_THREADS as u32);
        }
        reserve.spare.begin();
        *control.stuck.lock().unwrap_or_else(PoisonError::into_inner) = before;
        control.alarms.fetch_add(1, Ordering::Release);
        sys::futex_wake(&control.alarms, 1);
    }
}

/// True if a receiver still handles the notification that it handled `before`, and waits for a
/// program's memory.
fn is_stuck(
    state: &GuardState,
    control: &ThreadControl,
    index: usize,
    before: &InProgress,
) -> bool {
    let tid = control.thread(index);
    before[index] != 0
        && state.buffers.in_progress::<RECEIVER_THREADS>()[index] == before[index]
        && tid != 0
        && waits_for_memory(tid)
}

/// The spare receiver.
pub(crate) fn run_spare(state: &GuardState, control: &ThreadControl) {
    control.runs(SPARE);
    while !control.stops() {
        let alarms = control.alarms.load(Ordering::Acquire);
        let stuck =
            std::mem::take(&mut *control.stuck.lock().unwrap_or_else(PoisonError::into_inner));
        let all_stuck =
            || (0..RECEIVER_THREADS).all(|index| is_stuck(state, control, index, &stuck));
        while !control.stops() && all_stuck() {
            continue_one(state);
        }
        sys::futex_wait(&control.alarms, alarms);
    }
    control.ends(SPARE);
}

/// Waits [`LOOK`] for a call, and lets it go on unseen. If another receiver takes the call first,
/// this one receives the next.
fn continue_one(state: &GuardState) {
    if sys::poll(state.listener(), libc::POLLIN, LOOK) & libc::POLLIN == 0 {
        return;
    }
    if let Ok(notification) = state.buffers.receive(state.listener(), SPARE) {
        state.hooks.report(Reason::Unread {});
        // An error means that the caller has been killed.
        let _ = sys::answer_continue(state.listener(), notification.id);
        state.buffers.clear(SPARE);
    }
}

/// True if a thread of this process sleeps in a call that reads a program's memory. A receiver that
/// waits for a slow disk is not stuck. It gets its data, and the call that it handles must not go
/// on unseen. Where the kernel does not show the call, time alone decides.
fn waits_for_memory(tid: u32) -> bool {
    let Ok(call) = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")) else {
        return true;
    };
    let number = call
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    number.is_some_and(|number| [libc::SYS_process_vm_readv, libc::SYS_pread64].contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_thread_that_waits_for_a_pipe_is_not_stuck() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(sys::gettid()).unwrap();
            let _ = reader.read(&mut [0]);
        });
        let tid = told.recv().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits_for_memory(tid));
        drop(writer);
        thread.join().unwrap();
    }
}
