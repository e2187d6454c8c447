//! Parts of events that the server compressed (`log_bin_compress`), and compressed columns.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::byte_reader::ByteReader;

/// Most bytes of a compressed part: the server's limit of a packet.
const LONGEST: u64 = if cfg!(test) { 1 << 16 } else { 1 << 30 };

/// A compressed part: a head with the length of the next number, the length of the text, the text.
pub(crate) fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, packed) = framed(bytes)?;
    unpacked(ZlibDecoder::new(packed), length)
}

/// A compressed text without the head of zlib.
pub(crate) fn raw(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, packed) = framed(bytes)?;
    unpacked(DeflateDecoder::new(packed), length)
}

/// The length of a text, and its compressed form.
fn framed(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut reader = ByteReader(bytes);
    let head = reader.byte()?;
    let length = reader.big_endian(usize::from(head & 7))?;
    (length <= LONGEST).then_some((length, reader.0))
}

/// The text, if it has this length. Memory is taken as the text is unpacked, and not before.
fn unpacked(decoder: impl Read, length: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    decoder.take(length).read_to_end(&mut out).ok()?;
    (out.len() as u64 == length).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};
    use std::io::Write;

    #[test]
    fn a_text_is_unpacked_up_to_the_limit_of_a_packet() {
        for (length, is_read) in [(1000, true), (LONGEST, true), (LONGEST + 1, false)] {
            let text = vec![b'x'; length as usize];
            let mut head = vec![4];
            head.extend((length as u32).to_be_bytes());
            let mut plain = DeflateEncoder::new(head.clone(), Compression::fast());
            plain.write_all(&text).unwrap();
            let found = raw(&plain.finish().unwrap());
            assert_eq!(found.is_some(), is_read, "{length}");
            let mut zlib = ZlibEncoder::new(head, Compression::fast());
            zlib.write_all(&text).unwrap();
            let found = inflated(&zlib.finish().unwrap());
            assert_eq!(found, is_read.then_some(text), "{length}");
        }
    }
}
