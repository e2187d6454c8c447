//! Socket addresses as bytes: the path in an address, the part that identifies it, and its text for
//! people.

use std::net::{IpAddr, SocketAddr};

use backstory_eventlog::event::Bytes;

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// The path in a socket address, if it has one.
pub(super) fn unix_path(address: &[u8]) -> Option<&[u8]> {
    let (family, path) = address.split_first_chunk::<2>()?;
    let path = path.split(|&b| b == 0).next().unwrap_or_default();
    (u16::from_le_bytes(*family) == AF_UNIX && !path.is_empty()).then_some(path)
}

/// The part of a socket address that identifies it, without padding and flow information.
pub(super) fn plain(address: &[u8]) -> Bytes {
    let family = address
        .get(..2)
        .map_or(0, |f| u16::from_le_bytes([f[0], f[1]]));
    match family {
        AF_UNIX => {
            let path = &address[2..];
            let length = match path {
                [0, ..] | [] => path.len(),
                _ => path.iter().position(|&b| b == 0).unwrap_or(path.len()),
            };
            address[..2 + length].into()
        }
        AF_INET if address.len() >= 8 => address[..8].into(),
        AF_INET6 if address.len() >= 24 => [&address[..4], &address[8..24]].concat().into(),
        _ => address.into(),
    }
}

/// How a socket carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Transport {
    /// A stream, or unknown.
    Stream,
    Datagrams,
    /// Packets of a protocol of the program's own.
    Raw,
}

impl Transport {
    /// By the type of a socket, as `socket(2)` has it; 0 if unknown.
    pub(super) fn of(kind: i32) -> Transport {
        match kind & 0xf {
            2 => Transport::Datagrams,
            3 => Transport::Raw,
            _ => Transport::Stream,
        }
    }

    /// The first part of the name of an internet address.
    fn word(self) -> &'static str {
        match self {
            Transport::Stream => "tcp",
            Transport::Datagrams => "udp",
            Transport::Raw => "ip",
        }
    }
}

/// True for an internet address without a port: the kernel chooses one.
pub(super) fn has_no_port(address: &[u8]) -> bool {
    matches!(address, [family, 0, 0, 0, ..]
        if [AF_INET, AF_INET6].contains(&u16::from(*family)))
}

/// The part of a plain internet address that is not its family and port.
fn host(address: &[u8]) -> Option<&[u8]> {
    let family = u16::from_le_bytes([*address.first()?, *address.get(1)?]);
    match (family, address.len()) {
        (AF_INET, 8) | (AF_INET6, 20) => Some(&address[4..]),
        _ => None,
    }
}

/// True for a plain address that stands for each address of the machine: `0.0.0.0`, `::`.
pub(super) fn is_wildcard(address: &[u8]) -> bool {
    host(address).is_some_and(|host| host.iter().all(|&byte| byte == 0))
}

/// True for a plain address of the loopback interface.
pub(super) fn is_loopback(address: &[u8]) -> bool {
    host(address).is_some_and(|host| match host.len() {
        4 => host[0] == 127,
        _ => host[..15].iter().all(|&byte| byte == 0) && host[15] == 1,
    })
}

/// The plain addresses of the loopback interface with the port of `address`.
pub(super) fn loopbacks(address: &[u8]) -> [Bytes; 2] {
    let port = address.get(2..4).unwrap_or(&[0, 0]);
    let four = [&AF_INET.to_le_bytes()[..], port, &[127, 0, 0, 1]].concat();
    let mut six = [&AF_INET6.to_le_bytes()[..], port, &[0; 16]].concat();
    six[19] = 1;
    [four.into(), six.into()]
}

/// The loopback address that the kernel takes for a wildcard to connect to; else the address.
pub(super) fn destination(address: Bytes) -> Bytes {
    if !is_wildcard(&address) {
        return address;
    }
    let [four, six] = loopbacks(&address);
    if address.len() == 8 { four } else { six }
}

/// The host of `peer` with the port of `bound`: the address of a server on the peer's machine. An
/// IPv4 host in an IPv6 address is an IPv4 address.
pub(super) fn beside(peer: &[u8], bound: &[u8]) -> Option<Bytes> {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    let (host, port) = (host(peer)?, bound.get(2..4)?);
    let (family, host) = match host.strip_prefix(&MAPPED) {
        Some(four) => (&AF_INET.to_le_bytes()[..], four),
        None => (&peer[..2], host),
    };
    Some([family, port, host].concat().into())
}

/// The internet address of an end of a connection. An IPv4 host in an IPv6 address is an IPv4
/// address, as the other end may have it.
pub(super) fn end_of_connection(address: &[u8]) -> Option<SocketAddr> {
    let address = plain(address);
    let port = u16::from_be_bytes(*address.get(2..)?.first_chunk()?);
    let host = match host(&address)? {
        four if four.len() == 4 => IpAddr::from(*four.first_chunk::<4>()?),
        six => IpAddr::from(*six.first_chunk::<16>()?).to_canonical(),
    };
    Some(SocketAddr::new(host, port))
}

/// A plain address for people: `unix:/run/x`, `tcp:127.0.0.1:80`.
pub(super) fn readable(address: &[u8], transport: Transport) -> Vec<u8> {
    let word = transport.word();
    let family = address
        .get(..2)
        .map_or(0, |f| u16::from_le_bytes([f[0], f[1]]));
    let port = address
        .get(2..4)
        .map_or(0, |p| u16::from_be_bytes([p[0], p[1]]));
    match (family, address.len()) {
        (AF_UNIX, 2) => b"unix:".to_vec(),
        (AF_UNIX, _) if address[2] == 0 => [b"unix:@", &address[3..]].concat(),
        (AF_UNIX, _) => [b"unix:", &address[2..]].concat(),
        (AF_INET, 8) => {
            let ip = std::net::Ipv4Addr::new(address[4], address[5], address[6], address[7]);
            format!("{word}:{ip}:{port}").into_bytes()
        }
        (AF_INET6, 20) => {
            let mut octets = [0; 16];
            octets.copy_from_slice(&address[4..20]);
            format!("{word}:[{}]:{port}", std::net::Ipv6Addr::from(octets)).into_bytes()
        }
        _ => format!("socket:family-{family}").into_bytes(),
    }
}
