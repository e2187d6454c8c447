//! One object as it lies in a file: a header of 60 bytes, then its bytes, compressed or not.
//!
//! ```text
//!  0   3  "bso"
//!  3   1  method: 0 as it is, 1 zstd, 2 changes from another content (`delta.rs`)
//!  4   4  CRC-32 of all other bytes of the header
//!  8   8  size of the content
//! 16   8  bytes stored
//! 24   4  CRC-32 of the bytes stored
//! 28  32  BLAKE3 of the content
//! 60      the bytes stored
//! ```
//!
//! Numbers are little-endian. The two checksums find every flipped bit, even one that a
//! decompressor ignores.

use backstory_files::Digest;

/// Bytes in a header.
pub const HEADER: usize = 60;

/// Largest content that lies in a pack, in bytes.
pub const SMALL: usize = 256 << 10;

/// The encoding of the stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// As they are.
    Raw,
    /// Compressed by zstd.
    Zstd,
    /// Changes from another content.
    Delta,
}

impl Method {
    const ALL: [Method; 3] = [Method::Raw, Method::Zstd, Method::Delta];

    /// Its number in a header.
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// The header before the stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub method: Method,
    /// Bytes of the content.
    pub size: u64,
    /// Bytes stored.
    pub stored: u64,
    /// CRC-32 of the bytes stored.
    pub check: u32,
    pub digest: Digest,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..3].copy_from_slice(b"bso");
        bytes[3] = self.method.number();
        bytes[8..16].copy_from_slice(&self.size.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.stored.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.check.to_le_bytes());
        bytes[28..].copy_from_slice(&self.digest.0);
        let check = checksum(&bytes);
        bytes[4..8].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes a header. `None` if these bytes are no header.
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER] = bytes.get(..HEADER)?.try_into().ok()?;
        if &bytes[..3] != b"bso" || bytes[4..8] != checksum(bytes).to_le_bytes() {
            return None;
        }
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        Some(Header {
            method: *Method::ALL.get(usize::from(bytes[3]))?,
            size: number(8)?,
            stored: number(16)?,
            check: bytes[24..28].try_into().map(u32::from_le_bytes).ok()?,
            digest: Digest(bytes[28..].try_into().ok()?),
        })
    }
}

fn checksum(header: &[u8; HEADER]) -> u32 {
    let mut check = crc32fast::Hasher::new();
    check.update(&header[..4]);
    check.update(&header[8..]);
    check.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_no_flipped_bit_passes() {
        let header = Header {
            method: Method::Zstd,
            size: 70_000,
            stored: 12,
            check: 0xdead_beef,
            digest: Digest([7; 32]),
        };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Some(header));
        for bit in 0..HEADER * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&flipped), None, "bit {bit}");
        }
    }
}
