//! The trait of a content-addressed store, and how names state checksums.

use std::path::{Path, PathBuf};

use crate::checksum::Checksum;
use crate::records::hex;

/// One kind of content-addressed stores.
pub trait ContentStore {
    /// The store in words, as a part of a sentence.
    fn name(&self) -> &'static str;

    /// The file of the store that has the content of the file at `real`, and the checksum that its
    /// name states. `real` is an absolute path without links.
    fn holder(&mut self, real: &Path) -> Option<(PathBuf, Checksum)>;

    /// True if the store has the file that [`ContentStore::holder`] named.
    fn has(&self, file: &Path) -> bool {
        file.symlink_metadata().is_ok_and(|found| found.is_file())
    }
}

/// The last `N` components of a path, in order. `None` if there are fewer, or one is no text.
pub fn tail<const N: usize>(path: &Path) -> Option<[&str; N]> {
    let mut parts: Vec<&str> = path
        .iter()
        .rev()
        .take(N)
        .map(|part| part.to_str())
        .collect::<Option<_>>()?;
    parts.reverse();
    parts.try_into().ok()
}

/// The SHA-256 of 64 hexadecimal digits.
pub fn sha256(digits: &str) -> Option<Checksum> {
    hex(digits).map(Checksum::Sha256)
}

/// The MD5 of 32 hexadecimal digits.
pub fn md5(digits: &str) -> Option<Checksum> {
    hex(digits).map(Checksum::Md5)
}
