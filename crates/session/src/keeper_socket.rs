//! The keeper's socket for processes whose new filter the supervisor does not serve
//! (`--guard=auto`).
//!
//! In: the listener of a process that got no response to it from the supervisor (`guard_socket`).
//! In most cases the supervisor was killed meanwhile. Out: the listener, for the keeper to respond
//! by.
//!
//! Invariants:
//!
//! - The keeper alone has the socket. Once it is dead, no message can be sent, so no process waits
//!   for it.
//! - A listener whose message was accepted is received, also while the socket is closed.
//! - A listener stays open in a message that waits here. So the process needs no response: its
//!   watched calls wait until the keeper has the listener.
//!
//! Absent on purpose: a check of the sender, for the reason in `guard_socket`.

use crate::guard_socket::{bound, is_listener};
use backstory_abi::GUARD_LISTENER;
use backstory_arena::keeper_socket_path;
use backstory_sys as sys;
use rustix::net::{Shutdown, SocketType, shutdown};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Messages that are received before the keeper looks at its other descriptors again.
const AT_ONCE: usize = 256;

/// The socket.
pub(crate) struct KeeperSocket(OwnedFd);

impl KeeperSocket {
    /// Makes the socket beside an arena.
    ///
    /// # Errors
    /// No descriptor is left, or the path is taken.
    pub(crate) fn create(arena: &Path) -> io::Result<KeeperSocket> {
        bound(&keeper_socket_path(arena), SocketType::DGRAM).map(KeeperSocket)
    }

    /// The descriptor to poll before [`KeeperSocket::take`].
    pub(crate) fn waits_for(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The listeners that have arrived. Does not wait.
    pub(crate) fn take(&self) -> Vec<OwnedFd> {
        self.received(AT_ONCE)
    }

    /// Refuses further messages, and closes the socket. Returns the listeners that had arrived.
    pub(crate) fn close(self) -> Vec<OwnedFd> {
        // From here on, a sender gets EPIPE. Messages that wait can still be received.
        let _ = shutdown(&self.0, Shutdown::Read);
        self.received(usize::MAX)
    }

    /// The listeners in the next messages, of which so many are received at most.
    fn received(&self, most: usize) -> Vec<OwnedFd> {
        // The first byte of a request is that of its kind.
        let messages = std::iter::from_fn(|| sys::receive_fd(self.0.as_fd())).take(most);
        let listeners = messages.filter(|(kind, _)| u32::from(*kind) == GUARD_LISTENER);
        let listeners = listeners.filter_map(|(_, descriptor)| descriptor);
        listeners.filter(|one| is_listener(one.as_fd())).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fallback_responder::FallbackResponder;
    use crate::guard_filters::tests::guarded;
    use backstory_abi::GuardRequest;
    use backstory_guard::SharedBuffers;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, bind, connect, socket_with};
    use std::sync::Arc;

    /// True if a message cannot be sent to a socket at this path.
    pub(crate) fn is_refused(path: &Path) -> bool {
        connect(datagram_socket(), &SocketAddrUnix::new(path).unwrap()).is_err()
    }

    fn datagram_socket() -> OwnedFd {
        let flags = SocketFlags::CLOEXEC;
        socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None).unwrap()
    }

    fn send_request(path: &Path, descriptor: Option<BorrowedFd<'_>>) {
        let socket = datagram_socket();
        connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        let request = GuardRequest {
            kind: GUARD_LISTENER,
            ..GuardRequest::default()
        };
        sys::send_message(socket.as_fd(), &request.to_bytes(), descriptor).unwrap();
    }

    /// Sends a descriptor to a socket, as a recorder does.
    pub(crate) fn send(path: &Path, descriptor: BorrowedFd<'_>) {
        send_request(path, Some(descriptor));
    }

    /// Sends a message without a descriptor.
    pub(crate) fn send_nothing(path: &Path) {
        send_request(path, None);
    }

    /// A socket in this directory. The mask of the other tests stays as it is.
    pub(crate) fn socket_at(path: &Path) -> KeeperSocket {
        let socket = datagram_socket();
        bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        KeeperSocket(socket)
    }

    #[test]
    fn a_listener_that_its_process_has_sent_and_closed_is_responded_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = socket_at(&path);
        let (listener, go, thread) = guarded();
        let listener = match listener {
            Ok(listener) => listener,
            Err(error) => {
                let why = error.to_string();
                return backstory_testkit::need::skipped("a filter without supervisor", &why);
            }
        };
        send(&path, listener.as_fd());
        drop(listener);
        go.send(()).unwrap();
        let taken = socket.take();
        assert!(socket.take().is_empty());
        let responders: Vec<FallbackResponder> = taken
            .into_iter()
            .map(|listener| {
                let buffers = Arc::new(SharedBuffers::create().unwrap());
                FallbackResponder::begin(listener, buffers)
            })
            .collect();
        assert_eq!(responders.len(), 1);
        assert!(thread.join().unwrap());
    }

    #[test]
    fn a_descriptor_that_is_no_listener_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = socket_at(&path);
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        send(&path, write.as_fd());
        drop(write);
        assert!(socket.take().is_empty());
        // Nobody can write to the pipe any more.
        assert_eq!(rustix::io::read(&read, &mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn without_the_keeper_no_message_can_be_sent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(socket_at(&path));
        assert!(is_refused(&path));
    }
}
