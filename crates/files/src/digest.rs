//! The name of a content: its BLAKE3 digest. `backstory-contents` computes it.
//!
//! The type stands here so that every layer names a content by the same type.

use std::fmt;
use std::str::FromStr;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// BLAKE3 of a content, 32 bytes. It is printed as 64 hexadecimal digits in lower case, and parsed
/// from either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a digest: 64 hexadecimal digits are expected")]
pub struct NotADigest(pub String);

impl Digest {
    /// The first eight bytes as a number: a key for an index. Two digests can share it.
    pub fn prefix(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Digest, NotADigest> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
        let digest = bytes.and_then(|bytes| bytes.try_into().ok());
        digest
            .map(Digest)
            .ok_or_else(|| NotADigest(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_digest_parses_to_itself() {
        let digest = Digest(std::array::from_fn(|n| (n * 37) as u8));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string().to_uppercase().parse(), Ok(digest));
        for wrong in ["", "00", &"g".repeat(64), &"ä".repeat(32), &"+0".repeat(32)] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }
}
