//! Checksums of installed files, as managers write them down.

use std::io::{self, Read, Write};

use backstory_files::Digest;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// A manager's checksum of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// MD5.
    Md5([u8; 16]),
    /// SHA-256.
    Sha256([u8; 32]),
    /// The id of a blob in a git repository: the SHA-1 of `blob SIZE\0` and the content.
    GitBlob {
        /// Bytes of the content.
        size: u64,
        /// The SHA-1.
        id: [u8; 20],
    },
}

/// Reads a file to its end. Returns the digest of its content, its size, and whether it matches the
/// checksum.
pub fn compare(source: &mut dyn Read, checksum: &Checksum) -> io::Result<(Digest, u64, bool)> {
    let mut all = Both {
        digest: blake3::Hasher::new(),
        sum: match checksum {
            Checksum::Md5(_) => Sum::Md5(Md5::new()),
            Checksum::Sha256(_) => Sum::Sha256(Sha256::new()),
            Checksum::GitBlob { size, .. } => {
                Sum::Sha1(Sha1::new().chain_update(format!("blob {size}\0")))
            }
        },
    };
    let size = io::copy(source, &mut all)?;
    let same = match (all.sum, checksum) {
        (Sum::Md5(sum), Checksum::Md5(wanted)) => sum.finalize().as_slice() == wanted,
        (Sum::Sha256(sum), Checksum::Sha256(wanted)) => sum.finalize().as_slice() == wanted,
        (Sum::Sha1(sum), Checksum::GitBlob { id, .. }) => sum.finalize().as_slice() == id,
        _ => false,
    };
    Ok((Digest(*all.digest.finalize().as_bytes()), size, same))
}

enum Sum {
    Md5(Md5),
    Sha1(Sha1),
    Sha256(Sha256),
}

struct Both {
    digest: blake3::Hasher,
    sum: Sum,
}

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.digest.update(bytes);
        match &mut self.sum {
            Sum::Md5(sum) => sum.update(bytes),
            Sum::Sha1(sum) => sum.update(bytes),
            Sum::Sha256(sum) => sum.update(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
