//! How the guard responds to a notified call.

use backstory_sys as sys;
use std::os::fd::BorrowedFd;

/// The response to one notification.
pub(crate) enum Response {
    /// The kernel makes the call.
    Continue,
    /// The call fails with this errno.
    Error(i32),
    /// The call returns this value and is not made.
    Value(i64),
    /// The call was parked: another thread responds later.
    Parked,
    /// The response has been sent, with a descriptor.
    Sent,
}

impl Response {
    /// Sends the response to the notification `id`.
    pub(crate) fn send(self, listener: BorrowedFd<'_>, id: u64) {
        // An error means that the caller has been killed meanwhile, so no thread waits for the
        // response.
        let _ = match self {
            Response::Continue => sys::answer_continue(listener, id),
            Response::Error(errno) => sys::answer_errno(listener, id, errno),
            Response::Value(value) => sys::answer_value(listener, id, value),
            Response::Parked | Response::Sent => Ok(()),
        };
    }
}
