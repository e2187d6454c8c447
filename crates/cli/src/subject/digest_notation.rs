//! A content that is named by its digest, in full or by its beginning.
//!
//! In: a text. Out: the digest of a recorded or stored content.

use std::ffi::OsStr;

use backstory_files::Digest;
use backstory_store::ContentFacts;

use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::sha256_index;

/// The fewest digits of a digest that is not marked as one.
const FEWEST: usize = 7;

/// The digest that a text names: in full, or by an unambiguous beginning. `None` if the text is no
/// digest.
pub fn content(current: &CurrentStore, wanted: &OsStr) -> Result<Option<Digest>, Failure> {
    let Some(text) = wanted.to_str() else {
        return Ok(None);
    };
    let (blake3, sha256) = (text.strip_prefix("blake3:"), text.strip_prefix("sha256:"));
    let digits = blake3.or(sha256).unwrap_or(text).to_ascii_lowercase();
    let marked = blake3.or(sha256).is_some();
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && digits.len() <= 64;
    if !are_digits || digits.len() < if marked { 1 } else { FEWEST } {
        return Ok(None);
    }
    let mut found = Vec::new();
    if sha256.is_none() {
        found = current.store.digests_beginning(&digits)?;
        if found.is_empty()
            && let Ok(digest) = digits.parse::<Digest>()
            && current.has_content(&digest)
        {
            found.push(digest);
        }
    }
    if found.is_empty() && blake3.is_none() {
        found = sha256_index::contents_beginning(&current.home, &digits)?;
        // To read the packages takes too long for a word that only looks like a digest.
        if found.is_empty() && (marked || digits.len() == 64) {
            found = sha256_index::packaged_beginning(current, &digits)?;
        }
    }
    match found.as_slice() {
        [] if marked || digits.len() == 64 => Err(Failure::not_found(format!(
            "no recorded content has the digest {digits}: neither BLAKE3 of a recorded version, \
             nor SHA-256 of a stored content or of a package's file"
        ))),
        [] => Ok(None),
        [digest] => Ok(Some(*digest)),
        many => Err(Failure::not_found(format!(
            "{} contents have a digest that begins with {digits}: give more digits",
            many.len()
        ))),
    }
}
