//! The name of an object.

use std::path::{Path, PathBuf};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// The checksum that names an object: 20 bytes of SHA-1, or 32 of SHA-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectId(Vec<u8>);

impl ObjectId {
    /// The id of this checksum. `None` for another number of bytes.
    pub fn new(bytes: &[u8]) -> Option<ObjectId> {
        matches!(bytes.len(), 20 | 32).then(|| ObjectId(bytes.to_vec()))
    }

    /// The id of these hexadecimal digits. `None` for another text.
    pub fn parse(digits: &str) -> Option<ObjectId> {
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
        ObjectId::new(&bytes)
    }

    /// The checksum.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path of the object in a directory of objects, if it is loose.
    pub fn path_in(&self, objects: &Path) -> PathBuf {
        let name = HEXLOWER.encode(&self.0);
        objects.join(&name[..2]).join(&name[2..])
    }

    /// The reverse of [`ObjectId::path_in`].
    pub(crate) fn of_path(path: &Path) -> Option<(&Path, ObjectId)> {
        let (above, rest) = (path.parent()?, path.file_name()?.to_str()?);
        let first = above
            .file_name()?
            .to_str()
            .filter(|first| first.len() == 2)?;
        Some((above.parent()?, ObjectId::parse(&format!("{first}{rest}"))?))
    }
}
