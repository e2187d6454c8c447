//! The other end of a Unix socket, by the kernel's socket diagnostics (`sock_diag(7)`).
//!
//! In: a process of the server. Out: the path of the server's socket at which it serves a client,
//! and the inode of the client's socket. `None` for a process in another network namespace, and for
//! one that this user may not examine. Also `None` if the kernel lacks diagnostics of Unix sockets.

use std::fs;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// `SOCK_DIAG_BY_FAMILY`
const BY_FAMILY: u16 = 20;
/// `UDIAG_SHOW_NAME | UDIAG_SHOW_PEER`
const SHOW: u32 = 1 | 4;
/// `UNIX_DIAG_NAME`
const NAME: u16 = 0;
/// `UNIX_DIAG_PEER`
const PEER: u16 = 2;
/// Length of `struct nlmsghdr`, and then of `struct unix_diag_msg`.
const HEADS: (usize, usize) = (16, 16);

/// A client's end of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnixPeer {
    /// The path that the server bound.
    pub(crate) path: String,
    /// Inode of the client's socket.
    pub(crate) inode: u64,
}

/// Finds the client that a process serves at a socket with a path.
pub(crate) fn served_by(server_pid: u32) -> Option<UnixPeer> {
    let descriptors = fs::read_dir(format!("/proc/{server_pid}/fd")).ok()?;
    let targets = descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut inodes = targets.filter_map(|target| {
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']');
        inode?.parse::<u32>().ok()
    });
    inodes.find_map(peer)
}

/// The other end of the socket with this inode, if its own end has a path.
fn peer(inode: u32) -> Option<UnixPeer> {
    let flags = SocketFlags::CLOEXEC;
    let kind = SocketType::DGRAM;
    let family = AddressFamily::NETLINK;
    let socket = rustix::net::socket_with(family, kind, flags, Some(SOCK_DIAG)).ok()?;
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &request(inode), SendFlags::empty(), &kernel).ok()?;
    let mut answer = [0; 1024];
    // The kernel has answered, or refused, before the request returns.
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::DONTWAIT).ok()?;
    answered(answer.get(..length)?)
}

/// `nlmsghdr` and `unix_diag_req` for one socket.
fn request(inode: u32) -> Vec<u8> {
    const REQUEST: u32 = libc::NLM_F_REQUEST as u32;
    let kind = u32::from(BY_FAMILY) | REQUEST << 16;
    let header = [40, kind, 1, 0];
    let any_state = u32::MAX;
    let any_cookie = [u32::MAX; 2];
    let wanted = [libc::AF_UNIX as u32, any_state, inode, SHOW];
    let words = header.iter().chain(&wanted).chain(&any_cookie);
    words.flat_map(|word| word.to_ne_bytes()).collect()
}

/// The name and the peer in an answer. Each attribute has its length and kind before it, and begins
/// at a multiple of four.
fn answered(message: &[u8]) -> Option<UnixPeer> {
    let half = |bytes: &[u8], at: usize| {
        let two = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_ne_bytes(two))
    };
    if half(message, 4)? != BY_FAMILY {
        return None;
    }
    let mut rest = message.get(HEADS.0 + HEADS.1..)?;
    let (mut path, mut inode) = (None, None);
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let value = rest.get(4..usize::from(length))?;
        match kind {
            NAME => path = Some(String::from_utf8_lossy(value).into_owned()),
            PEER => inode = Some(u64::from(u32::from_ne_bytes(value.try_into().ok()?))),
            _ => (),
        }
        rest = rest
            .get(usize::from(length).next_multiple_of(4)..)
            .unwrap_or_default();
    }
    let path = path?.trim_end_matches('\0').to_owned();
    let inode = inode.filter(|inode| *inode != 0)?;
    path.starts_with('/').then_some(UnixPeer { path, inode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn the_peer_of_a_servers_socket_is_the_clients_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (_server, _) = listener.accept().unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", client.as_raw_fd())).unwrap();
        let found = served_by(std::process::id()).unwrap();
        assert_eq!(found.path, path.to_str().unwrap());
        assert_eq!(format!("socket:[{}]", found.inode), link.to_str().unwrap());
    }

    #[test]
    fn an_answer_that_is_cut_has_no_peer() {
        let whole = request(1);
        for length in 0..whole.len() {
            assert_eq!(answered(&whole[..length]), None);
        }
    }
}
