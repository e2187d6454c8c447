//! The loopback device of a new network namespace, which starts without one.

use std::io;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Brings up the first interface, which is the loopback device, with one rtnetlink message
/// (rtnetlink(7)).
pub fn loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_ACK: u16 = 1 | 4;
    const UP: u32 = 1;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut message = Vec::new();
    message.extend(32u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_ACK.to_ne_bytes());
    message.extend([0; 8]);
    // Any family, no type; interface 1; its flag, and the mask of changed flags.
    message.extend([0; 4]);
    message.extend(1i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0u8; 64];
    let (got, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // Behind the header of 16 bytes: 0, or the negative error number.
    let code = answer
        .get(16..20)
        .filter(|_| got >= 20)
        .and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}
