//! Reads the JSON answers of `backstory files` and `backstory processes`.
//!
//! In JSON, a byte of a path that is not UTF-8 is a lone surrogate (`\udcXX`). Here paths are bytes
//! again.

use std::fmt;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, de};

use crate::strace::Word;

/// A string of the operating system: any bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        deserializer.deserialize_byte_buf(Surrogates)
    }
}

struct Surrogates;

impl Visitor<'_> for Surrogates {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: de::Error>(self, text: &[u8]) -> Result<Bytes, E> {
        // serde_json passes a lone surrogate U+DC80 … U+DCFF as its three generalized UTF-8 bytes.
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text;
        while let [first, tail @ ..] = rest {
            match rest {
                [0xed, second @ (0xb2 | 0xb3), third, tail @ ..] => {
                    bytes.push((second & 1) << 6 | (third & 0x3f) | 0x80);
                    rest = tail;
                }
                _ => {
                    bytes.push(*first);
                    rest = tail;
                }
            }
        }
        Ok(Bytes(bytes))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
        self.visit_bytes(text.as_bytes())
    }
}

/// The certainty of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Certainty {
    Seen,
    Possible,
}

/// One element of `files --json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs)]
pub struct FileLine {
    pub path: Bytes,
    pub access: Vec<Word>,
    pub via: String,
    pub certainty: Certainty,
}

/// One element of `processes --json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs)]
pub struct ProcessLine {
    pub id: u64,
    pub parent_id: Option<u64>,
    pub pid: u32,
    pub epoch: u32,
    pub parent: Option<u32>,
    pub exec_path: Option<Bytes>,
    pub argv: Vec<Bytes>,
    pub cwd: Bytes,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
}

/// The object of `show --json`, as far as tests use it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs)]
pub struct Show {
    pub run: String,
    pub exit: Option<i32>,
    pub complete: bool,
    pub lost: u64,
    pub incomplete_because: Vec<String>,
}

/// Reads a JSON answer.
pub fn read<T: de::DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_come_back() {
        let Bytes(bytes) = read(br#""a\udcff\udc80\u00e9""#).expect("a string");
        assert_eq!(bytes, b"a\xff\x80\xc3\xa9");
    }
}
