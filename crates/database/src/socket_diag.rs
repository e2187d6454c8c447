//! Sockets of clients on this machine, by the kernel's socket diagnostics (`sock_diag(7)`).
//!
//! In: a process of the server, or the two addresses of a connection. Out: the inode of the socket
//! of the client. `None` in another network namespace, and for a process that this user may not
//! examine. Also `None` if the kernel lacks the diagnostics.
//!
//! A question about one socket takes microseconds. `/proc/net/tcp` takes milliseconds, and a client
//! may be gone by then.

use std::fs;
use std::net::{IpAddr, SocketAddr};

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
/// Offset of `idiag_inode` in an answer: behind `nlmsghdr`, in `struct inet_diag_msg`.
const INODE: usize = 16 + 68;

/// A client's end of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixPeer {
    /// The path that the server bound.
    pub path: String,
    /// Inode of the client's socket.
    pub inode: u64,
}

/// Finds the client that a process serves at a socket whose path ends so.
pub fn served_by(server_pid: u32, path_end: &str) -> Option<UnixPeer> {
    let mut peers = socket_inodes(server_pid).filter_map(peer);
    peers.find(|peer| peer.path.ends_with(path_end))
}

/// The inodes of a process's sockets with a path, and the other ends.
pub fn all_served_by(server_pid: u32) -> Vec<(u32, UnixPeer)> {
    let inodes = socket_inodes(server_pid);
    inodes
        .filter_map(|inode| Some((inode, peer(inode)?)))
        .collect()
}

/// The inodes of a process's sockets.
pub fn socket_inodes(pid: u32) -> impl Iterator<Item = u32> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let targets = descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter_map(|target| {
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']');
        inode?.parse::<u32>().ok()
    })
}

/// The other end of the socket with this inode, if its own end has a path.
pub fn peer(inode: u32) -> Option<UnixPeer> {
    answered(&answer(&of_unix(inode))?)
}

/// The inode of the socket of this machine that has these addresses.
pub fn tcp_inode(local: SocketAddr, remote: SocketAddr) -> Option<u64> {
    let message = answer(&of_tcp(local, remote)?)?;
    let inode = message.get(INODE..)?.first_chunk()?;
    let inode = u64::from(u32::from_ne_bytes(*inode));
    (half(&message, 4)? == BY_FAMILY && inode != 0).then_some(inode)
}

/// The kernel's answer to a question.
fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let flags = SocketFlags::CLOEXEC;
    let kind = SocketType::DGRAM;
    let family = AddressFamily::NETLINK;
    let socket = rustix::net::socket_with(family, kind, flags, Some(SOCK_DIAG)).ok()?;
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, question, SendFlags::empty(), &kernel).ok()?;
    let mut answer = vec![0; 1024];
    // The kernel has answered, or refused, before the request returns.
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::DONTWAIT).ok()?;
    answer.truncate(length);
    Some(answer)
}

/// `struct nlmsghdr` of a question with so many bytes behind it.
fn header(length: usize) -> Vec<u8> {
    const REQUEST: u32 = libc::NLM_F_REQUEST as u32;
    let kind = u32::from(BY_FAMILY) | REQUEST << 16;
    let words = [(HEADS.0 + length) as u32, kind, 1, 0];
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// A question about one Unix socket: `struct unix_diag_req`.
fn of_unix(inode: u32) -> Vec<u8> {
    let any_state = u32::MAX;
    let any_cookie = u32::MAX;
    let words = [
        libc::AF_UNIX as u32,
        any_state,
        inode,
        SHOW,
        any_cookie,
        any_cookie,
    ];
    let mut question = header(size_of_val(&words));
    question.extend(words.into_iter().flat_map(u32::to_ne_bytes));
    question
}

/// A question about one TCP socket: `struct inet_diag_req_v2`.
fn of_tcp(local: SocketAddr, remote: SocketAddr) -> Option<Vec<u8>> {
    let family = match (local, remote) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => libc::AF_INET,
        (SocketAddr::V6(_), SocketAddr::V6(_)) => libc::AF_INET6,
        _ => return None,
    };
    let mut question = header(56);
    question.extend([family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    question.extend(u32::MAX.to_ne_bytes());
    for end in [local, remote] {
        question.extend(end.port().to_be_bytes());
    }
    for end in [local, remote] {
        let mut host = match end.ip() {
            IpAddr::V4(host) => host.octets().to_vec(),
            IpAddr::V6(host) => host.octets().to_vec(),
        };
        host.resize(16, 0);
        question.extend(host);
    }
    // Any interface, any cookie.
    for word in [0, u32::MAX, u32::MAX] {
        question.extend(word.to_ne_bytes());
    }
    Some(question)
}

/// The two bytes at a place, as a number.
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(two))
}

/// The name and the peer in an answer. Each attribute has its length and kind before it, and begins
/// at a multiple of four.
fn answered(message: &[u8]) -> Option<UnixPeer> {
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
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn the_peer_of_a_servers_socket_is_the_clients_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("diagnosed");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (_server, _) = listener.accept().unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", client.as_raw_fd())).unwrap();
        let found = served_by(std::process::id(), "/diagnosed").unwrap();
        assert_eq!(found.path, path.to_str().unwrap());
        assert_eq!(format!("socket:[{}]", found.inode), link.to_str().unwrap());
    }

    #[test]
    fn the_socket_of_a_tcp_client_is_found_by_its_addresses() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let server = listener.local_addr().unwrap();
            let client = TcpStream::connect(server).unwrap();
            let own = client.local_addr().unwrap();
            let link = fs::read_link(format!("/proc/self/fd/{}", client.as_raw_fd())).unwrap();
            let found = tcp_inode(own, server).unwrap();
            assert_eq!(format!("socket:[{found}]"), link.to_str().unwrap());
            assert_eq!(tcp_inode(SocketAddr::new(own.ip(), 1), server), None);
        }
    }

    #[test]
    fn an_answer_that_is_cut_has_no_peer() {
        let whole = of_unix(1);
        for length in 0..whole.len() {
            assert_eq!(answered(&whole[..length]), None);
        }
    }
}
