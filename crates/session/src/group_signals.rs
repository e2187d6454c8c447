//! Tells signals to the launcher's whole process group from signals to the launcher alone.
//!
//! The keeper is a silent member of the group, and counts the signals to the group
//! (`Control::group_signals`). A signal that the keeper did not get was sent to the launcher alone.
//!
//! Invariant: a signal that the keeper has taken and not counted yet is waited for, however long
//! the keeper gets no processor.

use crate::control::Control;
use backstory_sys::Pid;
use backstory_sys::process_tree as tree;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time within which a signal to the whole group reaches all its members.
pub(crate) const GROUP_SIGNAL: Duration = Duration::from_millis(3);
/// Interval between two looks at the keeper.
const LOOK: Duration = Duration::from_micros(100);

/// The signals to the group that the launcher has got, too.
pub(crate) struct GroupSignals {
    seen: [u32; 65],
}

impl Default for GroupSignals {
    fn default() -> GroupSignals {
        GroupSignals { seen: [0; 65] }
    }
}

impl GroupSignals {
    /// True if a signal that the launcher got was sent to the whole group. `lives`: whether the
    /// keeper still lives.
    pub(crate) fn reached(
        &mut self,
        control: &Control,
        keeper: Pid,
        signal: usize,
        mut lives: impl FnMut() -> bool,
    ) -> bool {
        let Some(seen) = self.seen.get_mut(signal) else {
            return false;
        };
        // The processor that sends to the group may stand still for long, as that of a virtual
        // machine.
        backstory_sys::await_signals_to_group();
        let until = Instant::now() + GROUP_SIGNAL;
        while lives() {
            let before = control.keeper_counts.load(Ordering::Acquire);
            let count = control.group_signals[signal].load(Ordering::Acquire);
            if count != *seen {
                *seen = count;
                return true;
            }
            // All members of a group get a signal at once, but the keeper may not have taken it
            // yet.
            if tree::pending(keeper, signal) {
                *seen = count.wrapping_add(1);
                return true;
            }
            let after = control.keeper_counts.load(Ordering::Acquire);
            let counts = before % 2 == 1 || before != after;
            if !counts && Instant::now() > until {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{scope, sleep};

    /// A keeper without pending signals. Threads stand for the processes.
    fn keeper() -> Pid {
        backstory_sys::own_pid()
    }

    fn control() -> &'static Control {
        Control::map().unwrap()
    }

    /// A keeper that gets no processor between taking a signal and counting it.
    #[test]
    fn a_signal_that_the_keeper_counts_late_was_sent_to_the_group() {
        let control = control();
        let signal = libc::SIGTERM as usize;
        control.keeper_counts.store(1, Ordering::Release);
        scope(|scope| {
            scope.spawn(|| {
                sleep(GROUP_SIGNAL * 20);
                control.group_signals[signal].store(1, Ordering::Release);
                control.keeper_counts.store(2, Ordering::Release);
            });
            let mut signals = GroupSignals::default();
            assert!(signals.reached(control, keeper(), signal, || true));
            assert!(!signals.reached(control, keeper(), signal, || true));
        });
    }

    #[test]
    fn a_keeper_that_dies_while_it_counts_is_not_waited_for() {
        let control = control();
        control.keeper_counts.store(1, Ordering::Release);
        let (mut signals, mut looks) = (GroupSignals::default(), 0);
        let lives = || {
            looks += 1;
            looks < 5
        };
        assert!(!signals.reached(control, keeper(), libc::SIGTERM as usize, lives));
    }
}
