//! The checksums of the files in an archive that a package manager has downloaded. They serve
//! managers that store checksums of whole archives only.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Component, Path};

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256, Sha512};

use crate::records::small;

/// The SHA-256 of each file, by its path in the package.
pub type Sums = HashMap<String, [u8; 32]>;

/// Most bytes of an archive that are read, and most that are unpacked. A hostile archive can
/// exhaust neither memory nor time.
const MOST: u64 = 256 << 20;

/// The registry's checksum of an archive.
pub enum Published {
    /// SHA-256.
    Sha256([u8; 32]),
    /// SHA-512.
    Sha512([u8; 64]),
}

impl Published {
    fn is_of(&self, bytes: &[u8]) -> bool {
        match self {
            Published::Sha256(sum) => Sha256::digest(bytes).as_slice() == sum,
            Published::Sha512(sum) => Sha512::digest(bytes).as_slice() == sum,
        }
    }
}

/// The files of the `.tar.gz` at `path`, without their common directory. `None` if the archive does
/// not exist or is not the published one.
pub fn sums(path: &Path, published: &Published) -> Option<Sums> {
    let bytes = small(path, MOST)?;
    published.is_of(&bytes).then(|| unpack(&bytes).ok())?
}

fn unpack(bytes: &[u8]) -> io::Result<Sums> {
    let mut sums = Sums::new();
    let mut all = tar::Archive::new(GzDecoder::new(bytes).take(4 * MOST));
    for entry in all.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let Some(path) = below_first(&entry.path()?) else {
            continue;
        };
        let mut sum = Sha256::new();
        io::copy(&mut entry, &mut sum)?;
        sums.insert(path, sum.finalize().into());
    }
    Ok(sums)
}

/// Converts `package/lib/index.js` to `lib/index.js`.
fn below_first(path: &Path) -> Option<String> {
    let mut parts = path.components();
    parts.find(|part| *part != Component::CurDir)?;
    let rest = parts.as_path().to_str()?;
    (!rest.is_empty()).then(|| rest.to_owned())
}
