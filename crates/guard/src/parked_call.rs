//! A call that waits for another thread than a receiver.

use crate::notification_buffers::SharedBuffers;
use backstory_sys as sys;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// A call that waits for its response. Dropping this responds; so does the keeper when it takes
/// over.
pub struct ParkedCall {
    id: u64,
    listener: Arc<OwnedFd>,
    buffers: Arc<SharedBuffers>,
    /// The kernel makes the call. Otherwise the call returns 0 and is not made.
    continues: bool,
}

impl ParkedCall {
    /// A call of the recorder, which returns 0.
    pub(crate) fn new(id: u64, listener: Arc<OwnedFd>, buffers: Arc<SharedBuffers>) -> ParkedCall {
        ParkedCall {
            id,
            listener,
            buffers,
            continues: false,
        }
    }

    /// The same call, as one that the kernel makes in the end.
    pub(crate) fn continuing(mut self) -> ParkedCall {
        self.continues = true;
        self
    }
}

impl Drop for ParkedCall {
    fn drop(&mut self) {
        // An error means that the caller has been killed meanwhile.
        let _ = match self.continues {
            true => sys::answer_continue(self.listener.as_fd(), self.id),
            false => sys::answer_value(self.listener.as_fd(), self.id, 0),
        };
        self.buffers.unpark(self.id);
    }
}
