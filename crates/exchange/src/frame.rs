//! The frames of the protocol. `docs/formats/exchange.md` draws them.
//!
//! ```text
//! each side first: "bsstores"  version u32  0 u32
//! then frames:      0  4  bytes of the payload    4  1  kind    5  payload
//! ```
//!
//! Numbers are little-endian. Invariant: a reader takes at most [`LONGEST_MESSAGE`] bytes of memory
//! for a frame, whatever length the frame claims.

use std::io::{ErrorKind, Read, Write};

use crate::{Error, Result};

/// The first bytes of each side.
pub const MAGIC: &[u8; 8] = b"bsstores";
/// The version of the protocol.
pub const VERSION: u32 = 1;
/// Longest message, in bytes.
pub const LONGEST_MESSAGE: usize = 1 << 20;
/// Longest piece of an archive, in bytes.
pub const LONGEST_PIECE: usize = 1 << 16;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request or a reply, in JSON.
    Message = 1,
    /// A piece of an archive.
    Piece = 2,
    /// The archive is complete.
    End = 3,
    /// The archive will not be completed. The payload says why.
    Abort = 4,
}

impl Kind {
    fn of(number: u8) -> Option<Kind> {
        let all = [Kind::Message, Kind::Piece, Kind::End, Kind::Abort];
        all.into_iter().find(|kind| *kind as u8 == number)
    }

    fn longest(self) -> usize {
        match self {
            Kind::Message => LONGEST_MESSAGE,
            Kind::Piece => LONGEST_PIECE,
            Kind::End => 0,
            Kind::Abort => 4096,
        }
    }
}

fn lost(error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            Error::Connection("the connection ended".to_owned())
        }
        _ => Error::Connection(format!("the connection failed: {error}")),
    }
}

/// Writes this side's first bytes.
pub fn greet(out: &mut dyn Write) -> Result<()> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 4]);
    out.write_all(&bytes)
        .and_then(|()| out.flush())
        .map_err(lost)
}

/// Reads the other side's first bytes, and returns its version. `Err` with the bytes that came
/// instead, if they are no greeting.
pub fn greeting(input: &mut dyn Read) -> std::result::Result<u32, Vec<u8>> {
    let mut bytes = Vec::new();
    let read = input.take(16).read_to_end(&mut bytes);
    let version = bytes.get(8..12).and_then(|four| four.try_into().ok());
    match version.map(u32::from_le_bytes) {
        Some(version) if read.is_ok() && bytes.len() == 16 && bytes.starts_with(MAGIC) => {
            Ok(version)
        }
        _ => Err(bytes),
    }
}

/// Writes a frame. The payload is at most as long as its kind allows.
pub fn write(out: &mut dyn Write, kind: Kind, payload: &[u8]) -> Result<()> {
    if payload.len() > kind.longest() {
        return Err(Error::Protocol(format!(
            "a frame of {} bytes is longer than {}",
            payload.len(),
            kind.longest()
        )));
    }
    let mut head = (payload.len() as u32).to_le_bytes().to_vec();
    head.push(kind as u8);
    out.write_all(&head)
        .and_then(|()| out.write_all(payload))
        .map_err(lost)
}

/// Sends the frames that were written.
pub fn flush(out: &mut dyn Write) -> Result<()> {
    out.flush().map_err(lost)
}

/// Reads a frame. `None` if the other side ended the stream before it.
pub fn read(input: &mut dyn Read) -> Result<Option<(Kind, Vec<u8>)>> {
    let mut head = Vec::new();
    input.take(5).read_to_end(&mut head).map_err(lost)?;
    let head: [u8; 5] = match head.len() {
        0 => return Ok(None),
        5 => head.try_into().unwrap_or_default(),
        _ => return Err(lost(ErrorKind::UnexpectedEof.into())),
    };
    let [a, b, c, d, kind] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let Some(kind) = Kind::of(kind) else {
        return Err(Error::Protocol(format!("there is no frame of kind {kind}")));
    };
    if length > kind.longest() {
        return Err(Error::Protocol(format!(
            "a frame of {length} bytes is longer than {}",
            kind.longest()
        )));
    }
    let mut payload = Vec::new();
    let read = input.take(length as u64).read_to_end(&mut payload);
    match read.map_err(lost)? == length {
        true => Ok(Some((kind, payload))),
        false => Err(lost(ErrorKind::UnexpectedEof.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_a_longer_one_than_allowed_is_refused() {
        let mut bytes = Vec::new();
        write(&mut bytes, Kind::Message, b"{}").unwrap();
        write(&mut bytes, Kind::End, b"").unwrap();
        let mut input = bytes.as_slice();
        assert_eq!(
            read(&mut input).unwrap(),
            Some((Kind::Message, b"{}".to_vec()))
        );
        assert_eq!(read(&mut input).unwrap(), Some((Kind::End, Vec::new())));
        assert_eq!(read(&mut input).unwrap(), None);
        for (kind, length) in [
            (1, LONGEST_MESSAGE + 1),
            (2, LONGEST_PIECE + 1),
            (3, 1),
            (9, 0),
        ] {
            let mut bytes = (length as u32).to_le_bytes().to_vec();
            bytes.push(kind);
            let refused = read(&mut bytes.as_slice());
            assert!(
                matches!(refused, Err(Error::Protocol(_))),
                "{kind} {length}"
            );
        }
        assert!(write(&mut Vec::new(), Kind::End, b"x").is_err());
    }

    #[test]
    fn a_cut_frame_is_a_lost_connection() {
        let mut bytes = Vec::new();
        write(&mut bytes, Kind::Message, b"{\"a\": 1}").unwrap();
        for cut in 1..bytes.len() {
            let lost = read(&mut &bytes[..cut]);
            assert!(matches!(lost, Err(Error::Connection(_))), "cut at {cut}");
        }
    }
}
