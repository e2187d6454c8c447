//! Parts of events that the server compressed (`log_bin_compress`), and compressed columns.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::byte_reader::ByteReader;

/// Most bytes of a compressed part: the server's limit of a packet.
const LONGEST: u64 = 1 << 30;

/// A compressed part: a head with the length of the next number, the length of the text, the text.
pub(crate) fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = ByteReader(bytes);
    let head = reader.byte()?;
    let length = reader.big_endian(usize::from(head & 7))?;
    (length <= LONGEST).then_some(())?;
    let mut out = Vec::new();
    let read = ZlibDecoder::new(reader.0)
        .take(length)
        .read_to_end(&mut out);
    read.ok()?;
    (out.len() as u64 == length).then_some(out)
}

/// A compressed text without the head of zlib.
pub(crate) fn raw(framed: &[u8]) -> Option<Vec<u8>> {
    let mut reader = ByteReader(framed);
    let head = reader.byte()?;
    let length = reader.big_endian(usize::from(head & 7))?;
    let mut out = Vec::new();
    let decoder = DeflateDecoder::new(reader.0);
    decoder.take(length).read_to_end(&mut out).ok()?;
    (out.len() as u64 == length).then_some(out)
}
