//! The store's compact records. Numbers are LEB128 varints, or stand in columns (see [`column`]); signed ones are zigzagged. `docs/formats/store.md` describes
//! each record; a change of one is a new schema.
//!
//! Invariant: decoding never panics and never trusts a length; what can't be decoded is [`Error::Damaged`].

pub mod activity;
pub mod column;
pub mod members;
pub mod reverse;
pub mod stream;
pub mod versions;

use crate::{Error, Result};

/// Appends to a record.
pub trait Put {
    /// An unsigned number.
    fn number(&mut self, value: u64);
    /// A signed number, small when near 0.
    fn signed(&mut self, value: i64);
    /// A length and that many bytes.
    fn bytes(&mut self, value: &[u8]);
}

impl Put for Vec<u8> {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn signed(&mut self, value: i64) {
        self.number(zigzag(value));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.extend_from_slice(value);
    }
}

/// A signed number as an unsigned one, small when near 0.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The signed number that was zigzagged.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads a record from its beginning.
pub struct Take<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Take<'a> {
    /// Reads `record`; `what` names it should it be damaged.
    pub fn new(record: &'a [u8], what: &'static str) -> Self {
        Take { rest: record, what }
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The error for this record.
    pub fn damaged(&self) -> Error {
        Error::Damaged(self.what)
    }

    /// The next byte, which is left where it is.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.rest.split_first().ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(first)
    }

    /// An unsigned number.
    #[inline]
    pub fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for (i, &byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(self.damaged())
    }

    /// A signed number.
    #[inline]
    pub fn signed(&mut self) -> Result<i64> {
        self.number().map(unzigzag)
    }

    /// An unsigned number that fits 32 bits.
    pub fn small(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| self.damaged())
    }

    /// A length and that many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        self.exactly(usize::try_from(length).map_err(|_| self.damaged())?)
    }

    /// That many bytes.
    pub fn exactly(&mut self, length: usize) -> Result<&'a [u8]> {
        if length > self.rest.len() {
            return Err(self.damaged());
        }
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(bytes)
    }
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
            let mut take = Take::new(&record, "test");
            prop_assert_eq!(take.number().unwrap(), a);
            prop_assert_eq!(take.signed().unwrap(), b);
            prop_assert_eq!(take.bytes().unwrap(), &c[..]);
            prop_assert!(take.is_empty());
            prop_assert!(take.number().is_err());
        }

        #[test]
        fn any_bytes_are_a_record_or_an_error(noise: Vec<u8>) {
            let _ = versions::decode(&noise, |_, _| Ok(()));
            let _ = members::Block::decode(&noise);
            let _ = reverse::scan(&noise, None, &mut Vec::new());
            let _ = activity::decode(&noise, 0);
            let _ = stream::decode(&noise, backstory_graph::model::ActivityId(0), 0, &mut Default::default());
        }
    }
}
