//! Blocks of texts: byte strings that runs share.
//!
//! ```text
//! record := [number of texts]  shared starts  shared ends  middles  the middles' bytes
//! ```
//!
//! Each text is stored as the bytes in its middle that the text before it does not have. The
//! arguments of neighbouring processes mostly differ in a name. A text that no run names any more
//! is empty; the others keep their positions.

use super::similar::{SimilarReader, SimilarWriter};
use super::{RecordReader, RecordWriter, block};
use crate::{Error, Result};

/// Most texts in a block.
pub const BLOCK: u32 = 128;

/// A block with so many bytes of texts takes no further text. To read one text, all are decoded.
const FULL: usize = 8 << 10;

/// Most bytes of the texts of a block after decoding, so that a few bytes cannot fill the memory.
/// One text that is longer is stored nevertheless.
const LONGEST: usize = 64 << 20;

/// The word for a block in messages about damage.
const WHAT: &str = "list of texts";

/// Builds a block.
#[derive(Default)]
pub struct Builder {
    texts: SimilarWriter,
    count: u32,
    bytes: usize,
}

impl Builder {
    /// Adds a text and returns its position.
    pub fn push(&mut self, text: &[u8]) -> u32 {
        self.texts.push(text);
        self.bytes += text.len();
        self.count += 1;
        self.count - 1
    }

    /// Whether a text of this length belongs into the next block.
    pub fn is_full(&self, length: usize) -> bool {
        let bytes = self.bytes.saturating_add(length);
        self.count == BLOCK || self.count > 0 && bytes > FULL
    }

    /// Whether it has no text.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The block.
    pub fn finish(self) -> Vec<u8> {
        let mut record = Vec::new();
        record.number(u64::from(self.count));
        self.texts.put_columns(&mut record);
        self.texts.put_bytes(&mut record);
        let mut out = Vec::with_capacity(record.len() / 2);
        block::put(&mut out, &record);
        out
    }
}

/// The texts of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextBlock {
    bytes: Vec<u8>,
    /// Where each text ends. It begins where the one before ends.
    ends: Vec<usize>,
}

impl TextBlock {
    /// Decodes a block.
    pub fn decode(block: &[u8]) -> Result<TextBlock> {
        let record = block::take(&mut RecordReader::new(block, WHAT))?;
        let mut reader = RecordReader::new(&record, WHAT);
        let count = reader.size()?;
        if count > BLOCK as usize {
            return Err(reader.damaged());
        }
        let mut texts = SimilarReader::take(&mut reader, count)?;
        texts.bytes = reader;
        let mut found = TextBlock::default();
        for _ in 0..count {
            let text = texts.next()?;
            let length = found.bytes.len().saturating_add(text.len());
            if length > LONGEST.max(record.len()) {
                return Err(Error::Damaged(WHAT));
            }
            found.bytes.extend_from_slice(text);
            found.ends.push(length);
        }
        Ok(found)
    }

    /// The text at a position.
    pub fn text(&self, position: u32) -> Option<&[u8]> {
        let position = position as usize;
        let end = *self.ends.get(position)?;
        let start = position
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    /// The number of texts.
    pub fn count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The bytes of all texts.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_come_back_as_they_were(
            texts in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..20), 0..128),
        ) {
            let mut builder = Builder::default();
            for (position, text) in texts.iter().enumerate() {
                prop_assert!(!builder.is_full(text.len()));
                prop_assert_eq!(builder.push(text), position as u32);
            }
            let block = TextBlock::decode(&builder.finish()).unwrap();
            prop_assert_eq!(block.count() as usize, texts.len());
            for (position, text) in texts.iter().enumerate() {
                prop_assert_eq!(block.text(position as u32), Some(&text[..]));
            }
            prop_assert_eq!(block.text(texts.len() as u32), None);
        }
    }

    #[test]
    fn a_block_takes_one_long_text_or_many_short_ones() {
        let mut builder = Builder::default();
        assert!(!builder.is_full(FULL * 10));
        builder.push(&[7; FULL]);
        assert!(builder.is_full(1));
    }

    #[test]
    fn a_block_that_would_fill_the_memory_is_damage() {
        let mut builder = Builder::default();
        let long = vec![7; 2 << 20];
        for _ in 0..100 {
            builder.push(&long);
        }
        assert!(TextBlock::decode(&builder.finish()).is_err());
    }
}
