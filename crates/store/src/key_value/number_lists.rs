//! Rows that list the partners of a number: 8 bytes each in network order, ascending, each once.
//!
//! One row is found by its key. The filter of a table of an LSM tree tells that the table lacks a
//! key, which it cannot tell of a range.

use crate::{Error, Result};

/// The numbers of a row.
pub fn decode(row: &[u8]) -> Result<Vec<u64>> {
    let (numbers, rest) = row.as_chunks::<8>();
    match rest.is_empty() {
        true => Ok(numbers.iter().map(|one| u64::from_be_bytes(*one)).collect()),
        false => Err(Error::Damaged("list of numbers")),
    }
}

/// The row that lists these numbers.
pub fn encode(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|one| one.to_be_bytes()).collect()
}
