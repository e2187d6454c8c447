//! Bytes in the answer of a worker, which is JSON: a text in base 64.

use data_encoding::BASE64;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A string of bytes, which need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WireBytes(pub Vec<u8>);

impl From<&[u8]> for WireBytes {
    fn from(bytes: &[u8]) -> WireBytes {
        WireBytes(bytes.to_vec())
    }
}

impl Serialize for WireBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for WireBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<WireBytes, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(D::Error::custom)?;
        Ok(WireBytes(bytes))
    }
}

/// For a field of the type `Vec<u8>`.
pub(crate) mod one {
    use super::*;

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        WireBytes::deserialize(from).map(|bytes| bytes.0)
    }
}

/// For a field of the type `Vec<Vec<u8>>`.
pub(crate) mod list {
    use super::*;

    pub fn serialize<S: Serializer>(all: &[Vec<u8>], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(all.iter().map(|bytes| BASE64.encode(bytes)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<u8>>, D::Error> {
        let all = Vec::<WireBytes>::deserialize(from)?;
        Ok(all.into_iter().map(|bytes| bytes.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::WireBytes;

    #[test]
    fn bytes_come_back_as_they_were_sent() {
        let all: Vec<WireBytes> = vec![WireBytes(Vec::new()), WireBytes((0..=255).collect())];
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Vec<WireBytes>>(&text).unwrap(), all);
        assert!(serde_json::from_str::<WireBytes>("\"?\"").is_err());
    }
}
