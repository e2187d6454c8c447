//! A content that is stored as the changes from another one, its base.
//!
//! The stored bytes of such an object are
//!
//! ```text
//!  0  32  digest of the base
//! 32   1  depth: 1 if the base is stored whole, else one more than the depth of the base
//! 33      a zstd frame, whose prefix is the content of the base
//! ```
//!
//! In: the contents of the base and of the object. Out: the stored bytes, and back. The frame
//! refers to any place of the base, so moved lines and changed bytes cost little, whatever the
//! format is.
//!
//! Invariant: a chain of bases has at most [`DEEPEST`] links. Absent: the choice of the base, which
//! belongs to the caller that knows the file's history.

use std::io::{self, Read, Write};

use backstory_files::Digest;

/// Largest content, in bytes, that is stored as changes or serves as a base. Both lie in memory.
pub const LARGEST: usize = 8 << 20;

/// Most bases between an object and a whole one. Each costs a reader its decompression.
pub const DEEPEST: u8 = 8;

/// Bytes before the frame.
pub const HEAD: usize = 33;

/// zstd's level. One higher than for whole contents: the input is mostly the base's.
const LEVEL: i32 = 4;

/// The base of a stored object, its depth, and the frame. `None` if the bytes are too few.
pub fn parse(stored: &[u8]) -> Option<(Digest, u8, &[u8])> {
    let (base, rest) = stored.split_first_chunk::<32>()?;
    let (depth, frame) = rest.split_first()?;
    Some((Digest(*base), *depth, frame))
}

/// Stores `content` as changes from `base`.
///
/// # Errors
///
/// That of zstd.
pub fn pack(digest: &Digest, depth: u8, base: &[u8], content: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(HEAD + 256);
    out.extend(digest.0);
    out.push(depth);
    let mut encoder = zstd::stream::write::Encoder::with_ref_prefix(out, LEVEL, base)?;
    // The window reaches from the end of the content to the beginning of the base.
    encoder.window_log(window(base.len() + content.len()))?;
    encoder.long_distance_matching(true)?;
    encoder.set_pledged_src_size(Some(content.len() as u64))?;
    encoder.write_all(content)?;
    encoder.finish()
}

/// The content that a frame describes. It has at most `size` bytes, and [`LARGEST`].
///
/// # Errors
///
/// That of zstd. More bytes are an error, too.
pub fn unpack(frame: &[u8], base: &[u8], size: u64) -> io::Result<Vec<u8>> {
    let size = size.min(LARGEST as u64);
    let mut content = Vec::with_capacity(size as usize);
    let mut decoder = zstd::stream::read::Decoder::with_ref_prefix(frame, base)?.single_frame();
    let read = (&mut decoder).take(size + 1).read_to_end(&mut content)?;
    match read as u64 > size {
        true => Err(io::ErrorKind::InvalidData.into()),
        false => Ok(content),
    }
}

/// The power of two of the smallest window with this many bytes, within the limits of zstd.
fn window(bytes: usize) -> u32 {
    bytes.next_power_of_two().ilog2().clamp(10, 27)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_content_costs_its_edits_and_comes_back() {
        let lines = |skip: usize| -> Vec<u8> {
            let all = (0..200_000_usize).filter(|line| *line != skip);
            all.flat_map(|line| {
                format!("{line} {:x}\n", line * 2_654_435_761 % 4_294_967_291).into_bytes()
            })
            .collect()
        };
        let (old, new) = (lines(usize::MAX), lines(77_777));
        assert!(old.len() > 2 << 20);
        let base = Digest(*blake3::hash(&old).as_bytes());
        let stored = pack(&base, 3, &old, &new).unwrap();
        assert!(stored.len() < 1000, "{} bytes", stored.len());
        let (named, depth, frame) = parse(&stored).unwrap();
        assert_eq!((named, depth), (base, 3));
        assert!(unpack(frame, &old, new.len() as u64).unwrap() == new);
    }

    #[test]
    fn a_frame_that_promises_more_than_its_header_is_refused() {
        let stored = pack(&Digest([0; 32]), 1, b"base", b"some content").unwrap();
        let (_, _, frame) = parse(&stored).unwrap();
        assert!(unpack(frame, b"base", 5).is_err());
        assert!(parse(&stored[..32]).is_none());
    }
}
