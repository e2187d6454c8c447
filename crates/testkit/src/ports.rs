//! Ports of this machine for servers of tests.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// A port of the loopback address that nothing listens at. The kernel chooses it.
///
/// # Errors
///
/// No port is free.
pub fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
