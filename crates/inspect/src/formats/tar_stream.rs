//! The members of a tar archive one after another, also of a compressed one.
//!
//! | compression | first bytes | decoder |
//! | --- | --- | --- |
//! | gzip | `1f 8b` | `flate2` |
//! | bzip2 | `BZh` | `bzip2` |
//! | xz | `fd 37 7a 58 5a 00` | `lzma-rust2` |
//! | zstd | `28 b5 2f fd` | `zstd` |

use std::io;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use tar::EntryType;

use crate::{Read, UnreadableContent};

/// The most bytes that an archive may unpack to.
const LARGEST: u64 = 1 << 30;

/// The most memory of the dictionary of xz, in KiB.
const DICTIONARY: u32 = 80 << 10;

/// The word for a member with a content.
pub const FILE: &str = "file";

/// An archive that is read from its start.
pub struct TarStream<'d> {
    /// The word for its compression, empty without one.
    pub compression: &'static str,
    /// Its members.
    pub archive: tar::Archive<Box<dyn io::Read + 'd>>,
}

impl<'d> TarStream<'d> {
    pub fn open(bytes: &'d [u8]) -> Read<TarStream<'d>> {
        let (compression, reader): (_, Box<dyn io::Read + 'd>) = match bytes {
            [0x1f, 0x8b, ..] => ("gzip", Box::new(MultiGzDecoder::new(bytes))),
            [b'B', b'Z', b'h', ..] => ("bzip2", Box::new(MultiBzDecoder::new(bytes))),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
                let reader = XzReader::new_mem_limit(bytes, true, DICTIONARY);
                ("xz", Box::new(reader))
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let reader = zstd::Decoder::new(bytes).map_err(UnreadableContent::of)?;
                ("zstd", Box::new(reader))
            }
            _ => ("", Box::new(bytes)),
        };
        Ok(TarStream {
            compression,
            archive: tar::Archive::new(Box::new(BoundedReader {
                reader,
                left: LARGEST,
            })),
        })
    }
}

/// A reader that fails behind its bound. An end there would be taken for the end of the archive,
/// and the members behind it for absent ones.
struct BoundedReader<'d> {
    reader: Box<dyn io::Read + 'd>,
    /// How many more bytes may come.
    left: u64,
}

impl io::Read for BoundedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        let room = room.min(into.len());
        if room == 0 && !into.is_empty() {
            let most = LARGEST >> 20;
            return match io::Read::read(&mut self.reader, &mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::other(format!(
                    "it unpacks to more than {most} MiB"
                ))),
            };
        }
        let length = io::Read::read(&mut self.reader, &mut into[..room])?;
        self.left -= length as u64;
        Ok(length)
    }
}

/// The word for a kind of members.
pub fn kind(of: EntryType) -> &'static str {
    match of {
        kind if kind.is_file() => FILE,
        kind if kind.is_dir() => "directory",
        kind if kind.is_symlink() => "symbolic link",
        kind if kind.is_hard_link() => "hard link",
        _ => "other",
    }
}

/// The digest of a member's content.
///
/// # Errors
/// The archive cannot be read. One that ends within the content fails at the next header: so
/// callers read on.
pub fn digest(content: &mut impl io::Read) -> Read<blake3::Hash> {
    let mut digest = blake3::Hasher::new();
    io::copy(content, &mut digest).map_err(UnreadableContent::of)?;
    Ok(digest.finalize())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn an_archive_that_unpacks_to_too_much_fails_and_does_not_end() {
        let read = |left| {
            let mut all = Vec::new();
            let reader = Box::new(&b"12345678"[..]);
            let mut reader = BoundedReader { reader, left };
            reader.read_to_end(&mut all).map(|_| all)
        };
        assert_eq!(read(9).unwrap(), b"12345678");
        assert_eq!(read(8).unwrap(), b"12345678");
        let error = read(7).unwrap_err().to_string();
        assert!(error.contains("unpacks to more than"), "{error}");
    }
}
