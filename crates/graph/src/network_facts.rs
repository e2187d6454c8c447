//! The extended records about the network: names that were looked up, the ends of connections, and
//! what connections carried.
//!
//! | kind | payload |
//! | --- | --- |
//! | `name-looked-up` | the size of the address (u8), the address (4 or 16 bytes, none without an answer), the name |
//! | `connection` | 1 if it was accepted (u8), the cookie of the network (u64, little-endian), and three texts with a NUL between them: the address of the own end, of the other end, and the name of the entity |
//! | `connections-closed-by-exec` | the name of the entity: the process inherited connections of this name, used none, and closed all when it executed its program |
//! | `traffic` | bytes sent, bytes received (u64, little-endian), the address as text |

use std::net::SocketAddr;

/// The end of the name of an address, if the entity is the direction from the server: its answers.
pub const REPLY: &[u8] = b" (reply)";

/// The kind of a record about a name.
pub const NAME: &[u8] = b"name-looked-up";

/// The kind of a record about the ends of a connection.
pub const ENDS: &[u8] = b"connection";

/// The kind of a record about what a connection carried.
pub const TRAFFIC: &[u8] = b"traffic";

/// The kind of a record about inherited connections that an exec closed.
pub const CLOSED_BY_EXEC: &[u8] = b"connections-closed-by-exec";

/// A name that a process looked up, and one address of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookedUpName<'p> {
    /// The name.
    pub name: &'p [u8],
    /// Its address. `None` if there was no answer.
    pub address: Option<std::net::IpAddr>,
}

/// The ends of a connection, as the process with one of them saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionEnds<'p> {
    /// True for the process that accepted the connection.
    pub accepted: bool,
    /// The cookie of the network namespace, which tells those of one boot apart. 0 if unknown.
    pub network: u64,
    /// The address of the process's own end.
    pub own: SocketAddr,
    /// The address of the other end.
    pub other: SocketAddr,
    /// The address in the name of the entity.
    pub address: &'p [u8],
}

/// The payload for the ends of a connection.
pub fn encode_ends(
    accepted: bool,
    network: u64,
    own: SocketAddr,
    other: SocketAddr,
    address: &[u8],
) -> Vec<u8> {
    let ends = format!("{own}\0{other}\0");
    let (accepted, network) = ([u8::from(accepted)], network.to_le_bytes());
    [&accepted[..], &network, ends.as_bytes(), address].concat()
}

/// The ends of a connection in a record. `None` for a record of another kind.
pub fn connection_ends<'p>(kind: &[u8], payload: &'p [u8]) -> Option<ConnectionEnds<'p>> {
    let (&accepted, rest) = payload.split_first()?;
    let (network, rest) = rest.split_first_chunk()?;
    let mut texts = rest.splitn(3, |&byte| byte == 0);
    let mut end = || std::str::from_utf8(texts.next()?).ok()?.parse().ok();
    let (own, other) = (end()?, end()?);
    (kind == ENDS).then_some(ConnectionEnds {
        accepted: accepted == 1,
        network: u64::from_le_bytes(*network),
        own,
        other,
        address: texts.next()?,
    })
}

/// The bytes that a connection carried until a process closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionTraffic<'p> {
    /// The address, as the entity of the connection is named.
    pub address: &'p [u8],
    /// Bytes that the process sent.
    pub sent: u64,
    /// Bytes that the other end sent.
    pub received: u64,
}

/// The payload for a name and an address of 4 or 16 bytes, or none.
pub fn encode_name(name: &[u8], address: &[u8]) -> Vec<u8> {
    [&[address.len() as u8], address, name].concat()
}

/// The name in a record. `None` for a record of another kind.
pub fn looked_up_name<'p>(kind: &[u8], payload: &'p [u8]) -> Option<LookedUpName<'p>> {
    let (&size, rest) = payload.split_first()?;
    let (address, name) = rest.split_at_checked(usize::from(size))?;
    let address = <[u8; 4]>::try_from(address).map(Into::into);
    let address =
        address.or_else(|_| <[u8; 16]>::try_from(&rest[..usize::from(size)]).map(Into::into));
    (kind == NAME).then_some(LookedUpName {
        name,
        address: address.ok(),
    })
}

/// The name of the connections that an exec closed. `None` for a record of another kind.
pub fn connections_closed_by_exec<'p>(kind: &[u8], payload: &'p [u8]) -> Option<&'p [u8]> {
    (kind == CLOSED_BY_EXEC).then_some(payload)
}

/// The payload for a connection.
pub fn encode_traffic(address: &[u8], sent: u64, received: u64) -> Vec<u8> {
    [&sent.to_le_bytes()[..], &received.to_le_bytes(), address].concat()
}

/// The connection in a record. `None` for a record of another kind.
pub fn connection_traffic<'p>(kind: &[u8], payload: &'p [u8]) -> Option<ConnectionTraffic<'p>> {
    let (sent, rest) = payload.split_first_chunk()?;
    let (received, address) = rest.split_first_chunk()?;
    (kind == TRAFFIC).then_some(ConnectionTraffic {
        address,
        sent: u64::from_le_bytes(*sent),
        received: u64::from_le_bytes(*received),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_about_the_network_is_read_as_it_was_written() {
        let name = encode_name(b"h.example", &[127, 0, 0, 1]);
        let read = looked_up_name(NAME, &name).unwrap();
        assert_eq!(read.name, b"h.example");
        assert_eq!(read.address, Some([127, 0, 0, 1].into()));
        let none = encode_name(b"h.example", b"");
        assert_eq!(looked_up_name(NAME, &none).unwrap().address, None);
        let traffic = encode_traffic(b"tcp:[::1]:80", 3, 1 << 40);
        let read = connection_traffic(TRAFFIC, &traffic).unwrap();
        let expected = ConnectionTraffic {
            address: b"tcp:[::1]:80",
            sent: 3,
            received: 1 << 40,
        };
        assert_eq!(read, expected);
        assert_eq!(connection_traffic(NAME, &traffic), None);
        let ends = ConnectionEnds {
            accepted: true,
            network: 7,
            own: "[::1]:80".parse().unwrap(),
            other: "10.0.0.1:4000".parse().unwrap(),
            address: b"tcp:[::]:80",
        };
        let payload = encode_ends(true, 7, ends.own, ends.other, ends.address);
        assert_eq!(connection_ends(ENDS, &payload), Some(ends));
        assert_eq!(connection_ends(TRAFFIC, &payload), None);
        assert_eq!(connection_ends(ENDS, &payload[..12]), None);
    }
}
