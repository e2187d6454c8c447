//! Lets notified calls go on without logging them.

use crate::notification_buffers::{NotificationBuffers, RECEIVERS};
use backstory_sys as sys;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

/// Lets every call go on that a dead supervisor had received and not responded to. Returns how many
/// waited.
///
/// Only for the keeper, once the supervisor is known to be dead. The kernel refuses the id of a
/// call that had its response, which does no harm.
pub fn continue_received(listener: BorrowedFd<'_>, shared: &NotificationBuffers) -> usize {
    let mut rescued = 0;
    for id in shared.unanswered() {
        let value = id.swap(0, Ordering::AcqRel);
        if value != 0 && sys::answer_continue(listener, value).is_ok() {
            rescued += 1;
        }
    }
    for receiver in 0..RECEIVERS {
        shared.clear(receiver);
    }
    rescued
}

/// True if no process is left that has the filter, or the listener is not open.
///
/// An error alone does not say so. The kernel's poll of a listener takes a lock that a signal can
/// interrupt (`seccomp_notify_poll`). If the lock is held elsewhere at that moment, the result is
/// `POLLERR`, and callers still wait. The signal is handled before the next poll.
fn is_over(events: i16) -> bool {
    events & (libc::POLLHUP | libc::POLLNVAL) != 0
}

/// Lets every watched call go on, unseen, until no process is left that has the filter. Returns how
/// many calls there were.
///
/// For the keeper after the supervisor's end. A filter cannot be removed, so without this its
/// processes would wait for ever.
pub fn continue_all(listener: BorrowedFd<'_>, shared: &NotificationBuffers) -> u64 {
    let mut served = 0;
    loop {
        let events = sys::poll(listener, libc::POLLIN, -1);
        if events & libc::POLLIN != 0 {
            if let Ok(call) = shared.receive(listener, 0) {
                let _ = sys::answer_continue(listener, call.id);
                shared.clear(0);
                served += 1;
            }
        } else if is_over(events) {
            return served;
        }
    }
}

/// Lets every call go on that waits now. Does not wait. False once no process is left that has the
/// filter.
pub fn continue_pending(listener: BorrowedFd<'_>, shared: &NotificationBuffers) -> bool {
    loop {
        let events = sys::poll(listener, libc::POLLIN, 0);
        if events & libc::POLLIN == 0 {
            return !is_over(events);
        }
        if let Ok(call) = shared.receive(listener, 0) {
            // An error means that the caller has been killed.
            let _ = sys::answer_continue(listener, call.id);
            shared.clear(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification_buffers::SharedBuffers;
    use std::os::fd::AsFd;

    #[test]
    fn an_interrupted_poll_does_not_end_the_rescue() {
        let buffers = SharedBuffers::create().unwrap();
        // The writer of a pipe without a reader has an error, and is not hung up.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let interrupted = sys::poll(writer.as_fd(), libc::POLLIN, 0);
        assert_eq!(interrupted, libc::POLLERR);
        assert!(continue_pending(writer.as_fd(), &buffers));
    }

    #[test]
    fn the_end_of_the_last_process_ends_the_rescue() {
        let buffers = SharedBuffers::create().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(!continue_pending(reader.as_fd(), &buffers));
        assert_eq!(continue_all(reader.as_fd(), &buffers), 0);
    }
}
