//! Responds to the guard's notifications without logging them: the keeper and the launcher do so
//! when the supervisor is dead.
//!
//! Invariant: the process that holds the listener responds, even if no thread can be created
//! (`ulimit -u`, `ulimit -v`). It then responds whenever it polls. A lack of memory must never
//! leave a program waiting.

use backstory_guard::{SharedBuffers, continue_all, continue_pending, continue_received};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Stack of the thread. The thread only waits and responds, and memory may be scarce.
const STACK: usize = 64 << 10;

/// Responds until no process with the filter is left.
pub(crate) struct FallbackResponder {
    listener: Arc<OwnedFd>,
    shared: Arc<SharedBuffers>,
    /// `None` if no thread could be created. The holder then has to poll.
    thread: Option<JoinHandle<()>>,
    /// No process with the filter is left, as found by polling.
    over: bool,
}

impl FallbackResponder {
    /// Responds to the notifications that wait already, and starts to respond to others in the
    /// background.
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

    /// A descriptor to poll before [`FallbackResponder::answer`]. `None` if a thread responds.
    pub(crate) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        (self.thread.is_none() && !self.over).then(|| self.listener.as_fd())
    }

    /// Responds to the notifications that wait now, unless a thread does. Does not wait.
    pub(crate) fn answer(&mut self) {
        if self.waits_for().is_some() {
            self.over = !continue_pending(self.listener.as_fd(), &self.shared);
        }
    }

    /// A descriptor to poll for the next call that [`FallbackResponder::answer`] responds to, and
    /// for the end of the last process with the filter.
    pub(crate) fn call_or_end(&self) -> PollFd<'_> {
        let calls = match self.thread {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        PollFd::from_borrowed_fd(self.listener.as_fd(), calls)
    }

    /// True once no process with the filter is left.
    pub(crate) fn is_over(&self) -> bool {
        let thread_ended = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        self.over || thread_ended || nobody_is_left(&self.listener)
    }

    /// Goes on in a copy of this process after the process has ended. Until then the buffers belong
    /// to its thread.
    pub(crate) fn in_a_copy(self, ended: impl Fn() -> bool) {
        while !ended() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        continue_received(self.listener.as_fd(), &self.shared);
        continue_all(self.listener.as_fd(), &self.shared);
    }
}

/// True if no process with the filter is left.
pub(crate) fn nobody_is_left(listener: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}
