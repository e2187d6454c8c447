//! The environment of a run as one text, which runs share: each variable as a length and bytes.

use crate::Result;
use crate::codec::{RecordReader, RecordWriter};

/// The text of an environment.
pub fn encode(variables: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    for variable in variables {
        text.bytes(variable);
    }
    text
}

/// The environment of a text.
pub fn decode(text: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut reader = RecordReader::new(text, "environment");
    let mut variables = Vec::new();
    while !reader.is_empty() {
        variables.push(reader.bytes()?.to_vec());
    }
    Ok(variables)
}
