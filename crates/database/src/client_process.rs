//! The process at the other end of a session, by its socket.
//!
//! In: the client's address, as the server sees it, or the server's process. Out: the process of
//! this machine that has the client's socket. `None` for a process of another machine or network
//! namespace, of another user (unless root looks), and for one that is gone.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStringExt;

use crate::socket_diag::{self, UnixPeer};

/// Most bytes of arguments that are read.
const ARGUMENTS: usize = 1 << 14;

/// A client of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProcess {
    /// Its id.
    pub pid: u32,
    /// Start in clock ticks since boot. With the id, it identifies the process.
    pub born: u64,
    /// The executed file.
    pub program: Option<Vec<u8>>,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// Its working directory.
    pub directory: Option<Vec<u8>>,
    /// The names of the server's address, as the client may have used it: `tcp:HOST:PORT` or
    /// `unix:PATH`.
    pub server: Vec<String>,
}

/// Finds the client that a process of the server serves at a Unix socket.
pub fn find_local(server_pid: u32) -> Option<ClientProcess> {
    find_peer(&socket_diag::served_by(server_pid)?)
}

/// Finds the process at this end of a Unix socket.
pub fn find_peer(peer: &UnixPeer) -> Option<ClientProcess> {
    client(peer.inode, socket_names(&peer.path))
}

/// The names of a Unix socket: with the path that the server bound, and with the path without
/// symbolic links, if that is another one.
pub fn socket_names(path: &str) -> Vec<String> {
    let real = fs::canonicalize(path).ok();
    let real = real.as_deref().and_then(|real| real.to_str());
    let mut names = vec![format!("unix:{path}")];
    names.extend(
        real.filter(|real| *real != path)
            .map(|real| format!("unix:{real}")),
    );
    names
}

/// Finds the client that has this address and a connection to the server's port.
pub fn find(host: &str, port: u16, server_port: u16) -> Option<ClientProcess> {
    let host: IpAddr = host.parse().ok()?;
    let local = SocketAddr::new(host, port);
    // A client that connects to an address of its own machine has that address, too.
    let server = SocketAddr::new(host, server_port);
    if let Some(inode) = socket_diag::tcp_inode(local, server) {
        return client(inode, vec![format!("tcp:{server}")]);
    }
    let (server, inode) = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| {
            let text = fs::read_to_string(table).ok()?;
            text.lines()
                .find_map(|line| connection(line, local, server_port))
        })?;
    client(inode, vec![format!("tcp:{server}")])
}

/// The process that has the socket with this inode.
fn client(inode: u64, server: Vec<String>) -> Option<ClientProcess> {
    let pid = holder(inode)?;
    let link = |name: &str| {
        let target = fs::read_link(format!("/proc/{pid}/{name}")).ok()?;
        Some(target.into_os_string().into_vec())
    };
    let mut arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.truncate(ARGUMENTS);
    let arguments = arguments.strip_suffix(&[0]).unwrap_or(&arguments);
    Some(ClientProcess {
        pid,
        born: born(pid)?,
        program: link("exe"),
        arguments: arguments
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect(),
        directory: link("cwd"),
        server,
    })
}

/// The server's address and the inode of the socket, if a line of the table is this connection.
fn connection(line: &str, local: SocketAddr, server_port: u16) -> Option<(SocketAddr, u64)> {
    let mut words = line.split_whitespace();
    let (own, other) = (words.nth(1)?, words.next()?);
    let (own, other) = (address(own)?, address(other)?);
    let inode: u64 = words.nth(6)?.parse().ok()?;
    let same = own.port() == local.port() && own.ip().to_canonical() == local.ip().to_canonical();
    (same && other.port() == server_port && inode != 0).then_some((other, inode))
}

/// An address of the table: the bytes of each 32-bit word in the machine's order.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut words = (0..host.len() / 8).map(|at| {
        let word = host.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let host = match host.len() {
        8 => IpAddr::V4(Ipv4Addr::from(words.next()??)),
        32 => {
            let mut octets = [0; 16];
            for chunk in octets.chunks_exact_mut(4) {
                chunk.copy_from_slice(&words.next()??);
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(host, port))
}

/// The newest process that has the socket with this inode.
fn holder(inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    let has_it = |pid: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        descriptors.into_iter().flatten().flatten().any(|entry| {
            fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == &*wanted)
        })
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut ids: Vec<u32> = ids.collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.into_iter().find(has_it)
}

fn born(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = backstory_sys::process_tree::stat_fields(&stat)?;
    fields.nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn the_process_behind_a_connection_is_found_by_its_port() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let server = listener.local_addr().unwrap();
            let stream = TcpStream::connect(server).unwrap();
            let own = stream.local_addr().unwrap();
            let found = find(&own.ip().to_string(), own.port(), server.port()).unwrap();
            assert_eq!(found.pid, std::process::id());
            assert_eq!(found.server, [format!("tcp:{server}")]);
            drop(stream);
        }
    }

    #[test]
    fn the_process_behind_a_unix_socket_is_found_whatever_path_it_used() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real");
        fs::create_dir(&real).unwrap();
        let link = real.with_file_name("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let path = link.join("server");
        let listener = UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(real.join("server")).unwrap();
        let _accepted = listener.accept().unwrap();
        let found = find_local(std::process::id()).unwrap();
        assert_eq!(found.pid, std::process::id());
        let names = [path, real.join("server")].map(|path| format!("unix:{}", path.display()));
        assert_eq!(found.server, names);
    }

    #[test]
    fn a_connection_that_is_not_there_has_no_process() {
        assert_eq!(find("127.0.0.1", 1, 1), None);
        assert_eq!(find("[local]", 0, 5432), None);
    }
}
