//! Varints, byte strings and columns: what every record consists of.

use integer_encoding::VarInt;

use crate::{Error, Result};

/// Appends to a record.
pub trait RecordWriter {
    /// Appends an unsigned number.
    fn number(&mut self, value: u64);
    /// Appends a signed number. Numbers near 0 take one byte, whatever their sign.
    fn signed(&mut self, value: i64);
    /// Appends a length and that many bytes.
    fn bytes(&mut self, value: &[u8]);
}

impl RecordWriter for Vec<u8> {
    #[inline]
    fn number(&mut self, value: u64) {
        let mut varint = [0; 10];
        let length = value.encode_var(&mut varint);
        self.extend_from_slice(&varint[..length]);
    }

    #[inline]
    fn signed(&mut self, value: i64) {
        self.number(zigzag(value));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.extend_from_slice(value);
    }
}

/// Maps a signed number to an unsigned one. Numbers near 0 stay small.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The signed number that [`zigzag`] mapped.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads a record, or a column of one, from its beginning.
#[derive(Debug, Clone, Copy)]
pub struct RecordReader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> RecordReader<'a> {
    /// Reads `record`. Should it be damaged, `what` names it in the error.
    pub fn new(record: &'a [u8], what: &'static str) -> Self {
        RecordReader { rest: record, what }
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The word for the record in messages.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The error for this record.
    pub fn damaged(&self) -> Error {
        Error::Damaged(self.what)
    }

    /// Reads one byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.rest.split_first().ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(first)
    }

    /// Reads an unsigned number.
    #[inline]
    pub fn number(&mut self) -> Result<u64> {
        // Most numbers take one byte.
        if let Some((&first, rest)) = self.rest.split_first()
            && first < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(first));
        }
        let (value, length) = u64::decode_var(self.rest).ok_or_else(|| self.damaged())?;
        self.rest = &self.rest[length..];
        Ok(value)
    }

    /// Reads a signed number.
    #[inline]
    pub fn signed(&mut self) -> Result<i64> {
        self.number().map(unzigzag)
    }

    /// Reads an unsigned number that fits 32 bits.
    #[inline]
    pub fn small(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| self.damaged())
    }

    /// Reads a position or a length.
    #[inline]
    pub fn size(&mut self) -> Result<usize> {
        usize::try_from(self.number()?).map_err(|_| self.damaged())
    }

    /// Reads a length and that many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.size()?;
        self.exactly(length)
    }

    /// Reads `length` bytes.
    pub fn exactly(&mut self, length: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Takes off a column of `count` numbers. The column's own reader decodes them, one at a time.
    pub fn column(&mut self, count: usize) -> Result<RecordReader<'a>> {
        let length = length_of(self.rest, count).ok_or_else(|| self.damaged())?;
        Ok(RecordReader::new(self.exactly(length)?, self.what))
    }
}

/// How many bytes the first `count` numbers take. A number ends with the first byte that has its
/// high bit clear.
fn length_of(bytes: &[u8], count: usize) -> Option<usize> {
    let (mut left, mut length) = (count, 0);
    let (words, _) = bytes.as_chunks::<8>();
    for word in words {
        let ends = !u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        let ends = ends.count_ones() as usize;
        if ends >= left {
            break;
        }
        left -= ends;
        length += 8;
    }
    for byte in &bytes[length..] {
        if left == 0 {
            break;
        }
        left -= usize::from(*byte < 0x80);
        length += 1;
    }
    (left == 0).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back_as_they_were(a: u64, b: i64, c: Vec<u8>) {
            let mut record = Vec::new();
            record.number(a);
            record.signed(b);
            record.bytes(&c);
            let mut reader = RecordReader::new(&record, "test");
            prop_assert_eq!(reader.number().unwrap(), a);
            prop_assert_eq!(reader.signed().unwrap(), b);
            prop_assert_eq!(reader.bytes().unwrap(), &c[..]);
            prop_assert!(reader.is_empty());
            prop_assert!(reader.number().is_err());
        }

        #[test]
        fn columns_come_back_as_they_were(
            a in proptest::collection::vec(prop_oneof![0u64..3, 0u64..5000, any::<u64>()], 0..300),
            b: Vec<u64>,
        ) {
            let mut record = Vec::new();
            a.iter().chain(&b).for_each(|number| record.number(*number));
            let mut reader = RecordReader::new(&record, "test");
            let (mut first, mut second) = (reader.column(a.len()).unwrap(), reader.column(b.len()).unwrap());
            prop_assert!(reader.is_empty());
            for (column, numbers) in [(&mut first, &a), (&mut second, &b)] {
                for number in numbers {
                    prop_assert_eq!(column.number().unwrap(), *number);
                }
                prop_assert!(column.number().is_err());
            }
        }

        #[test]
        fn any_bytes_are_a_column_or_an_error(noise: Vec<u8>, count in 0usize..10_000) {
            if let Ok(mut column) = RecordReader::new(&noise, "test").column(count) {
                for _ in 0..count {
                    let _ = column.number();
                }
            }
        }
    }

    #[test]
    fn a_number_longer_than_ten_bytes_is_damage() {
        let endless = [0x80; 12];
        assert!(RecordReader::new(&endless, "test").number().is_err());
        assert!(RecordReader::new(&endless, "test").column(1).is_err());
    }
}
