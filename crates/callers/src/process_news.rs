//! The kernel's news of processes: which one executed a program, which one ended.
//!
//! The source is the process connector of the kernel (`cn_proc`), a netlink socket. The kernel puts
//! a message into the socket before the process continues. So the messages about a process precede
//! its next request, and a process without a message still runs the program that is known.
//!
//! Absent on machines where the kernel does not offer it: in containers, and for an ordinary user
//! before Linux 6.6. The callers are then looked at for each request.

use rustix::io::{Errno, Result};
use rustix::net::netlink::{CONNECTOR, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Number of the process connector among connectors (`CN_IDX_PROC`), and its value.
const CONNECTOR_INDEX: u32 = 1;
/// `PROC_CN_MCAST_LISTEN`
const LISTEN: u32 = 1;
/// `PROC_EVENT_NONE`: the answer to a subscription.
const ACKNOWLEDGED: u32 = 0;
/// `PROC_EVENT_EXEC`
const EXEC: u32 = 2;
/// `PROC_EVENT_EXIT`
const EXIT: u32 = 0x8000_0000;
/// Length of `struct nlmsghdr`, then of `struct cn_msg`.
const HEADS: (usize, usize) = (16, 20);
/// Offset of the data behind `what`, `cpu` and `timestamp_ns` of `struct proc_event`.
const DATA: usize = 16;
/// Wanted size of the socket's buffer.
const ROOM: usize = 8 << 20;

/// A message about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessNews {
    /// The process has executed a program.
    Executed {
        /// The process.
        pid: u32,
    },
    /// A thread has ended.
    Ended {
        /// The thread.
        thread: u32,
    },
    /// Messages were lost: each process may have executed or ended.
    Missed,
}

/// The socket.
#[derive(Debug)]
pub struct NewsSocket(OwnedFd);

impl AsFd for NewsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl NewsSocket {
    /// Subscribes. `None` if the kernel does not offer it.
    pub(crate) fn open() -> Option<NewsSocket> {
        // Linux 6.6 sends chosen events only; an older kernel does not answer to that form.
        let chosen = NewsSocket::subscribed(&[LISTEN, EXEC | EXIT]);
        chosen.or_else(|_| NewsSocket::subscribed(&[LISTEN])).ok()
    }

    fn subscribed(words: &[u32]) -> Result<NewsSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::DGRAM;
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(CONNECTOR))?;
        // A smaller buffer loses messages sooner, and says so.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, ROOM);
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, CONNECTOR_INDEX))?;
        rustix::net::send(&socket, &subscription(words), SendFlags::empty())?;
        // The kernel answers before it returns. Other messages may precede the answer.
        loop {
            let mut message = [0; 256];
            let length = rustix::net::recv(&socket, &mut message, RecvFlags::empty())?.0;
            match event(message.get(..length).unwrap_or_default()) {
                Some((ACKNOWLEDGED, 0, _)) => return Ok(NewsSocket(socket)),
                Some((ACKNOWLEDGED, _, _)) => return Err(Errno::PERM),
                _ => (),
            }
        }
    }

    /// The next message, if there is one.
    pub(crate) fn next(&self) -> Option<ProcessNews> {
        loop {
            let mut message = [0; 256];
            match rustix::net::recv(&self.0, &mut message, RecvFlags::empty()) {
                Ok((length, _)) => match event(message.get(..length).unwrap_or_default()) {
                    Some((EXEC, _, pid)) => return Some(ProcessNews::Executed { pid }),
                    Some((EXIT, thread, _)) => return Some(ProcessNews::Ended { thread }),
                    _ => (),
                },
                Err(Errno::INTR) => (),
                // The buffer was full.
                Err(Errno::NOBUFS) => return Some(ProcessNews::Missed),
                Err(_) => return None,
            }
        }
    }
}

/// A message that subscribes: `nlmsghdr`, `cn_msg`, and the words of `proc_input`.
fn subscription(words: &[u32]) -> Vec<u8> {
    let data = size_of_val(words);
    let whole = (HEADS.0 + HEADS.1 + data) as u32;
    let done = libc::NLMSG_DONE as u32;
    let header = [whole, done, 0, std::process::id()];
    let connector = [CONNECTOR_INDEX, 1, 0, 0, data as u32];
    let all = header.iter().chain(&connector).chain(words);
    all.flat_map(|word| word.to_ne_bytes()).collect()
}

/// The kind of an event, and the first two words of its data.
fn event(message: &[u8]) -> Option<(u32, u32, u32)> {
    let event = message.get(HEADS.0 + HEADS.1..)?;
    let word = |at: usize| {
        let bytes = event.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    Some((word(0)?, word(DATA)?, word(DATA + 4).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_an_exec_and_then_of_the_end() {
        let Some(socket) = NewsSocket::open() else {
            eprintln!("skipped: the kernel offers no process connector here");
            return;
        };
        // Other processes may fill the socket's buffer before its messages are taken.
        while !tells_of_a_child(&socket) {}
    }

    /// Runs a child, and checks the messages about it. False if messages were lost.
    fn tells_of_a_child(socket: &NewsSocket) -> bool {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let pid = child.id();
        let mut news: Vec<ProcessNews> = std::iter::from_fn(|| socket.next()).collect();
        let ended = ProcessNews::Ended { thread: pid };
        // The kernel tells the parent first.
        while !news.contains(&ended) && !news.contains(&ProcessNews::Missed) {
            news.extend(socket.next());
            std::thread::yield_now();
        }
        if news.contains(&ProcessNews::Missed) {
            return false;
        }
        let executed = ProcessNews::Executed { pid };
        let at = |one| news.iter().position(|other| *other == one);
        assert!(
            at(executed).is_some_and(|at_exec| Some(at_exec) < at(ended)),
            "{news:?}"
        );
        true
    }
}
