//! A call that waits for another thread than a receiver.

use crate::notification_buffers::SharedBuffers;
use backstory_sys as sys;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A call that waits for its response. Dropping this responds; so does the keeper when it takes
/// over.
pub struct ParkedCall {
    id: u64,
    listener: Arc<OwnedFd>,
    buffers: Arc<SharedBuffers>,
    /// The kernel makes the call. Otherwise the call returns 0 or an error, and is not made.
    continues: bool,
    /// The errno that the call fails with. 0: it returns 0.
    error: i32,
    /// The call waits for a commit of the log before its response.
    commits: Option<CommitRequest>,
}

/// Has the log committed, and lets the call go on then.
pub(crate) type CommitRequest = Box<dyn FnOnce(ParkedCall) + Send>;

impl ParkedCall {
    /// A call of the recorder, which returns 0.
    pub(crate) fn new(id: u64, listener: Arc<OwnedFd>, buffers: Arc<SharedBuffers>) -> ParkedCall {
        ParkedCall {
            id,
            listener,
            buffers,
            continues: false,
            error: 0,
            commits: None,
        }
    }

    /// The same call, as one that fails unless [`ParkedCall::answer_descriptor`] or
    /// [`ParkedCall::grant`] answers it.
    pub(crate) fn refused(mut self, error: i32) -> ParkedCall {
        self.error = error;
        self
    }

    /// True while the caller waits: until then its ids mean it. False once it was killed.
    pub fn still_waits(&self) -> bool {
        sys::still_waits(self.listener.as_fd(), self.id)
    }

    /// Responds with 0.
    pub fn grant(mut self) {
        self.error = 0;
    }

    /// Responds with a new descriptor of the caller, a copy of `file`.
    pub fn answer_descriptor(self, file: BorrowedFd<'_>) {
        // An error means that the caller has been killed meanwhile. The second answer, when this
        // is dropped, has no effect.
        let _ = sys::answer_descriptor(self.listener.as_fd(), self.id, file);
    }

    /// The same call, as one that the kernel makes in the end.
    pub(crate) fn continuing(mut self) -> ParkedCall {
        self.continues = true;
        self
    }

    /// The same call, which then waits for a commit of the log, too.
    pub(crate) fn committing(mut self, commits: Option<CommitRequest>) -> ParkedCall {
        self.commits = commits;
        self
    }
}

impl Drop for ParkedCall {
    fn drop(&mut self) {
        if let Some(commit) = self.commits.take() {
            return commit(ParkedCall {
                id: self.id,
                listener: self.listener.clone(),
                buffers: self.buffers.clone(),
                continues: self.continues,
                error: self.error,
                commits: None,
            });
        }
        // An error means that the caller has been killed meanwhile.
        let _ = match self.continues {
            true => sys::answer_continue(self.listener.as_fd(), self.id),
            false if self.error != 0 => {
                sys::answer_errno(self.listener.as_fd(), self.id, self.error)
            }
            false => sys::answer_value(self.listener.as_fd(), self.id, 0),
        };
        self.buffers.unpark(self.id);
    }
}
