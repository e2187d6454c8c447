//! Finds the package that owns a file, and the package's checksum of it.
//!
//! In: paths. Out: the owner, and a checksum where the manager has one. A file that matches its
//! checksum can be installed again and need not be stored. Only the managers' own records are read.
//! No program of a package manager is run, except rpm's (see there).

mod archive;
mod cargo;
mod conda;
mod dpkg;
mod npm;
mod pip;
mod rpm;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use backstory_files::regular;
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use md5::Md5;
use sha2::{Digest as _, Sha256};

use backstory_files::Digest;

/// The package that owns a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// `dpkg`, `rpm`, `pip`, `conda`, `npm`, `cargo`
    pub manager: &'static str,
    /// The package, in the manager's spelling.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The checksum of the installed file.
    pub checksum: Option<Checksum>,
}

/// A manager's checksum of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// MD5.
    Md5([u8; 16]),
    /// SHA-256.
    Sha256([u8; 32]),
}

/// The records of one package manager.
trait Manager {
    /// The owner of the file at this absolute path, which contains no links.
    fn owner(&mut self, path: &Path) -> Option<Owner>;
}

/// The records of all managers, read as they are needed.
pub struct Packages {
    managers: Vec<Box<dyn Manager>>,
}

impl Packages {
    /// The records below `root` (`/`). None is read yet.
    pub fn new(root: &Path) -> Packages {
        // The most specific first: a file that pip put into a conda directory belongs to pip.
        Packages {
            managers: vec![
                Box::new(pip::Pip::default()),
                Box::new(conda::Conda::default()),
                Box::new(npm::Npm::new()),
                Box::new(cargo::Cargo::default()),
                Box::new(dpkg::Dpkg::new(root)),
                Box::new(rpm::Rpm::new(root)),
            ],
        }
    }

    /// The owners of the file at `path`, an absolute path without links, the most specific first.
    /// There can be several: files of Debian's `nodejs` lie in `node_modules`. Not each of them has
    /// a checksum.
    pub fn owners(&mut self, path: &Path) -> impl Iterator<Item = Owner> {
        self.managers
            .iter_mut()
            .filter_map(move |manager| manager.owner(path))
    }
}

/// Reads a file to its end. Returns the digest of its content, its size, and whether it matches the
/// checksum.
pub fn compare(source: &mut dyn Read, checksum: &Checksum) -> io::Result<(Digest, u64, bool)> {
    let mut all = Both {
        digest: blake3::Hasher::new(),
        sum: match checksum {
            Checksum::Md5(_) => Sum::Md5(Md5::new()),
            Checksum::Sha256(_) => Sum::Sha256(Sha256::new()),
        },
    };
    let size = io::copy(source, &mut all)?;
    let same = match (all.sum, checksum) {
        (Sum::Md5(sum), Checksum::Md5(wanted)) => sum.finalize().as_slice() == wanted,
        (Sum::Sha256(sum), Checksum::Sha256(wanted)) => sum.finalize().as_slice() == wanted,
        _ => false,
    };
    Ok((Digest(*all.digest.finalize().as_bytes()), size, same))
}

enum Sum {
    Md5(Md5),
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
            Sum::Sha256(sum) => sum.update(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decodes hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// Decodes base 64, URL-safe or not, with or without padding.
fn base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.trim_end_matches('=').as_bytes();
    let url_safe = text.iter().any(|byte| matches!(byte, b'-' | b'_'));
    let encoding = if url_safe {
        BASE64URL_NOPAD
    } else {
        BASE64_NOPAD
    };
    encoding.decode(text).ok()?.try_into().ok()
}

/// Facts about directories, each looked up once. The files of a large tree share few directories.
struct Remembered<T> {
    known: HashMap<PathBuf, T>,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Remembered {
            known: HashMap::new(),
        }
    }
}

impl<T> Remembered<T> {
    fn of(&mut self, path: &Path, find: impl FnOnce(&Path) -> T) -> &T {
        // Looked up twice, because the borrow checker does not accept a conditionally returned
        // borrow.
        if !self.known.contains_key(path) {
            self.known.insert(path.to_owned(), find(path));
        }
        &self.known[path]
    }
}

/// The directories above a path that have this name, nearest first.
fn above<'p>(path: &'p Path, is_it: impl Fn(&str) -> bool + 'p) -> impl Iterator<Item = &'p Path> {
    path.ancestors().skip(1).filter(move |dir| {
        let name = dir.file_name().and_then(|name| name.to_str());
        name.is_some_and(&is_it)
    })
}

/// A small text file of a manager. `None` if it does not exist, is not text, or is too large.
fn text(path: &Path) -> Option<String> {
    String::from_utf8(small(path, 64 << 20)?).ok()
}

/// A file of a manager. `None` if it does not exist or has more than `most` bytes.
fn small(path: &Path, most: u64) -> Option<Vec<u8>> {
    let file = regular::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    (length <= most).then(|| file.take(most).read_to_end(&mut bytes).ok())??;
    Some(bytes)
}
