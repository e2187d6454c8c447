//! Descriptors: closing inherited ones, passing one over a socket, and the network of a socket.
#![allow(unsafe_code)]

use crate::call::check;
use std::ffi::c_int;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// From `asm/socket.h`: not every version of libc has it.
const SO_NETNS_COOKIE: c_int = 71;

/// Closes an inherited descriptor, which has no owner in this process.
pub fn close(fd: RawFd) {
    // SAFETY: inherited, so nothing here owns it.
    unsafe { libc::close(fd) };
}

/// Closes all descriptors of this process from 3 on, but for one. They have no owner any more.
///
/// # Errors
/// The kernel is too old.
pub fn close_all_but(fd: BorrowedFd<'_>) -> io::Result<()> {
    let fd = fd.as_raw_fd() as u32;
    for (first, last) in [(3, fd.saturating_sub(1)), (fd.max(2) + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: for a forked copy of a process, which uses nothing that it has closed.
            check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
        }
    }
    Ok(())
}

/// Makes a descriptor a copy of another one, which an executed program inherits.
///
/// # Errors
/// The number is beyond the limit.
pub fn copy_descriptor(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: for a process that is about to execute, and uses no descriptor that this replaces.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }).map(drop)
}

/// Opens `/dev/null` as these standard descriptors.
pub fn nullify(fds: &[RawFd]) {
    // SAFETY: plain descriptors and a constant string.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null < 0 {
            return;
        }
        for &fd in fds {
            if fd != null {
                libc::dup2(null, fd);
            }
        }
        if !fds.contains(&null) {
            libc::close(null);
        }
    }
}

/// Two connected sockets that descriptors can be passed over.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [0; 2];
    // SAFETY: the array has two elements; the descriptors are new.
    unsafe {
        check(libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
            0,
            pair.as_mut_ptr(),
        ))?;
        Ok((OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])))
    }
}

const CONTROL: usize = 32; // >= CMSG_SPACE(size of one descriptor)

#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Sends a byte and a descriptor over a socket of [`socket_pair`].
pub fn send_fd(socket: BorrowedFd<'_>, byte: u8, fd: BorrowedFd<'_>) -> io::Result<()> {
    send_message(socket, &[byte], Some(fd))
}

/// Sends bytes over a socket, with a descriptor if there is one.
pub fn send_message(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut control = Control([0; CONTROL]);
    let mut iov = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: all pointers are to locals and to bytes that outlive the call, and sendmsg(2) only
    // reads them. The control buffer holds one descriptor.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &mut iov;
        message.msg_iovlen = 1;
        if let Some(fd) = fd {
            message.msg_control = control.0.as_mut_ptr().cast();
            // The C libraries differ in the type of both lengths.
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header)
                .cast::<RawFd>()
                .write_unaligned(fd.as_raw_fd());
        }
        let sent = libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL);
        check(sent as c_int).map(drop)
    }
}

/// The cookie of a socket's network namespace, which tells those of one boot apart. `None` where
/// the kernel has none (before Linux 5.14).
pub fn network_cookie(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut cookie = 0u64;
    let mut size = size_of::<u64>() as libc::socklen_t;
    // SAFETY: both pointers are to locals that outlive the call, and the size is that of the first.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &mut size,
        )
    };
    (result == 0).then_some(cookie)
}

/// Receives a byte, and the descriptor that came with it. `None` if no message is waiting.
pub fn receive_fd(socket: BorrowedFd<'_>) -> Option<(u8, Option<OwnedFd>)> {
    let mut byte = [0];
    let (_, fd) = receive(socket, &mut byte, libc::MSG_DONTWAIT)?;
    Some((byte[0], fd))
}

/// Waits for a message. Returns the number of bytes, and the descriptor that came with it. `None`
/// at the end of the connection, or after an error.
pub fn receive_message(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
) -> Option<(usize, Option<OwnedFd>)> {
    receive(socket, bytes, 0)
}

fn receive(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: c_int,
) -> Option<(usize, Option<OwnedFd>)> {
    let mut control = Control([0; CONTROL]);
    let mut iov = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: all pointers are to locals and to bytes that outlive the call; a descriptor that
    // arrives is new and has no other owner. The control buffer has room for one.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &mut iov;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        // Room for one descriptor, without padding: the kernel closes any other.
        message.msg_controllen = libc::CMSG_LEN(4) as _;
        let got = libc::recvmsg(
            socket.as_raw_fd(),
            &mut message,
            flags | libc::MSG_CMSG_CLOEXEC,
        );
        let count = usize::try_from(got).ok()?;
        let header = libc::CMSG_FIRSTHDR(&message);
        let passed = !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS;
        let fd = passed.then(|| libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned());
        // An empty message can have a descriptor, too.
        let fd = fd.map(|fd| OwnedFd::from_raw_fd(fd));
        (count > 0).then_some((count, fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::fs;
    use std::io::IoSlice;
    use std::mem::MaybeUninit;
    use std::os::fd::AsFd;

    #[test]
    fn of_a_message_with_two_descriptors_one_arrives_and_none_is_left_open() {
        let (ours, theirs) = socket_pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        let pipe = fs::read_link(format!("/proc/self/fd/{}", read.as_raw_fd())).unwrap();
        let both = [read.as_fd(), write.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&both)));
        let bytes = [IoSlice::new(b"x")];
        sendmsg(&theirs, &bytes, &mut control, SendFlags::empty()).unwrap();
        let mut byte = [0];
        let (count, first) = receive_message(ours.as_fd(), &mut byte).unwrap();
        assert!(count == 1 && first.is_some());
        drop((read, write, first));
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let is_pipe = |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|to| to == pipe);
        assert_eq!(open.filter(is_pipe).count(), 0);
    }
}
