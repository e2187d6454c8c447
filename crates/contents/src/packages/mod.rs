//! Which package a file belongs to, and what the package says its content is.
//!
//! In: paths. Out: the owner, and a checksum where the manager has one. Files that match the checksum can be had from the package
//! again, and need not be kept. Only the managers' own records are read, no program of theirs is run (but
//! rpm's, see there).

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
use md5::Md5;
use sha2::{Digest as _, Sha256};

use backstory_files::Digest;

/// The package that owns a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// `dpkg`, `rpm`, `pip`, `conda`, `npm`, `cargo`
    pub manager: &'static str,
    /// The package, as the manager names it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What the file should hold.
    pub checksum: Option<Checksum>,
}

/// What a manager's records say of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// MD5.
    Md5([u8; 16]),
    /// SHA-256.
    Sha256([u8; 32]),
}

/// One package manager's records.
trait Manager {
    /// Who owns the file at this absolute path without links in it.
    fn owner(&mut self, path: &Path) -> Option<Owner>;
}

/// All managers' records, read as they are needed.
pub struct Packages {
    managers: Vec<Box<dyn Manager>>,
}

impl Packages {
    /// The records below `root` (`/`), nothing of which is read yet.
    pub fn new(root: &Path) -> Packages {
        // The most specific first: what pip put into a directory of conda's is pip's.
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

    /// Who owns the file at `path`, an absolute path without links in it: the most specific first. More than one may say so (what Debian's
    /// `nodejs` brings lies in `node_modules`), and not each of them can tell what it should hold.
    pub fn owners(&mut self, path: &Path) -> impl Iterator<Item = Owner> {
        self.managers
            .iter_mut()
            .filter_map(move |manager| manager.owner(path))
    }
}

/// Reads a file to its end: the digest of its content, its size, and whether it is what the checksum says.
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

/// Hexadecimal digits as bytes.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Bytes in base 64, URL-safe or not, with padding or without.
fn base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut out = Vec::with_capacity(N + 1);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    out.try_into().ok()
}

/// What was found out about directories, each once: a tree of a thousand files asks for the same few.
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
        // Looked up twice, because a borrow that is handed out cannot be given up again.
        if !self.known.contains_key(path) {
            self.known.insert(path.to_owned(), find(path));
        }
        &self.known[path]
    }
}

/// The directories above a path, nearest first, that have this name.
fn above<'p>(path: &'p Path, is_it: impl Fn(&str) -> bool + 'p) -> impl Iterator<Item = &'p Path> {
    path.ancestors().skip(1).filter(move |dir| {
        let name = dir.file_name().and_then(|name| name.to_str());
        name.is_some_and(&is_it)
    })
}

/// A small text file of a manager; none if it is not there, not text, or too large to be one.
fn text(path: &Path) -> Option<String> {
    String::from_utf8(small(path, 64 << 20)?).ok()
}

/// A file of a manager; none if it is not there, or of more than `most` bytes.
fn small(path: &Path, most: u64) -> Option<Vec<u8>> {
    let file = regular::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    (length <= most).then(|| file.take(most).read_to_end(&mut bytes).ok())??;
    Some(bytes)
}
