//! Compresses blocks.
//!
//! ```text
//! block := 0  bytes                             as they are
//!        | length of the bytes, > 0  zstd frame
//! ```
//!
//! A block is compressed if it is longer than [`SHORT`] and gets smaller.

use std::borrow::Cow;
use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use super::{RecordReader, RecordWriter};
use crate::Result;

/// Longest block that is stored uncompressed: zstd's own header would take the bytes that zstd
/// saves.
const SHORT: usize = 100;

/// Longest block that is compressed. A longer one in a database is damage, so that a few bytes
/// cannot fill the memory. The longest list of edges of one activity has some 45 MB.
const LONGEST: usize = 64 << 20;

/// zstd's level. Levels up to 9 gain less than 1 % on blocks of this size.
const LEVEL: i32 = 1;

thread_local! {
    // A context has some 100 KB: making one takes longer than compressing a block with it.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends `bytes` to `out` as a block.
pub fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    match compress(bytes) {
        Some(frame) => {
            out.number(bytes.len() as u64);
            out.extend_from_slice(&frame);
        }
        None => {
            out.push(0);
            out.extend_from_slice(bytes);
        }
    }
}

/// The zstd frame of `bytes`. `None` if it is not smaller, or zstd fails.
fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    if !(SHORT + 1..=LONGEST).contains(&bytes.len()) {
        return None;
    }
    let frame = COMPRESSOR.with_borrow_mut(|slot| match slot {
        Some(compressor) => compressor.compress(bytes).ok(),
        None => {
            let mut compressor = Compressor::new(LEVEL).ok()?;
            compressor.include_checksum(false).ok()?;
            compressor.include_contentsize(false).ok()?;
            slot.insert(compressor).compress(bytes).ok()
        }
    })?;
    (frame.len() + 2 < bytes.len()).then_some(frame)
}

/// The bytes of a block that reaches to the end of `reader`.
pub fn take<'a>(reader: &mut RecordReader<'a>) -> Result<Cow<'a, [u8]>> {
    let length = reader.size()?;
    if length == 0 {
        return Ok(reader.rest().into());
    }
    if length > LONGEST {
        return Err(reader.damaged());
    }
    let frame = reader.rest();
    let bytes = DECOMPRESSOR.with_borrow_mut(|slot| match slot {
        Some(decompressor) => decompressor.decompress(frame, length).ok(),
        None => slot
            .insert(Decompressor::new().ok()?)
            .decompress(frame, length)
            .ok(),
    });
    match bytes {
        Some(bytes) if bytes.len() == length => Ok(bytes.into()),
        _ => Err(reader.damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_block_comes_back_as_it_was(piece in proptest::collection::vec(any::<u8>(), 0..40), times in 0usize..20) {
            let bytes = piece.repeat(times);
            let mut block = Vec::new();
            put(&mut block, &bytes);
            prop_assert!(block.len() <= bytes.len() + 1);
            prop_assert_eq!(&*take(&mut RecordReader::new(&block, "test")).unwrap(), &bytes[..]);
        }

        #[test]
        fn any_bytes_are_a_block_or_an_error(noise: Vec<u8>) {
            let _ = take(&mut RecordReader::new(&noise, "test"));
        }
    }

    #[test]
    fn a_block_that_would_fill_the_memory_is_damage() {
        let mut compressor = Compressor::new(LEVEL).unwrap();
        let frame = compressor.compress(&vec![0; LONGEST + 1]).unwrap();
        for length in [LONGEST + 1, 1000] {
            let mut block = Vec::new();
            block.number(length as u64);
            block.extend_from_slice(&frame);
            assert!(take(&mut RecordReader::new(&block, "test")).is_err());
        }
    }
}
