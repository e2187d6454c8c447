//! One seal of a chain: its files, as they are read.
//!
//! In: the path of a statement. Out: the statement with the signature, time stamp and items beside
//! it. Invariant: no file is read beyond its limit.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use backstory_files::{Digest, regular};

use crate::statement::Statement;
use crate::{Error, Result};

/// Longest statement, signature or time stamp, in bytes.
pub(crate) const LONGEST: u64 = 1 << 20;
/// Longest list of items, in bytes.
const LONGEST_ITEMS: u64 = 1 << 30;

/// One seal, as its files are.
#[derive(Debug, Clone)]
pub struct Seal {
    /// The path of its statement.
    pub path: PathBuf,
    /// Its statement.
    pub statement: Statement,
    /// The signature, if it has one.
    pub signature: Option<String>,
    /// The time stamp, if it has one.
    pub stamp: Option<Vec<u8>>,
}

impl Seal {
    /// The digest that the next seal names.
    pub fn digest(&self) -> Digest {
        let mut hash = blake3::Hasher::new();
        hash.update(self.statement.text().as_bytes());
        hash.update(self.signature.as_deref().unwrap_or_default().as_bytes());
        hash.update(self.stamp.as_deref().unwrap_or_default());
        Digest(*hash.finalize().as_bytes())
    }

    /// A file of this seal.
    pub fn file(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }

    /// The list of items, one a line.
    pub fn items(&self) -> Result<Vec<String>> {
        let path = self.file("items");
        let bytes = read(&path, LONGEST_ITEMS)?.ok_or_else(|| Error::damaged(&path, "is gone"))?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Error::damaged(&path, "it is no text"))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Reads the files of a seal.
    pub(crate) fn open(path: &Path) -> Result<Seal> {
        let text = read(path, LONGEST)?.ok_or_else(|| Error::damaged(path, "is gone"))?;
        let text = String::from_utf8(text).map_err(|_| Error::damaged(path, "it is no text"))?;
        let statement = Statement::parse(&text).map_err(|what| Error::damaged(path, what))?;
        let signature = match read(&path.with_extension("sig"), LONGEST)? {
            Some(bytes) => Some(String::from_utf8(bytes).map_err(|_| {
                Error::damaged(&path.with_extension("sig"), "it is no signature of OpenSSH")
            })?),
            None => None,
        };
        Ok(Seal {
            path: path.to_owned(),
            statement,
            signature,
            stamp: read(&path.with_extension("tsr"), LONGEST)?,
        })
    }
}

/// The bytes of a file. `None` if it is not there.
pub(crate) fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match regular::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}
