//! The extended record of a connection that failed.
//!
//! In and out: the kind `connect-failed`, and as payload the errno (i32, little-endian) and the
//! address as text. A connection to a path that does not exist has no such record: the path is a
//! missing entity.

/// The kind of the record.
pub const KIND: &[u8] = b"connect-failed";

/// The payload for a connection to an address.
pub fn encode(address: &[u8], errno: i32) -> Vec<u8> {
    [&errno.to_le_bytes()[..], address].concat()
}

/// The address and the errno in a record. `None` for a record of another kind.
pub fn refused_connection<'p>(kind: &[u8], payload: &'p [u8]) -> Option<(&'p [u8], i32)> {
    let (errno, address) = payload.split_first_chunk::<4>()?;
    (kind == KIND).then_some((address, i32::from_le_bytes(*errno)))
}
