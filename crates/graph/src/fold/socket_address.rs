//! Socket addresses as bytes: the path in an address, the part that identifies it, and its text for
//! people.

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
