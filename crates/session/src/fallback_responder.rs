//! Answers the guard's calls where nobody logs them any more: what keeper and launcher do once the supervisor cannot.
//!
//! Invariant: whoever holds the listener answers, also where no thread can be had (`ulimit -u`, `ulimit -v`): then whenever its holder
//! looks. A program that waits for an answer must never be left waiting for want of memory.

use backstory_guard::{SharedBuffers, continue_all, continue_pending, continue_received};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

/// It only waits and answers, and little memory may be allowed.
const STACK: usize = 64 << 10;

/// Answers until no process is left that has the filter.
pub(crate) struct FallbackResponder {
    listener: Arc<OwnedFd>,
    shared: Arc<SharedBuffers>,
    /// None where no thread could be had: then the holder has to look.
    thread: Option<JoinHandle<()>>,
    /// Nobody is left; told by the one who looks.
    over: bool,
}

impl FallbackResponder {
    /// Answers who waits already, and begins to answer the others in the background.
    pub(crate) fn begin(listener: OwnedFd, shared: Arc<SharedBuffers>) -> FallbackResponder {
        continue_received(listener.as_fd(), &shared);
        let listener = Arc::new(listener);
        let (theirs, buffers) = (Arc::clone(&listener), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("serve".into())
            .stack_size(STACK)
            .spawn(move || {
                continue_all(theirs.as_fd(), &buffers);
            });
        FallbackResponder {
            listener,
            shared,
            thread: thread.ok(),
            over: false,
        }
    }

    /// What has to be waited for beside other things, and followed by [`FallbackResponder::answer`]; none where a thread does that.
    pub(crate) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        (self.thread.is_none() && !self.over).then(|| self.listener.as_fd())
    }

    /// Answers who waits now, unless a thread does. Does not wait.
    pub(crate) fn answer(&mut self) {
        if self.waits_for().is_some() {
            self.over = !continue_pending(self.listener.as_fd(), &self.shared);
        }
    }

    /// True once no process is left that has the filter.
    pub(crate) fn is_over(&self) -> bool {
        match &self.thread {
            Some(thread) => thread.is_finished(),
            None => self.over || nobody_is_left(&self.listener),
        }
    }

    /// Returns when no process is left that has the filter.
    pub(crate) fn until_over(self) {
        match self.thread {
            Some(thread) => _ = thread.join(), // it does not panic, and there is nothing left to be done if it had
            None => _ = continue_all(self.listener.as_fd(), &self.shared),
        }
    }

    /// Goes on in a copy of this process, once that one has ended: the buffers are its thread's as long as it lives.
    pub(crate) fn in_a_copy(self, ended: impl Fn() -> bool) {
        while !ended() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        continue_received(self.listener.as_fd(), &self.shared);
        continue_all(self.listener.as_fd(), &self.shared);
    }
}

/// No process has the filter any more.
pub(crate) fn nobody_is_left(listener: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}
